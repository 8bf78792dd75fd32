//! The end state without ids and times, to compare runs that took different ways.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::model::network::RuleContent;
use crate::state::State;

mod violations;

pub(crate) use violations::violations;

/// What a cloud holds for a cluster, in an order that does not depend on how it came about.
///
/// Ids, times and automatically chosen addresses are left out: two runs that end with the same objects have equal snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Snapshot {
    /// By name, then by content.
    pub load_balancers: Vec<LoadBalancerState>,
    /// By description.
    pub floating_ips: Vec<FloatingIpState>,
    /// Security groups but those that every project has, by name.
    pub security_groups: Vec<SecurityGroupState>,
    /// By the router's name: destination and next hop.
    pub routes: BTreeMap<String, Vec<String>>,
    /// By the server's name: addresses that it may send from beside its own.
    pub address_pairs: BTreeMap<String, Vec<String>>,
}

/// A load balancer with all its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadBalancerState {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Driver.
    pub provider: String,
    /// Name of the subnet of each address.
    pub vip_subnets: Vec<String>,
    /// In order.
    pub tags: Vec<String>,
    /// Sorted.
    pub listeners: Vec<ListenerState>,
    /// Pools that no listener uses, sorted.
    pub loose_pools: Vec<PoolState>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ListenerState {
    /// `TCP`, ...
    pub protocol: String,
    /// Port.
    pub port: u16,
    /// Name.
    pub name: String,
    /// In order.
    pub tags: Vec<String>,
    /// Sorted; empty if everybody may come.
    pub allowed_cidrs: Vec<String>,
    /// Headers that members get.
    pub insert_headers: BTreeMap<String, String>,
    /// The certificate.
    pub tls_container: Option<String>,
    /// The most connections.
    pub connection_limit: i64,
    /// Client, connect, member and inspect time-out in milliseconds.
    pub timeouts_ms: [u32; 4],
    /// What the listener leads to.
    pub pool: Option<PoolState>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PoolState {
    /// Name.
    pub name: String,
    /// `TCP`, ...
    pub protocol: String,
    /// `ROUND_ROBIN`, ...
    pub algorithm: String,
    /// `SOURCE_IP`, ...
    pub persistence: Option<String>,
    /// Sorted.
    pub members: Vec<MemberState>,
    /// How they are watched.
    pub monitor: Option<MonitorState>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MemberState {
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port for traffic.
    pub port: u16,
    /// Port for probes, if another one.
    pub monitor_port: Option<u16>,
    /// Name of the subnet.
    pub subnet: Option<String>,
    /// Share of the connections.
    pub weight: u16,
}

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MonitorState {
    /// Name.
    pub name: String,
    /// `TCP`, ...
    pub kind: String,
    /// Seconds between probes, and for one.
    pub delay_and_timeout_s: [u32; 2],
    /// Good and bad probes in a row.
    pub retries: [u32; 2],
    /// The HTTP part as one line.
    pub http: Option<String>,
}

/// A floating IP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FloatingIpState {
    /// Description.
    pub description: String,
    /// Name of the subnet that its address is out of.
    pub subnet: String,
    /// The load balancer or server it leads to.
    pub target: Option<String>,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SecurityGroupState {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Sorted.
    pub rules: Vec<String>,
    /// The names of the servers that have it, sorted.
    pub servers: Vec<String>,
}

fn word(value: impl Serialize) -> String {
    let value = serde_json::json!(value);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}

pub(crate) fn take(state: &State) -> Snapshot {
    let view = View { state };
    let routes = state.routers.values().map(|router| {
        let routes = router.routes.iter();
        let routes = routes.map(|it| format!("{} via {}", it.destination, it.nexthop));
        (router.name.clone(), sorted(routes))
    });
    let mut address_pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for port in state.ports.values().filter(|it| !it.address_pairs.is_empty()) {
        let pairs = port.address_pairs.iter().map(|it| it.address.clone());
        let of_server = address_pairs.entry(view.device(&port.device)).or_default();
        of_server.extend(pairs);
        of_server.sort();
    }
    let groups = state.groups.values().filter(|it| it.name != "default");
    let groups = groups.map(|group| SecurityGroupState {
        name: group.name.clone(),
        description: group.meta.description.clone(),
        rules: sorted(state.rules_of(group.id).map(|it| rule(&it.content))),
        servers: sorted(view.servers_with(group.id)),
    });
    let floating = state.floating_ips.values().map(|it| FloatingIpState {
        description: it.meta.description.clone(),
        subnet: view.subnet(it.address.subnet),
        target: it.target.map(|to| view.port(to.port)),
    });
    Snapshot {
        load_balancers: sorted(state.load_balancers.values().map(|it| view.load_balancer(it))),
        floating_ips: sorted(floating),
        security_groups: sorted(groups),
        routes: routes.collect(),
        address_pairs,
    }
}

/// A rule in words.
fn rule(content: &RuleContent) -> String {
    let ports = match (content.port_min, content.port_max) {
        (Some(min), Some(max)) => format!("{min}-{max}"),
        _ => "any port".to_owned(),
    };
    let protocol = content.protocol.as_deref().unwrap_or("any protocol");
    let remote = content.remote_prefix.as_deref().unwrap_or("anywhere");
    format!(
        "{} {} {protocol} {ports} {remote}",
        content.direction, content.ethertype
    )
}

/// Names in the place of ids.
struct View<'a> {
    state: &'a State,
}

impl View<'_> {
    fn subnet(&self, id: Id) -> String {
        let subnet = self.state.subnets.get(&id);
        subnet.map_or_else(|| "?".to_owned(), |it| it.name.clone())
    }

    /// What a port belongs to.
    fn port(&self, id: Id) -> String {
        let mut balancers = self.state.load_balancers.values();
        match (balancers.find(|it| it.vip.port == id), self.state.ports.get(&id)) {
            (Some(balancer), _) => format!("load balancer {}", balancer.part.name),
            (None, Some(port)) => format!("server {}", self.device(&port.device)),
            (None, None) => "?".to_owned(),
        }
    }

    fn device(&self, device: &str) -> String {
        let server = Id::parse_str(device)
            .ok()
            .and_then(|id| self.state.servers.get(&id));
        server.map_or_else(|| "?".to_owned(), |it| it.name.clone())
    }

    fn servers_with(&self, group: Id) -> impl Iterator<Item = String> {
        let ports = self.state.ports.values();
        let ports = ports.filter(move |it| it.groups.contains(&group));
        ports.map(|it| self.device(&it.device))
    }

    fn load_balancer(&self, balancer: &LoadBalancer) -> LoadBalancerState {
        let id = balancer.part.id;
        let vips = std::iter::once(&balancer.vip.fixed_ip).chain(&balancer.additional_vips);
        let is_used = |pool: &&Pool| {
            let mut listeners = self.state.listeners_of(id);
            listeners.any(|it| it.default_pool == Some(pool.part.id))
        };
        let loose = self.state.pools_of(id).filter(|it| !is_used(it));
        LoadBalancerState {
            name: balancer.part.name.clone(),
            description: balancer.part.meta.description.clone(),
            provider: balancer.provider.clone(),
            vip_subnets: vips.map(|it| self.subnet(it.subnet)).collect(),
            tags: balancer.part.meta.tags.clone(),
            listeners: sorted(self.state.listeners_of(id).map(|it| self.listener(it))),
            loose_pools: sorted(loose.map(|it| self.pool(it))),
        }
    }

    fn listener(&self, listener: &Listener) -> ListenerState {
        let settings = &listener.settings;
        let pool = listener.default_pool.and_then(|id| self.state.pools.get(&id));
        ListenerState {
            protocol: word(listener.protocol),
            port: listener.port,
            name: listener.part.name.clone(),
            tags: listener.part.meta.tags.clone(),
            allowed_cidrs: sorted(settings.allowed_cidrs.clone().unwrap_or_default()),
            insert_headers: settings.insert_headers.clone(),
            tls_container: settings.tls_container.clone(),
            connection_limit: settings.connection_limit,
            timeouts_ms: [
                settings.timeout_client_data_ms,
                settings.timeout_member_connect_ms,
                settings.timeout_member_data_ms,
                settings.timeout_tcp_inspect_ms,
            ],
            pool: pool.map(|it| self.pool(it)),
        }
    }

    fn pool(&self, pool: &Pool) -> PoolState {
        let id = pool.part.id;
        PoolState {
            name: pool.part.name.clone(),
            protocol: word(pool.protocol),
            algorithm: word(pool.algorithm),
            persistence: pool.persistence.as_ref().map(|it| it.kind.clone()),
            members: sorted(self.state.members_of(id).map(|it| self.member(it))),
            monitor: self.state.monitor_of(id).map(monitor),
        }
    }

    fn member(&self, member: &Member) -> MemberState {
        MemberState {
            name: member.part.name.clone(),
            address: member.address.to_string(),
            port: member.port,
            monitor_port: member.monitor_port,
            subnet: member.subnet.map(|it| self.subnet(it)),
            weight: member.weight,
        }
    }
}

fn monitor(monitor: &Monitor) -> MonitorState {
    let http = monitor.http.as_ref();
    MonitorState {
        name: monitor.part.name.clone(),
        kind: word(monitor.kind),
        delay_and_timeout_s: [monitor.delay_s, monitor.timeout_s],
        retries: [monitor.max_retries, monitor.max_retries_down],
        http: http.map(|it| format!("{} {} expects {}", it.method, it.url_path, it.expected_codes)),
    }
}
