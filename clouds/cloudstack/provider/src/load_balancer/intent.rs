//! What a Service asks for: parsed and checked as a whole, before anything is read or written.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::{IpMode, Service, ServicesView};
use bowline_plan::{Note, Refusal};
use jiff::Timestamp;

use crate::load_balancer::cidrs::Sources;
use crate::load_balancer::claim::Claim;
use crate::load_balancer::names::{self, Protocol};
use crate::load_balancer::objects::{
    AddressRef, Algorithm, FirewallRule, IngressPort, Neighbour, Rule, StickinessPolicy, VirtualMachineId,
};
use crate::load_balancer::replaced_rules::ReplacedRules;
use crate::load_balancer::stickiness::Stickiness;

pub(crate) mod read;
mod sources;

use sources::source_ranges;

/// What is asked for.
pub(crate) enum Intent {
    /// A balancer.
    Wanted(Box<Wanted>),
    /// No balancer.
    Absent(Box<Absent>),
}

impl Intent {
    /// Whose balancer it is.
    pub(crate) fn identity(&self) -> &Identity {
        match self {
            Self::Wanted(wanted) => &wanted.identity,
            Self::Absent(absent) => &absent.identity,
        }
    }

    /// What this process wrote on the Service before counts, where somebody else took it off; it is written again unless the balancer
    /// goes.
    pub(crate) fn remember(&mut self, before: &Claim) {
        match self {
            Self::Wanted(wanted) => wanted.identity.claim.restore(before),
            // From one that stays it is taken off here at last.
            Self::Absent(absent) if absent.identity.stays => {}
            Self::Absent(absent) => {
                absent.identity.claim.restore(before);
                absent.identity.noted = absent.identity.claim.clone();
            }
        }
    }
}

/// How what belongs to a Service is told from everything else.
pub(crate) struct Identity {
    /// Its UID.
    pub(crate) uid: String,
    /// The name that the names of its rules begin with.
    pub(crate) name: String,
    /// The name that the names of its rules begin with that Leaseweb's manager made.
    pub(crate) leaseweb_name: String,
    /// The address that is asked for: by annotation, else by `spec.loadBalancerIP`.
    pub(crate) requested: Option<String>,
    /// The address in `spec.loadBalancerIP`.
    pub(crate) in_spec: Option<String>,
    /// What the Service's status shows.
    pub(crate) published: Vec<String>,
    /// Whether the Service is not being deleted.
    pub(crate) stays: bool,
    /// Whether no address is ever released.
    pub(crate) keeps_ip: bool,
    /// Which addresses it holds.
    pub(crate) claim: Claim,
    /// What is written on the Service of that: less, if somebody else took it off.
    pub(crate) noted: Claim,
    /// Rules that are deleted, or about to be, while their ports stay open.
    pub(crate) replaced: ReplacedRules,
    /// The Services of the cluster.
    pub(crate) services: Arc<dyn ServicesView>,
    /// The time, to date claims.
    pub(crate) now: Timestamp,
}

impl Identity {
    /// Whether a rule is the Service's, by its name. The names that Leaseweb's manager gives hold no UID, and other clusters may have the
    /// same: they count on the address that it wrote down.
    pub(crate) fn is_own_rule(&self, rule: &Rule) -> bool {
        names::is_rule(&self.name, &rule.name) || self.is_of_leaseweb(&rule.name, &rule.address)
    }

    /// Whether a rule of the Service at this address was made by Leaseweb's manager, or as it would make it.
    pub(crate) fn is_of_leaseweb(&self, rule: &str, at: &AddressRef) -> bool {
        let is_noted = self.claim.leaseweb.address.as_ref() == Some(&at.id);
        is_noted && names::is_rule(&self.leaseweb_name, rule)
    }

    /// Whether Leaseweb's manager would release an address with the Service. One in `spec.loadBalancerIP` is left to its mark. Where we
    /// wrote anything, that names all that are the Service's: the rest may be copied.
    pub(crate) fn is_leasewebs(&self, address: &AddressRef) -> bool {
        (self.claim.held.is_none() || self.claim.names(&address.id))
            && self.claim.leaseweb.address.as_ref() == Some(&address.id)
            && self.in_spec.as_ref() != Some(&address.ip)
    }

    /// Whether a stickiness policy was made for the Service, by its name: it has that of a rule. People give others.
    pub(crate) fn is_own_policy(&self, policy: &StickinessPolicy) -> bool {
        let mut balancers = [&self.name, &self.leaseweb_name].into_iter();
        balancers.any(|balancer| names::is_rule(balancer, &policy.name))
    }

