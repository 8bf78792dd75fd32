//! What stands on the wire.
//!
//! Decoding is lenient, so that the cloud may add fields and words: unknown fields are ignored, unknown words are kept.
//! An id is a type of its own per kind, so that none is taken for another.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

bowline_cloud_http::ids!(
    /// The id of a machine.
    MachineId
    /// The id of a balancer.
    BalancerId
    /// The id of a route.
    RouteId
);

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Machine {
    /// Its id.
    pub id: MachineId,
    /// Its host name; no two machines of a project share one.
    pub name: String,
    /// Its size, e.g. `paper-2`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it stands, e.g. `north-1`.
    pub zone: String,
    /// Where the zone lies, e.g. `north`.
    pub region: String,
    /// Whether it runs.
    pub power: Power,
    /// Addresses inside the project.
    pub private: Vec<IpAddr>,
    /// Addresses that the world can reach.
    pub public: Vec<IpAddr>,
}

// guide: wire
/// Whether a machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// It runs.
    On,
    /// It does not.
    Off,
    /// Anything else, such as a state between the two.
    #[serde(untagged)]
    Other(String),
}
// guide: end

/// A balancer: one object with its ports and members.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Balancer {
    /// Its id.
    pub id: BalancerId,
    /// Its name, for people; several may share one.
    pub name: String,
    /// Whose it is: a text that the creator chooses.
    pub owner: Option<String>,
    /// The name of the cluster that it was made for: a text that the creator chooses.
    #[serde(default)]
    pub cluster: Option<String>,
    /// When it was made: RFC 3339 in UTC with microseconds, so that the order of texts is that of times.
    pub created_at: String,
    /// Its state.
    pub state: BalancerState,
    /// Where clients reach it.
    pub addresses: Vec<IpAddr>,
    /// The ports on which it accepts clients.
    pub ports: Vec<Port>,
    /// The machines that get the traffic, on their first private address.
    pub members: Vec<MachineId>,
}

/// The state of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BalancerState {
    /// It is being made; its parts cannot be changed yet.
    Building,
    /// It works.
    Ready,
    /// It goes away.
    Deleting,
    /// Anything else.
    #[serde(untagged)]
    Other(String),
}

/// A balancer to be created, without ports and members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewBalancer {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// The name of the cluster, for people.
    pub cluster: String,
}

/// What is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port of a balancer. Protocol and port together are its name; the rest can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// What is carried.
    pub protocol: Protocol,
    /// Where clients connect.
    pub port: u16,
    /// Where the members listen.
    pub node_port: u16,
    /// Members that do not answer `GET /healthz` on this port with 200 get no traffic; none: all members do.
    pub check_port: Option<u16>,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        write!(f, "{protocol}-{}", self.port)
    }
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Route {
    /// Its id.
    pub id: RouteId,
    /// The network that it leads to.
    pub destination: IpNet,
    /// The machine that gets the traffic; `None` if it is gone.
    pub machine: Option<MachineId>,
    /// The cluster that it belongs to; `None` if nobody said so.
    pub cluster: Option<String>,
    /// The addresses of the machine that the creator named.
    pub via: Vec<IpAddr>,
    /// Whether traffic is thrown away.
    pub blackhole: bool,
}

/// A route to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewRoute {
    /// The network that it leads to; one route each.
    pub destination: IpNet,
    /// The machine that gets the traffic.
    pub machine: MachineId,
    /// The cluster that it belongs to.
    pub cluster: String,
    /// What it is for.
    pub description: String,
    /// The addresses of the machine to be used; its first private one if there are none.
    pub via: Vec<IpAddr>,
}
