//! How objects look on the wire.
//!
//! Written from recorded answers of the services and from their API references; deliberately shares nothing with the
//! client of this repository.

use serde_json::Value;

use crate::model::Meta;
use crate::options::Service;
use crate::state::State;

mod barbican;
mod keystone;
mod neutron;
mod nova;
mod octavia;

/// Renders the objects of a state with absolute links.
pub(crate) struct Wire<'a> {
    pub(crate) state: &'a State,
    /// Scheme and host, without a slash at the end.
    pub(crate) base: &'a str,
}

impl Wire<'_> {
    /// The URL of a public endpoint of the simulated region, without a version.
    pub(crate) fn root(&self, service: Service) -> String {
        format!("{}/{}", self.base, service.folder())
    }
}

/// Adds what all Neutron objects have.
fn with_meta(mut object: Value, meta: &Meta) -> Value {
    for field in ["project_id", "tenant_id"] {
        object[field] = Value::from(meta.project.as_str());
    }
    object["description"] = Value::from(meta.description.as_str());
    object["tags"] = Value::from(meta.tags.clone());
    object["created_at"] = Value::from(meta.created_at.as_str());
    object["updated_at"] = Value::from(meta.updated_at.as_str());
    object["revision_number"] = Value::from(meta.revision);
    object
}
