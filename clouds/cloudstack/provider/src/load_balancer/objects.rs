//! The objects of the cloud that a load balancer is made of, as far as decisions need them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(crate) use bowline_cloudstack_client::{
    AclListId, Algorithm, FirewallRuleId, NetworkId, PortForwardingRule, PublicIpId, RuleId, RuleProtocol,
    RuleState, StickinessPolicy, StickinessPolicyId, VirtualMachineId, VpcId,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::names::{self, IpProtocol, Protocol};

/// A public IP address by its ID, with its text for people and for the status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct AddressRef {
    /// Empty if a rule does not tell it.
    #[serde(rename = "ipId")]
    pub(crate) id: PublicIpId,
    pub(crate) ip: String,
}

/// A load balancer rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: RuleId,
    pub(crate) name: String,
    pub(crate) algorithm: Algorithm,
    /// The API's word, which may be absent on old rules and unknown to us.
    pub(crate) protocol: RuleProtocol,
    pub(crate) address: AddressRef,
    pub(crate) public_port: Option<u16>,
    pub(crate) private_port: Option<u16>,
    /// The network of its members; empty if it does not tell.
    pub(crate) network: NetworkId,
    pub(crate) cidrs: Cidrs,
    /// Whether the list of networks is stored with commas. It is written as it is into the configuration of the network's
    /// router, which then cannot read any of it.
    pub(crate) has_commas: bool,
    pub(crate) state: RuleState,
}

impl Rule {
    /// Where it is.
    pub(crate) fn at(&self) -> PublicPort<'_> {
        (&self.address, self.public_port)
    }

    /// Whether the router of the network takes no change because of the rule.
    pub(crate) fn breaks_router(&self) -> bool {
        self.has_commas && !self.state.is_going()
    }

    /// What the rule speaks; by its name if the API does not say.
    pub(crate) fn protocol(&self, balancer: &str) -> Option<Protocol> {
        if self.protocol == RuleProtocol::default() {
            return names::protocol_of(balancer, &self.name);
        }
        Protocol::parse(self.protocol.as_str())
    }

    /// What a rule of the balancer was made for, whatever a person made of it since; `None` of a rule that cannot be read.
    pub(crate) fn made_for(&self, balancer: &str) -> Option<Protocol> {
        let named = || names::protocol_of(balancer, &self.name);
        self.protocol(balancer).or_else(named)
    }

    /// What the rule is to a firewall; `None` if its port or protocol cannot be read.
    pub(crate) fn ingress(&self, balancer: &str) -> Option<IngressPort> {
        Some(IngressPort {
            protocol: self.made_for(balancer)?.ip(),
            port: self.public_port?,
        })
    }

    /// Whether a rule of somebody else may need a port that is open. One that tells no protocol, or a word that is strange to us,
    /// may be for any.
    pub(crate) fn may_need(&self, open: IngressPort) -> bool {
        let speaks = |protocol: Protocol| protocol.ip() == open.protocol;
        self.public_port == Some(open.port) && self.protocol("").is_none_or(speaks)
    }
}

/// Something that somebody else has behind an ACL list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// A load balancer rule.
    Rule(Rule),
    /// A port of a public address that leads to one virtual machine.
    Forwarding(PortForwardingRule),
    /// A public address that leads to one virtual machine by static NAT, with all of its ports.
    StaticNat(AddressRef),
}

impl Neighbour {
    /// Whether it may need a port that is open.
    pub(crate) fn may_need(&self, open: IngressPort) -> bool {
        match self {
            Self::Rule(rule) => rule.may_need(open),
            Self::Forwarding(rule) => {
                let protocol = rule.protocol.as_deref().and_then(IpProtocol::parse);
                protocol.is_none_or(|known| known == open.protocol) && rule.concerns(open.port)
            }
            Self::StaticNat(_) => true,
        }
    }
}

impl std::fmt::Display for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "load balancer rule {}", rule.name),
            Self::Forwarding(rule) => write!(f, "port forwarding rule {}", rule.id),
            Self::StaticNat(address) => write!(f, "the static NAT of public IP {}", address.ip),
        }
    }
}

/// A rule to be created, for the first time or anew. This is how it stands in the annotation of replaced rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewRule {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    /// The API's word: of a rule that comes back it may be any.
    pub(crate) algorithm: Algorithm,
    #[serde(flatten)]
    pub(crate) address: AddressRef,
    #[serde(rename = "port")]
    pub(crate) public_port: u16,
    #[serde(rename = "nodePort")]
    pub(crate) private_port: u16,
    #[serde(rename = "networkId")]
    pub(crate) network: NetworkId,
    /// Whom it takes connections from; not sent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cidrs: Option<Vec<String>>,
}

