//! The handle to a simulator.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Clock, CloudService, Faults, Journal, Running, Seed, Server, Settings, Shared};
use indexmap::IndexMap;
use ipnet::{IpNet, Ipv4Net};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::api::Api;
use crate::model::{Balancer, Machine, Route, State};

/// What may differ from day to day. The default waits for nothing.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// How long a new balancer is `building`.
    pub build_time: Duration,
    /// How long a deleted balancer is still listed.
    pub delete_time: Duration,
    /// Objects on one page of a list.
    pub page_size: usize,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            build_time: Duration::ZERO,
            delete_time: Duration::ZERO,
            page_size: 100,
        }
    }
}

/// Settings of a new simulator.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    behaviour: Behaviour,
    settings: Settings,
    token: Option<String>,
}

impl Builder {
    /// All common settings at once, those that were set before included.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The switches to begin with.
    #[must_use]
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// Where ids come from: the same seed gives the same ids. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Wall time. Default: [`Clock::default`], which starts at a fixed time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// The time that passes before each request is carried out. Default: none.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.settings.latency = latency;
        self
    }

    /// The only token that is good. Default: any but the empty one.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Makes balancers carry traffic, on loopback addresses. Not for a paused clock: sockets do not wait for it.
    #[must_use]
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self
    }

    /// Builds it. Needs a tokio runtime, whose clock it follows.
    pub fn build(self) -> PaperSim {
        let clock = self.settings.clock.unwrap_or_default();
        let (private, public) = match self.settings.data_plane {
            true => (range([127, 78, 0, 0]), range([127, 77, 0, 0])),
            false => (range([10, 60, 0, 0]), range([198, 19, 0, 0])),
        };
        let state = State {
            behaviour: self.behaviour,
            token: self.token,
            shows_nothing: false,
            seed: Seed::new(self.settings.seed),
            clock,
            machines: IndexMap::new(),
            balancers: IndexMap::new(),
            routes: IndexMap::new(),
            private,
            public,
            handed_out: Default::default(),
            bound: Vec::new(),
        };
        let shared = Shared::new(state);
        let api = Api {
            shared: shared.clone(),
        };
        PaperSim {
            shared,
            running: Running::start(self.settings, clock, api),
        }
    }
}

fn range(octets: [u8; 4]) -> IpNet {
    Ipv4Net::new(Ipv4Addr::from(octets), 16).map_or_else(|_| IpNet::from(IpAddr::from(octets)), IpNet::V4)
}

/// A machine for [`PaperSim::add_machine`].
#[derive(Clone, Debug)]
pub struct MachineSpec {
    /// Its name.
    pub name: String,
    /// Its size.
    pub kind: String,
    /// Where it stands; the region is the part before the hyphen.
    pub zone: String,
    /// Its private addresses; the next free one if there are none.
    pub private: Vec<IpAddr>,
    /// Its public addresses; the next free one if there are none.
    pub public: Vec<IpAddr>,
}

impl MachineSpec {
    /// A machine of this name and the smallest size, with an address of each kind.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: "paper-2".to_owned(),
            zone: "north-1".to_owned(),
            private: Vec::new(),
            public: Vec::new(),
        }
    }
}

/// A simulated project. Clones share it.
#[derive(Clone)]
pub struct PaperSim {
    shared: Shared<State>,
    running: Running,
}

impl fmt::Debug for PaperSim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaperSim").finish_non_exhaustive()
    }
}

impl PaperSim {
    /// Settings for a new one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The API as an in-memory `tower::Service`.
    pub fn service(&self) -> CloudService {
        self.running.service()
    }

