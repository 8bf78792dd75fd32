//! What the balancer shall look like: the intent, with the addresses of the nodes' servers filled in.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloudscale_client::LoadBalancerId;
use bowline_cloudscale_client::{
    InterfaceType, ListenerProtocol, MonitorHttp, MonitorType, NewListener, NewMember, NewMonitor,
    NewMonitorHttp, NewPool, PoolAlgorithm, PoolId, PoolProtocol, Server, Tags,
};

use crate::intent::{MonitorSettings, Port, Wanted};
use crate::names;
use crate::observe::Observed;
use crate::servers::{NoServer, find};

/// The wished state of a balancer's parts.
#[derive(Debug)]
pub(crate) struct Desired<'a> {
    pub(crate) pools: Vec<DesiredPool<'a>>,
    /// Where the nodes' servers stand.
    pub(crate) zones: BTreeSet<&'a str>,
    /// Nodes that are not balanced over, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// There are nodes, and the project has no server of any of them, or only servers of the names of some while those that
    /// the others name are not there: more likely the token of another project or an API that lies than the end of all nodes
    /// at once.
    pub(crate) knows_no_server: bool,
}

/// A port's pool with all that hangs on it.
#[derive(Debug)]
pub(crate) struct DesiredPool<'a> {
    pub(crate) port: &'a Port,
    pub(crate) members: Vec<DesiredMember>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DesiredMember {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) subnet: String,
    pub(crate) protocol_port: u16,
    pub(crate) monitor_port: u16,
}

/// What makes two members the same: any difference means another member.
pub(crate) type MemberKey<'a> = (Cow<'a, str>, bool, u16, u16, Cow<'a, str>, String);
/// What makes two pools the same.
pub(crate) type PoolKey<'a> = (&'a str, &'a PoolAlgorithm, &'a PoolProtocol);
/// What makes two listeners the same.
pub(crate) type ListenerKey<'a> = (&'a str, &'a ListenerProtocol, u16);
/// What makes two monitors the same.
pub(crate) type MonitorKey<'a> = (&'a MonitorType, &'a str);

impl<'a> Desired<'a> {
    /// Computes the wished state.
    pub(crate) fn new(wanted: &'a Wanted, observed: &'a Observed) -> Self {
        let mut servers = Vec::with_capacity(wanted.nodes.len());
        let mut left_out = Vec::new();
        let (mut is_one_seen, mut is_one_gone) = (false, false);
        for node in &wanted.nodes {
            match find(&observed.servers, node) {
                Ok(server) => {
                    servers.push(server);
                    is_one_seen |= node.provider_id.is_some();
                }
                Err(reason) => {
                    is_one_gone |= matches!(reason, NoServer::WithId(_));
                    left_out.push(format!("{} ({reason})", node.name));
                }
            }
        }
        let is_none_found = servers.is_empty() && !left_out.is_empty();
        let zones = servers.iter().map(|server| server.zone.slug.as_str()).collect();
        // Two nodes may name one server by mistake; it is one member all the same.
        let mut taken = BTreeSet::new();
        let addresses: Vec<(&str, &str)> = servers
            .iter()
            .flat_map(|server| private_addresses(server, &wanted.allowed_subnets))
            .filter(|address| taken.insert(*address))
            .collect();
        let pools = wanted
            .ports
            .iter()
            .map(|port| DesiredPool {
                port,
                members: addresses
                    .iter()
                    .map(|(address, subnet)| DesiredMember::new(port, address, subnet))
                    .collect(),
            })
            .collect();
        Self {
            pools,
            zones,
            left_out,
            knows_no_server: is_none_found || is_one_gone && !is_one_seen,
        }
    }

    /// Whether any pool has a member.
    pub(crate) fn has_members(&self) -> bool {
        self.pools.iter().any(|pool| !pool.members.is_empty())
    }
}

