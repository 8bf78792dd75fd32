//! What a Service asks for: parsed and checked as a whole, before anything is read or written.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{AddressType, AnnotationSpec, IpMode, LoadBalancerStatus, Node, ServiceKey};
use bowline_openstack_client::{
    ListenerAttributes, LoadBalancerId, NetworkId, NewMonitor, PoolProtocol, PortId, SubnetId,
};
use bowline_plan::Note;
use ipnet::IpNet;
use jiff::Timestamp;

use crate::config::LoadBalancerOptions;
use crate::load_balancer::members::{self, Family};
use crate::load_balancer::names::PoolMark;
use crate::load_balancer::subnets::floating::WantedSubnet;
use crate::load_balancer::tags::{Added, Tags};

mod namesakes;
mod notes;
mod ports;
pub(crate) mod read;
pub(crate) mod settings;

use settings::{Bars, Flaw, Place, Setting};

/// What is asked for.
pub(crate) enum Intent {
    /// A load balancer.
    Wanted(Box<Wanted>),
    /// No load balancer.
    Absent(Box<Identity>),
}

impl Intent {
    /// Whose load balancer it is.
    pub(crate) fn identity(&self) -> &Identity {
        match self {
            Self::Wanted(wanted) => &wanted.identity,
            Self::Absent(identity) => identity,
        }
    }

    /// Where the settings come from whose values the cloud may refuse.
    pub(crate) fn settings(&self) -> &[Setting] {
        match self {
            Self::Wanted(wanted) => &wanted.settings,
            Self::Absent(_) => &[],
        }
    }
}

/// How the load balancer of a Service is told from all others.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The Service.
    pub(crate) service: ServiceKey,
    /// The Service's UID.
    pub(crate) uid: String,
    /// When the Service was made, if it says so.
    pub(crate) created: Option<Timestamp>,
    /// The name of the cluster.
    pub(crate) cluster: String,
    /// The UID of the cluster, if it is known.
    pub(crate) cluster_uid: Option<String>,
    /// The name of the Service's load balancer, and the tag of what it uses.
    pub(crate) name: String,
    /// Another Service of that name, as names are cut, which has the older claim to what bears it; this one has none of its own.
    pub(crate) elder: Option<ServiceKey>,
    /// The load balancers that other Services of that name have in their annotations.
    pub(crate) of_namesakes: Vec<LoadBalancerId>,
    /// The name that very old controllers gave.
    pub(crate) legacy_name: String,
    /// The load balancer that the annotation names.
    pub(crate) annotated: Option<LoadBalancerId>,
    /// The address that the annotation names: it is written only beside a load balancer that works.
    pub(crate) recorded_address: Option<String>,
    /// Whether the Service's status shows that address, or a host name in its place.
    pub(crate) is_told_recorded: bool,
    /// Whether another Service records that address too: both use one load balancer.
    pub(crate) shares_address: bool,
    /// The tags of other Services of the cluster that are being deleted, or are not balanced any more.
    pub(crate) going: Vec<String>,
    /// Whether the Service itself is being deleted.
    pub(crate) is_deleted: bool,
    /// The addresses and host names that the Service's status shows.
    pub(crate) shown: Vec<String>,
    /// Whether the Service was ever told an address: then traffic may flow.
    pub(crate) is_published: bool,
    /// Whether the floating IP is never deleted.
    pub(crate) keeps_floating_ip: bool,
    /// The tags that were added because annotations named them.
    pub(crate) added_tags: Added,
    /// The other Services that ask for tags of their load balancer.
    pub(crate) tagging: Vec<Tagging>,
    /// What `cloud.conf` says.
    pub(crate) options: Arc<LoadBalancerOptions>,
}

/// Another Service that asks for tags of its load balancer.
#[derive(Clone)]
pub(crate) struct Tagging {
    /// The tag of what it uses.
    pub(crate) mark: String,
    /// The load balancer that it names.
    pub(crate) balancer: Option<LoadBalancerId>,
    /// What it asks for.
    pub(crate) tags: BTreeSet<String>,
}

