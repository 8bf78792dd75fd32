//! A reconcile that goes from one cloud to the next: what is left in one is removed before another begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_plan::{Ailment, Answer, Plan, Refusal, Shown};
use futures::future::{BoxFuture, FutureExt as _};

use super::served::Balancers;
use crate::question::said_by;
use crate::{CloudError, DynLearned, DynPlan, DynStep, Measurement, Now, Reconcile, ServiceFacts};

/// What is to do in one cloud.
pub(super) struct Part {
    pub(super) cloud: usize,
    pub(super) is_wanted: bool,
    /// Whether nothing tells that the cloud has anything of the Service, which does not wait for an answer, then.
    pub(super) may_be_left_out: bool,
    pub(super) session: Box<dyn Reconcile<ServiceFacts>>,
}

/// How long after a reconcile a cloud is asked again that did not answer in it.
const AGAIN: Duration = Duration::from_secs(300);

/// The parts of a reconcile, the first one under way. There is always one.
pub(super) struct InTurn {
    balancers: Arc<Balancers>,
    facts: ServiceFacts,
    parts: Vec<Part>,
    now: usize,
    /// Whether the next look is one that ends the part.
    is_ending: bool,
    /// Whether the part that is under way was looked at to its end.
    has_ended: bool,
    /// Whether steps of the part that is under way were predicted: a look would show what is there without them.
    is_predicted: bool,
    /// Whether a cloud did not answer that may have nothing of the Service.
    has_left_out: bool,
    /// How many of the last parts are put off: their clouds did not answer, refused, failed, or are busy.
    put_off: usize,
    /// Whether a write of the part that is under way failed, and the part is to be put off.
    has_failed: AtomicBool,
}

impl InTurn {
    pub(super) fn new(balancers: Arc<Balancers>, facts: ServiceFacts, parts: Vec<Part>) -> Self {
        Self {
            balancers,
            facts,
            parts,
            now: 0,
            is_ending: false,
            has_ended: false,
            is_predicted: false,
            has_left_out: false,
            put_off: 0,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Whether another part comes first if this one does not get on: where a Service goes, none leans on another.
    fn can_be_put_off(&self) -> bool {
        !self.facts.is_wanted && self.now + 1 + self.put_off < self.parts.len()
    }

    /// Has the next part come first.
    fn put_off(&mut self) {
        self.has_ended = false;
        self.put_off += 1;
        self.parts[self.now..].rotate_left(1);
    }

    fn part(&self) -> &Part {
        &self.parts[self.now]
    }

    fn name(&self) -> Option<&'static str> {
        self.balancers.name(self.part().cloud)
    }

    fn session(&mut self) -> &mut dyn Reconcile<ServiceFacts> {
        &mut *self.parts[self.now].session
    }

    /// Tells that a part is done.
    fn ended(&self) {
        let part = self.part();
        part.session.settled();
        if !part.is_wanted {
            self.balancers.is_gone(&self.facts.service, part.cloud);
        }
    }
}

impl Reconcile<ServiceFacts> for InTurn {
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        Box::pin(async {
            loop {
                let look = match std::mem::take(&mut self.is_ending) {
                    true => self.session().verify(),
                    false => self.session().observe(),
                };
                match look.await {
                    Err(_) if self.part().may_be_left_out => {
                        (self.has_ended, self.has_left_out) = (false, true);
                        self.now += 1;
                    }
                    Err(_) if self.can_be_put_off() => {
                        self.put_off();
                    }
                    look => return look.map_err(|error| said_by(self.name(), error)),
                }
            }
        })
    }

    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        let name = self.name();
        let look = self.session().verify();
        look.map(move |look| look.map_err(|error| said_by(name, error)))
            .boxed()
    }

    fn plan(&mut self) -> Option<DynPlan> {
        let name = self.name();
        let mut plan = self.session().plan()?;
        let is_stuck = matches!(plan.answer, Answer::Refused(_) | Answer::Wait { .. });
        if self.has_failed.swap(false, Ordering::Relaxed) || is_stuck && self.can_be_put_off() {
            self.put_off();
            let reason = format!("what {} has", self.name().unwrap_or_default());
            return Some(Plan::new(Answer::LookAgain { reason }).with_notes(plan.notes));
        }
        let is_last = self.now + 1 == self.parts.len();
        let said = name.map_or_else(String::new, |name| format!("{name}: "));
        match &mut plan.answer {
            Answer::Refused(refusal) => refusal.reason.insert_str(0, &said),
            Answer::Wait { reason, .. } => reason.insert_str(0, &said),
            Answer::Settled(_) if !is_last && std::mem::take(&mut self.is_predicted) => {
                self.now += 1;
                let reason = format!("what {} has", self.name().unwrap_or_default());
                return Some(Plan::new(Answer::LookAgain { reason }).with_notes(plan.notes));
            }
            Answer::Settled(_) if !is_last => {
                let reason = match self.has_ended {
                    true => {
                        self.ended();
                        self.now += 1;
                        format!("what {} has", self.name().unwrap_or_default())
                    }
                    false => {
                        self.is_ending = true;
                        format!("whether {} has anything left", name.unwrap_or_default())
                    }
                };
                self.has_ended = !self.has_ended;
                return Some(Plan::new(Answer::LookAgain { reason }).with_notes(plan.notes));
            }
            Answer::Apply(_) => self.has_ended = false,
            Answer::Settled(_) if self.has_left_out => {
                plan.again = Some(plan.again.map_or(AGAIN, |again| again.min(AGAIN)));
            }
            Answer::Settled(_) | Answer::LookAgain { .. } => {}
        }
        Some(plan)
    }

    fn before_wave(&self) {
        self.part().session.before_wave();
    }

    fn settled(&self) {
        self.ended();
    }

    fn queued(&self, step: &DynStep) -> Option<Box<dyn Send>> {
        self.part().session.queued(step)
    }

    fn apply<'a>(&'a self, step: &'a DynStep, now: Now<'a>) -> BoxFuture<'a, Result<DynLearned, CloudError>> {
        Box::pin(async move {
            match self.part().session.apply(step, now).await {
                // It comes again, and is told then.
                Err(_) if self.can_be_put_off() => {
                    self.has_failed.store(true, Ordering::Relaxed);
                    Ok(DynLearned::unknown())
                }
                applied => applied.map_err(|error| said_by(self.name(), error)),
            }
        })
    }

    fn was_put_off(&self, step: &DynStep) -> bool {
        self.part().session.was_put_off(step)
    }

    fn learn(&mut self, wave: &[DynStep], answers: Vec<(usize, DynLearned)>) {
        self.session().learn(wave, answers);
    }

    fn predict(&mut self, step: &DynStep) {
        self.is_predicted = true;
        self.session().predict(step);
    }

    fn refresh(&mut self, facts: ServiceFacts) -> Result<(), Refusal> {
        for part in &mut self.parts[self.now..] {
            let of_cloud = self.balancers.facts(part.cloud, &facts, part.is_wanted);
            part.session.refresh(of_cloud)?;
        }
        self.facts = facts;
        Ok(())
    }

    fn facts(&self) -> &ServiceFacts {
        &self.facts
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.part().session.measurements()
    }

    fn ailments(&self) -> Vec<Ailment> {
        self.part().session.ailments()
    }

    fn shown(&self) -> Shown {
        self.part().session.shown()
    }
}
