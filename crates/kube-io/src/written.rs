//! The answer to a write of which only the metadata is read.

use serde::Deserialize;

use crate::error::KubeError;
use crate::reads::{Listed, about};
use crate::shape::read;

/// Which object was written, and the version that it has since then. Whatever else it holds is brought by its watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// Reads the answer to a write to this very object: the whole object, or its metadata alone.
pub(crate) fn decode<T: Listed>(answer: &[u8], key: &T::Key) -> Result<Written, KubeError> {
    let checked = read(answer).and_then(|Wire { metadata }| {
        if T::key_of(&metadata.namespace, &metadata.name).as_ref() != Some(key) {
            return Err(KubeError::Decode("the answer is about another object".into()));
        }
        let Meta {
            uid,
            resource_version,
            ..
        } = metadata;
        if uid.is_empty() {
            return Err(KubeError::missing("metadata.uid"));
        }
        if resource_version.is_empty() {
            return Err(KubeError::missing("metadata.resourceVersion"));
        }
        Ok(Written {
            uid,
            resource_version,
        })
    });
    checked.map_err(|error| about::<T>(error, key))
}
