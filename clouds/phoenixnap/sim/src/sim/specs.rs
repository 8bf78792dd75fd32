//! What can be put into an account by hand. Over HTTP, they are the bodies of the admin path.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Assignment, BlockStatus, PUBLIC_NETWORK, ServerStatus, Tag};

/// Where servers, networks and blocks are that do not say.
const DEFAULT_LOCATION: &str = "NLD";

fn default_location() -> String {
    DEFAULT_LOCATION.to_owned()
}

fn default_type() -> String {
    "s2.c2.medium".to_owned()
}

fn powered_on() -> ServerStatus {
    ServerStatus::PoweredOn
}

/// A server for [`crate::PhoenixnapSim::add_server`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Hostname.
    pub hostname: String,
    /// What it is doing.
    #[serde(default = "powered_on")]
    pub status: ServerStatus,
    /// Location.
    #[serde(default = "default_location")]
    pub location: String,
    /// Type.
    #[serde(default = "default_type", rename = "type")]
    pub instance_type: String,
    /// Private addresses; the next free one if absent.
    #[serde(default)]
    pub private_addresses: Option<Vec<String>>,
    /// Public addresses; the next free one if absent.
    #[serde(default)]
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
            id: None,
            hostname: hostname.into(),
            status: powered_on(),
            location: default_location(),
            instance_type: default_type(),
            private_addresses: None,
            public_addresses: None,
            networks: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// In another status.
    #[must_use]
    pub fn status(mut self, status: ServerStatus) -> Self {
        self.status = status;
        self
    }

    /// In another location.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }

    /// Of another type.
    #[must_use]
    pub fn instance_type(mut self, instance_type: impl Into<String>) -> Self {
        self.instance_type = instance_type.into();
        self
    }

    /// With these private addresses.
    #[must_use]
    pub fn private<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.private_addresses = Some(addresses.into_iter().map(Into::into).collect());
        self
    }

    /// With these public addresses.
    #[must_use]
    pub fn public<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.public_addresses = Some(addresses.into_iter().map(Into::into).collect());
        self
    }

    /// Without public addresses.
    #[must_use]
    pub fn private_only(self) -> Self {
        self.public::<String>([])
    }

    /// In a public network as well.
    #[must_use]
    pub fn network(mut self, id: impl Into<String>) -> Self {
        self.networks.push(id.into());
        self
    }
}

/// A public network for [`crate::PhoenixnapSim::add_network`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Location.
    #[serde(default = "default_location")]
    pub location: String,
}

impl NetworkSpec {
    /// An empty network in `NLD`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            location: default_location(),
        }
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// In another location.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }
}

/// A block for [`crate::PhoenixnapSim::add_block`]: what an operator, another cluster or another manager has left.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Location.
    #[serde(default = "default_location")]
    pub location: String,
    /// The range; the next free /29 if absent.
    #[serde(default)]
    pub cidr: Option<IpNet>,
    /// What it is doing; by its assignment if absent.
    #[serde(default)]
    pub status: Option<BlockStatus>,
    /// What it is attached to.
    #[serde(default)]
    pub assignment: Option<Assignment>,
    /// Tags; names that the account does not have are made.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// RFC 3339; now if absent.
    #[serde(default)]
    pub created_on: Option<String>,
}

impl BlockSpec {
    /// A /29 in `NLD` that is attached to nothing and has no tags.
    pub fn new() -> Self {
        Self {
            id: None,
            location: default_location(),
            cidr: None,
            status: None,
            assignment: None,
            tags: Vec::new(),
            created_on: None,
        }
    }

    /// With the four tags that version 1.0.0 of the vendor's manager gives to the block of a Service.
    pub fn of_service(cluster: &str, namespace: &str, name: &str) -> Self {
        Self::new()
            .tag("usage", "cloud-provider-phoenixnap-auto")
            .tag("cluster", cluster)
            .tag("serviceNamespace", namespace)
            .tag("serviceName", name)
    }

    /// As the vendor's manager marks the block of a Service that is gone.
    pub fn marked(cluster: &str) -> Self {
        Self::new()
            .tag("usage", "cloud-provider-phoenixnap-auto")
            .tag("cluster", cluster)
            .tag("delete", "true")
    }

    /// With one more tag.
    #[must_use]
    pub fn tag(mut self, name: &str, value: &str) -> Self {
        self.tags.push(Tag::new(name, value));
        self
    }

    /// Attached to a public network, its type spelled in words.
    #[must_use]
    pub fn network(self, id: impl Into<String>) -> Self {
        self.attached(id, PUBLIC_NETWORK)
    }

    /// Attached to something of this type, spelled as it is here.
    #[must_use]
    pub fn attached(mut self, id: impl Into<String>, resource_type: &str) -> Self {
        self.assignment = Some(Assignment {
            resource_id: Some(id.into()),
            resource_type: Some(resource_type.to_owned()),
        });
        self
    }

    /// In this status, which then stays.
    #[must_use]
    pub fn status(mut self, status: BlockStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// With this range.
    #[must_use]
    pub fn cidr(mut self, cidr: IpNet) -> Self {
        self.cidr = Some(cidr);
        self
    }

    /// In another location.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }
}

impl Default for BlockSpec {
    fn default() -> Self {
        Self::new()
    }
}