impl Identity {
    /// Whether the Service's status shows all addresses and host names of this one.
    pub(crate) fn shows(&self, status: &LoadBalancerStatus) -> bool {
        let mut entries = status.ingress.iter();
        entries.all(|entry| {
            let name = entry.hostname.as_ref().or(entry.ip.as_ref());
            name.is_none_or(|name| self.shown.contains(name))
        })
    }

    /// Whether the status shows what is reached at an address: that, or a host name that begins with it.
    pub(crate) fn shows_at(&self, address: &str) -> bool {
        let mut rests = self.shown.iter().filter_map(|shown| shown.strip_prefix(address));
        rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Whether a load balancer is recorded that worked.
    pub(crate) fn is_served(&self) -> bool {
        self.annotated.is_some() && self.recorded_address.is_some()
    }

    /// What is written on the Service's pools.
    pub(crate) fn mark(&self) -> PoolMark<'_> {
        PoolMark {
            uid: &self.uid,
            cluster: self.cluster_uid.as_deref(),
        }
    }
}

/// A wanted load balancer.
pub(crate) struct Wanted {
    pub(crate) identity: Identity,
    pub(crate) vip: VipWish,
    /// The subnet of the members, where the annotation, the class or an option names it.
    pub(crate) member_subnet: Option<SubnetId>,
    pub(crate) is_internal: bool,
    /// `spec.loadBalancerIP`.
    pub(crate) address: Option<String>,
    pub(crate) floating: FloatingWish,
    /// `spec.ipFamilies` in order; may be empty.
    pub(crate) families: Vec<Family>,
    pub(crate) ports: Vec<Port>,
    pub(crate) listener: ListenerSettings,
    pub(crate) pool: PoolSettings,
    /// What all monitors have in common.
    pub(crate) monitor: Option<NewMonitor>,
    pub(crate) tags: Tags,
    /// The node port on which kube-proxy says whether the node has endpoints.
    pub(crate) health_check_port: Option<u16>,
    /// All nodes, in order.
    pub(crate) all_nodes: Arc<[Arc<Node>]>,
    /// The nodes to balance over, in order.
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) publish: Publish,
    /// What can be said before anything is read.
    pub(crate) notes: Vec<Note>,
    /// Where the settings come from whose values the cloud may refuse.
    pub(crate) settings: Vec<Setting>,
    /// What is wrong with them, whatever the cloud is like.
    pub(crate) flaws: Vec<Flaw>,
}

/// Where the load balancer's address shall be, and what it shall stand on. None of it can be changed later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VipWish {
    pub(crate) network: Option<NetworkId>,
    pub(crate) subnet: Option<SubnetId>,
    pub(crate) port: Option<PortId>,
    pub(crate) flavor: Option<String>,
    pub(crate) zone: Option<String>,
}

/// Where a floating IP shall come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FloatingWish {
    /// The floating network; `None` is to be searched.
    pub(crate) network: Option<NetworkId>,
    /// The subnet of that network.
    pub(crate) subnet: WantedSubnet,
}

/// What a port of a Service carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// One port of the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// The port of the nodes; `None` where none is allocated, and then the pool has no members.
    pub(crate) node_port: Option<u16>,
}

/// What all listeners have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenerSettings {
    /// How many connections there may be, and how long they may be silent.
    pub(crate) limits: ListenerAttributes,
    pub(crate) forwards_for: bool,
    /// Where the certificate is kept with which TLS ends.
    pub(crate) tls: Option<TlsWish>,
    pub(crate) sources: Sources,
}

/// Where a certificate is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsWish {
    /// The reference as it is written.
    pub(crate) reference: String,
    /// What Barbican is asked for; `None` where it is kept elsewhere.
    pub(crate) key: Option<TlsKey>,
}

/// What is to be there in Barbican.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsKey {
    pub(crate) kind: bowline_openstack_client::KeyKind,
    pub(crate) id: String,
}

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sources {
    /// Networks without host bits, each once.
    pub(crate) ranges: Vec<IpNet>,
    /// Whether a person asked for them; else they are everybody.
    pub(crate) is_asked: bool,
}

/// What all pools have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolSettings {
    pub(crate) method: String,
    pub(crate) is_sticky: bool,
    /// The version of the PROXY protocol.
    pub(crate) proxy: Option<PoolProtocol>,
}

