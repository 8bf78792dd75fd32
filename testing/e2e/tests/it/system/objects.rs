//! What is particular to cloudscale.ch in what users and kubelets put into the cluster.

use serde_json::json;
use uuid::Uuid;

use super::world::World;

pub(crate) use bowline_conformance::cloud::{FINALIZER, SHUTDOWN, service, tainted_node, web};

/// The key of an annotation by its end.
pub(crate) fn key(suffix: &str) -> String {
    format!("k8s.cloudscale.ch/loadbalancer-{suffix}")
}

/// Servers and annotations.
pub(crate) trait OnCloudscale {
    /// The server of this name.
    fn server(&self, name: &str) -> Uuid;

    /// An annotation of a Service by the end of its key.
    fn annotation(&self, name: &str, suffix: &str) -> Option<String>;

    /// Sets an annotation of a Service by the end of its key.
    fn annotate(&self, name: &str, suffix: &str, value: &str);

    /// Takes an annotation of a Service away by the end of its key.
    fn unannotate(&self, name: &str, suffix: &str);
}

impl OnCloudscale for World {
    fn server(&self, name: &str) -> Uuid {
        let servers = self.sim.servers();
        servers
            .iter()
            .find(|server| server.name == name)
            .expect("a server of this name")
            .uuid
    }

    fn annotation(&self, name: &str, suffix: &str) -> Option<String> {
        let service = self.service(name)?;
        Some(
            service["metadata"]["annotations"][key(suffix)]
                .as_str()?
                .to_owned(),
        )
    }

    fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.edit_service(name, |service| {
            service["metadata"]["annotations"][key(suffix)] = json!(value);
        });
    }

    fn unannotate(&self, name: &str, suffix: &str) {
        self.edit_service(name, |service| {
            let annotations = service["metadata"]["annotations"].as_object_mut();
            annotations.expect("annotations").remove(&key(suffix));
        });
    }
}

/// A world with nodes, the Service `web` and a manager, where all is done.
pub(crate) async fn settled_web(nodes: usize) -> World {
    World::with_web(nodes).await
}
