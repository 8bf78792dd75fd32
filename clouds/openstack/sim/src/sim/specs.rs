//! What can be put into a cloud by hand. In scenarios they are JSON.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

use crate::model::Id;
use crate::model::compute::ShownAddress;

/// A server for [`crate::OpenstackSim::add_server`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSpec {
    /// Its name.
    pub name: String,
    /// The project's id; the first project's if absent.
    pub project: Option<String>,
    /// The flavor's id; `m1.small`'s if absent.
    pub flavor: Option<String>,
    /// Where it runs; the default zone if absent.
    pub zone: Option<String>,
    /// Its ports in order.
    #[serde(default = "one_nic")]
    pub nics: Vec<NicSpec>,
    /// Noted by hand; empty if nobody did.
    pub access_v4: String,
    /// Noted by hand; empty if nobody did.
    pub access_v6: String,
    /// Noted by hand.
    pub metadata: BTreeMap<String, String>,
    /// What its `addresses` show instead of what its ports say.
    #[serde(skip)]
    pub shown_addresses: Option<BTreeMap<String, Vec<ShownAddress>>>,
}

fn one_nic() -> Vec<NicSpec> {
    vec![NicSpec::default()]
}

impl ServerSpec {
    /// One port in the project's network.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            nics: one_nic(),
            ..Self::default()
        }
    }
}

/// A port of a [`ServerSpec`].
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NicSpec {
    /// The network's id; the project's network if absent.
    pub network: Option<Id>,
    /// These addresses; the next free one of each subnet of the network if empty.
    pub addresses: Vec<IpAddr>,
    /// Whether it is `ACTIVE` rather than `DOWN`.
    pub is_active: bool,
    /// Whether groups and address pairs hold; as the network says if absent.
    pub port_security: Option<bool>,
}

impl Default for NicSpec {
    fn default() -> Self {
        Self {
            network: None,
            addresses: Vec::new(),
            is_active: true,
            port_security: None,
        }
    }
}

impl NicSpec {
    /// A port in a network, with the next free address of each of its subnets.
    pub fn on(network: Id) -> Self {
        Self {
            network: Some(network),
            ..Self::default()
        }
    }
}

/// A network for [`crate::OpenstackSim::add_network`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its name.
    pub name: String,
    /// The project's id; the first project's if absent.
    pub project: Option<String>,
    /// Whether floating IPs come from it.
    pub is_external: bool,
    /// Whether all projects see it.
    pub is_shared: bool,
    /// Whether its ports have no port security.
    pub is_insecure: bool,
}

/// A subnet for [`crate::OpenstackSim::add_subnet`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetSpec {
    /// Its name.
    pub name: String,
    /// The network's id.
    pub network: Id,
    /// The range.
    pub cidr: IpNet,
    /// Words for people and programs.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether only its own project sees it, although its network is external or shared.
    #[serde(default)]
    pub is_hidden: bool,
}

impl SubnetSpec {
    /// A subnet without tags that everybody sees who sees the network.
    pub fn new(name: impl Into<String>, network: Id, cidr: IpNet) -> Self {
        Self {
            name: name.into(),
            network,
            cidr,
            tags: Vec::new(),
            is_hidden: false,
        }
    }
}

/// A floating IP for [`crate::OpenstackSim::add_floating_ip`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FloatingIpSpec {
    /// The project's id; the first project's if absent.
    pub project: Option<String>,
    /// This address rather than the next free one.
    pub address: Option<IpAddr>,
    /// The subnet's id; the external network's first one if absent.
    pub subnet: Option<Id>,
    /// The id of the port that it leads to.
    pub port: Option<Id>,
    /// For people.
    pub description: String,
}

/// A user for [`crate::OpenstackSim::add_user`].
#[derive(Clone, Debug)]
pub struct UserSpec {
    /// Its name.
    pub name: String,
    /// How it logs in.
    pub password: String,
    /// The project's id; the first project's if absent.
    pub project: Option<String>,
    /// Whether it may do everything everywhere.
    pub is_admin: bool,
}

impl UserSpec {
    /// An ordinary user of the first project.
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            password: password.into(),
            project: None,
            is_admin: false,
        }
    }
}
