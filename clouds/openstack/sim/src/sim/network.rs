//! Networks, ports, routers, floating IPs and security groups by hand. None of it is in the journal.

use std::net::IpAddr;

use super::{FloatingIpSpec, NetworkSpec, OpenstackSim, SubnetSpec};
use crate::model::network::{
    FixedIp, FloatingIp, FloatingTarget, Port, Route, Router, RuleContent, Subport, Trunk,
};
use crate::model::{Id, Meta};
use crate::state::PortWish;

impl OpenstackSim {
    /// Adds a network without subnet; answers its id.
    pub fn add_network(&self, spec: NetworkSpec) -> Id {
        self.write(|state| {
            let id = state.seed.uuid();
            let project = spec.project.unwrap_or_else(|| state.home.project.clone());
            state.insert_network(id, &spec.name, &project, spec.is_external);
            if let Some(network) = state.networks.get_mut(&id) {
                network.is_shared = spec.is_shared;
                network.port_security = !spec.is_insecure;
            }
            id
        })
    }

    /// Adds a subnet to a network, whose first address is its gateway's; answers its id.
    pub fn add_subnet(&self, spec: SubnetSpec) -> Id {
        self.write(|state| {
            let id = state.seed.uuid();
            state.insert_subnet(id, &spec.name, spec.network, spec.cidr.trunc());
            if let Some(subnet) = state.subnets.get_mut(&id) {
                subnet.meta.tags = spec.tags;
                subnet.is_hidden = spec.is_hidden;
            }
            id
        })
    }

    /// Uses up all addresses of a subnet.
    pub fn exhaust_subnet(&self, id: Id) {
        self.write(|state| while state.allocate(id).is_ok() {});
    }

    /// Adds a port that belongs to nobody yet; answers its id.
    ///
    /// # Panics
    ///
    /// If an address cannot be had: a mistake in the test.
    pub fn add_port(&self, name: &str, fixed_ips: Vec<FixedIp>) -> Id {
        self.write(|state| {
            let held = fixed_ips.iter().map(|it| state.reserve(*it));
            let held: Result<Vec<_>, _> = held.collect();
            let fixed_ips = match held {
                Ok(fixed_ips) => fixed_ips,
                Err(reason) => panic!("no address for a port: {reason:?}"),
            };
            let subnet = fixed_ips.first().and_then(|it| state.subnets.get(&it.subnet));
            let network = subnet.map_or(state.home.network, |it| it.network);
            state.add_port(PortWish {
                name: name.to_owned(),
                network,
                project: state.home.project.clone(),
                device: String::new(),
                device_owner: "",
                fixed_ips,
                is_active: false,
            })
        })
    }

    /// Changes a port in any way, and its revision.
    pub fn edit_port(&self, id: Id, change: impl FnOnce(&mut Port)) {
        self.write(|state| {
            let now = state.clock.rfc3339_seconds();
            if let Some(port) = state.ports.get_mut(&id) {
                change(port);
                port.meta.touch(&now);
            }
        });
    }

    /// Removes a port.
    pub fn remove_port(&self, id: Id) {
        self.write(|state| state.remove_port(id));
    }

    /// Makes a port carry one in another network, on the next free address there; answers the id of the port it carries.
    ///
    /// # Panics
    ///
    /// If there is no free address: a mistake in the test.
    pub fn add_subport(&self, parent: Id, network: Id, segmentation_id: u16) -> Id {
        self.write(|state| {
            let project = state.ports.get(&parent).map(|it| it.meta.project.clone());
            let fixed_ip = match state.allocate_in(network) {
                Ok(fixed_ip) => fixed_ip,
                Err(reason) => panic!("no address for a port of a trunk: {reason:?}"),
            };
            let port = state.add_port(PortWish {
                name: String::new(),
                network,
                project: project.unwrap_or_default(),
                device: String::new(),
                device_owner: "trunk:subport",
                fixed_ips: vec![fixed_ip],
                is_active: true,
            });
            let trunk = state.seed.uuid();
            if let Some(parent) = state.ports.get_mut(&parent) {
                let trunk = parent.trunk.get_or_insert_with(|| Trunk {
                    id: trunk,
                    subports: Vec::new(),
                });
                trunk.subports.push(Subport {
                    port,
                    segmentation_id,
                });
            }
            port
        })
    }

