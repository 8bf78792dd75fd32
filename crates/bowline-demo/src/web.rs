//! The web workload's Service.

use serde_json::{Value, json};

/// Its namespace.
pub(crate) const NAMESPACE: &str = "default";
/// Its name.
pub(crate) const SERVICE: &str = "web";
/// Its first port. 1024 or above, so that nobody needs a privilege.
pub(crate) const PORT: u16 = 8080;

/// Where Services of the namespace are.
pub(crate) const COLLECTION: &str = "/api/v1/namespaces/default/services";
/// Where the Service is.
pub(crate) const PATH: &str = "/api/v1/namespaces/default/services/web";

/// The Service, as it is before it asks for a load balancer.
pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": SERVICE },
        "spec": {
            "type": "NodePort",
            "selector": { "app": SERVICE },
            "ports": [{ "name": "http", "protocol": "TCP", "port": PORT, "targetPort": PORT }],
        },
    })
}
