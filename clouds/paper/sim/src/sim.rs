//! The handle to a simulator.

use std::net::{IpAddr, Ipv4Addr};

use bowline_cloud_kit::{Running, Settings, Shared};
use indexmap::IndexMap;
use ipnet::{IpNet, Ipv4Net};
use uuid::Uuid;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::model::{Balancer, Machine, Route, State};

/// Settings of a new simulator.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    behaviour: Behaviour,
    settings: Settings,
    token: Option<String>,
}

impl Builder {
    bowline_cloud_kit::knobs!(Behaviour);

    /// The only token that is good. Default: any but the empty one.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Makes balancers carry traffic, on loopback addresses. Not for a paused clock: sockets do not wait for it.
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self
    }

    /// Builds it. Needs a tokio runtime, whose clock it follows.
    pub fn build(self) -> PaperSim {
        let (private, public) = match self.settings.data_plane {
            true => (range([127, 78, 0, 0]), range([127, 77, 0, 0])),
            false => (range([10, 60, 0, 0]), range([198, 19, 0, 0])),
        };
        let state = |seed, clock| State {
            behaviour: self.behaviour,
            token: self.token,
            shows_nothing: false,
            seed,
            clock,
            machines: IndexMap::new(),
            balancers: IndexMap::new(),
            routes: IndexMap::new(),
            private,
            public,
            handed_out: Default::default(),
            bound: Vec::new(),
        };
        let (shared, running) = self.settings.start(state, |shared| Api { shared });
        PaperSim { shared, running }
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
#[derive(Clone, Debug)]
pub struct PaperSim {
    shared: Shared<State>,
    running: Running,
}

impl PaperSim {
    bowline_cloud_kit::handle!(State, Behaviour);

    /// Settings for a new one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// All machines in order of creation.
    pub fn machines(&self) -> Vec<Machine> {
        self.read().machines.values().cloned().collect()
    }

    /// All balancers in order of creation.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.read().balancers.values().cloned().collect()
    }

    /// All routes in order of creation.
    pub fn routes(&self) -> Vec<Route> {
        self.read().routes.values().cloned().collect()
    }

    /// Accepts this token and no other, or any if there is none.
    pub fn set_token(&self, token: Option<String>) {
        self.read().token = token;
    }

    /// Whether the token is good, but for another project, in which there is nothing.
    pub fn show_nothing(&self, shows_nothing: bool) {
        self.read().shows_nothing = shows_nothing;
    }

    /// Adds a machine that runs.
    ///
    /// # Panics
    ///
    /// If there is one of this name: a mistake in the test.
    pub fn add_machine(&self, spec: MachineSpec) -> Uuid {
        let mut state = self.read();
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
        self.write(|state| {
            for balancer in state.balancers.values_mut() {
                balancer.members.retain(|member| *member != id);
            }
            let routes = state.routes.values_mut();
            for route in routes.filter(|route| route.machine == Some(id)) {
                (route.machine, route.blackhole) = (None, true);
            }
            state.machines.shift_remove(&id).is_some()
        })
    }

    /// Changes a machine as its owner might: name, power, addresses.
    pub fn change_machine(&self, id: Uuid, change: impl FnOnce(&mut Machine)) {
        self.write(|state| state.machines.get_mut(&id).map(change));
    }

    /// Changes a balancer behind everybody's back.
    pub fn change_balancer(&self, id: Uuid, change: impl FnOnce(&mut Balancer)) {
        self.write(|state| state.balancers.get_mut(&id).map(change));
    }

    /// Removes a balancer behind everybody's back; whether there was one.
    pub fn remove_balancer(&self, id: Uuid) -> bool {
        self.write(|state| state.balancers.shift_remove(&id).is_some())
    }

    /// Adds a route as somebody else might; its id is made up here.
    pub fn add_route(&self, mut route: Route) -> Uuid {
        let mut state = self.read();
        route.id = state.seed.uuid();
        let id = route.id;
        state.routes.insert(id, route);
        id
    }
}
