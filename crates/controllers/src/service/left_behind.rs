//! Load balancers that nothing in this cluster asks for, and whose end this process did not see: they are reported, never deleted.
//!
//! A Service that is without our finalizer when it is deleted leaves the cluster at once. Who saw it removes its balancer; after a
//! restart nothing in Kubernetes asks for that. The marks on the cloud's objects tell cluster, name and UID, and all of these are
//! copied with the API server's data: a copy of the cluster, or one that was restored from a backup, sees each balancer that the
//! original made since as one whose Service is gone. So a person decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::orphans::OrphanFacts;
use bowline_cloud_provider::{MadeFor, Service, ask_all};
use futures::future;

use super::causes::Causes;
use super::{Key, ServiceController, lock};
use crate::metrics::Readings;
use crate::metrics::gauges::number;
use crate::queue::RetryAfter;

/// The Services that balancers were left behind by; `None`: nobody has looked yet.
pub(super) type LeftBehind = Option<Vec<MadeFor>>;

impl ServiceController {
    /// Looks once through the balancers of this cluster; tried again if it fails.
    pub(super) async fn look_for_left_behind(&self) {
        match self.find_left_behind().await {
            Ok(()) => self.queue.forget(&Key::LeftBehind),
            Err((error, retry_after)) => {
                tracing::warn!(err = %error, "Cannot find out whether deleted Services left load balancers behind, will look again");
                self.queue.retry_after(Key::LeftBehind, retry_after);
            }
        }
    }

    /// Of a cloud that does not answer, what it told before counts on.
    async fn find_left_behind(&self) -> Result<(), (String, RetryAfter)> {
        // What was spoken for when the cloud was asked may have been removed in the ordinary way by the time of its answer.
        let mut spoken_for = self.spoken_for();
        let facts = OrphanFacts {
            services: Arc::clone(&self.view),
            nodes: self.ctx.nodes.all().into(),
            cluster: Arc::clone(&self.ctx.cluster),
            now: self.ctx.kube.clock().now(),
        };
        let made_for = self.provider.load_balancer.made_for(&*self.view);
        let elsewhere = self.provider.load_balancer.left_elsewhere(&facts);
        let asked = made_for.len() + elsewhere.len();
        let ((mut found, mut failed), (elsewhere, silent)) = future::join(
            ask_all(made_for, future::pending),
            ask_all(elsewhere, future::pending),
        )
        .await;
        failed.extend(silent);
        let failure = failed
            .first()
            .map(|it| (it.error().to_string(), RetryAfter::by_cloud(&it.why)));
        for MadeFor { key, uid, .. } in &elsewhere {
            let is_it = |service: &Arc<Service>| service.metadata.uid.as_ref() == Some(uid);
            let service = self.services.get(key).filter(is_it);
            if service.is_some_and(|service| self.classes().is_wanted(&service)) {
                self.enqueue(key, Causes::VERIFY); // what is left of it goes
            }
        }
        let known = lock(&self.left_behind).clone().unwrap_or_default();
        if let Some(failure) = &failure {
            if failed.len() == asked {
                return Err(failure.clone());
            }
            let is_untold = |known: &&MadeFor| !found.contains(known);
            let untold: Vec<_> = known.iter().filter(is_untold).cloned().collect();
            found.extend(untold);
        }
        spoken_for.append(&mut self.spoken_for());
        found.retain(|made| !spoken_for.contains(&made.uid));
        let (mut left, mut news) = (Vec::new(), Vec::new());
        for made in found {
            if known.contains(&made) {
                left.push(made);
                continue;
            }
            // That the Service is missing from a list proves nothing.
            let found = self.ctx.kube.find_service(&made.key, &self.services).await;
            let found = found.map_err(|error| (error.to_string(), RetryAfter::by_kube(&error)))?;
            self.progressed(&Key::LeftBehind, true);
            let is_spoken_for =
                |it: &Service| it.metadata.uid.as_ref() == Some(&made.uid) && self.classes().may_concern(it);
            if !found.is_some_and(|found| is_spoken_for(&found)) {
                news.push(made);
            }
        }
        for made in &news {
            tracing::warn!(
                service = %made.key, uid = made.uid, load_balancer = made.balancer,
                "A load balancer was made for a Service that is gone or asks for none, and this process did not see that happen: it stays, and is \
                 billed. Unless another copy of this cluster uses it, delete it with the command orphans"
            );
        }
        left.append(&mut news);
        *lock(&self.left_behind) = Some(left);
        failure.map_or(Ok(()), Err)
    }

    /// The UIDs of Services that ask for a balancer, or whose balancers this process is about to remove.
    fn spoken_for(&self) -> BTreeSet<String> {
        let (services, classes) = (self.services.all(), self.classes());
        let asking = services.iter().filter(|service| classes.may_concern(service));
        let tracked = lock(&self.tracked);
        let synced = tracked.values().flat_map(|tracked| {
            let synced = tracked
                .synced
                .iter()
                .filter(|_| tracked.may_have_balancer(classes));
            synced.chain(&tracked.vanished)
        });
        asking
            .chain(synced)
            .filter_map(|it| it.metadata.uid.clone())
            .collect()
    }

    /// For the gauge: shown from the first look on.
    pub(super) fn count_left_behind(&self) -> Readings {
        let left_behind = lock(&self.left_behind);
        left_behind.iter().map(|left| ("", number(left.len()))).collect()
    }
}