    /// The Service of the cluster that a rule of this name is of.
    pub(crate) fn owner_of(&self, rule: &str) -> Option<Arc<Service>> {
        let mut services = self.services.services().into_iter();
        services.find(|service| {
            let uid = service.metadata.uid.as_deref().unwrap_or_default();
            !uid.is_empty() && names::is_rule(&names::balancer(uid), rule)
        })
    }

    /// Whether what somebody else has relies on an item of an ACL list, which holds `items`. The rule of a Service of the cluster
    /// relies on an item for the sources that the Service is open for; of anything else nobody knows.
    pub(crate) fn is_relied_on(
        &self,
        item: &FirewallRule,
        items: &[FirewallRule],
        neighbour: &Neighbour,
    ) -> bool {
        if !neighbour.may_need(item.ingress) {
            return false;
        }
        let Neighbour::Rule(rule) = neighbour else {
            return true;
        };
        let Some(owner) = self.owner_of(&rule.name) else {
            return true;
        };
        let mut problems = Vec::new();
        let open = source_ranges(&owner, &mut problems).cidrs;
        if !problems.is_empty() || open.is_same(&item.sources) || Claim::of(&owner).has_opened(&item.sources)
        {
            return true;
        }
        // Until it has an item of its own it may live on the one for everybody: as after its sources were restricted.
        let has_own = |other: &FirewallRule| {
            !other.is_going && other.ingress == item.ingress && other.sources.is_same(&open)
        };
        item.sources.is_everything() && !items.iter().any(has_own)
    }
}

/// A balancer that is to go.
pub(crate) struct Absent {
    pub(crate) identity: Identity,
    /// The sources that its ports were open for.
    pub(crate) sources: Sources,
    /// What its ports are to a firewall, as far as they can be read.
    pub(crate) ingress_ports: BTreeSet<IngressPort>,
    /// The Nodes that are ready: keys that see their virtual machines are of the cluster's account.
    pub(crate) nodes: Vec<WantedNode>,
}

/// A wanted balancer.
pub(crate) struct Wanted {
    pub(crate) identity: Identity,
    pub(crate) ports: Vec<Port>,
    pub(crate) algorithm: Algorithm,
    /// Whom the rules take connections from.
    pub(crate) cidrs: Sources,
    /// Whether that is said at all. If not, a list that lets everybody in is as good as any other one.
    pub(crate) says_cidrs: bool,
    /// Whom the firewall or the network ACL lets in.
    pub(crate) sources: Sources,
    /// By what rules lead a client to the same member again, if that is asked for.
    pub(crate) stickiness: Option<Stickiness>,
    /// What is wrong with it, on a Service that was served before: its policies stay as they are, and all else goes on.
    pub(crate) cannot_stick: Option<Refusal>,
    pub(crate) nodes: Vec<WantedNode>,
    /// Tells one state of what people ask for from another.
    pub(crate) asked: u64,
    /// The host name that the status shows instead of the address.
    pub(crate) hostname: Option<String>,
    /// How Nodes treat the address, if the API server can be told.
    pub(crate) ip_mode: Option<IpMode>,
    /// What can be said before anything is read.
    pub(crate) notes: Vec<Note>,
    /// Why nothing of it is done. Only for a Service that was served before, whose rules still follow the Nodes.
    pub(crate) refusal: Option<Refusal>,
}

impl Wanted {
    /// What a firewall has to let through.
    pub(crate) fn ingress_ports(&self) -> BTreeSet<IngressPort> {
        self.ports.iter().map(Port::ingress).collect()
    }

    /// Whether a port takes the place of what was there: of the same protocol, or, if nobody wants that any more, of the same
    /// number.
    pub(crate) fn follows(&self, port: &Port, before: IngressPort) -> bool {
        before == port.ingress() || (before.port == port.port && !self.ingress_ports().contains(&before))
    }
}

/// One port of the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    /// The name of its rule.
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    pub(crate) node_port: u16,
}

impl Port {
    /// What a firewall has to let through for it.
    pub(crate) fn ingress(&self) -> IngressPort {
        IngressPort {
            protocol: self.protocol.ip(),
            port: self.port,
        }
    }
}

/// A Node to balance over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WantedNode {
    /// The Node's name.
    pub(crate) node: String,
    /// The ID in its provider ID.
    pub(crate) instance_id: Option<VirtualMachineId>,
}
