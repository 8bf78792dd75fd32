//! Brings one Service's load balancer to the state its spec asks for.
//!
//! ```text
//! intent -> finalizer on -> observe -> plan -> apply, until settled -> publish the status
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{
    CloudError, ErrorKind, KubeWrite, LoadBalancerStatus, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_kube_io::{KubeError, ObjectRef};
use bowline_plan::{Note, NoteKind, Refusal};
use futures::future::BoxFuture;

use super::drive::{DriveError, Driven, Hooks, drive};
use super::status::is_published;
use super::tracking::{Causes, NodeIdentities, Parked, Progress, Tracked, identities};
use super::{ServiceController, reasons};
use crate::metrics::ControllerMetrics;

/// How a sync of one Service ended, and when it comes back.
pub(super) enum Outcome {
    /// All is as it should be with these Nodes.
    Settled(NodeIdentities),
    /// The balancer is gone and the Service needs us no longer.
    Removed,
    /// Nothing had to be done.
    Nothing,
    /// The cloud is busy: go on after this time.
    Parked(Parked, Duration),
    /// Something moved under the sync: start anew at once.
    Superseded(Progress),
    /// An API conflict: start anew soon.
    Conflict(Progress),
    /// It failed.
    Failed(Failure, Progress),
}

/// A failed or refused sync.
#[derive(Debug)]
pub(super) struct Failure {
    /// The whole text, as it goes into the event.
    pub(super) text: String,
    /// The delay that the cloud stated; else the schedule decides.
    pub(super) after: Option<Duration>,
    /// The same failure at the next try is no news: the remedy is a person's.
    pub(super) is_quiet: bool,
}

impl Failure {
    pub(super) fn refused(prefix: &str, refusal: &Refusal) -> Self {
        Self {
            text: said(prefix, &refusal.to_string()),
            after: None,
            is_quiet: true,
        }
    }

    fn cloud(prefix: &str, text: String, error: &CloudError) -> Self {
        Self {
            text: said(prefix, &text),
            after: error.retry_after(),
            is_quiet: matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid),
        }
    }

    pub(super) fn kube(prefix: &str, text: String, error: &KubeError) -> Self {
        let after = match error {
            KubeError::Throttled { after, .. } => Some(*after),
            _ => None,
        };
        let is_quiet = matches!(
            error,
            KubeError::Forbidden(_) | KubeError::Invalid(_) | KubeError::Unauthorized(_)
        );
        Self {
            text: said(prefix, &text),
            after,
            is_quiet,
        }
    }
}

/// A text behind what was being done; an empty prefix is none.
fn said(prefix: &str, text: &str) -> String {
    if prefix.is_empty() {
        text.to_owned()
    } else {
        format!("{prefix}: {text}")
    }
}

/// Whether an error ends the sync without being a failure of it.
pub(super) fn quietly(error: &KubeError, progress: Progress) -> Option<Outcome> {
    match error {
        KubeError::Conflict(_) => Some(Outcome::Conflict(progress)),
        // Gone meanwhile, or no longer leading: the watch or the next leader knows what to do.
        KubeError::NotFound(_) | KubeError::GateClosed => Some(Outcome::Superseded(progress)),
        _ => None,
    }
}

pub(super) fn outcome_of_drive_error(prefix: &str, error: &DriveError, progress: Progress) -> Outcome {
    let text = error.to_string();
    match error {
        DriveError::Observe(cause) | DriveError::Step { error: cause, .. } => {
            Outcome::Failed(Failure::cloud(prefix, text, cause), progress)
        }
        DriveError::Kube { error: cause, .. } => quietly(cause, progress)
            .unwrap_or_else(|| Outcome::Failed(Failure::kube(prefix, text, cause), progress)),
    }
}

/// What failed, in upstream's words: its update of a balancer's Nodes has an event of its own, which says it already.
fn ensuring(progress: Progress) -> &'static str {
    if progress.causes.is_nodes_only() {
        ""
    } else {
        "failed to ensure load balancer"
    }
}