impl NewRule {
    /// Where it is.
    pub(crate) fn at(&self) -> PublicPort<'_> {
        (&self.address, Some(self.public_port))
    }

    /// What it is to a firewall.
    pub(crate) fn ingress(&self) -> IngressPort {
        IngressPort {
            protocol: self.protocol.ip(),
            port: self.public_port,
        }
    }
}

/// A port of a public IP address; `None` if the API gives no number that can be read.
pub(crate) type PublicPort<'a> = (&'a AddressRef, Option<u16>);

/// A port that a firewall or a network ACL lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IngressPort {
    pub(crate) protocol: IpProtocol,
    pub(crate) port: u16,
}

impl std::fmt::Display for IngressPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.protocol, self.port)
    }
}

/// A public IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) address: AddressRef,
    pub(crate) state: AddressState,
    /// Since when somebody has it.
    pub(crate) allocated: Option<Timestamp>,
    /// The guest network that it leads to.
    pub(crate) network: Option<NetworkId>,
    pub(crate) vpc: Option<VpcId>,
    pub(crate) is_source_nat: bool,
    pub(crate) is_static_nat: bool,
}

/// Where an address leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The ID of the network.
    pub(crate) network: NetworkId,
    /// The ID of the VPC that it is a tier of.
    pub(crate) vpc: Option<VpcId>,
}

impl Place {
    /// That of an address for members in a network.
    pub(crate) fn of(network: &Network) -> Self {
        Self {
            network: network.id.clone(),
            vpc: network.vpc.clone(),
        }
    }
}

/// Who has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressState {
    /// Nobody.
    Free,
    /// It is on its way to somebody.
    Allocating,
    /// Somebody.
    Allocated,
    /// It is on its way back.
    Releasing,
}

impl AddressState {
    /// Whether it is about to change by itself.
    pub(crate) fn is_on_the_way(self) -> bool {
        matches!(self, Self::Allocating | Self::Releasing)
    }
}

impl Address {
    /// Whether it belongs to the network; or to the VPC that the network is a tier of, and to no other tier.
    pub(crate) fn is_of(&self, network: &Network) -> bool {
        self.is_at(&Place::of(network))
    }

    /// Whether it belongs to the network, or to any tier of the same VPC.
    pub(crate) fn is_near(&self, network: &Network) -> bool {
        self.is_of(network) || (self.vpc.is_some() && self.vpc == network.vpc)
    }

    /// Whether it leads there, as far as it tells: one of a VPC need not tell a tier.
    pub(crate) fn is_at(&self, place: &Place) -> bool {
        match (&self.vpc, &place.vpc) {
            (Some(own), Some(vpc)) => {
                own == vpc && self.network.as_ref().is_none_or(|own| *own == place.network)
            }
            (Some(_), None) => false,
            (None, _) => self.network.as_ref() == Some(&place.network),
        }
    }

    /// Whether it is as it was at this earlier look.
    pub(crate) fn is_as(&self, then: &Self) -> bool {
        (self.state, &self.network, &self.vpc, self.is_static_nat)
            == (then.state, &then.network, &then.vpc, then.is_static_nat)
    }

    /// Whether virtual machines go out by it, or it leads to one of them alone.
    pub(crate) fn is_nat(&self) -> bool {
        self.is_source_nat || self.is_static_nat
    }

    /// Whether it can be a balancer's own for members in the network.
    pub(crate) fn is_fit(&self, network: &Network) -> bool {
        self.is_of(network) && !self.is_nat()
    }

    /// Whether it is on its way to somebody and does not tell to whom.
    pub(crate) fn is_underway_anywhere(&self) -> bool {
        self.state == AddressState::Allocating && self.network.is_none() && self.vpc.is_none()
    }

    /// Whether it leads to another network, tier or VPC.
    pub(crate) fn is_elsewhere(&self, network: &Network) -> bool {
        (self.network.is_some() || self.vpc.is_some()) && !self.is_of(network)
    }
}

/// A guest network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) id: NetworkId,
    pub(crate) name: String,
    pub(crate) vpc: Option<VpcId>,
    /// The names of what it offers; letter case counts.
    pub(crate) services: BTreeSet<String>,
    /// The ACL list of the tier.
    pub(crate) acl: Option<Firewall>,
    /// Whether a virtual router balances.
    pub(crate) has_router: bool,
}

