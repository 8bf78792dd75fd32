//! The drive with a session that answers what it is told to.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_cloud_provider::{DynLearned, Measurement};
use bowline_plan::Plan;

use super::*;

/// Settles at the look of this number, and looks again before.
#[derive(Default)]
struct Session {
    looks: usize,
    settles_at: usize,
    /// How often it was told that it settled.
    told: AtomicUsize,
}

impl Reconcile<()> for Session {
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        self.looks += 1;
        Box::pin(std::future::ready(Ok(())))
    }

    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        self.observe()
    }

    fn plan(&mut self) -> Option<DynPlan> {
        Some(Plan::new(match self.looks {
            look if look < self.settles_at => Answer::LookAgain {
                reason: format!("look {look} showed more"),
            },
            _ => Answer::Settled(LoadBalancerStatus::empty()),
        }))
    }

    fn before_wave(&self) {
        panic!("no plan has a wave")
    }

    fn settled(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    fn apply<'a>(&'a self, step: &'a DynStep) -> BoxFuture<'a, Result<DynLearned, CloudError>> {
        panic!("no plan has a step: {step:?}")
    }

    fn learn(&mut self, _: &DynStep, _: DynLearned) {}

    fn predict(&mut self, _: &DynStep) {}

    fn refresh(&mut self, (): ()) -> Result<(), Refusal> {
        Ok(())
    }

    fn facts(&self) -> &() {
        &()
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

struct Quiet {
    is_superseded: bool,
}

impl Hooks<(), Infallible> for Quiet {
    fn planned(&self, (): &(), _: &DynPlan) {}

    fn is_superseded(&self) -> bool {
        self.is_superseded
    }

    fn write<'a>(&'a self, _: &'a Mutex<()>, _: &'a KubeWrite) -> BoxFuture<'a, Result<(), Infallible>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn object(&self) -> String {
        "toy".to_owned()
    }
}

/// How a drive ends, and how often it looked.
async fn driven(settles_at: usize, is_superseded: bool) -> (Result<Driven, DriveError<Infallible>>, usize) {
    let mut session = Session {
        settles_at,
        ..Session::default()
    };
    let driven = drive(&mut session, Mode::Predict, &Quiet { is_superseded }, &mut false).await;
    (driven, session.looks)
}

#[tokio::test]
async fn what_has_to_be_read_first_is_looked_at_at_once() {
    let (driven, looks) = driven(3, false).await;
    assert!(matches!(driven, Ok(Driven::Settled(..))), "{driven:?}");
    assert_eq!(looks, 3);
}

#[tokio::test]
async fn a_plan_that_does_not_settle_is_an_error_with_its_last_two_waves() {
    let (driven, looks) = driven(1_000, false).await;
    assert_eq!(
        driven.unwrap_err().to_string(),
        "the plan does not settle in 100 waves. This is a fault of Bowline: please report it with this text. The last two \
         waves were [a look again: look 99 showed more] and [a look again: look 100 showed more]"
    );
    assert_eq!(looks, MAX_WAVES + 1);
}

/// Else a plan that is looked at would change what the next real one does.
#[tokio::test]
async fn a_plan_that_is_only_shown_tells_nobody_that_it_settled() {
    let lanes = Lanes::default();
    for (mode, told) in [(Mode::Predict, 0), (Mode::Apply(&lanes), 1)] {
        let mut session = Session::default();
        let quiet = Quiet { is_superseded: false };
        drive(&mut session, mode, &quiet, &mut true).await.unwrap();
        assert_eq!(session.told.into_inner(), told);
    }
}

#[tokio::test]
async fn what_was_superseded_does_not_look_again_and_is_no_error() {
    let (driven, looks) = driven(1_000, true).await;
    assert!(matches!(driven, Ok(Driven::Superseded)), "{driven:?}");
    assert_eq!(looks, 1);
}
