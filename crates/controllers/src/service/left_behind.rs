//! Balancers whose Services vanished while no process led, found by what the cloud shows.
//!
//! A Service that is without our finalizer when it is deleted leaves the cluster at once. Who saw it removes its balancer; after
//! a restart nothing in Kubernetes asks for that. Where the cloud's objects bear marks that tell cluster, name and UID, the
//! API server is asked for the name, and what nobody bears any more is removed like everything that vanished.

use std::sync::Arc;

use bowline_cloud_provider::{MadeFor, Service, ServicesView, facts};
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::tracked::Causes;
use super::{Key, ServiceController};
use crate::queue::Stated;

/// Why it could not be found out, and what was said about the next try.
type Failure = (String, Stated);

impl ServiceController {
    /// Looks once through the balancers of this cluster; tried again if it fails.
    pub(super) async fn look_for_left_behind(&self) {
        match self.find_left_behind().await {
            Ok(()) => self.queue.forget(&Key::LeftBehind),
            Err((error, stated)) => {
                tracing::warn!(err = %error, "Cannot find out whether deleted Services left load balancers behind, will look again");
                self.queue.retry_after(Key::LeftBehind, stated);
            }
        }
    }

    async fn find_left_behind(&self) -> Result<(), Failure> {
        let made = self.provider.load_balancer.made_for(&*self.services).await;
        let mut made = made.map_err(|error| (error.to_string(), Stated::by_cloud(&error)))?;
        // Now, before anything is awaited: one that lives at this moment may soon be removed in the ordinary way.
        made.retain(|made| match self.services.service(&made.key) {
            Some(living) if is(&living, made) => {
                self.take_back(made, &living);
                false
            }
            _ => true,
        });
        for made in &made {
            if self.ctx.stop.is_cancelled() {
                return Ok(());
            }
            let found = self.ctx.kube.find_service(&made.key, &self.services).await;
            let found = found.map_err(|error| (error.to_string(), Stated::by_kube(&error)))?;
            if !found.is_some_and(|found| is(&found, made)) {
                self.remove_left_behind(made, "A Service was deleted");
            }
            self.progressed(&Key::LeftBehind, true);
        }
        Ok(())
    }

    /// A Service that lives, and asks us for no balancer any more, lost its finalizer before its balancer was removed. If it has a
    /// class by now, its finalizer and its status are another controller's: then nothing but the balancer goes.
    fn take_back(&self, made: &MadeFor, living: &Service) {
        if facts::wants_load_balancer(living) {
            return;
        }
        if facts::class(living).is_some() {
            let is_unknown = self.tracked(&made.key, |tracked| tracked.synced.is_none());
            if is_unknown {
                self.remove_left_behind(made, "A Service has a class by now");
            }
            return;
        }
        let is_released = !facts::has_finalizer(living) && living.metadata.deletion_timestamp.is_none();
        let is_news = is_released
            && self.tracked(&made.key, |tracked| {
                let is_unknown = tracked.synced.is_none();
                tracked.synced.get_or_insert_with(|| with_balancer(made));
                is_unknown
            });
        if is_news {
            self.enqueue(&made.key, Causes::CHANGED);
        }
    }

    /// Nothing in Kubernetes asks for the balancer any more.
    fn remove_left_behind(&self, made: &MadeFor, why: &str) {
        let is_news = self.tracked(&made.key, |tracked| {
            let is_unknown = !tracked.vanished.iter().any(|vanished| is(vanished, made));
            if is_unknown {
                tracked.vanished.push(with_balancer(made));
            }
            is_unknown
        });
        if is_news {
            tracing::warn!(service = %made.key, uid = made.uid, "{why} and its load balancer was left behind, deleting the load balancer");
            self.enqueue(&made.key, Causes::CHANGED);
        }
    }
}

/// Whether the balancer was made for this very Service.
fn is(service: &Service, made: &MadeFor) -> bool {
    service.metadata.uid.as_deref() == Some(&made.uid)
}

/// What is known of the Service: enough to find what bears its mark.
fn with_balancer(made: &MadeFor) -> Arc<Service> {
    Arc::new(Service {
        metadata: ObjectMeta {
            namespace: Some(made.key.namespace.to_string()),
            name: Some(made.key.name.to_string()),
            uid: Some(made.uid.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: Some("LoadBalancer".to_owned()),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}
