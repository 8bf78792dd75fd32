//! A provider's work that belongs to no single Service, from the same queue.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{BackgroundFacts, DynPlan, KubeWrite, ServiceKey};
use bowline_drive::{Driven, GivenUp, Hooks, Mode, Took, Wait, drive, others_wait};
use bowline_kube_io::KubeError;
use bowline_plan::{Lane, NoteKind};
use futures::future::BoxFuture;

use super::causes::Causes;
use super::unsettled::Reason;
use super::{Key, ServiceController, lock};
use crate::event_dedup::EventDedup;

/// How long after room was made those try again that were refused for want of it: once for all that is given back within that time.
const ROOM: Duration = Duration::from_secs(5);

impl ServiceController {
    /// Lets each background work run for the first time.
    pub(super) fn schedule_background(&self) {
        for (index, work) in self.provider.background.iter().enumerate() {
            self.queue.add_after(Key::Background(index), work.first());
        }
    }

    /// Lets all background work run soon: a balancer was removed, and that may have left something to do.
    pub(super) fn wake_background(&self) {
        for index in 0..self.provider.background.len() {
            self.queue.add(Key::Background(index));
        }
    }

    /// Something of the cloud was given back: who was refused for want of room tries again, and does not wait for the schedule.
    pub(super) fn room_was_made(&self) {
        self.provider.load_balancer.room_was_made();
        for (key, tracked) in &mut *lock(&self.tracked) {
            let reason = tracked.unsettled.as_ref().map(|unsettled| unsettled.reason);
            if reason == Some(Reason::Quota) {
                tracked.add_causes(Causes::RETRY);
                self.queue.add_after(Key::Service(key.clone()), ROOM);
            }
        }
    }

    /// One run; comes back by itself after its period, or when the cloud said that it is worth looking again.
    pub(super) async fn run_background(&self, index: usize) {
        let work = &self.provider.background[index];
        let again = |after| self.queue.add_after(Key::Background(index), after);
        let facts = BackgroundFacts {
            services: Arc::clone(&self.view),
            cluster: Arc::clone(&self.ctx.cluster),
            now: self.ctx.kube.clock().now(),
        };
        let mut session = match Arc::clone(work).begin(facts) {
            Ok(session) => session,
            Err(refusal) => {
                tracing::warn!(work = work.name(), err = %refusal, "Background work refused");
                self.ctx.metrics.measurements.hide(work.name());
                return again(work.period());
            }
        };
        let (said_before, given_up) = lock(&self.background_runs).remove(&index).unwrap_or_default();
        let hooks = BackgroundHooks {
            controller: self,
            index,
            name: work.name(),
            said_before,
            dedup: Mutex::default(),
            given_up: Mutex::new(given_up),
        };
        let driven = drive(&mut *session, Mode::Apply(&self.lanes), &hooks, &mut false).await;
        // What holds for many runs is said once.
        let said = std::mem::take(&mut *lock(&hooks.dedup));
        let given_up = std::mem::take(&mut *lock(&hooks.given_up));
        lock(&self.background_runs).insert(index, (said, given_up));
        match &driven {
            Ok(Driven::Settled(..) | Driven::Wait { .. }) => {
                self.ctx
                    .metrics
                    .measurements
                    .show(work.name(), session.measurements());
            }
            // Nobody knows how much of the last numbers still holds.
            Ok(Driven::Refused(..) | Driven::Superseded) | Err(_) => {
                self.ctx.metrics.measurements.hide(work.name());
            }
        }
        if work.has_made_room() {
            self.room_was_made();
        }
        match driven {
            Ok(Driven::Wait { after, .. }) => again(after.min(work.period())),
            Ok(Driven::Refused(refusal, _)) => {
                tracing::warn!(work = work.name(), err = %refusal, "Background work refused");
                again(work.period());
            }
            Ok(Driven::Settled(..) | Driven::Superseded) => again(work.period()),
            Err(error) => {
                tracing::warn!(work = work.name(), err = %error, "Background work failed, will be tried again");
                again(work.period());
            }
        }
    }
}

struct BackgroundHooks<'a> {
    controller: &'a ServiceController,
    index: usize,
    name: &'static str,
    /// What the last run had to say.
    said_before: EventDedup,
    dedup: Mutex<EventDedup>,
    given_up: Mutex<GivenUp>,
}

impl Hooks<BackgroundFacts, KubeError> for BackgroundHooks<'_> {
    fn planned(&self, facts: &BackgroundFacts, plan: &DynPlan) {
        self.controller.ctx.metrics.planned(&plan.answer);
        let news = lock(&self.dedup).news(&plan.notes, |_| true);
        for note in news.into_iter().filter(|note| !self.said_before.has(note)) {
            // Most are about no object that could have an event.
            let services = note.about.iter().flat_map(|_| facts.services.services());
            let mut about = services.filter(|it| Some(ServiceKey::of(it).to_string()) == note.about);
            if let Some(service) = about.next() {
                self.controller.ctx.event(&*service, note.clone());
                // What it knows of the Service the Service's own sync finds too, with the condition and the remedy.
                if self.controller.classes().is_wanted(&service) {
                    self.controller.enqueue(&ServiceKey::of(&service), Causes::VERIFY);
                }
            }
            match note.kind {
                NoteKind::Warning => tracing::warn!(work = self.name, reason = note.reason, "{}", note.text),
                NoteKind::Normal => tracing::info!(work = self.name, reason = note.reason, "{}", note.text),
            }
        }
    }

    fn is_superseded(&self) -> bool {
        self.controller.ctx.stop.is_cancelled()
    }

    fn write<'b>(
        &'b self,
        _facts: &'b Mutex<BackgroundFacts>,
        _write: &'b KubeWrite,
    ) -> BoxFuture<'b, Result<(), KubeError>> {
        let text = format!("background work `{}` is for no Service", self.name);
        Box::pin(std::future::ready(Err(KubeError::Invalid(text))))
    }

    fn progressed(&self, is_working: bool) {
        self.controller
            .progressed(&Key::Background(self.index), is_working);
    }

    fn newer_waits<'b>(&'b self, label: &'b str) -> BoxFuture<'b, Duration> {
        others_wait(label, &lock(&self.given_up))
    }

    fn made(&self, label: &str, gave_up: bool, _took: Took) {
        lock(&self.given_up).made(label, gave_up);
    }

    fn waiting(&self, lane: &Lane) -> Wait<'_> {
        Some(Box::new(self.controller.ctx.metrics.waits_for(lane)))
    }

    fn object(&self) -> String {
        self.name.to_owned()
    }
}
