//! What can be put into an account by hand. Over HTTP, they are the bodies of the admin path.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Assignment, BlockStatus, PUBLIC_NETWORK, ServerStatus, Tag};

/// A server for [`crate::PhoenixnapSim::add_server`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Hostname.
    pub hostname: String,
    /// What it is doing; it is on if absent.
    pub status: Option<ServerStatus>,
    /// Location; `NLD` if absent.
    pub location: Option<String>,
    /// Type; `s2.c2.medium` if absent.
    #[serde(rename = "type")]
    pub instance_type: Option<String>,
    /// Private addresses; the next free one if absent.
    pub private_addresses: Option<Vec<String>>,
    /// Public addresses; the next free one if absent.
    pub public_addresses: Option<Vec<String>>,
    /// Ids of the public networks that it is in.
    #[serde(default)]
    pub networks: Vec<String>,
    /// Tags; names that the account does not have are made.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

impl ServerSpec {
    /// A running server in `NLD` with one private and one public address.
    pub fn new(hostname: impl Into<String>) -> Self {
        Self {
            hostname: hostname.into(),
            ..Self::default()
        }
    }

    /// The same, in a public network as well.
    pub fn on(network: impl Into<String>, hostname: impl Into<String>) -> Self {
        Self {
            networks: vec![network.into()],
            ..Self::new(hostname)
        }
    }
}

/// A public network for [`crate::PhoenixnapSim::add_network`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Location; `NLD` if absent.
    pub location: Option<String>,
}

impl NetworkSpec {
    /// An empty network in `NLD`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The same, with this id.
    pub fn with_id(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: Some(id.into()),
            ..Self::new(name)
        }
    }

    /// The same, in another location.
    pub fn located(location: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            location: Some(location.into()),
            ..Self::new(name)
        }
    }
}

/// A block for [`crate::PhoenixnapSim::add_block`]: what an operator, another cluster or another manager has left.
/// The default is a /29 in `NLD` that is attached to nothing and has no tags.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Location; `NLD` if absent.
    pub location: Option<String>,
    /// The range; the next free /29 if absent.
    pub cidr: Option<IpNet>,
    /// What it is doing; by its assignment if absent.
    pub status: Option<BlockStatus>,
    /// What it is attached to.
    pub assignment: Option<Assignment>,
    /// Tags; names that the account does not have are made.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// RFC 3339; now if absent.
    pub created_on: Option<String>,
}

impl BlockSpec {
    /// With the four tags that version 1.0.0 of the vendor's manager gives to the block of a Service.
    pub fn of_service(cluster: &str, namespace: &str, name: &str) -> Self {
        Self::default()
            .tag("usage", "cloud-provider-phoenixnap-auto")
            .tag("cluster", cluster)
            .tag("serviceNamespace", namespace)
            .tag("serviceName", name)
    }

    /// As the vendor's manager marks the block of a Service that is gone.
    pub fn marked(cluster: &str) -> Self {
        Self::default()
            .tag("usage", "cloud-provider-phoenixnap-auto")
            .tag("cluster", cluster)
            .tag("delete", "true")
    }

    /// With one more tag.
    pub fn tag(mut self, name: &str, value: &str) -> Self {
        self.tags.push(Tag::new(name, value));
        self
    }

    /// Attached to a public network, its type spelled in words.
    pub fn network(self, id: impl Into<String>) -> Self {
        self.attached(id, PUBLIC_NETWORK)
    }

    /// Attached to something of this type, spelled as it is here.
    pub fn attached(mut self, id: impl Into<String>, resource_type: &str) -> Self {
        self.assignment = Some(Assignment {
            resource_id: Some(id.into()),
            resource_type: Some(resource_type.to_owned()),
        });
        self
    }
}
