//! Barbican's secrets and containers.

use serde_json::{Value, json};

use super::Wire;
use crate::model::keys::{Container, Secret};
use crate::options::Service;

impl Wire<'_> {
    pub(crate) fn key_manager_versions(&self) -> Value {
        let root = self.root(Service::KeyManager);
        json!({ "versions": [{
            "id": "v1",
            "status": "CURRENT",
            "min_version": "1.0",
            "max_version": "1.1",
            "links": [{ "rel": "self", "href": format!("{root}/v1/") }],
            "media-types": [
                { "base": "application/json", "type": "application/vnd.openstack.key-manager-v1+json" },
            ],
        }] })
    }

    fn key_ref(&self, kind: &str, id: crate::model::Id) -> String {
        format!("{}/v1/{kind}/{id}", self.root(Service::KeyManager))
    }

    pub(crate) fn secret(&self, secret: &Secret) -> Value {
        let time = secret.created_at.trim_end_matches('Z');
        json!({
            "secret_ref": self.key_ref("secrets", secret.id),
            "name": secret.name,
            "status": "ACTIVE",
            "secret_type": "opaque",
            "content_types": { "default": "application/octet-stream" },
            "algorithm": null,
            "bit_length": null,
            "mode": null,
            "expiration": null,
            "creator_id": null,
            "created": time,
            "updated": time,
        })
    }

    pub(crate) fn container(&self, container: &Container) -> Value {
        let time = container.created_at.trim_end_matches('Z');
        let reference = |(name, id): &(String, crate::model::Id)| json!({ "name": name, "secret_ref": self.key_ref("secrets", *id) });
        json!({
            "container_ref": self.key_ref("containers", container.id),
            "name": container.name,
            "type": "certificate",
            "status": "ACTIVE",
            "secret_refs": container.secrets.iter().map(reference).collect::<Vec<_>>(),
            "consumers": [],
            "creator_id": null,
            "created": time,
            "updated": time,
        })
    }
}