    /// Adds a router without subnets that leads to an external network, if one is named; answers its id.
    pub fn add_router(&self, name: &str, external: Option<Id>) -> Id {
        self.write(|state| {
            let gateway = external.and_then(|network| Some((network, state.allocate_in(network).ok()?)));
            let router = Router {
                id: state.seed.uuid(),
                name: name.to_owned(),
                gateway,
                routes: Vec::new(),
                meta: state.meta(&state.home.project),
            };
            let id = router.id;
            state.routers.insert(id, router);
            id
        })
    }

    /// Connects a router with a subnet; answers the id of its port there.
    pub fn connect(&self, router: Id, subnet: Id) -> Option<Id> {
        self.write(|state| state.connect(router, subnet))
    }

    /// Sets a router's routes.
    pub fn set_routes(&self, router: Id, routes: Vec<Route>) {
        self.edit_router(router, |it| it.routes = routes);
    }

    /// Changes a router in any way, and its revision.
    pub fn edit_router(&self, id: Id, change: impl FnOnce(&mut Router)) {
        self.write(|state| {
            let now = state.clock.rfc3339_seconds();
            if let Some(router) = state.routers.get_mut(&id) {
                change(router);
                router.meta.touch(&now);
            }
        });
    }

    /// Adds a floating IP; answers its id.
    ///
    /// # Panics
    ///
    /// If the address cannot be had, or the port cannot be reached: a mistake in the test.
    pub fn add_floating_ip(&self, spec: FloatingIpSpec) -> Id {
        self.write(|state| {
            let subnet = spec.subnet.unwrap_or(state.home.external_subnet);
            let made = match spec.address {
                Some(address) => state.reserve(FixedIp { subnet, address }),
                None => state.allocate(subnet),
            };
            let address = match made {
                Ok(address) => address,
                Err(reason) => panic!("no address for a floating IP: {reason:?}"),
            };
            let network = state.subnets.get(&subnet).map(|it| it.network);
            let network = network.unwrap_or(state.home.external_network);
            let project = spec.project.unwrap_or_else(|| state.home.project.clone());
            let floating = FloatingIp {
                id: state.seed.uuid(),
                address,
                network,
                target: None,
                forwards_through: None,
                meta: Meta {
                    description: spec.description,
                    ..state.meta(&project)
                },
            };
            let id = floating.id;
            state.floating_ips.insert(id, floating);
            if let Some(port) = spec.port {
                let is_led = state.lead(id, port);
                assert!(is_led, "no router between the floating IP and its port");
            }
            id
        })
    }

    /// Makes a floating IP lead to a port, or nowhere; whether there is a way.
    pub fn assign_floating_ip(&self, id: Id, port: Option<Id>) -> bool {
        self.write(|state| match port {
            Some(port) => state.lead(id, port),
            None => {
                let floating = state.floating_ips.get_mut(&id);
                floating.map(|it| it.target = None).is_some()
            }
        })
    }

    /// Removes a floating IP; whether there was one.
    pub fn remove_floating_ip(&self, id: Id) -> bool {
        self.write(|state| {
            let removed = state.floating_ips.shift_remove(&id);
            removed.map(|it| state.release(it.address)).is_some()
        })
    }

    /// Adds a security group to the first project; answers its id.
    pub fn add_security_group(&self, name: &str, description: &str) -> Id {
        self.write(|state| {
            let project = state.home.project.clone();
            state.insert_group(&project, name, description)
        })
    }

    /// Adds a rule to a security group; answers its id.
    pub fn add_rule(&self, group: Id, content: RuleContent) -> Id {
        self.write(|state| {
            let project = state.groups.get(&group).map(|it| it.meta.project.clone());
            state.insert_rule(group, &project.unwrap_or_default(), content, None)
        })
    }
}

impl crate::state::State {
    /// Makes a floating IP lead to the first IPv4 address of a port; whether there is a way.
    fn lead(&mut self, floating: Id, port: Id) -> bool {
        let fixed_ips = self.ports.get(&port).into_iter().flat_map(|it| &it.fixed_ips);
        let mut fixed_ips = fixed_ips.filter(|it| matches!(it.address, IpAddr::V4(_)));
        let fixed_ip = fixed_ips.next().copied();
        let network = self.floating_ips.get(&floating).map(|it| it.network);
        let target = fixed_ip.zip(network).and_then(|(fixed_ip, network)| {
            let router = self.router_between(network, fixed_ip.subnet)?;
            let address = fixed_ip.address;
            Some(FloatingTarget {
                port,
                address,
                router,
            })
        });
        if let (Some(target), Some(floating)) = (target, self.floating_ips.get_mut(&floating)) {
            floating.target = Some(target);
        }
        target.is_some()
    }
}
