//! What happens around the drive of one Service: events, notes and writes to the Service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{
    AddressLoss, AddressNote, DynPlan, DynStep, KubeWrite, Reconcile, Service, ServiceFacts, ServiceKey,
    facts, reasons,
};
use bowline_drive::{DriveError, Driven, Hooks, Mode, Wait, changes_cloud, drive};
use bowline_kube_io::KubeError;
use bowline_plan::{Answer, Lane, Note};
use bowline_transport::patience::{SILENT, Took};
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::causes::Causes;
use super::needs_update::needs_update;
use super::state::Progress;
use super::tracked::{Tracked, is_lasting};
use super::{Key, ServiceController, lock};
use crate::events;

impl ServiceController {
    /// Drives a session of a Service as far as it goes now, and keeps its progress up to date.
    pub(super) async fn drive(
        &self,
        key: &ServiceKey,
        session: &mut dyn Reconcile<ServiceFacts>,
        progress: &mut Progress,
    ) -> Result<Driven, DriveError<KubeError>> {
        let hooks = SyncHooks {
            controller: self,
            key,
            is_removal: !session.facts().is_wanted,
            gives_way: !progress.interruptions.are_to_end(),
            has_given_up: AtomicBool::new(false),
            progress: Mutex::new(*progress),
        };
        let mut is_unverified = progress.is_unverified;
        let driven = drive(session, Mode::Apply(&self.lanes), &hooks, &mut is_unverified).await;
        *progress = Progress {
            is_unverified,
            has_given_up: hooks.has_given_up.load(Ordering::Relaxed),
            ..hooks.progress()
        };
        driven
    }

    /// Writes on a Service what its provider wants there; `note` goes with a status.
    pub(super) async fn write_service(
        &self,
        service: &Service,
        write: &KubeWrite,
        note: &AddressNote,
    ) -> Result<Service, KubeError> {
        self.write_on(&self.provider.kube, service, move |kube| async move {
            match write {
                KubeWrite::AnnotateService(annotations) => kube.annotate_service(service, annotations).await,
                KubeWrite::SetLoadBalancerIp { ip, annotations, .. } => {
                    kube.set_load_balancer_ip(service, ip, annotations).await
                }
                KubeWrite::PublishStatus(status) => kube.patch_service_status(service, status, note).await,
            }
        })
        .await
    }
}

/// What happens around the drive of one Service: events, notes and writes to the Service.
struct SyncHooks<'a> {
    controller: &'a ServiceController,
    key: &'a ServiceKey,
    /// Whether the balancer is to go.
    is_removal: bool,
    /// Whether a change of the Service ends the sync before its next wave.
    gives_way: bool,
    /// Whether a call was given up because something newer waits: then that comes next.
    has_given_up: AtomicBool,
    progress: Mutex<Progress>,
}

impl SyncHooks<'_> {
    /// How far the sync has come.
    fn progress(&self) -> Progress {
        *lock(&self.progress)
    }

    /// Whether a balancer is being made that nobody asks for any more.
    fn is_in_vain(&self) -> bool {
        let there = self.controller.services.get(self.key);
        !self.is_removal && !there.is_some_and(|there| self.controller.classes().is_wanted(&there))
    }

    /// Whether something of a step may be left, should it take effect late. A removal makes nothing.
    fn may_be_left(&self, step: &DynStep) -> bool {
        !self.is_removal && step.may_be_left()
    }

    /// Whether nothing needs to be written to a Service whose balancer goes, because it is gone itself. Another one may
    /// bear its name by now.
    fn is_gone(&self, facts: &ServiceFacts) -> bool {
        let there = self.controller.services.get(self.key);
        !facts.is_wanted && there.is_none_or(|there| there.metadata.uid != facts.service.metadata.uid)
    }

    /// The version of the Service that a write is based on: the one that the sync works on, or the newest one, where that asks for the
    /// same: our own condition may have been written meanwhile. If this gives way to nothing, the newest one in any case, as long as the
    /// change of others has nothing to do with the write.
    fn base(&self, before: &ServiceFacts, write: &KubeWrite) -> Arc<Service> {
        let service = &before.service;
        let classes = self.controller.classes();
        let newest = self.controller.services.newer_than(service).filter(|newest| {
            (!self.gives_way || !needs_update(classes, service, newest))
                && classes.is_wanted(newest) == before.is_wanted
                && write.fits_both(service, newest)
        });
        newest.unwrap_or_else(|| Arc::clone(service))
    }

    /// Why a status is not written now: it was refused, and its next try is not due.
    fn held_back(&self, write: &KubeWrite) -> Option<KubeError> {
        let KubeWrite::PublishStatus(status) = write else {
            return None;
        };
        let failure = self
            .controller
            .tracked(self.key, |tracked| tracked.fights.held_back(status))?;
        Some(KubeError::Forbidden(failure.text))
    }

    /// Whether the balancer is made, or removed, even though this may not be written.
    fn goes_on_without(&self, write: &KubeWrite) -> bool {
        matches!(write, KubeWrite::AnnotateService(_))
            && !self.controller.provider.load_balancer.needs_annotations()
    }

    /// Whether a field is to be cleared of a Service that only our finalizer holds: it goes with its balancer, field and all.
    fn is_cleared_by_its_end(before: &ServiceFacts, write: &KubeWrite) -> bool {
        let metadata = &before.service.metadata;
        let ends = metadata.deletion_timestamp.is_some()
            && facts::has_finalizer(&before.service)
            && metadata.finalizers.iter().flatten().count() == 1;
        ends && !before.is_wanted && matches!(write, KubeWrite::SetLoadBalancerIp { ip, .. } if ip.is_empty())
    }
}

