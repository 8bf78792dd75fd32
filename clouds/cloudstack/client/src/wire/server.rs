//! What the server tells of itself, and projects.

use serde::Deserialize;

use super::ProjectId;

/// A management server (`listManagementServersMetrics`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ManagementServer {
    #[serde(default, deserialize_with = "super::or_default")]
    pub(crate) id: String,
    /// Its version, e.g. `4.22.0.0` or `4.20.0.0-SNAPSHOT`.
    #[serde(default, deserialize_with = "super::or_default")]
    pub version: String,
}

/// What the server can do (`listCapabilities`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The server's version; some do not tell it to everyone.
    pub version: Option<String>,
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Payload {
            capability: Inner,
        }
        #[derive(Deserialize)]
        struct Inner {
            #[serde(default, deserialize_with = "super::text_or_none")]
            cloudstackversion: Option<String>,
        }
        let payload = Payload::deserialize(deserializer)?;
        Ok(Self {
            version: payload.capability.cloudstackversion,
        })
    }
}

/// A project (`listProjects`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Project {
    pub(crate) id: ProjectId,
    #[serde(default, deserialize_with = "super::or_default")]
    pub(crate) name: String,
}
