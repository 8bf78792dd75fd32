//! Neutron's part of the state: ports, routers, and what goes when something else goes.

use std::net::IpAddr;

use super::{NoAddress, State};
use crate::model::network::{FixedIp, Port, Rule, RuleContent, SecurityGroup, Subnet};
use crate::model::{Id, Meta};

/// The group that every project has.
pub(crate) const DEFAULT_GROUP: &str = "default";

/// What is asked of a new port.
#[derive(Clone, Debug)]
pub(crate) struct PortWish {
    pub(crate) name: String,
    pub(crate) network: Id,
    pub(crate) project: String,
    pub(crate) device: String,
    pub(crate) device_owner: &'static str,
    pub(crate) fixed_ips: Vec<FixedIp>,
    pub(crate) is_active: bool,
}

impl State {
    /// Adds a port on addresses that are reserved already.
    pub(crate) fn add_port(&mut self, wish: PortWish) -> Id {
        let id = self.seed.uuid();
        let suffix = self.seed.below(1 << 24).to_be_bytes();
        let network = self.networks.get(&wish.network);
        let is_server = wish.device_owner.starts_with("compute:");
        let port = Port {
            id,
            name: wish.name,
            network: wish.network,
            mac: format!("fa:16:3e:{:02x}:{:02x}:{:02x}", suffix[5], suffix[6], suffix[7]),
            status: if wish.is_active { "ACTIVE" } else { "DOWN" }.to_owned(),
            device: wish.device,
            device_owner: wish.device_owner.to_owned(),
            fixed_ips: wish.fixed_ips,
            groups: Vec::new(),
            address_pairs: Vec::new(),
            port_security: is_server && network.is_some_and(|it| it.port_security),
            trunk: None,
            meta: Meta {
                revision: 1,
                ..self.meta(&wish.project)
            },
        };
        let groups = match port.port_security {
            true => self.default_group(&port.meta.project).into_iter().collect(),
            false => Vec::new(),
        };
        let of_device = self.ports_by_device.entry(port.device.clone()).or_default();
        of_device.push(id);
        self.ports.insert(id, Port { groups, ..port });
        id
    }

    /// Removes a port: its addresses become free, floating IPs lose it, and no trunk carries it.
    pub(crate) fn remove_port(&mut self, id: Id) {
        let Some(port) = self.ports.shift_remove(&id) else {
            return;
        };
        if let Some(of_device) = self.ports_by_device.get_mut(&port.device) {
            of_device.retain(|there| *there != id);
        }
        for fixed_ip in port.fixed_ips {
            self.release(fixed_ip);
        }
        let now = self.clock.rfc3339_seconds();
        for floating in self.floating_ips.values_mut() {
            if floating.target.is_some_and(|it| it.port == id) {
                floating.target = None;
                floating.meta.touch(&now);
            }
        }
        for trunk in self.ports.values_mut().filter_map(|it| it.trunk.as_mut()) {
            trunk.subports.retain(|it| it.port != id);
        }
    }

    /// Connects a router with a subnet: on its gateway if nothing else is there, as Neutron does.
    pub(crate) fn connect(&mut self, router: Id, subnet: Id) -> Option<Id> {
        let (network, gateway) = self.subnets.get(&subnet).map(|it| (it.network, it.gateway))?;
        let project = self.routers.get(&router)?.meta.project.clone();
        let wanted = gateway.map(|address| FixedIp { subnet, address });
        let at_gateway = wanted.and_then(|wish| self.reserve(wish).ok());
        let fixed_ip = match at_gateway {
            Some(fixed_ip) => fixed_ip,
            None => self.allocate(subnet).ok()?,
        };
        Some(self.add_port(PortWish {
            name: String::new(),
            network,
            project,
            device: router.to_string(),
            device_owner: "network:router_interface",
            fixed_ips: vec![fixed_ip],
            is_active: true,
        }))
    }

    pub(crate) fn ports_of(&self, device: &str) -> impl Iterator<Item = &Port> {
        let ids = self.ports_by_device.get(device).into_iter().flatten();
        ids.filter_map(|id| self.ports.get(id))
    }