impl ServiceController {
    /// One sync of a Service that wants a balancer.
    ///
    /// # Repeatability
    ///
    /// May stop after any await: the next sync observes what was done and goes on. The finalizer is on before the first
    /// write to the cloud.
    pub(super) async fn ensure(&self, key: &ServiceKey, service: Arc<Service>, causes: Causes) -> Outcome {
        let (mut session, mut progress) = match self.resume(key, causes) {
            Ok(parked) => (parked.session, parked.progress),
            Err(mut progress) => {
                let balanced = self.balanced_nodes();
                progress.causes = progress.causes.and(causes);
                self.tracked(key, |tracked| tracked.synced = Some(Arc::clone(&service)));
                if progress.causes.changed && !progress.is_announced {
                    progress.is_announced = true;
                    self.event(
                        &service,
                        NoteKind::Normal,
                        reasons::ENSURING,
                        "Ensuring load balancer",
                    );
                    if balanced.nodes.is_empty() {
                        self.event(
                            &service,
                            NoteKind::Warning,
                            reasons::UNAVAILABLE,
                            reasons::NO_NODES,
                        );
                    }
                }
                // Parse first: an invalid spec ends the sync before it costs a call to anybody.
                let wanted = self.facts(Arc::clone(&service), true, &balanced);
                let mut session = match self.load_balancer.begin(wanted) {
                    Ok(session) => session,
                    Err(refusal) => {
                        return Outcome::Failed(Failure::refused(ensuring(progress), &refusal), progress);
                    }
                };
                self.annotate_nodes_soon();
                if !facts::has_finalizer(&service) {
                    // On before the first write to the cloud, so that the Service cannot vanish with a balancer behind.
                    let with_finalizer = match self.kube.set_service_finalizer(&service, true).await {
                        Ok(service) => Arc::new(service),
                        Err(error) => {
                            return quietly(&error, progress).unwrap_or_else(|| {
                                let prefix = "failed to add load balancer cleanup finalizer";
                                Outcome::Failed(Failure::kube(prefix, error.to_string(), &error), progress)
                            });
                        }
                    };
                    if let Err(refusal) = session.refresh(self.facts(with_finalizer, true, &balanced)) {
                        return Outcome::Failed(Failure::refused(ensuring(progress), &refusal), progress);
                    }
                }
                (session, progress)
            }
        };
        let hooks = SyncHooks::new(self, key, session.facts(), progress);
        let mut is_unverified = progress.is_unverified;
        let driven = drive(&mut *session, &self.lanes, &hooks, &mut is_unverified).await;
        progress = Progress {
            is_unverified,
            ..hooks.progress()
        };
        match driven {
            Ok(Driven::Settled(status)) => {
                let latest = hooks.latest();
                self.publish(&latest, &status, identities(&session.facts().nodes), progress)
                    .await
            }
            Ok(Driven::Wait { after, reason }) => {
                tracing::debug!(service = %key, %reason, ?after, "waiting for the cloud");
                Outcome::Parked(Parked { session, progress }, after)
            }
            Ok(Driven::Refused(refusal)) => {
                Outcome::Failed(Failure::refused(ensuring(progress), &refusal), progress)
            }
            Ok(Driven::Superseded) => Outcome::Superseded(progress),
            Err(DriveError::Observe(error) | DriveError::Step { error, .. })
                if error.kind() == ErrorKind::ImplementedElsewhere =>
            {
                Outcome::Settled(identities(&session.facts().nodes)) // another controller's work: silence, no status
            }
            Err(error) => outcome_of_drive_error(ensuring(progress), &error, progress),
        }
    }

    /// Writes the status if it differs, and says that the sync is done.
    async fn publish(
        &self,
        service: &Arc<Service>,
        status: &LoadBalancerStatus,
        identities: NodeIdentities,
        progress: Progress,
    ) -> Outcome {
        if !is_published(service, status)
            && let Err(error) = self.kube.patch_service_status(service, status).await
        {
            return quietly(&error, progress).unwrap_or_else(|| {
                let prefix = "failed to update load balancer status";
                Outcome::Failed(Failure::kube(prefix, error.to_string(), &error), progress)
            });
        }
        // Without Nodes a provider may keep the last members, which writes nothing: people are told all the same.
        if progress.causes.is_nodes_only() && (progress.has_written || identities.is_empty()) {
            self.tell_updated(service, &identities);
        } else if progress.is_announced {
            self.event(
                service,
                NoteKind::Normal,
                reasons::ENSURED,
                "Ensured load balancer",
            );
        }
        Outcome::Settled(identities)
    }

    /// Takes back the parked session if nothing but time has passed; else what the sync before had come to.
    fn resume(&self, key: &ServiceKey, causes: Causes) -> Result<Parked, Progress> {
        let (parked, unfinished) =
            self.tracked(key, |tracked| (tracked.parked.take(), tracked.unfinished.take()));
        let earlier = match parked {
            Some(parked) if causes.is_empty() => return Ok(parked),
            Some(parked) => parked.progress,
            None => unfinished.unwrap_or_default(),
        };
        Err(Progress {
            // A new change is announced again; what the earlier sync was for is not forgotten.
            is_announced: earlier.is_announced && !causes.changed,
            is_unverified: false, // it begins with a full read
            ..earlier
        })
    }
}

