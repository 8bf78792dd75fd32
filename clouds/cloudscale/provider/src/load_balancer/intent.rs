//! What a Service asks for: parsed and checked as a whole, before anything is read or written.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{IpMode, Node, ServicesView};
use bowline_cloudscale_client::{
    ListenerProtocol, LoadBalancerId, MonitorHttp, MonitorType, PoolAlgorithm, PoolProtocol, Tags,
};
use bowline_plan::{Note, Refusal};

use crate::load_balancer::floating_ips::FloatingAddress;

mod cluster_name;
pub(super) mod read;

/// What is asked for.
pub(crate) enum Intent {
    /// A balancer.
    Wanted(Box<Wanted>),
    /// A balancer, and nobody can tell which in all: what is served follows the nodes.
    Unclear(Box<Unclear>),
    /// No balancer.
    Absent(Identity),
}

impl Intent {
    /// Whose balancer it is.
    pub(crate) fn identity(&self) -> &Identity {
        match self {
            Self::Wanted(wanted) => &wanted.identity,
            Self::Unclear(unclear) => &unclear.identity,
            Self::Absent(identity) => identity,
        }
    }

    /// What has to be read beyond the balancer itself; `None` if that is to go.
    pub(crate) fn needs(&self) -> Option<Needs<'_>> {
        match self {
            Self::Wanted(wanted) => Some(Needs {
                nodes: &wanted.membership.nodes,
                floating_ips: &wanted.floating_ips,
            }),
            Self::Unclear(unclear) => Some(Needs {
                nodes: &unclear.membership.nodes,
                floating_ips: &[],
            }),
            Self::Absent(_) => None,
        }
    }
}

/// What an intent needs besides a balancer and its parts.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    /// Whose servers are needed.
    pub(crate) nodes: &'a [Arc<Node>],
    pub(crate) floating_ips: &'a [FloatingAddress],
}

/// How the balancer of a Service is told from all others.
pub(crate) struct Identity {
    /// The Service's name, for messages.
    pub(crate) service: String,
    /// The Service's UID: the mark of what was made for it.
    pub(crate) uid: String,
    /// The balancer that the annotation names.
    pub(crate) annotated: Option<LoadBalancerId>,
    /// Whether the Service's status shows an address.
    pub(crate) is_published: bool,
    /// The balancer's name.
    pub(crate) name: String,
    /// Whether a balancer without a mark may be taken for ours. Not if the Service belongs to another class by now: then
    /// only what bears its mark can have been made here.
    pub(crate) adopts_unmarked: bool,
    /// The name of the cluster, where one is known.
    pub(crate) cluster_name: Option<String>,
    /// The Services of the cluster.
    pub(crate) services: Arc<dyn ServicesView>,
}

/// A wanted balancer.
pub(crate) struct Wanted {
    pub(crate) identity: Identity,
    pub(crate) flavor: String,
    /// The zone that the annotation asks for.
    pub(crate) zone: Option<String>,
    pub(crate) vips: Vec<VipWish>,
    pub(crate) floating_ips: Vec<FloatingAddress>,
    /// Floating networks that are asked for, which no load balancer takes.
    pub(crate) floating_networks: Vec<String>,
    /// Why the floating IPs cannot be had, if another Service asks for one of them too.
    pub(crate) conflict: Option<String>,
    pub(crate) ports: Vec<Port>,
    pub(crate) listener: ListenerSettings,
    pub(crate) monitor: MonitorSettings,
    pub(crate) membership: Membership,
    /// The tags of a balancer's parts.
    pub(crate) tags: Arc<Tags>,
    /// The tags of the balancer itself: the same, and by whom and for whom it was made.
    pub(crate) balancer_tags: Arc<Tags>,
    pub(crate) publish: Publish,
    /// Annotations that the provider writes, as they are now.
    pub(crate) written: BTreeMap<&'static str, String>,
    /// What can be said before anything is read.
    pub(crate) notes: Vec<Note>,
}

impl Wanted {
    /// Where the members of its ports are reached.
    pub(crate) fn backends(&self) -> Vec<&Backend> {
        self.ports.iter().map(|port| &port.backend).collect()
    }

