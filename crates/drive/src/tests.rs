//! The drive with a session that answers what it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_base::log::Log;
use bowline_cloud_provider::{
    Begin, DynLearned, LoadBalancerPlan, LoadBalancerStep, Measurement, Memory, Now, Reconciler, Seen,
    WriteOutcome,
};
use bowline_plan::{Impact, Plan, Step};

use super::*;

mod refusals;

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

    fn apply<'a>(&'a self, step: &'a DynStep, _: Now<'a>) -> BoxFuture<'a, Result<DynLearned, CloudError>> {
        panic!("no plan has a step: {step:?}")
    }

    fn learn(&mut self, _: &[DynStep], _: Vec<(usize, DynLearned)>) {}

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

#[derive(Default)]
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
    let quiet = Quiet { is_superseded };
    let driven = drive(&mut session, Mode::Predict, &quiet, &mut false).await;
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
        let quiet = Quiet::default();
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

/// A cloud with one write for each name, of which it answers this, try by try. What is put off is planned again.
struct Toy(Mutex<BTreeMap<&'static str, VecDeque<WriteOutcome>>>);

#[derive(Debug, Clone, PartialEq)]
struct Named(&'static str);

impl Step for Named {
    fn label(&self) -> String {
        self.0.to_owned()
    }

    fn object(&self) -> String {
        self.0.to_owned()
    }

    fn impact(&self) -> Impact {
        Impact::None
    }

    fn lanes(&self) -> Vec<Lane> {
        vec![Lane::new(self.0)]
    }
}

impl Reconciler for Toy {
    type Facts = ();
    type Intent = ();
    /// What is left to do.
    type Observed = Vec<&'static str>;
    type Remembered = ();
    type Step = Named;
    type Learned = WriteOutcome;

    fn intent(&self, (): &()) -> Result<(), Refusal> {
        Ok(())
    }

    async fn observe(
        &self,
        (): &(),
        last: Option<Self::Observed>,
        _: &mut Memory<(), Named>,
    ) -> Result<Self::Observed, CloudError> {
        Ok(last.unwrap_or_else(|| self.0.lock().unwrap().keys().copied().collect()))
    }

    async fn verify(
        &self,
        (): &(),
        last: Self::Observed,
        _: &mut Memory<(), Named>,
    ) -> Result<Self::Observed, CloudError> {
        Ok(last)
    }

    fn plan(&self, (): &(), left: &Seen<Self::Observed, (), Named>) -> LoadBalancerPlan<Named> {
        let steps = left.iter().map(|name| LoadBalancerStep::Cloud(Named(name)));
        let settled = || Answer::Settled(LoadBalancerStatus::empty());
        Plan::new(Answer::apply_or(steps.collect(), settled))
    }

    async fn apply(
        &self,
        (): &(),
        _: &Seen<Self::Observed, (), Named>,
        step: &Named,
    ) -> Result<WriteOutcome, CloudError> {
        let mut answers = self.0.lock().unwrap();
        let answer = answers.get_mut(step.0).and_then(VecDeque::pop_front);
        answer.ok_or_else(|| CloudError::other("no answer is left"))
    }

    fn learn(&self, left: &mut Seen<Self::Observed, (), Named>, step: &Named, learned: WriteOutcome) {
        left.observed
            .retain(|name| *name != step.0 || learned == WriteOutcome::PutOff);
    }
}

/// Several are put off in one wave, and taken in others: an operator reads of each once. What was refused is not told as made, and what
/// has no answer is told as neither.
#[tokio::test]
async fn an_action_is_told_once_however_often_it_is_put_off_and_what_was_refused_is_not_told_as_taken() {
    use WriteOutcome::{NotTaken, PutOff, Taken, Unknown};
    let answers: [(_, &[WriteOutcome]); 5] = [
        ("a", &[PutOff, PutOff, PutOff, Taken]),
        ("b", &[Taken]),
        ("c", &[PutOff, Taken]),
        ("d", &[PutOff, NotTaken]),
        ("e", &[Unknown]),
    ];
    let answers = answers.map(|(name, answers)| (name, answers.iter().copied().collect()));
    let toy = Arc::new(Toy(Mutex::new(answers.into())));
    let mut session = toy.begin(()).unwrap();
    let (lanes, quiet) = (Lanes::default(), Quiet::default());
    let (log, _guards) = Log::listen(tracing::Level::DEBUG);
    let driven = drive(&mut *session, Mode::Apply(&lanes), &quiet, &mut false).await;
    assert!(matches!(driven, Ok(Driven::Settled(..))), "{driven:?}");
    let lines = log.take();
    let count = |words: &[&str]| {
        let with_all = |line: &&String| words.iter().all(|word| line.contains(word));
        lines.iter().filter(with_all).count()
    };
    for (name, tries, end) in [
        ("label=a", 4, "outcome=\"taken\""),
        ("label=b", 1, "outcome=\"taken\""),
        ("label=c", 2, "outcome=\"taken\""),
        ("label=d", 2, "outcome=\"not taken\""),
        ("label=e", 1, "outcome=\"unknown\""),
    ] {
        assert_eq!(
            count(&["INFO", "executing action", name]),
            1,
            "{name}: {lines:#?}"
        );
        assert_eq!(
            count(&["DEBUG", "executing action again", name]),
            tries - 1,
            "{name}"
        );
        assert_eq!(
            count(&["action ended", name, "outcome=\"put off\""]),
            tries - 1,
            "{name}"
        );
        assert_eq!(count(&["action ended", name, end]), 1, "{name}: {lines:#?}");
    }
}

/// Another Service writes to the same object for a while; meanwhile a step of the same wave fails.
#[tokio::test]
async fn a_step_that_waits_for_its_lane_is_not_written_after_its_wave_has_failed() {
    let answers = [("a", vec![]), ("b", vec![WriteOutcome::Taken])];
    let answers = answers.map(|(name, answers)| (name, answers.into()));
    let toy = Arc::new(Toy(Mutex::new(answers.into())));
    let mut session = Arc::clone(&toy).begin(()).unwrap();
    let (lanes, quiet) = (Lanes::default(), Quiet::default());
    let held = lanes.hold(&[Lane::new("b")], |_| None).await;
    let mut is_unverified = false;
    let driven = drive(&mut *session, Mode::Apply(&lanes), &quiet, &mut is_unverified);
    let release = async { drop(held) };
    let (driven, ()) = tokio::join!(biased; driven, release);
    assert_eq!(
        driven.unwrap_err().to_string(),
        "error during a: no answer is left"
    );
    assert_eq!(toy.0.lock().unwrap()["b"].len(), 1, "it was not written");
}
