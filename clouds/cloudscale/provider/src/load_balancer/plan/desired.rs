//! What the parts of a balancer shall look like: the intent, with the addresses of the nodes' servers filled in.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_cloud_provider::spelling;
use bowline_cloudscale_client::LoadBalancerId;
use bowline_cloudscale_client::{
    InterfaceType, ListenerProtocol, MonitorHttp, MonitorType, NewListener, NewMember, NewMonitor, NewPool,
    PoolAlgorithm, PoolId, PoolProtocol, Server, Tags,
};

use crate::load_balancer::intent::{Backend, Membership, MonitorSettings, Port, Wanted};
use crate::load_balancer::names;
use crate::load_balancer::observe::Observed;
use crate::nodes::provider_id::ProviderIdError;
use crate::nodes::servers::{NoServer, find};

/// Who the members of pools shall be.
#[derive(Debug)]
pub(crate) struct Desired<'a> {
    /// The addresses of members, each with its subnet.
    addresses: Vec<(&'a str, &'a str)>,
    /// Where the nodes' servers stand.
    pub(crate) zones: BTreeSet<&'a str>,
    /// Nodes that are not balanced over, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// Nodes that have one address, in words.
    pub(crate) sharing: Vec<String>,
    /// There are nodes, and the project has no server of any of them, or only servers of the names of some while those that
    /// the others name are not there: more likely the token of another project or an API that lies than the end of all nodes
    /// at once.
    pub(crate) knows_no_server: bool,
    /// There are nodes, and all of them are of other clouds.
    pub(crate) is_elsewhere: bool,
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
    pub(crate) fn new(membership: &'a Membership, observed: &'a Observed) -> Self {
        let mut servers = Vec::with_capacity(membership.nodes.len());
        let mut left_out = Vec::new();
        let (mut is_one_seen, mut is_one_gone) = (false, false);
        let mut foreign = 0;
        for node in &membership.nodes {
            match find(&observed.servers, node) {
                Ok(server) => {
                    servers.push((node.name.as_str(), server));
                    is_one_seen |= node.provider_id.is_some();
                }
                Err(reason) => {
                    is_one_gone |= matches!(reason, NoServer::WithId(_));
                    foreign += usize::from(matches!(reason, NoServer::BadId(ProviderIdError::Foreign(_))));
                    left_out.push(format!("{} ({reason})", node.name));
                }
            }
        }
        let is_none_found = servers.is_empty() && !left_out.is_empty();
        // Two nodes may name one server by mistake; it is one member all the same.
        let mut addresses = Vec::new();
        let mut nodes: BTreeMap<Cow<'_, str>, Vec<&str>> = BTreeMap::new();
        for (node, server) in &servers {
            for (address, subnet) in private_addresses(server, &membership.allowed_subnets) {
                let at_address = nodes.entry(spelling::of_address(address)).or_default();
                if !at_address.contains(node) {
                    at_address.push(node);
                }
                addresses.push((address, subnet));
            }
        }
        let mut taken = BTreeSet::new();
        addresses.retain(|address| taken.insert(*address));
        // Where nobody has one, that is told as such.
        if !addresses.is_empty() {
            let unreached = servers
                .iter()
                .filter(|(_, server)| private_addresses(server, &[]).next().is_none());
            left_out.extend(
                unreached.map(|(node, _)| format!("{node} (its server has no address in a private network)")),
            );
        }
        let shared = nodes.iter().filter(|(_, nodes)| nodes.len() > 1);
        Self {
            zones: servers.iter().map(|(_, server)| &*server.zone.slug).collect(),
            addresses,
            sharing: shared
                .map(|(address, nodes)| format!("{} have {address}", nodes.join(" and ")))
                .collect(),
            is_elsewhere: is_none_found && foreign == left_out.len(),
            left_out,
            knows_no_server: is_none_found || is_one_gone && !is_one_seen,
        }
    }

    /// The members of a port's pool.
    pub(crate) fn members(&self, backend: &Backend, tags: &Arc<Tags>) -> Vec<NewMember> {
        let member = |(address, subnet): &(&str, &str)| NewMember {
            name: names::member(address, backend.node_port),
            address: (*address).to_owned(),
            subnet: (*subnet).to_owned(),
            protocol_port: backend.node_port,
            monitor_port: backend.monitor_port,
            tags: Arc::clone(tags),
        };
        self.addresses.iter().map(member).collect()
    }

    /// Whether anybody may be a member.
    pub(crate) fn has_members(&self) -> bool {
        !self.addresses.is_empty()
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
        .filter_map(|address| Some((address.address.as_str(), &*address.subnet.as_ref()?.uuid)))
        .filter(|(_, subnet)| {
            allowed.is_empty() || allowed.iter().any(|uuid| uuid.eq_ignore_ascii_case(subnet))
        })
}

/// What makes a wanted member the same as one that is there.
pub(crate) fn member_key(wanted: &NewMember) -> MemberKey<'_> {
    (
        spelling::of_address(&wanted.name),
        true,
        wanted.monitor_port,
        wanted.protocol_port,
        spelling::of_address(&wanted.address),
        wanted.subnet.to_ascii_lowercase(),
    )
}

impl Port {
    pub(crate) fn key(&self) -> PoolKey<'_> {
        (&self.backend.pool_name, &self.algorithm, &self.pool_protocol)
    }

    pub(crate) fn create(&self, balancer: LoadBalancerId, tags: &Arc<Tags>) -> NewPool {
        NewPool {
            name: self.backend.pool_name.clone(),
            load_balancer: balancer,
            algorithm: self.algorithm.clone(),
            protocol: self.pool_protocol.clone(),
            tags: Arc::clone(tags),
        }
    }

    pub(crate) fn listener_key(&self) -> ListenerKey<'_> {
        (&self.listener_name, &self.listener_protocol, self.port)
    }

    pub(crate) fn create_listener(&self, pool: PoolId, wanted: &Wanted) -> NewListener {
        NewListener {
            name: self.listener_name.clone(),
            pool,
            protocol: self.listener_protocol.clone(),
            protocol_port: self.port,
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
    (
        kind,
        version.unwrap_or(crate::load_balancer::intent::DEFAULT_HTTP_VERSION),
    )
}

/// The monitor to create.
pub(crate) fn create_monitor(settings: &MonitorSettings, pool: PoolId, tags: &Arc<Tags>) -> NewMonitor {
    let http = match &settings.http {
        crate::load_balancer::intent::HttpWish::Exactly(http) => http.clone(),
        _ => MonitorHttp::default(),
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