/// The Service as a write would leave it.
fn as_written(service: &Service, write: &KubeWrite) -> Service {
    let mut service = service.clone();
    write.predict(&mut service);
    service
}

impl Hooks<ServiceFacts, KubeError> for SyncHooks<'_> {
    fn planned(&self, facts: &ServiceFacts, plan: &DynPlan) {
        self.controller.ctx.metrics.planned(&plan.answer);
        let notes = &plan.notes;
        let causes = {
            let mut progress = lock(&self.progress);
            progress.keeps_something = notes.iter().any(|note| reasons::says_kept(note.reason));
            progress.causes
        };
        let mut went_on = false;
        let news: Vec<&Note> = self.controller.tracked(self.key, |tracked| {
            // What holds at the first look after a start held before it: the process before this one has said it.
            let is_old = !std::mem::replace(&mut tracked.is_planned, true) && causes == Causes::VERIFY;
            // A plan on the way may not have come to what the last one noted. What has ended, only one that ends can tell.
            let is_end = matches!(plan.answer, Answer::Settled(_) | Answer::Refused(_));
            if matches!(plan.answer, Answer::Apply(_)) {
                went_on = tracked.goes_on();
            }
            tracked.lacks.clone_from(&plan.lacks);
            let loss = notes.iter().find_map(|note| AddressLoss::of_event(note.reason));
            tracked.address_loss = loss.or(tracked.address_loss);
            let mut news = tracked.dedup.news(notes, |reason| !is_end || is_lasting(reason));
            news.retain(|note| !is_old || note.is_said_at_start);
            news
        });
        if went_on {
            self.controller.condition_is_due(self.key);
        }
        let ctx = &self.controller.ctx;
        let component = self.controller.provider.load_balancer.event_component();
        for note in news.into_iter().cloned() {
            match component {
                Some(component) => ctx.event_of(component, &*facts.service, note),
                None => ctx.event(&*facts.service, note),
            }
        }
    }

    fn now(&self) -> Option<Timestamp> {
        Some(self.controller.ctx.kube.clock().now())
    }

    fn writing(&self, facts: &ServiceFacts, wave: &[DynStep]) {
        if !changes_cloud(wave) {
            return; // our own bookkeeping on the Service is no change of the balancer
        }
        let mut progress = lock(&self.progress);
        progress.has_written = true;
        if !progress.is_announced && progress.causes != Causes::NODES {
            progress.is_announced = true;
            let event = if facts.is_wanted {
                events::ENSURING_LOAD_BALANCER
            } else {
                events::DELETING_LOAD_BALANCER
            };
            self.controller.ctx.event(&*facts.service, event.verbatim());
        }
    }

    fn is_superseded(&self) -> bool {
        self.controller.ctx.stop.is_cancelled()
            || self.gives_way
                && self.controller.tracked(self.key, |tracked| {
                    let has_given_up = self.has_given_up.load(Ordering::Relaxed);
                    tracked.causes.has(Causes::CHANGED) || has_given_up && tracked.causes.has(Causes::NODES)
                })
    }

    fn write<'b>(
        &'b self,
        facts: &'b Mutex<ServiceFacts>,
        write: &'b KubeWrite,
    ) -> BoxFuture<'b, Result<(), KubeError>> {
        Box::pin(async move {
            let before = lock(facts).clone();
            let service = &before.service;
            let tracked = |change: &dyn Fn(&mut Tracked)| self.controller.tracked(self.key, |it| change(it));
            if self.is_gone(&before) {
                lock(facts).service = Arc::new(as_written(service, write));
                return Ok(());
            }
            if let Some(error) = self.held_back(write) {
                return Err(error);
            }
            tracked(&|it| it.expect_write(write));
            let base = self.base(&before, write);
            let note = match write {
                KubeWrite::PublishStatus(status) => {
                    self.controller
                        .address_note(self.key, &base, status, self.progress())
                }
                _ => AddressNote::Keep,
            };
            let written = self.controller.write_service(&base, write, &note).await;
            tracked(&|it| it.written(write, written.is_ok()));
            if let Ok(shown) = &written
                && matches!(write, KubeWrite::PublishStatus(_))
            {
                tracked(&|it| it.fights.tells(shown));
                self.controller.note_served(self.key, &before.nodes);
            }
            lock(facts).service = Arc::new(match written {
                // The watch has yet to tell that it is gone.
                Err(KubeError::NotFound(_)) if !before.is_wanted => as_written(service, write),
                Err(KubeError::Forbidden(refusal)) if self.goes_on_without(write) => {
                    self.controller.tell_unwritten(self.key, service, &refusal);
                    as_written(service, write)
                }
                Err(error @ (KubeError::Forbidden(_) | KubeError::Invalid(_)))
                    if Self::is_cleared_by_its_end(&before, write) =>
                {
                    tracing::warn!(service = %self.key, err = %error, "A field of a Service that goes may not be cleared");
                    as_written(service, write)
                }
                // What comes next takes away what the status shows so far.
                Err(error) if let KubeWrite::PublishStatus(status) = write => {
                    self.controller
                        .not_published(self.key, status, &error, self.progress());
                    return Err(error);
                }
                written if Arc::ptr_eq(&base, service) => written?,
                // The sync goes on with what it began with.
                written => {
                    let mut service = as_written(service, write);
                    service.metadata.resource_version = written?.metadata.resource_version;
                    service
                }
            });
            Ok(())
        })
    }

    fn holds_back(&self, write: &KubeWrite) -> bool {
        self.held_back(write).is_some()
    }

    fn progressed(&self, is_working: bool) {
        self.controller
            .progressed(&Key::Service(self.key.clone()), is_working);
    }

    fn newer_waits<'b>(&'b self, label: &'b str) -> BoxFuture<'b, Duration> {
        Box::pin(async move {
            loop {
                let news = self.controller.news.notified();
                let in_vain = self.is_in_vain();
                let is_impatient = |tracked: &mut Tracked| tracked.is_impatient(label, in_vain);
                if let Some(after) = self.controller.tracked(self.key, is_impatient) {
                    return after;
                }
                news.await;
            }
        })
    }

    fn made(&self, label: &str, gave_up: bool, took: Took) {
        lock(&self.controller.pace).took(label, took);
        let was_told = self
            .controller
            .tracked(self.key, |tracked| tracked.unanswered.made(label, gave_up));
        if was_told {
            self.controller.condition_is_due(self.key);
        }
        if gave_up {
            self.has_given_up.store(true, Ordering::Relaxed);
            let service = self.key;
            tracing::warn!(%service, %label, "A cloud call hangs, and was given up because the Service or its Nodes changed");
        }
    }

    fn is_worth_noting(&self) -> BoxFuture<'_, ()> {
        let after = lock(&self.controller.pace).notes_after();
        let stop = self.controller.ctx.stop.clone();
        Box::pin(async move {
            stop.run_until_cancelled(sleep(after.saturating_sub(SILENT)))
                .await;
        })
    }

    /// It is noted at once, and not from the queue, which ends with the process.
    fn unanswered<'b>(&'b self, step: &'b DynStep, until: Instant) -> BoxFuture<'b, ()> {
        Box::pin(async move {
            self.controller.tracked(self.key, |tracked| {
                tracked
                    .unanswered
                    .is_silent(&step.view().label, until, self.may_be_left(step));
            });
            let queued = Key::Condition(self.key.clone());
            self.controller.show_condition(self.key, &queued).await;
        })
    }

    fn may_come_until(&self, step: &DynStep, begun: Instant, until: Instant) {
        self.controller.tracked(self.key, |tracked| {
            let label = step.view().label.as_str();
            tracked
                .unanswered
                .gave_up(Some(label), until, self.may_be_left(step));
        });
        if step.concerns_others() {
            self.controller.may_come_to_others(begun, until);
        }
    }

    fn waiting(&self, lane: &Lane) -> Wait<'_> {
        Some(Box::new(self.controller.ctx.metrics.waits_for(lane)))
    }

    fn object(&self) -> String {
        self.key.to_string()
    }
}
