//! Balancers that carry traffic: the state as a description for the kit's data plane.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_kit::dataplane::{
    Algorithm, Bound, Carrier, Config, ListenerConfig, MemberConfig, MonitorConfig, PoolConfig, Probe,
    Timeouts,
};
use tokio::time::Instant;

use crate::behaviour::Behaviour;
use crate::model::{Balancer, Port, State};

impl Carrier for State {
    type Behaviour = Behaviour;

    fn wanted(&self) -> (Config, Option<Instant>) {
        let next = self
            .balancers
            .values()
            .filter_map(|balancer| balancer.until)
            .min();
        (config(self), next)
    }

    fn behaviour(&mut self) -> &mut Behaviour {
        &mut self.behaviour
    }

    fn bound(&mut self) -> &mut Vec<Bound> {
        &mut self.bound
    }
}

/// What should be carried now: one listener and one pool for each port of each balancer that is ready.
fn config(state: &State) -> Config {
    let mut config = Config::default();
    for balancer in state
        .balancers
        .values()
        .filter(|balancer| balancer.state == "ready")
    {
        for port in &balancer.ports {
            let id = format!("{}/{:?}-{}", balancer.id, port.protocol, port.port);
            config.pools.insert(id.clone(), pool(state, balancer, port));
            config.listeners.extend(
                balancer
                    .addresses
                    .iter()
                    .map(|address| listener(*address, port, &id)),
            );
        }
    }
    config
}

fn listener(address: IpAddr, port: &Port, pool: &str) -> ListenerConfig {
    ListenerConfig {
        transport: port.protocol,
        address,
        port: port.port,
        pool: Some(pool.to_owned()),
        allowed: Vec::new(),
        timeouts: Timeouts::default(),
    }
}

fn pool(state: &State, balancer: &Balancer, port: &Port) -> PoolConfig {
    let machines = balancer.members.iter().filter_map(|id| state.machines.get(id));
    let running = machines.filter(|machine| machine.power == "on");
    let member = |address: IpAddr| MemberConfig {
        address,
        port: port.node_port,
        monitor_port: port.check_port.unwrap_or(port.node_port),
        enabled: true,
    };
    PoolConfig {
        algorithm: Algorithm::RoundRobin,
        proxy: None,
        members: running
            .filter_map(|machine| Some((machine.id.to_string(), member(*machine.private.first()?))))
            .collect(),
        monitor: port.check_port.map(|_| MonitorConfig {
            probe: Probe::Http {
                tls: false,
                method: "GET".to_owned(),
                path: "/healthz".to_owned(),
                host: None,
                expected: vec![200..=200],
            },
            delay: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            up_threshold: 1,
            down_threshold: 2,
        }),
    }
}
