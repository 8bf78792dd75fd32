//! What there shall be, in the words of the API: from the intent and from what is read about the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_provider::Node;
use bowline_openstack_client::{
    ListenerAttributes, ListenerProtocol, MemberSettings, MonitorType, NewListener, NewMember, NewMonitor,
    NewMonitorHttp, NewPool, PoolProtocol, SessionPersistence, SubnetId,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::load_balancer::features::Features;
use crate::load_balancer::intent::{Port, Protocol, Wanted};
use crate::load_balancer::members::Family;
use crate::load_balancer::names;

/// The header by which members learn who the client is.
pub(crate) const FORWARDED_FOR: &str = "X-Forwarded-For";

/// One port of the Service with all that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DesiredPort {
    pub(crate) listener: NewListener,
    pub(crate) pool: NewPool,
    pub(crate) members: Vec<NewMember>,
    /// Those of nodes that are about to go: no new ones, and those that are there get no new connections.
    pub(crate) drained: Vec<NewMember>,
    pub(crate) monitor: Option<NewMonitor>,
}

/// A subnet of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberSubnet {
    pub(crate) id: SubnetId,
    /// Its addresses; `None` where the subnets were not read, or do not show it.
    pub(crate) range: Option<IpNet>,
}

/// Where members are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemberSubnets {
    /// The subnet of the members of the first family.
    pub(crate) first: Option<MemberSubnet>,
    /// Whether members that are elsewhere stay there: nothing names their subnet, and what it is derived from may change.
    pub(crate) keeps_others: bool,
    /// The second family and its subnet, where the load balancer has an address of that family too.
    pub(crate) second: Option<(Family, MemberSubnet)>,
}

impl MemberSubnets {
    /// Those that are known.
    pub(crate) fn ids(&self) -> Vec<SubnetId> {
        let second = self.second.iter().map(|(_, subnet)| subnet);
        let known = self.first.iter().chain(second);
        known.map(|subnet| subnet.id.clone()).collect()
    }

    /// The address of a node in the subnet of the members of the first family, else its first one.
    pub(crate) fn first_address(&self, wanted: &Wanted, node: &Node) -> Option<IpAddr> {
        let range = self.first.as_ref().and_then(|subnet| subnet.range);
        wanted.address_of(node, wanted.family(), range)
    }

    /// The same of the second family.
    pub(crate) fn second_address(&self, wanted: &Wanted, node: &Node) -> Option<IpAddr> {
        let range = self.second.as_ref().and_then(|(_, subnet)| subnet.range);
        wanted.address_of(node, Some(wanted.second_family()?), range)
    }
}

/// What there shall be on a load balancer of the name that the parts are named after.
pub(crate) fn ports(wanted: &Wanted, features: Features, subnets: &MemberSubnets) -> Vec<DesiredPort> {
    let name = &wanted.identity.name;
    let of = |(index, port): (usize, &Port)| {
        let protocol = listener_protocol(wanted, port);
        let kind = kind_of_monitor(wanted, features, port);
        let monitor = wanted.monitor.as_ref();
        let is_http = monitor.is_some() && kind == MonitorType::Http;
        let monitor_port = wanted.health_check_port.filter(|_| is_http);
        let (members, drained) = members_of(wanted, port, monitor_port, subnets);
        DesiredPort {
            pool: NewPool {
                loadbalancer_id: None,
                listener_id: None,
                name: names::pool(index, name),
                description: names::pool_description(&wanted.identity.service, wanted.identity.mark()),
                tags: (features.tags && !wanted.tags.pool.is_empty()).then(|| wanted.tags.pool.clone()),
                protocol: pool_protocol(wanted, &protocol),
                lb_algorithm: wanted.pool.method.clone(),
                session_persistence: wanted.pool.is_sticky.then(SessionPersistence::by_address),
                members: Vec::new(),
                healthmonitor: None,
            },
            members,
            drained,
            monitor: monitor.map(|common| new_monitor(common, names::monitor(index, name), kind)),
            listener: NewListener {
                loadbalancer_id: None,
                name: names::listener(index, name),
                protocol,
                protocol_port: port.port,
                attributes: attributes(wanted, features, subnets),
                default_pool_id: None,
                default_pool: None,
            },
        }
    };
    wanted.ports.iter().enumerate().map(of).collect()
}

/// The whole tree of a port, for the call that creates the load balancer.
pub(crate) fn tree(port: DesiredPort) -> NewListener {
    NewListener {
        default_pool: Some(NewPool {
            members: port.members,
            healthmonitor: port.monitor,
            ..port.pool
        }),
        ..port.listener
    }
}

fn listener_protocol(wanted: &Wanted, port: &Port) -> ListenerProtocol {
    if wanted.listener.tls.is_some() {
        return ListenerProtocol::TerminatedHttps;
    }
    if wanted.listener.forwards_for {
        return ListenerProtocol::Http;
    }
    match port.protocol {
        Protocol::Tcp => ListenerProtocol::Tcp,
        Protocol::Udp => ListenerProtocol::Udp,
        Protocol::Sctp => ListenerProtocol::Sctp,
    }
}

