//! Load balancers that carry traffic: the state as a description for the data plane, and health back into the state.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_kit::clock::pending;
use bowline_cloud_kit::dataplane::{
    self, Bound, Carrier, Config, HealthChange, ListenerConfig, MemberConfig, MonitorConfig, PoolConfig,
    Probe, ProxyVersion, Timeouts, Transport, codes,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::behaviour::Behaviour;
use crate::model::{
    Algorithm, HealthMonitor, HttpProbe, Listener, ListenerProtocol, Member, MonitorKind, Pool, PoolProtocol,
    Target,
};
use crate::state::State;

impl Carrier for State {
    type Behaviour = Behaviour;

    fn wanted(&self) -> (Config, Option<Instant>) {
        (config(self), next_change(self))
    }

    fn behaviour(&mut self) -> &mut Behaviour {
        &mut self.behaviour
    }

    fn bound(&mut self) -> &mut Vec<Bound> {
        &mut self.bound
    }

    fn heard(&mut self, change: HealthChange) {
        let Ok(member) = Uuid::parse_str(&change.member) else {
            return;
        };
        if let Some(member) = self.members.get_mut(&member) {
            member.healthy = Some(change.up);
        }
    }
}

/// When the clock alone changes what is carried.
fn next_change(state: &State) -> Option<Instant> {
    let balancers = state.load_balancers.values();
    let moments = balancers.flat_map(|balancer| [balancer.creating_until, balancer.deleted_at]);
    moments.flatten().filter(|&moment| pending(Some(moment))).min()
}

/// What should be carried now. A load balancer that is still being created carries nothing.
fn config(state: &State) -> Config {
    let mut config = Config::default();
    for balancer in state
        .load_balancers
        .values()
        .filter(|balancer| !pending(balancer.creating_until))
    {
        let floating = state.floating_ips.values();
        let floating = floating.filter(|it| it.target == Some(Target::LoadBalancer(balancer.uuid)));
        let addresses: Vec<IpAddr> = balancer
            .vips
            .iter()
            .map(|vip| vip.address)
            .chain(floating.map(|it| it.network.addr()))
            .collect();
        for found in state
            .listeners
            .values()
            .filter(|listener| listener.load_balancer == balancer.uuid)
        {
            config
                .listeners
                .extend(addresses.iter().map(|&address| listener(found, address)));
        }
        config.pools.extend(
            state
                .pools_of(balancer.uuid)
                .map(|it| (it.uuid.to_string(), pool(state, it))),
        );
    }
    config
}

fn listener(listener: &Listener, address: IpAddr) -> ListenerConfig {
    let millis = |millis: u32| Duration::from_millis(u64::from(millis));
    ListenerConfig {
        transport: match listener.protocol {
            ListenerProtocol::Tcp => Transport::Tcp,
            ListenerProtocol::Udp => Transport::Udp,
        },
        address,
        port: listener.protocol_port,
        pool: listener.pool.map(|pool| pool.to_string()),
        // They were checked when they came in.
        allowed: listener
            .allowed_cidrs
            .iter()
            .filter_map(|cidr| cidr.parse().ok())
            .collect(),
        timeouts: Timeouts {
            client_idle: millis(listener.timeout_client_data_ms),
            member_connect: millis(listener.timeout_member_connect_ms),
            member_idle: millis(listener.timeout_member_data_ms),
        },
    }
}

fn pool(state: &State, pool: &Pool) -> PoolConfig {
    PoolConfig {
        algorithm: match pool.algorithm {
            Algorithm::RoundRobin => dataplane::Algorithm::RoundRobin,
            Algorithm::LeastConnections => dataplane::Algorithm::LeastConnections,
            Algorithm::SourceIp => dataplane::Algorithm::SourceIp,
        },
        proxy: match pool.protocol {
            PoolProtocol::Proxy => Some(ProxyVersion::V1),
            PoolProtocol::Proxyv2 => Some(ProxyVersion::V2),
            PoolProtocol::Tcp | PoolProtocol::Udp => None,
        },
        members: state
            .members_of(pool.uuid)
            .map(|it| (it.uuid.to_string(), member(state, pool.protocol, it)))
            .collect(),
        monitor: state.monitor_of(pool.uuid).map(monitor),
    }
}

fn member(state: &State, protocol: PoolProtocol, member: &Member) -> MemberConfig {
    let transport = match protocol {
        PoolProtocol::Udp => Transport::Udp,
        PoolProtocol::Tcp | PoolProtocol::Proxy | PoolProtocol::Proxyv2 => Transport::Tcp,
    };
    MemberConfig {
        enabled: member.enabled,
        ..state.moved.member(
            transport,
            member.address,
            member.protocol_port,
            member.monitor_port,
        )
    }
}

fn monitor(monitor: &HealthMonitor) -> MonitorConfig {
    let http = |tls| match &monitor.http {
        Some(probe) => http(probe, tls),
        None => Probe::Tcp,
    };
    MonitorConfig {
        probe: match monitor.kind {
            MonitorKind::Ping => Probe::Ping,
            MonitorKind::Tcp => Probe::Tcp,
            MonitorKind::Http => http(false),
            MonitorKind::Https => http(true),
            MonitorKind::TlsHello => Probe::TlsHello,
            MonitorKind::UdpConnect => Probe::UdpConnect,
        },
        delay: Duration::from_secs(u64::from(monitor.delay_s)),
        timeout: Duration::from_secs(u64::from(monitor.timeout_s)),
        up_threshold: monitor.up_threshold,
        down_threshold: monitor.down_threshold,
    }
}

fn http(probe: &HttpProbe, tls: bool) -> Probe {
    Probe::Http {
        tls,
        method: probe.method.clone(),
        path: probe.url_path.clone(),
        host: (probe.version != "1.0").then(|| probe.host.clone().unwrap_or_default()),
        expected: probe
            .expected_codes
            .iter()
            .filter_map(|text| codes(text))
            .collect(),
    }
}
