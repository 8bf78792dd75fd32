//! What can be put into a project by hand.

use std::net::IpAddr;

use uuid::Uuid;

use crate::model::{Algorithm, PoolProtocol, Tags, Target};

/// A server for [`crate::CloudscaleSim::add_server`].
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Host name.
    pub name: String,
    /// Zone slug; the default zone if absent.
    pub zone: Option<String>,
    /// Flavor slug.
    pub flavor: String,
    /// Interfaces in order.
    pub interfaces: Vec<InterfaceSpec>,
    /// Labels.
    pub tags: Tags,
}

/// An interface of a [`ServerSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceSpec {
    /// In the public network with one IPv4 and, if `v6`, one IPv6 address.
    Public {
        /// Whether there is an IPv6 address as well.
        v6: bool,
    },
    /// In the default private network with the next free address.
    Private,
    /// In a private network with the next free address of this subnet.
    Subnet(Uuid),
    /// In a private network with these addresses of these subnets.
    Addresses(Vec<(Uuid, IpAddr)>),
    /// In a network without subnet: no addresses.
    Layer2(Uuid),
}

impl ServerSpec {
    /// One public interface with IPv4 and IPv6, then one in the default private subnet, flavor `flex-16-4`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            zone: None,
            flavor: "flex-16-4".to_owned(),
            interfaces: vec![InterfaceSpec::Public { v6: true }, InterfaceSpec::Private],
            tags: Tags::new(),
        }
    }
}

/// A floating IP for [`crate::CloudscaleSim::add_floating_ip`].
#[derive(Clone, Debug, Default)]
pub struct FloatingSpec {
    /// This address; the next free one if absent.
    pub address: Option<IpAddr>,
    /// IPv6 rather than IPv4.
    pub v6: bool,
    /// A whole IPv6 network (/56).
    pub network: bool,
    /// Where it can be used.
    pub scope: Scope,
    /// Where it points.
    pub target: Option<Target>,
}

/// Where a floating IP can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In the region of its target, else of the default zone.
    #[default]
    DefaultRegion,
    /// In this region.
    Region(String),
    /// Everywhere.
    Global,
}

/// A pool for [`crate::CloudscaleSim::add_pool`].
#[derive(Clone, Debug)]
pub struct ManualPool {
    /// The load balancer.
    pub load_balancer: Uuid,
    /// Its name.
    pub name: String,
    /// How it spreads connections.
    pub algorithm: Algorithm,
    /// What its members get.
    pub protocol: PoolProtocol,
}

impl ManualPool {
    /// A `round_robin` pool for `tcp`.
    pub fn new(load_balancer: Uuid, name: impl Into<String>) -> Self {
        let (algorithm, protocol) = (Algorithm::RoundRobin, PoolProtocol::Tcp);
        Self {
            load_balancer,
            name: name.into(),
            algorithm,
            protocol,
        }
    }
}