/// What happens around the drive of one Service: events, notes and writes to the Service.
pub(super) struct SyncHooks<'a> {
    controller: &'a ServiceController,
    key: &'a ServiceKey,
    /// The facts, with the Service as our own writes left it.
    facts: Mutex<ServiceFacts>,
    progress: Mutex<Progress>,
}

impl<'a> SyncHooks<'a> {
    pub(super) fn new(
        controller: &'a ServiceController,
        key: &'a ServiceKey,
        facts: &ServiceFacts,
        progress: Progress,
    ) -> Self {
        Self {
            controller,
            key,
            facts: Mutex::new(facts.clone()),
            progress: Mutex::new(progress),
        }
    }

    /// How far the sync has come.
    pub(super) fn progress(&self) -> Progress {
        *lock(&self.progress)
    }

    /// The Service as our own writes left it.
    pub(super) fn latest(&self) -> Arc<Service> {
        Arc::clone(&lock(&self.facts).service)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hooks<ServiceFacts> for SyncHooks<'_> {
    fn metrics(&self) -> &ControllerMetrics {
        &self.controller.metrics
    }

    fn noted(&self, notes: &[Note]) {
        let causes = self.progress().causes;
        let news: Vec<&Note> = self.controller.tracked(self.key, |tracked| {
            // What holds at the first look after a start held before it: the process before this one has said it.
            let is_old = !std::mem::replace(&mut tracked.is_planned, true) && causes.is_verify_only();
            tracked.keep_said(notes, reasons::FAILURES);
            let is_news = |note: &&Note| tracked.is_news(note.reason, &note.text) && !is_old;
            notes.iter().filter(is_news).collect()
        });
        let service = self.latest();
        for note in news {
            self.controller
                .event(&service, note.kind, note.reason, &note.text);
        }
    }

    fn writing(&self, has_cloud_steps: bool) {
        let mut progress = lock(&self.progress);
        if !has_cloud_steps {
            return; // our own bookkeeping on the Service is no change of the balancer
        }
        progress.has_written = true;
        let facts = lock(&self.facts);
        if !progress.is_announced && !progress.causes.is_nodes_only() {
            progress.is_announced = true;
            let (reason, text) = if facts.is_wanted {
                (reasons::ENSURING, "Ensuring load balancer")
            } else {
                (reasons::DELETING, "Deleting load balancer")
            };
            self.controller
                .event(&facts.service, NoteKind::Normal, reason, text);
        }
    }

    fn is_superseded(&self) -> bool {
        self.controller.is_stopping()
            || self
                .controller
                .tracked(self.key, |tracked| tracked.causes.changed)
    }

    fn write<'b>(&'b self, write: &'b KubeWrite) -> BoxFuture<'b, Result<(), KubeError>> {
        Box::pin(async move {
            let service = self.latest();
            let kube = &self.controller.provider_kube;
            let tracked = |change: &dyn Fn(&mut Tracked)| self.controller.tracked(self.key, |it| change(it));
            if let KubeWrite::AnnotateNode { node, annotations } = write {
                return kube.annotate_node(node, annotations).await.map(drop);
            }
            tracked(&|it| it.expect_write(write));
            let written = match write {
                KubeWrite::AnnotateService(annotations) => kube.annotate_service(&service, annotations).await,
                KubeWrite::SetLoadBalancerIp { ip, annotations, .. } => {
                    kube.set_load_balancer_ip(&service, ip, annotations).await
                }
                KubeWrite::AnnotateNode { .. } => return Ok(()), // done above
            };
            tracked(&|it| it.written(write, written.is_ok()));
            let mut facts = lock(&self.facts);
            facts.service = Arc::new(match written {
                // A Service that goes and is gone needs nothing written any more; its balancer still has to go.
                Err(KubeError::NotFound(_)) if !facts.is_wanted => {
                    let mut gone = (*service).clone();
                    write.predict(&mut gone);
                    gone
                }
                written => written?,
            });
            Ok(())
        })
    }

    fn facts(&self) -> ServiceFacts {
        lock(&self.facts).clone()
    }

    fn object(&self) -> String {
        self.key.to_string()
    }
}

impl ServiceController {
    /// Records an event on a Service.
    pub(super) fn event(&self, service: &Service, kind: NoteKind, reason: &'static str, text: &str) {
        self.recorder
            .record(&ObjectRef::from(service), kind, reason, text);
    }
}