/// The addresses of a server that may become members, in the API's order, each with its subnet.
fn private_addresses<'a>(
    server: &'a Server,
    allowed: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    server
        .interfaces
        .iter()
        .filter(|interface| interface.kind != InterfaceType::Public)
        .flat_map(|interface| &interface.addresses)
        .filter_map(|address| Some((address.address.as_str(), address.subnet.as_ref()?.uuid.as_str())))
        .filter(|(_, subnet)| {
            allowed.is_empty() || allowed.iter().any(|uuid| uuid.eq_ignore_ascii_case(subnet))
        })
}

impl DesiredMember {
    fn new(port: &Port, address: &str, subnet: &str) -> Self {
        Self {
            name: names::member(address, port.node_port),
            address: address.to_owned(),
            subnet: subnet.to_owned(),
            protocol_port: port.node_port,
            monitor_port: port.monitor_port,
        }
    }

    pub(crate) fn key(&self) -> MemberKey<'_> {
        (
            names::spelling(&self.name),
            true,
            self.monitor_port,
            self.protocol_port,
            names::spelling(&self.address),
            self.subnet.to_ascii_lowercase(),
        )
    }

    pub(crate) fn create(&self, tags: &Arc<Tags>) -> NewMember {
        NewMember {
            name: self.name.clone(),
            protocol_port: self.protocol_port,
            monitor_port: self.monitor_port,
            address: self.address.clone(),
            subnet: self.subnet.clone(),
            tags: Arc::clone(tags),
        }
    }
}

impl DesiredPool<'_> {
    pub(crate) fn key(&self) -> PoolKey<'_> {
        (
            &self.port.pool_name,
            &self.port.algorithm,
            &self.port.pool_protocol,
        )
    }

    pub(crate) fn create(&self, balancer: LoadBalancerId, tags: &Arc<Tags>) -> NewPool {
        NewPool {
            name: self.port.pool_name.clone(),
            load_balancer: balancer,
            algorithm: self.port.algorithm.clone(),
            protocol: self.port.pool_protocol.clone(),
            tags: Arc::clone(tags),
        }
    }

    pub(crate) fn listener_key(&self) -> ListenerKey<'_> {
        (
            &self.port.listener_name,
            &self.port.listener_protocol,
            self.port.port,
        )
    }

    pub(crate) fn create_listener(&self, pool: PoolId, wanted: &Wanted) -> NewListener {
        NewListener {
            name: self.port.listener_name.clone(),
            pool,
            protocol: self.port.listener_protocol.clone(),
            protocol_port: self.port.port,
            allowed_cidrs: wanted.listener.allowed_cidrs.clone(),
            timeout_client_data_ms: wanted.listener.timeout_client_data_ms,
            timeout_member_connect_ms: wanted.listener.timeout_member_connect_ms,
            timeout_member_data_ms: wanted.listener.timeout_member_data_ms,
            tags: Arc::clone(&wanted.tags),
        }
    }
}

/// What makes a wanted monitor the same as one that is there.
pub(crate) fn monitor_key<'a>(kind: &'a MonitorType, http: Option<&'a MonitorHttp>) -> MonitorKey<'a> {
    let version = http.and_then(|http| http.version.as_deref());
    (kind, version.unwrap_or(crate::intent::DEFAULT_HTTP_VERSION))
}

/// The monitor to create.
pub(crate) fn create_monitor(settings: &MonitorSettings, pool: PoolId, tags: &Arc<Tags>) -> NewMonitor {
    let http = match &settings.http {
        crate::intent::HttpWish::Exactly(http) => NewMonitorHttp {
            expected_codes: http.expected_codes.clone(),
            method: http.method.clone(),
            url_path: http.url_path.clone(),
            version: http.version.clone(),
            host: http.host.clone(),
        },
        _ => NewMonitorHttp::default(),
    };
    NewMonitor {
        pool,
        delay_s: settings.delay_s,
        timeout_s: settings.timeout_s,
        up_threshold: settings.up_threshold,
        down_threshold: settings.down_threshold,
        kind: settings.kind.clone(),
        http,
        tags: Arc::clone(tags),
    }
}