    /// The addresses of a router in the subnets it joins.
    pub(crate) fn interfaces(&self, router: Id) -> Vec<FixedIp> {
        let device = router.to_string();
        let ports = self.ports_of(&device);
        ports.flat_map(|port| port.fixed_ips.iter().copied()).collect()
    }

    /// The router that joins an external network and a subnet.
    pub(crate) fn router_between(&self, external: Id, subnet: Id) -> Option<Id> {
        let leads_out = |id: &Id| {
            let gateway = self.routers.get(id).and_then(|it| it.gateway);
            gateway.is_some_and(|(network, _)| network == external)
        };
        let mut routers = self.routers.keys().copied().filter(leads_out);
        routers.find(|&id| self.interfaces(id).iter().any(|it| it.subnet == subnet))
    }

    pub(crate) fn subnets_of(&self, network: Id) -> impl Iterator<Item = &Subnet> {
        self.subnets.values().filter(move |it| it.network == network)
    }

    /// The subnet of a network that an address is in the range of.
    pub(crate) fn subnet_holding(&self, network: Id, address: IpAddr) -> Option<Id> {
        let mut subnets = self.subnets_of(network);
        subnets.find(|it| it.cidr.contains(&address)).map(|it| it.id)
    }

    /// An address of a network out of the first of its subnets that has one, those of IPv4 first.
    pub(crate) fn allocate_in(&mut self, network: Id) -> Result<FixedIp, NoAddress> {
        let mut subnets: Vec<(bool, Id)> = self
            .subnets_of(network)
            .map(|it| (it.cidr.addr().is_ipv6(), it.id))
            .collect();
        subnets.sort_by_key(|(is_v6, _)| *is_v6);
        let mut reason = NoAddress::NoSubnet(network);
        for (_, subnet) in subnets {
            match self.allocate(subnet) {
                Ok(fixed_ip) => return Ok(fixed_ip),
                Err(refused) => reason = refused,
            }
        }
        Err(reason)
    }

    pub(crate) fn default_group(&self, project: &str) -> Option<Id> {
        let mut groups = self.groups.values();
        let found = groups.find(|it| it.name == DEFAULT_GROUP && it.meta.project == project);
        found.map(|it| it.id)
    }

    pub(crate) fn insert_default_group(&mut self, project: &str) -> Id {
        self.default_group(project)
            .unwrap_or_else(|| self.insert_group(project, DEFAULT_GROUP, ""))
    }

    /// Adds a security group with the two rules that every new one has: everything may go out.
    pub(crate) fn insert_group(&mut self, project: &str, name: &str, description: &str) -> Id {
        let id = self.seed.uuid();
        let meta = Meta {
            description: description.to_owned(),
            revision: 1,
            ..self.meta(project)
        };
        let name = name.to_owned();
        self.groups.insert(id, SecurityGroup { id, name, meta });
        for ethertype in ["IPv4", "IPv6"] {
            let content = RuleContent {
                direction: "egress".to_owned(),
                ethertype: ethertype.to_owned(),
                protocol: None,
                port_min: None,
                port_max: None,
                remote_prefix: None,
                remote_group: None,
            };
            self.insert_rule(id, project, content, None);
        }
        id
    }

    pub(crate) fn insert_rule(
        &mut self,
        group: Id,
        project: &str,
        content: RuleContent,
        description: Option<String>,
    ) -> Id {
        let id = self.seed.uuid();
        let meta = self.meta(project);
        let rule = Rule {
            id,
            group,
            content,
            description,
            meta,
        };
        self.rules.insert(id, rule);
        id
    }

    pub(crate) fn rules_of(&self, group: Id) -> impl Iterator<Item = &Rule> {
        self.rules.values().filter(move |it| it.group == group)
    }

    /// Whether a port has the group.
    pub(crate) fn is_in_use(&self, group: Id) -> bool {
        self.ports.values().any(|port| port.groups.contains(&group))
    }

    /// Removes a group, its rules, and the rules of other groups that name it.
    pub(crate) fn remove_group(&mut self, group: Id) {
        self.groups.shift_remove(&group);
        self.rules
            .retain(|_, rule| rule.group != group && rule.content.remote_group != Some(group));
    }
}

impl Meta {
    /// Notes a change.
    pub(crate) fn touch(&mut self, now: &str) {
        self.revision += 1;
        self.updated_at = now.to_owned();
    }
}
