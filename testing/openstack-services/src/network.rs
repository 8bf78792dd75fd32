//! Networks on which floating IPs are allocated.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rest::{RestError, Session};
use crate::service::Service;

/// A network on which floating IPs are allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalNetwork {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its first subnet.
    pub subnet_id: String,
}

impl ExternalNetwork {
    pub(crate) async fn create(admin: &Session, name: &str, cidr: &str) -> Result<Self, RestError> {
        let network = json!({ "network": {
            "name": name,
            "router:external": true,
            "provider:network_type": "flat",
            // Each flat network needs one for itself.
            "provider:physical_network": name,
        } });
        let id = create(admin, Service::Network, "/v2.0/networks", "network", network).await?;
        let mut network = Self {
            id,
            name: name.to_owned(),
            subnet_id: String::new(),
        };
        network.subnet_id = network.add_subnet(admin, &format!("{name}-v4"), cidr).await?;
        Ok(network)
    }

    pub(crate) async fn add_subnet(
        &self,
        admin: &Session,
        name: &str,
        cidr: &str,
    ) -> Result<String, RestError> {
        let subnet = json!({ "subnet": {
            "name": name, "network_id": self.id, "ip_version": 4, "cidr": cidr, "enable_dhcp": false,
        } });
        create(admin, Service::Network, "/v2.0/subnets", "subnet", subnet).await
    }
}

/// Creates an object of a kind, and answers its ID.
///
/// # Errors
///
/// When the service refuses.
pub(crate) async fn create(
    session: &Session,
    service: Service,
    path: &str,
    kind: &str,
    body: Value,
) -> Result<String, RestError> {
    session
        .call(service, Method::POST, path, Some(body))
        .await?
        .id(kind)
}
