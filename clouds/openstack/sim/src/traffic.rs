//! Load balancers that carry traffic: the state as a description for the data plane, and health back into the state.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_kit::clock::pending;
use bowline_cloud_kit::dataplane::{
    self, Bound, Carrier, Config, HealthChange, ListenerConfig, MemberConfig, MonitorConfig, PoolConfig,
    Probe, ProxyVersion, Timeouts, Transport, codes,
};
use tokio::time::Instant;

use crate::behaviour::Behaviour;
use crate::model::Id;
use crate::model::balancing::{
    Algorithm, Forwarder, HttpProbe, Listener, ListenerProtocol, LoadBalancer, Member, Monitor, MonitorKind,
    Pool, PoolProtocol,
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
        let member = Id::parse_str(&change.member).ok();
        if let Some(member) = member.and_then(|id| self.members.get_mut(&id)) {
            member.healthy = Some(change.up);
        }
    }
}

/// When the clock alone changes what is carried.
fn next_change(state: &State) -> Option<Instant> {
    let changes = state.load_balancers.values().filter_map(|it| it.change);
    let moments = changes.map(|it| it.until);
    moments.filter(|&moment| pending(Some(moment))).min()
}

/// What should be carried now. A load balancer that is still being created carries nothing. One in `ERROR` does, if what
/// carries its traffic works.
fn config(state: &State) -> Config {
    let mut config = Config::default();
    let carries = |it: &&LoadBalancer| it.forwarder == Forwarder::Working && it.part.is_up;
    for balancer in state.load_balancers.values().filter(carries) {
        let addresses = addresses(state, balancer);
        let listeners = state.listeners_of(balancer.part.id).filter(|it| it.part.is_up);
        for found in listeners {
            let placed = addresses.iter().filter_map(|&address| listener(found, address));
            config.listeners.extend(placed.map(|mut placed| {
                // A person's security groups take the place of those that let the allowed CIDRs in.
                if !balancer.vip_groups.is_empty() {
                    placed.allowed.clear();
                }
                placed
            }));
        }
        let pools = state.pools_of(balancer.part.id);
        config
            .pools
            .extend(pools.map(|it| (it.part.id.to_string(), pool(state, it))));
    }
    config
}

/// Those of the load balancer, and the floating IPs that lead to them.
fn addresses(state: &State, balancer: &LoadBalancer) -> Vec<IpAddr> {
    let further = balancer.additional_vips.iter().map(|it| it.address);
    let own = std::iter::once(balancer.vip.fixed_ip.address).chain(further);
    let mut addresses: Vec<IpAddr> = own.collect();
    let floating = state.floating_ips.values().filter(|it| {
        let leads_here = |port, address| port == balancer.vip.port && addresses.contains(&address);
        it.target.is_some_and(|to| leads_here(to.port, to.address))
    });
    let floating: Vec<IpAddr> = floating.map(|it| it.address.address).collect();
    addresses.extend(floating);
    addresses
}

/// HTTP is carried as the connection it comes in; of TLS that would end here there is no certificate, and associations
/// cannot be carried.
fn listener(listener: &Listener, address: IpAddr) -> Option<ListenerConfig> {
    let settings = &listener.settings;
    let millis = |millis: u32| Duration::from_millis(u64::from(millis));
    let transport = match listener.protocol {
        ListenerProtocol::Tcp | ListenerProtocol::Http | ListenerProtocol::Https => Transport::Tcp,
        ListenerProtocol::Udp => Transport::Udp,
        ListenerProtocol::TerminatedHttps | ListenerProtocol::Sctp | ListenerProtocol::Prometheus => {
            return None;
        }
    };
    Some(ListenerConfig {
        transport,
        address,
        port: listener.port,
        pool: listener.default_pool.map(|pool| pool.to_string()),
        // They were checked when they came in.
        allowed: settings
            .allowed_cidrs
            .iter()
            .flatten()
            .filter_map(|cidr| cidr.parse().ok())
            .collect(),
        timeouts: Timeouts {
            client_idle: millis(settings.timeout_client_data_ms),
            member_connect: millis(settings.timeout_member_connect_ms),
            member_idle: millis(settings.timeout_member_data_ms),
        },
    })
}

fn pool(state: &State, pool: &Pool) -> PoolConfig {
    let id = pool.part.id;
    let monitor = state.monitor_of(id).filter(|it| it.part.is_up);
    PoolConfig {
        algorithm: match (&pool.persistence, pool.algorithm) {
            (Some(_), _) | (None, Algorithm::SourceIp | Algorithm::SourceIpPort) => {
                dataplane::Algorithm::SourceIp
            }
            (None, Algorithm::RoundRobin) => dataplane::Algorithm::RoundRobin,
            (None, Algorithm::LeastConnections) => dataplane::Algorithm::LeastConnections,
        },
        proxy: match pool.protocol {
            PoolProtocol::Proxy => Some(ProxyVersion::V1),
            PoolProtocol::Proxyv2 => Some(ProxyVersion::V2),
            _ => None,
        },
        members: state
            .members_of(id)
            .map(|it| (it.part.id.to_string(), member(state, pool, it)))
            .collect(),
        monitor: monitor.and_then(watch),
    }
}

fn member(state: &State, pool: &Pool, member: &Member) -> MemberConfig {
    let balancer = state.load_balancers.get(&pool.load_balancer);
    let weighs = balancer.is_none_or(|balancer| balancer.provider != "ovn");
    let transport = match pool.protocol {
        PoolProtocol::Udp => Transport::Udp,
        _ => Transport::Tcp,
    };
    MemberConfig {
        enabled: member.part.is_up && (member.weight > 0 || !weighs),
        ..state
            .moved
            .member(transport, member.address, member.port, member.monitor_port)
    }
}

/// Associations cannot be probed.
fn watch(monitor: &Monitor) -> Option<MonitorConfig> {
    let http = |tls| monitor.http.as_ref().map(|probe| http(probe, tls));
    let probe = match monitor.kind {
        MonitorKind::Ping => Probe::Ping,
        MonitorKind::Tcp => Probe::Tcp,
        MonitorKind::Http => http(false)?,
        MonitorKind::Https => http(true)?,
        MonitorKind::TlsHello => Probe::TlsHello,
        MonitorKind::UdpConnect => Probe::UdpConnect,
        MonitorKind::Sctp => return None,
    };
    // The API takes zero, and the probes would never rest.
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds.max(1)));
    Some(MonitorConfig {
        probe,
        delay: seconds(monitor.delay_s),
        timeout: seconds(monitor.timeout_s),
        up_threshold: monitor.max_retries,
        down_threshold: monitor.max_retries_down,
    })
}

fn http(probe: &HttpProbe, tls: bool) -> Probe {
    let is_named = probe.version.as_deref() == Some("1.1");
    Probe::Http {
        tls,
        method: probe.method.clone(),
        path: probe.url_path.clone(),
        host: is_named.then(|| probe.domain_name.clone().unwrap_or_default()),
        expected: probe.expected_codes.split(',').filter_map(codes).collect(),
    }
}
