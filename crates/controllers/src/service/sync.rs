//! One sync of one Service: which of the operations it needs.

use std::sync::Arc;

use bowline_cloud_provider::{Node, ReconcileKind, Service, ServiceFacts, ServiceKey, facts};
use tokio::time::Instant;

use super::ServiceController;
use super::causes::Causes;
use super::outcome::Outcome;
use super::state::Progress;
use super::tracked::{Removal, Tracked};

impl ServiceController {
    /// One sync of one Service.
    pub(super) async fn sync(&self, key: &ServiceKey) -> Outcome {
        let classes = self.classes();
        let (causes, vanished, is_foreign, may_have_balancer) = self.tracked(key, |tracked| {
            let causes = std::mem::take(&mut tracked.causes);
            let vanished = tracked.vanished.first().cloned();
            (
                causes,
                vanished,
                tracked.is_foreign,
                tracked.may_have_balancer(classes),
            )
        });
        let successor = self.services.get(key).filter(|service| {
            classes.is_wanted(service) || facts::needs_cleanup(service) && !is_foreign || may_have_balancer
        });
        let is_turn = |tracked: &mut Tracked| successor.is_none() || tracked.removal.begin();
        if let Some(vanished) = vanished.filter(|_| self.tracked(key, is_turn)) {
            let before = self.tracked(key, |tracked| tracked.state.begin(ReconcileKind::Delete, causes));
            let outcome = self.delete_vanished(key, vanished, causes, before).await;
            self.count(key, ReconcileKind::Delete, &outcome);
            let is_long = self.tracked(key, |tracked| tracked.removal.is_long());
            match outcome {
                Outcome::Removed => self.tracked(key, |tracked| {
                    tracked.vanished.remove(0);
                    tracked.removal = Removal::default();
                }),
                Outcome::Failed(failure, progress) if successor.is_some() => {
                    self.tell_failed(key, &failure, progress);
                    self.tracked(key, Tracked::rest_removal);
                }
                Outcome::Parked(..) if successor.is_some() && is_long => {
                    self.tracked(key, Tracked::rest_removal);
                }
                outcome => return outcome,
            }
            // Its successor may be waiting, and perhaps for the first time.
            let is_new = self.tracked(key, |tracked| tracked.synced.is_none());
            let causes = causes.and(if is_new { Causes::CHANGED } else { causes });
            return Outcome::Superseded(Progress {
                causes,
                ..Progress::default()
            });
        }
        let Some(service) = self.services.get(key) else {
            return Outcome::Removed;
        };
        let is_wanted = classes.is_wanted(&service);
        // A balancer that we made is ours to remove whatever has become of the Service: it has another type or a class by
        // now, or somebody took the finalizer off.
        let is_to_go = may_have_balancer && !is_wanted || facts::needs_cleanup(&service) && !is_foreign;
        let kind = match (is_to_go, is_wanted) {
            (true, _) => ReconcileKind::Delete,
            (false, true) if causes == Causes::NODES => ReconcileKind::Update,
            (false, true) => ReconcileKind::Ensure,
            (false, false) => return Outcome::Nothing,
        };
        let begun = Instant::now();
        let before = self.tracked(key, |tracked| tracked.state.begin(kind, causes));
        let outcome = match kind {
            ReconcileKind::Delete => self.delete(key, service, causes, before).await,
            ReconcileKind::Ensure | ReconcileKind::Update => self.ensure(key, service, causes, before).await,
        };
        if kind == ReconcileKind::Update {
            let latency = &self.ctx.metrics.update_loadbalancer_host_latency_seconds;
            latency.observe(begun.elapsed().as_secs_f64());
        }
        self.count(key, kind, &outcome);
        outcome
    }

    /// What a provider is handed of a Service.
    pub(super) fn facts(&self, service: Arc<Service>, nodes: &Arc<[Arc<Node>]>) -> ServiceFacts {
        let services = Arc::clone(&self.view);
        let (nodes, cluster) = (Arc::clone(nodes), Arc::clone(&self.ctx.cluster));
        ServiceFacts::of(service, nodes, services, cluster, self.ctx.kube.clock().now())
    }
}