    /// Serves the API on a socket until the answer is stopped or dropped.
    ///
    /// # Errors
    ///
    /// If the listener has no local address.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Server> {
        self.running.serve(listener)
    }

    /// The record of every request.
    pub fn journal(&self) -> &Journal {
        self.running.journal()
    }

    /// The fault rules.
    pub fn faults(&self) -> &Faults {
        self.running.faults()
    }

    /// Changes the switches.
    pub fn set_behaviour(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.shared.read().behaviour);
    }

    /// Accepts this token and no other, or any if there is none.
    pub fn set_token(&self, token: Option<String>) {
        self.shared.read().token = token;
    }

    /// Whether the token is good, but for another project, in which there is nothing.
    pub fn show_nothing(&self, shows_nothing: bool) {
        self.shared.read().shows_nothing = shows_nothing;
    }

    /// Adds a machine that runs.
    ///
    /// # Panics
    ///
    /// If there is one of this name: a mistake in the test.
    pub fn add_machine(&self, spec: MachineSpec) -> Uuid {
        let mut state = self.shared.read();
        let is_new = state.machines.values().all(|machine| machine.name != spec.name);
        assert!(is_new, "there is a machine {} already", spec.name);
        let (private, public) = (state.private, state.public);
        let mut or_next = |list: Vec<IpAddr>, range| match list.is_empty() {
            true => vec![state.address(range)],
            false => list,
        };
        let machine = Machine {
            private: or_next(spec.private, private),
            public: or_next(spec.public, public),
            id: state.seed.uuid(),
            region: spec.zone.split('-').next().unwrap_or_default().to_owned(),
            name: spec.name,
            kind: spec.kind,
            zone: spec.zone,
            power: "on".to_owned(),
        };
        let id = machine.id;
        state.machines.insert(id, machine);
        id
    }

    /// Removes a machine: it is no member any more, and its routes lead nowhere. Whether there was one.
    pub fn remove_machine(&self, id: Uuid) -> bool {
        let mut state = self.shared.read();
        for balancer in state.balancers.values_mut() {
            balancer.members.retain(|member| *member != id);
        }
        for route in state
            .routes
            .values_mut()
            .filter(|route| route.machine == Some(id))
        {
            (route.machine, route.blackhole) = (None, true);
        }
        self.shared.ring();
        state.machines.shift_remove(&id).is_some()
    }

    /// Changes a machine as its owner might: name, power, addresses.
    pub fn change_machine(&self, id: Uuid, change: impl FnOnce(&mut Machine)) {
        self.shared.read().machines.get_mut(&id).map(change);
        self.shared.ring();
    }

    /// Changes a balancer behind everybody's back.
    pub fn change_balancer(&self, id: Uuid, change: impl FnOnce(&mut Balancer)) {
        self.shared.read().balancers.get_mut(&id).map(change);
        self.shared.ring();
    }

    /// Removes a balancer behind everybody's back; whether there was one.
    pub fn remove_balancer(&self, id: Uuid) -> bool {
        self.shared.ring();
        self.shared.read().balancers.shift_remove(&id).is_some()
    }

    /// Adds a route as somebody else might; its id is made up here.
    pub fn add_route(&self, mut route: Route) -> Uuid {
        let mut state = self.shared.read();
        route.id = state.seed.uuid();
        let id = route.id;
        state.routes.insert(id, route);
        id
    }

    /// All machines in order of creation.
    pub fn machines(&self) -> Vec<Machine> {
        self.shared.read().machines.values().cloned().collect()
    }

    /// All balancers in order of creation.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.shared.read().balancers.values().cloned().collect()
    }

    /// All routes in order of creation.
    pub fn routes(&self) -> Vec<Route> {
        self.shared.read().routes.values().cloned().collect()
    }

    /// Where the data plane listens for a balancer's port, once it does.
    pub fn bound_to(&self, transport: Transport, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let (wanted, state) = (SocketAddr::new(address, port), self.shared.read());
        let found = state
            .bound
            .iter()
            .find(|it| (it.transport, it.wanted) == (transport, wanted));
        found.map(|it| it.actual)
    }

    /// The end state without ids, times and addresses, in an order of its own: two histories that come to the same show
    /// the same.
    pub fn snapshot(&self) -> Value {
        let state = self.shared.read();
        let name = |id: &Uuid| state.machines.get(id).map(|machine| machine.name.clone());
        let sorted = |mut list: Vec<Value>| {
            list.sort_by_key(Value::to_string);
            Value::Array(list)
        };
        let balancers = state.balancers.values().map(|it| {
            json!({
                "name": it.name, "owner": it.owner, "cluster": it.cluster, "state": it.state,
                "ports": sorted(it.ports.iter().map(|port| json!(port)).collect()),
                "members": sorted(it.members.iter().map(|id| json!(name(id))).collect()),
            })
        });
        let routes = state.routes.values().map(|it| {
            json!({
                "destination": it.destination, "machine": it.machine.as_ref().and_then(&name),
                "cluster": it.cluster, "via": it.via, "blackhole": it.blackhole,
            })
        });
        json!({"balancers": sorted(balancers.collect()), "routes": sorted(routes.collect())})
    }

    /// What should never be, in words; empty if all is well: two balancers of one owner, two writes to one at a time.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found: Vec<String> = self
            .journal()
            .overlaps()
            .iter()
            .map(|it| {
                format!(
                    "requests {} and {} wrote balancer {} at once",
                    it.earlier, it.later, it.lane
                )
            })
            .collect();
        let mut owners: Vec<String> = self.balancers().into_iter().filter_map(|it| it.owner).collect();
        owners.sort();
        let twice = owners.windows(2).filter(|pair| pair[0] == pair[1]);
        found.extend(twice.map(|pair| format!("{} owns two balancers", pair[0])));
        found
    }
}