/// What decides who reaches a network's public ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filtering<'a> {
    /// A firewall on each address.
    Addresses,
    /// An ACL list.
    Acl(&'a Firewall),
    /// An ACL list that is built in and takes no items.
    DefaultAcl(&'a Firewall),
    /// Nothing that could be changed.
    None,
}

/// A firewall: one of an address, or the ACL list of a tier of a VPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Firewall {
    pub(crate) id: FirewallId,
    /// The address as a text, or the name of the ACL list.
    pub(crate) name: String,
}

/// A firewall by the ID of its address or of the ACL list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FirewallId {
    /// Of an address.
    Address(PublicIpId),
    /// An ACL list, which may serve several tiers.
    Acl(AclListId),
}

impl Firewall {
    /// That of an address.
    pub(crate) fn of(address: &AddressRef) -> Self {
        Self {
            id: FirewallId::Address(address.id.clone()),
            name: address.ip.clone(),
        }
    }

    /// Whether it is an ACL list.
    pub(crate) fn is_acl(&self) -> bool {
        matches!(self.id, FirewallId::Acl(_))
    }

    /// A port as something that is written to.
    pub(crate) fn target(&self, ingress: IngressPort) -> String {
        match &self.id {
            FirewallId::Address(id) => format!("address/{id}/firewall/{ingress}"),
            FirewallId::Acl(id) => format!("acl/{id}/{ingress}"),
        }
    }
}

impl FirewallId {
    /// The ID without its kind.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Address(id) => id.as_str(),
            Self::Acl(id) => id.as_str(),
        }
    }
}

impl Network {
    /// Whether it offers a service.
    pub(crate) fn offers(&self, service: &str) -> bool {
        self.services.contains(service)
    }

    /// What has to be opened for an address, if that can be changed.
    pub(crate) fn firewall(&self, address: &AddressRef) -> Option<Firewall> {
        match self.filtering() {
            Filtering::Addresses => Some(Firewall::of(address)),
            Filtering::Acl(list) => Some(list.clone()),
            Filtering::DefaultAcl(_) | Filtering::None => None,
        }
    }

    /// What has to be opened. With both, the firewall alone counts.
    pub(crate) fn filtering(&self) -> Filtering<'_> {
        if self.offers("Firewall") {
            return Filtering::Addresses;
        }
        match &self.acl {
            Some(list) if self.offers("NetworkACL") => match list.name.as_str() {
                "default_allow" | DEFAULT_DENY => Filtering::DefaultAcl(list),
                _ => Filtering::Acl(list),
            },
            _ => Filtering::None,
        }
    }
}

/// The built-in ACL list that denies everything.
pub(crate) const DEFAULT_DENY: &str = "default_deny";

/// A rule of a firewall that lets a single port in; in an ACL list, an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirewallRule {
    pub(crate) id: FirewallRuleId,
    pub(crate) ingress: IngressPort,
    pub(crate) sources: Cidrs,
    /// Whether it says what it is for, as an item of an ACL list may. No manager writes that, so a person made it.
    pub(crate) has_reason: bool,
    /// Whether it is not in force yet.
    pub(crate) is_new: bool,
    /// Whether it is on its way out, or its deletion failed half-way.
    pub(crate) is_going: bool,
}

/// A rule of an address's firewall that lets several ports in. A person made it, and it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortRange {
    pub(crate) id: FirewallRuleId,
    pub(crate) protocol: IpProtocol,
    pub(crate) ports: RangeInclusive<u16>,
    /// As they are written: so the API compares them.
    pub(crate) networks: Vec<String>,
}

impl PortRange {
    /// Whether the API refuses a rule for a port because of this one: it takes no two that have a port in common and name the same
    /// network (`FirewallManagerImpl.detectRulesConflict`).
    pub(crate) fn is_in_the_way(&self, ingress: IngressPort, networks: &[String]) -> bool {
        self.has(ingress) && networks.iter().any(|network| self.networks.contains(network))
    }

    /// Whether a port is one of those that it lets in.
    pub(crate) fn has(&self, ingress: IngressPort) -> bool {
        self.protocol == ingress.protocol && self.ports.contains(&ingress.port)
    }

    /// Who is let in.
    pub(crate) fn sources(&self) -> Cidrs {
        self.networks.iter().collect()
    }
}

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = (self.ports.start(), self.ports.end());
        let networks = self.networks.join(",");
        write!(
            f,
            "{} ({}/{first}-{last} from {networks})",
            self.id, self.protocol
        )
    }
}

/// What a firewall was listed with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FirewallList {
    /// The rules that let a single port in.
    pub(crate) rules: Vec<FirewallRule>,
    /// Those for several ports, if it is that of an address.
    pub(crate) ranges: Vec<PortRange>,
}