/// What the Service's status is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Publish {
    /// This host name and nothing else.
    Hostname(String),
    /// A host name made of the address and this suffix.
    AddressAsHostname {
        /// What follows the address.
        suffix: String,
    },
    /// The address, in this mode.
    Address(IpMode),
}

impl Wanted {
    /// Whether it cannot be told what is asked for: then all but the Nodes stays as it is.
    pub(crate) fn is_unclear(&self) -> bool {
        self.flaws.iter().any(|flaw| flaw.bars == Bars::All)
    }

    /// The version of IP that the Service's first address has; `None` if the Service does not say.
    pub(crate) fn family(&self) -> Option<Family> {
        self.families.first().copied()
    }

    /// Whether people are told the load balancer's own address. What a floating IP leads to is nobody's business but the cloud's.
    pub(crate) fn publishes_own_address(&self) -> bool {
        self.is_internal || self.family() == Some(Family::V6)
    }

    /// The address that the load balancer itself is asked to have.
    pub(crate) fn own_address(&self) -> Option<&str> {
        self.address.as_deref().filter(|_| self.publishes_own_address())
    }

    /// The second version of IP that the Service asks for.
    pub(crate) fn second_family(&self) -> Option<Family> {
        let second = self.families.get(1).copied();
        second.filter(|second| Some(*second) != self.family())
    }

    /// The addresses of a node among which the members' subnet chooses. External ones count where that subnet is named: then it may be
    /// a public one.
    fn choices(&self, node: &Node, family: Option<Family>) -> impl Iterator<Item = IpAddr> {
        let external = members::of_kind(node, AddressType::ExternalIp, family);
        let external = external.filter(|_| self.member_subnet.is_some());
        members::of_kind(node, AddressType::InternalIp, family).chain(external)
    }

    /// Where the settings of these annotations are written; empty if none of them is.
    pub(crate) fn origins(&self, what: &[&str]) -> String {
        let known = self
            .settings
            .iter()
            .filter(|setting| what.contains(&setting.what));
        let origins: Vec<&str> = known.map(|setting| setting.origin.as_str()).collect();
        origins.join(" or ")
    }

    /// What the Service itself says, by its annotation or by the class that it names: a change of that is a person's. A given port is
    /// somewhere, whatever the class says.
    pub(crate) fn on_service(&self, entry: &AnnotationSpec) -> Option<&str> {
        let setting = settings::find(&self.settings, entry)?;
        let counts = match setting.place {
            Place::Annotation => true,
            Place::Class => self.vip.port.is_none(),
            Place::Other => false,
        };
        counts.then_some(&setting.value)
    }

    /// What names the members' subnet and nothing else; `None` if nothing does.
    pub(crate) fn named_member_subnet(&self) -> Option<String> {
        let other = self.identity.options.placement.subnet.as_ref();
        self.member_subnet
            .as_ref()
            .filter(|subnet| Some(*subnet) != other)?;
        Some(self.origins(&[crate::load_balancer::annotations::MEMBER_SUBNET.key]))
    }

    /// Whether the members' subnet has to be known, because a node has several addresses.
    pub(crate) fn has_choices(&self) -> bool {
        let second = self.second_family().map(Some);
        let families: Vec<_> = [self.family()].into_iter().chain(second).collect();
        let mut nodes = self.nodes.iter();
        nodes.any(|node| {
            families
                .iter()
                .any(|family| self.choices(node, *family).nth(1).is_some())
        })
    }

    /// The address at which a node is reached from a subnet with this range: the first one in it, else the first one.
    pub(crate) fn address_of(
        &self,
        node: &Node,
        family: Option<Family>,
        range: Option<IpNet>,
    ) -> Option<IpAddr> {
        let mut choices = self.choices(node, family);
        let in_range = range.and_then(|range| choices.find(|address| range.contains(address)));
        in_range.or_else(|| members::address(node, family))
    }

    /// The address of the first node that has one: where nothing is configured, its subnet counts.
    pub(crate) fn first_node(&self, family: Option<Family>) -> Option<(&Arc<Node>, IpAddr)> {
        let mut nodes = self.all_nodes.iter();
        nodes.find_map(|node| Some((node, members::address(node, family)?)))
    }
}

#[cfg(test)]
mod tests;
