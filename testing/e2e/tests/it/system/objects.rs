//! What is particular to cloudscale.ch in what users put into the cluster.

use serde_json::json;

use super::world::World;

pub(crate) use bowline_conformance::cloud::{FINALIZER, service, web};

/// The key of an annotation by its end.
pub(crate) fn key(suffix: &str) -> String {
    format!("k8s.cloudscale.ch/loadbalancer-{suffix}")
}

/// Annotations.
pub(crate) trait OnCloudscale {
    /// Sets an annotation of a Service by the end of its key.
    fn annotate(&self, name: &str, suffix: &str, value: &str);
}

impl OnCloudscale for World {
    fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.edit_service(name, |service| {
            service["metadata"]["annotations"][key(suffix)] = json!(value);
        });
    }
}
