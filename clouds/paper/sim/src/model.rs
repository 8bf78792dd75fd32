//! The objects of a project, as the API writes them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bowline_cloud_kit::addresses;
use bowline_cloud_kit::clock::pending;
use bowline_cloud_kit::dataplane::{Bound, Transport};
use bowline_cloud_kit::{Clock, Seed, Simulated};
use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use crate::behaviour::Behaviour;

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Its id.
    pub id: Uuid,
    /// Its name, unique in the project.
    pub name: String,
    /// Its size.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it stands.
    pub zone: String,
    /// Where the zone lies.
    pub region: String,
    /// `on`, `off`, or on its way.
    pub power: String,
    /// Addresses inside the project.
    pub private: Vec<IpAddr>,
    /// Addresses that the world can reach.
    pub public: Vec<IpAddr>,
}

/// A balancer.
#[derive(Clone, Debug, Serialize)]
pub struct Balancer {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// The cluster that it was made for.
    pub cluster: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// `building`, `ready` or `deleting`.
    pub state: String,
    /// Where clients reach it.
    pub addresses: Vec<IpAddr>,
    /// Its open ports.
    pub ports: Vec<Port>,
    /// Its machines.
    pub members: Vec<Uuid>,
    /// When its state is over.
    #[serde(skip)]
    pub(crate) until: Option<Instant>,
}

/// An open port of a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// What is carried.
    pub protocol: Transport,
    /// Where clients connect.
    pub port: u16,
    /// Where members listen.
    pub node_port: u16,
    /// Where members are asked for their health.
    pub check_port: Option<u16>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Route {
    /// Its id.
    pub id: Uuid,
    /// The network that it leads to, unique in the project.
    pub destination: IpNet,
    /// The machine that gets the traffic; none once that is gone.
    pub machine: Option<Uuid>,
    /// The cluster that it belongs to.
    pub cluster: Option<String>,
    /// What it is for.
    pub description: String,
    /// The addresses of the machine that are used.
    pub via: Vec<IpAddr>,
    /// Whether traffic is thrown away.
    pub blackhole: bool,
}

/// Everything there is, in the order of its creation.
pub(crate) struct State {
    pub(crate) behaviour: Behaviour,
    pub(crate) token: Option<String>,
    /// Whether the token is good for another project, which is empty.
    pub(crate) shows_nothing: bool,
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) machines: IndexMap<Uuid, Machine>,
    pub(crate) balancers: IndexMap<Uuid, Balancer>,
    pub(crate) routes: IndexMap<Uuid, Route>,
    /// Where addresses come from: private ones of machines, public ones of all.
    pub(crate) private: IpNet,
    pub(crate) public: IpNet,
    pub(crate) handed_out: BTreeMap<IpNet, u128>,
    /// Where the data plane listens.
    pub(crate) bound: Vec<Bound>,
}

impl State {
    /// The next address of a range; its network's own and the first one, a gateway's, are left out.
    pub(crate) fn address(&mut self, range: IpNet) -> IpAddr {
        let host = self.handed_out.entry(range).or_insert(1);
        *host += 1;
        addresses::nth(range, *host)
    }
}

impl Simulated for State {
    fn settle(&mut self) {
        let is_gone = |balancer: &Balancer| balancer.state == "deleting" && !pending(balancer.until);
        self.balancers.retain(|_, balancer| !is_gone(balancer));
        for balancer in self
            .balancers
            .values_mut()
            .filter(|balancer| balancer.state == "building")
        {
            if !pending(balancer.until) {
                (balancer.state, balancer.until) = ("ready".to_owned(), None);
            }
        }
    }
}