    /// What is left of it where something cannot be read. What it holds in place of that goes no further.
    fn unclear(self, refusal: Refusal) -> Unclear {
        Unclear {
            identity: self.identity,
            membership: self.membership,
            backends: self.ports.into_iter().map(|port| port.backend).collect(),
            monitor: Some(self.monitor).filter(|monitor| monitor.is_clear),
            tags: self.tags,
            refusal,
            notes: self.notes,
        }
    }
}

/// What is known of a served Service that cannot be read as a whole: all that decides who is a member, and nothing else.
pub(crate) struct Unclear {
    pub(crate) identity: Identity,
    pub(crate) membership: Membership,
    /// Those of the ports that can be read.
    pub(crate) backends: Vec<Backend>,
    /// What monitors ask, if that can be read; not how often.
    pub(crate) monitor: Option<MonitorSettings>,
    /// The tags of a balancer's parts.
    pub(crate) tags: Arc<Tags>,
    /// What cannot be read.
    pub(crate) refusal: Refusal,
    /// What can be said before anything is read from the cloud.
    pub(crate) notes: Vec<Note>,
}

/// An address asked for: each half may be left to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VipWish {
    pub(crate) subnet: Option<String>,
    pub(crate) address: Option<IpAddr>,
}

/// Who may become a member.
pub(crate) struct Membership {
    /// The nodes to balance over, in order.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// The node selector that chose them; `None` where all nodes may be members.
    pub(crate) selected_by: Option<String>,
    /// Subnets whose addresses may become members; all if empty.
    pub(crate) allowed_subnets: Vec<String>,
}

/// Where the members of a port's pool are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) pool_name: String,
    pub(crate) node_port: u16,
    /// The port that is probed.
    pub(crate) monitor_port: u16,
}

impl Backend {
    /// Whether not the node port is probed, but the nodes' health check port.
    pub(crate) fn is_checked_elsewhere(&self) -> bool {
        self.monitor_port != self.node_port
    }
}

/// One port of the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) backend: Backend,
    pub(crate) algorithm: PoolAlgorithm,
    pub(crate) pool_protocol: PoolProtocol,
    pub(crate) listener_name: String,
    pub(crate) listener_protocol: ListenerProtocol,
    pub(crate) port: u16,
}

/// What all listeners have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenerSettings {
    pub(crate) allowed_cidrs: Vec<String>,
    pub(crate) timeout_client_data_ms: i64,
    pub(crate) timeout_member_connect_ms: i64,
    pub(crate) timeout_member_data_ms: i64,
}

/// What all monitors have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MonitorSettings {
    pub(crate) kind: MonitorType,
    /// Whether it could be read what is asked.
    pub(crate) is_clear: bool,
    pub(crate) delay_s: i64,
    pub(crate) timeout_s: i64,
    pub(crate) up_threshold: i64,
    pub(crate) down_threshold: i64,
    pub(crate) http: HttpWish,
}

/// What is asked about the HTTP part of monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HttpWish {
    /// The monitors do not speak HTTP.
    None,
    /// Nothing is asked: the API's defaults.
    Defaults,
    /// Exactly this; gaps are filled.
    Exactly(MonitorHttp),
}

impl HttpWish {
    /// What monitors have in the end; `None` if they do not speak HTTP.
    pub(crate) fn resolved(&self) -> Option<MonitorHttp> {
        match self {
            Self::None => None,
            Self::Defaults => Some(MonitorHttp {
                expected_codes: vec!["200".into()],
                method: Some("GET".into()),
                url_path: Some("/".into()),
                version: Some(DEFAULT_HTTP_VERSION.into()),
                host: None,
            }),
            Self::Exactly(http) => Some(http.clone()),
        }
    }
}

/// Asks kube-proxy, or what stands in for it, whether the node has endpoints of the Service.
pub(crate) fn kube_proxy_check() -> MonitorHttp {
    MonitorHttp {
        expected_codes: vec!["200".into()],
        method: Some("GET".into()),
        url_path: Some("/livez".into()),
        version: Some("1.0".into()),
        host: None,
    }
}

/// The version of HTTP that monitors speak unless told otherwise (cloudscale.ch API, "Health Monitors").
pub(crate) const DEFAULT_HTTP_VERSION: &str = "1.1";

/// What the Service's status is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Publish {
    /// This host name and nothing else.
    Hostname(String),
    /// The balancer's addresses, with this mode where the API server knows modes.
    Addresses(Option<IpMode>),
}
