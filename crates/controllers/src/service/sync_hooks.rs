//! What happens around the drive of one Service: events, notes and writes to the Service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::{KubeWrite, Reconcile, Service, ServiceFacts, ServiceKey};
use bowline_kube_io::KubeError;
use bowline_plan::{Note, NoteKind};
use futures::future::BoxFuture;

use super::drive::{DriveError, Driven, Hooks, drive};
use super::tracked::{Progress, Tracked};
use super::{Key, ServiceController};
use crate::events;
use crate::metrics::ControllerMetrics;

impl ServiceController {
    /// Drives a session of a Service as far as it goes now, and keeps its progress up to date.
    pub(super) async fn drive(
        &self,
        key: &ServiceKey,
        session: &mut dyn Reconcile<ServiceFacts>,
        progress: &mut Progress,
    ) -> Result<Driven, DriveError> {
        let hooks = SyncHooks {
            controller: self,
            key,
            facts: Mutex::new(session.facts().clone()),
            progress: Mutex::new(*progress),
        };
        let mut is_unverified = progress.is_unverified;
        let driven = drive(session, &self.lanes, &hooks, &mut is_unverified).await;
        *progress = Progress {
            is_unverified,
            ..hooks.progress()
        };
        driven
    }
}

/// What happens around the drive of one Service: events, notes and writes to the Service.
struct SyncHooks<'a> {
    controller: &'a ServiceController,
    key: &'a ServiceKey,
    /// The facts, with the Service as our own writes left it.
    facts: Mutex<ServiceFacts>,
    progress: Mutex<Progress>,
}

impl SyncHooks<'_> {
    /// How far the sync has come.
    fn progress(&self) -> Progress {
        *lock(&self.progress)
    }

    /// Whether nothing needs to be written to a Service whose balancer goes, because it is gone itself. Another one may
    /// bear its name by now.
    fn is_gone(&self, service: &Service) -> bool {
        let there = self.controller.services.get(self.key);
        !lock(&self.facts).is_wanted && there.is_none_or(|there| there.metadata.uid != service.metadata.uid)
    }

    /// Whether the balancer is made, or removed, even though this may not be written.
    fn goes_on_without(&self, write: &KubeWrite) -> bool {
        matches!(write, KubeWrite::AnnotateService(_))
            && !self.controller.provider.load_balancer.needs_annotations()
    }

    /// Says once what is not written, and why.
    fn tell_unwritten(&self, service: &Service, refusal: &str) {
        let reason = events::ANNOTATIONS_FORBIDDEN;
        let text = format!(
            "Going on without annotations of the service, which the verb patch on services would allow: {refusal}"
        );
        let is_news = |tracked: &mut Tracked| tracked.is_news(reason, &text);
        if self.controller.tracked(self.key, is_news) {
            tracing::warn!(service = %self.key, err = refusal, "annotations of the service may not be written");
            self.controller.event(service, NoteKind::Warning, reason, &text);
        }
    }

    /// The Service as our own writes left it.
    fn latest(&self) -> Arc<Service> {
        Arc::clone(&lock(&self.facts).service)
    }
}

/// The Service as a write would leave it.
fn as_written(service: &Service, write: &KubeWrite) -> Service {
    let mut service = service.clone();
    write.predict(&mut service);
    service
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hooks<ServiceFacts> for SyncHooks<'_> {
    fn metrics(&self) -> &ControllerMetrics {
        &self.controller.ctx.metrics
    }

    fn noted(&self, notes: &[Note]) {
        let causes = self.progress().causes;
        let news: Vec<&Note> = self.controller.tracked(self.key, |tracked| {
            // What holds at the first look after a start held before it: the process before this one has said it.
            let is_old = !std::mem::replace(&mut tracked.is_planned, true) && causes.is_verify_only();
            tracked.keep_said(notes);
            let is_news =
                |note: &&Note| tracked.is_news(note.reason, &note.text) && (!is_old || note.is_said_at_start);
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
                (events::ENSURING_LOAD_BALANCER, "Ensuring load balancer")
            } else {
                (events::DELETING_LOAD_BALANCER, "Deleting load balancer")
            };
            self.controller
                .event(&facts.service, NoteKind::Normal, reason, text);
        }
    }

    fn is_superseded(&self) -> bool {
        self.controller.stop.is_cancelled()
            || self
                .controller
                .tracked(self.key, |tracked| tracked.causes.changed)
    }

    fn write<'b>(&'b self, write: &'b KubeWrite) -> BoxFuture<'b, Result<(), KubeError>> {
        Box::pin(async move {
            let service = self.latest();
            let kube = &self.controller.provider.kube;
            let tracked = |change: &dyn Fn(&mut Tracked)| self.controller.tracked(self.key, |it| change(it));
            if let KubeWrite::AnnotateNode {
                node,
                uid,
                annotations,
            } = write
            {
                return kube.annotate_node(node, uid, annotations).await.map(drop);
            }
            if self.is_gone(&service) {
                lock(&self.facts).service = Arc::new(as_written(&service, write));
                return Ok(());
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
                // The watch has yet to tell that it is gone.
                Err(KubeError::NotFound(_)) if !facts.is_wanted => as_written(&service, write),
                Err(KubeError::Forbidden(refusal)) if self.goes_on_without(write) => {
                    self.tell_unwritten(&service, &refusal);
                    as_written(&service, write)
                }
                written => written?,
            });
            Ok(())
        })
    }

    fn facts(&self) -> ServiceFacts {
        lock(&self.facts).clone()
    }

    fn progressed(&self, is_working: bool) {
        self.controller
            .progressed(&Key::Service(self.key.clone()), is_working);
    }

    fn object(&self) -> String {
        self.key.to_string()
    }
}
