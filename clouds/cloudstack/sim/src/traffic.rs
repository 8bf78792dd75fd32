//! Load balancer rules that carry traffic: the state as a description for the data plane.

use bowline_cloud_kit::dataplane::{
    Algorithm, Bound, Carrier, Config, ListenerConfig, MemberConfig, PoolConfig, ProxyVersion, Timeouts,
    Transport,
};
use ipnet::IpNet;
use tokio::time::Instant;

use crate::behaviour::Behaviour;
use crate::model::{AddressState, LoadBalancerRule, PublicAddress, VirtualMachine, VmState};
use crate::snapshot::separated;
use crate::state::State;

mod filter;

impl Carrier for State {
    type Behaviour = Behaviour;

    fn wanted(&self) -> (Config, Option<Instant>) {
        (config(self), self.jobs.next_due(&self.behaviour))
    }

    fn behaviour(&mut self) -> &mut Behaviour {
        &mut self.behaviour
    }

    fn bound(&mut self) -> &mut Vec<Bound> {
        &mut self.bound
    }
}

/// What is carried now: the rules as the routers run them, which is not always as they are stored. A port that nobody may
/// reach is not there at all: the router drops what comes.
fn config(state: &State) -> Config {
    let mut config = Config::default();
    for rule in state.routers.running() {
        let Some(address) = state.addresses.get(&rule.address) else {
            continue;
        };
        let allowed = admitted(state, rule, address);
        if address.state != AddressState::Allocated || allowed.is_empty() {
            continue;
        }
        config.listeners.push(ListenerConfig {
            transport: transport(rule),
            address: address.address,
            port: rule.public_port,
            pool: Some(rule.id.clone()),
            allowed,
            timeouts: Timeouts::default(),
        });
        config.pools.insert(rule.id.clone(), pool(state, rule));
    }
    config
}

fn transport(rule: &LoadBalancerRule) -> Transport {
    match rule.protocol_word().as_str() {
        "udp" => Transport::Udp,
        _ => Transport::Tcp,
    }
}

/// The clients that the firewall or the ACL list and the rule's own list let pass.
fn admitted(state: &State, rule: &LoadBalancerRule, address: &PublicAddress) -> Vec<IpNet> {
    let protocol = match transport(rule) {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    };
    let network = state.networks.get(&rule.network);
    let before = match network {
        Some(network) if network.offers("Firewall") => {
            filter::firewall(state, &address.id, protocol, rule.public_port)
        }
        Some(network) if network.offers("NetworkACL") => {
            filter::acl(state, network.acl.as_deref(), protocol, rule.public_port)
        }
        Some(_) => filter::everybody(),
        None => Vec::new(),
    };
    // An empty list is no restriction, as on the real router.
    let own: Vec<IpNet> = separated(rule.cidrs.as_deref())
        .filter_map(filter::range)
        .collect();
    if own.is_empty() {
        before
    } else {
        filter::both(&before, &own)
    }
}

fn pool(state: &State, rule: &LoadBalancerRule) -> PoolConfig {
    let vms = rule.members.iter().filter_map(|id| state.vms.get(id));
    let members = vms.filter(|vm| vm.state == VmState::Running);
    PoolConfig {
        algorithm: match rule.algorithm.as_str() {
            "source" => Algorithm::SourceIp,
            "leastconn" => Algorithm::LeastConnections,
            _ => Algorithm::RoundRobin,
        },
        // haproxy's `send-proxy` writes the text form.
        proxy: (rule.protocol_word() == "tcp-proxy").then_some(ProxyVersion::V1),
        members: members.filter_map(|vm| member(state, rule, vm)).collect(),
        monitor: None,
    }
}

fn member(state: &State, rule: &LoadBalancerRule, vm: &VirtualMachine) -> Option<(String, MemberConfig)> {
    let address = vm.nic_in(&rule.network)?.address;
    let config = state
        .moved
        .member(transport(rule), address, rule.private_port, None);
    Some((vm.id.clone(), config))
}