fn pool_protocol(wanted: &Wanted, listener: &ListenerProtocol) -> PoolProtocol {
    match (listener, &wanted.pool.proxy) {
        // Octavia takes no PROXY pool for these.
        (ListenerProtocol::Udp, _) => PoolProtocol::Udp,
        (ListenerProtocol::Sctp, _) => PoolProtocol::Sctp,
        (_, Some(proxy)) => proxy.clone(),
        (ListenerProtocol::Tcp, None) => PoolProtocol::Tcp,
        (_, None) => PoolProtocol::Http,
    }
}

fn attributes(wanted: &Wanted, features: Features, subnets: &MemberSubnets) -> ListenerAttributes {
    let settings = &wanted.listener;
    let mut sources = settings.sources.ranges.clone();
    if !settings.sources.is_asked && subnets.second.is_some() {
        // Everybody, at both addresses.
        sources = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    }
    let limits = match features.timeouts {
        true => settings.limits.clone(),
        false => ListenerAttributes {
            connection_limit: settings.limits.connection_limit,
            ..ListenerAttributes::default()
        },
    };
    ListenerAttributes {
        tags: features.tags.then(|| marked(wanted, &wanted.tags.listener)),
        insert_headers: settings
            .forwards_for
            .then(|| BTreeMap::from([(FORWARDED_FOR.to_owned(), "true".to_owned())])),
        default_tls_container_ref: settings.tls.as_ref().map(|tls| tls.reference.clone()),
        allowed_cidrs: features
            .allowed_cidrs
            .then(|| sources.iter().map(ToString::to_string).collect()),
        ..limits
    }
}

/// The tags of a new object of the Service: its mark, and those that are asked for.
pub(super) fn marked(wanted: &Wanted, tags: &[String]) -> Vec<String> {
    let mark = std::iter::once(&wanted.identity.name);
    mark.chain(tags).cloned().collect()
}

/// How a port's members are probed, of what all monitors have in common.
fn kind_of_monitor(wanted: &Wanted, features: Features, port: &Port) -> MonitorType {
    let may_be_http = match port.protocol {
        Protocol::Udp => features.http_monitors_of_udp,
        Protocol::Tcp | Protocol::Sctp => features.http_monitors,
    };
    match port.protocol {
        _ if wanted.health_check_port.is_some() && may_be_http => MonitorType::Http,
        Protocol::Tcp => MonitorType::Tcp,
        Protocol::Udp => MonitorType::UdpConnect,
        Protocol::Sctp => MonitorType::Sctp,
    }
}

fn new_monitor(common: &NewMonitor, name: String, kind: MonitorType) -> NewMonitor {
    // Asks kube-proxy, or what stands in for it, whether the node has endpoints of the Service.
    let http = (kind == MonitorType::Http).then(|| NewMonitorHttp {
        url_path: "/healthz".to_owned(),
        http_method: "GET".to_owned(),
        expected_codes: "200".to_owned(),
    });
    NewMonitor {
        name,
        kind,
        http,
        ..common.clone()
    }
}

/// The members, and those of nodes that are about to go. Where no others are left, these serve on.
fn members_of(
    wanted: &Wanted,
    port: &Port,
    monitor_port: Option<u16>,
    subnets: &MemberSubnets,
) -> (Vec<NewMember>, Vec<NewMember>) {
    let Some(node_port) = port.node_port else {
        return (Vec::new(), Vec::new());
    };
    let first_family = wanted.family();
    // Where the Service names no family, the members of the subnet are those of the first node's family.
    let family_of_subnet =
        first_family.or_else(|| wanted.first_node(None).map(|(_, address)| Family::of(address)));
    let (mut members, mut drained) = (Vec::new(), Vec::new());
    // Octavia refuses the whole list where an address is in it twice.
    let mut taken = BTreeSet::new();
    let (staying, going): (Vec<_>, Vec<_>) = wanted.nodes.iter().partition(|node| node.draining.is_none());
    for node in staying.into_iter().chain(going) {
        let list = match node.draining {
            None => &mut members,
            Some(_) => &mut drained,
        };
        let first = subnets.first_address(wanted, node).map(|address| {
            let fits = Some(Family::of(address)) == family_of_subnet;
            let subnet = subnets.first.as_ref().filter(|_| fits);
            (address, subnet.map(|subnet| subnet.id.clone()))
        });
        let second = subnets
            .second
            .as_ref()
            .and_then(|(_, subnet)| Some((subnets.second_address(wanted, node)?, Some(subnet.id.clone()))));
        if first.is_none() {
            tracing::debug!(service = %wanted.identity.service, node = %node.name, "Node has no address to balance over");
        }
        let addresses = first.into_iter().chain(second);
        for (address, subnet_id) in addresses.filter(|(address, _)| taken.insert(*address)) {
            list.push(NewMember {
                name: if wanted.identity.options.is_serial {
                    names::single_member(node.name.as_str(), address, node_port)
                } else {
                    node.name.to_string()
                },
                address: address.to_string(),
                protocol_port: node_port,
                subnet_id,
                monitor_port,
                settings: MemberSettings::default(),
            });
        }
    }
    match members.is_empty() {
        true => (drained, members),
        false => (members, drained),
    }
}
