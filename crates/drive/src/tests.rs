//! The drive with a session that answers what it is told to.

use std::convert::Infallible;

use bowline_cloud_provider::{DynLearned, Measurement};
use bowline_plan::Plan;

use super::*;

/// Settles at the look of this number, and looks again before.
struct Session {
    looks: usize,
    settles_at: usize,
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
    let mut session = Session { looks: 0, settles_at };
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

#[tokio::test]
async fn what_was_superseded_does_not_look_again_and_is_no_error() {
    let (driven, looks) = driven(1_000, true).await;
    assert!(matches!(driven, Ok(Driven::Superseded)), "{driven:?}");
    assert_eq!(looks, 1);
}
