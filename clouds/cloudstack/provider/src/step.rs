//! The writes to the cloud, as data. Each starts a job.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::RuleUpdate;
use bowline_plan::{Impact, Lane, Step};
use jiff::Timestamp;

use crate::claim::{Asking, Subject};
use crate::objects::{
    AddressRef, Firewall, FirewallRule, FirewallRuleId, IngressPort, NetworkId, NewRule, Place, PublicPort,
    Rule, VirtualMachineId,
};

/// One write to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudStep {
    /// Acquires a public IP address.
    Associate {
        /// Which one; any that the cloud chooses if none.
        address: Option<AddressRef>,
        /// Where it is to lead: in a tier it belongs to the VPC.
        to: Place,
        /// When it was claimed; none if that could not be written.
        since: Option<Timestamp>,
    },
    /// Releases a public IP address, with all rules on it.
    Release {
        /// Which one.
        address: AddressRef,
        /// Whether traffic may come by it.
        is_live: bool,
    },
    /// Creates a load balancer rule, without members.
    CreateRule(NewRule),
    /// Changes a load balancer rule that is there.
    ChangeRule {
        /// The rule as it is.
        rule: Box<Rule>,
        /// What is written.
        change: RuleChange,
    },
    /// Creates a rule of a firewall that lets a port in.
    Open {
        /// The firewall.
        at: Firewall,
        /// The network that the port leads to.
        network: NetworkId,
        /// The port.
        ingress: IngressPort,
        /// For whom.
        sources: Vec<String>,
        /// Whether it says in other words what another rule says, for a moment.
        stands_in: bool,
    },
    /// Deletes a rule of a firewall.
    Close {
        /// The firewall.
        at: Firewall,
        /// The rule.
        rule: FirewallRule,
        /// The ID of another item of the ACL list that says the same and stays, so that nobody misses this one.
        twin: Option<FirewallRuleId>,
        /// Whether the port stays open by another rule, or nothing is behind it.
        is_replaced: bool,
    },
}

/// A write to a load balancer rule that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleChange {
    /// Changes it where it stands.
    Update(RuleUpdate),
    /// Deletes it, which does this to traffic.
    Delete(Impact),
    /// Gives it members.
    Assign(Vec<VirtualMachineId>),
    /// Takes members away from it.
    Unassign(Vec<VirtualMachineId>),
}

impl CloudStep {
    /// Changes a rule.
    pub(crate) fn change(rule: &Rule, change: RuleChange) -> Self {
        let rule = Box::new(rule.clone());
        Self::ChangeRule { rule, change }
    }

    /// Deletes a rule.
    pub(crate) fn delete(rule: &Rule, impact: Impact) -> Self {
        Self::change(rule, RuleChange::Delete(impact))
    }

    /// Deletes a rule of a firewall, or an item of an ACL list that has no twin.
    pub(crate) fn close(at: &Firewall, rule: &FirewallRule, is_replaced: bool) -> Self {
        Self::Close {
            at: at.clone(),
            rule: rule.clone(),
            twin: None,
            is_replaced,
        }
    }

    /// What the step is about: nothing else is written there while its job is under way.
    pub(crate) fn target(&self) -> String {
        match self {
            Self::Associate { address, to, .. } => match address {
                Some(address) => format!("address/{}", address.id),
                None => format!("network/{}/address", to.network),
            },
            Self::Release { address, .. } => format!("address/{}", address.id),
            Self::CreateRule(new) => new.place().target(),
            Self::ChangeRule { rule, .. } => PublicPort::of(rule).target(),
            Self::Open { at, ingress, .. } => at.target(*ingress),
            Self::Close { at, rule, .. } => at.target(rule.ingress),
        }
    }

    /// What may be asked for by it, if it acquires an address under a claim.
    pub(crate) fn asking(&self) -> Option<Asking> {
        let Self::Associate { address, to, since } = self else {
            return None;
        };
        Some(Asking {
            subject: match address {
                Some(address) => Subject::Address(address.id.clone()),
                None => Subject::Any(to.network.clone()),
            },
            since: (*since)?,
        })
    }

    /// The ID of the firewall rule or of the item of an ACL list that the step deletes.
    pub(crate) fn closed(&self) -> Option<&str> {
        match self {
            Self::Close { rule, .. } => Some(rule.id.as_str()),
            _ => None,
        }
    }

    /// A failure with the words in front of it that upstream has.
    pub(crate) fn said(&self, failure: CloudError) -> CloudError {
        match self.words().failure {
            Some(prefix) => failure.context(prefix),
            None => failure,
        }
    }

    /// What is said of each kind of step.
    fn words(&self) -> Words {
        let words = |label, object, impact, failure| Words {
            label,
            object,
            impact,
            failure: Some(failure),
        };
        match self {
            Self::Associate { address, to, .. } => {
                let (which, object) = match address {
                    Some(AddressRef { ip, .. }) => (ip.clone(), format!("public IP {ip}")),
                    None => (format!("any for network {}", to.network), "public IP".to_owned()),
                };
                let failure = "error associating new IP address".to_owned();
                words(format!("associate-ip({which})"), object, Impact::None, failure)
            }
            Self::Release { address, is_live } => words(
                format!("release-ip({})", address.ip),
                format!("public IP {}", address.ip),
                if *is_live { Impact::Major } else { Impact::None },
                format!("error releasing load balancer IP {}", address.ip),
            ),
            Self::CreateRule(new) => words(
                format!("create-rule({} -> {})", new.name, new.private_port),
                format!("load balancer rule {}", new.name),
                Impact::None,
                format!("error creating load balancer rule {}", new.name),
            ),
            Self::ChangeRule { rule, change } => change.words(&rule.name),
            Self::Open {
                at, ingress, sources, ..
            } => {
                let sources = sources.join(",");
                let (kind, name, object) = at.words();
                let failure = match at {
                    Firewall::Address(address) => format!(
                        "error creating new firewall rule for public IP {}, proto {}, port {}, allowed {sources}",
                        address.id, ingress.protocol, ingress.port
                    ),
                    Firewall::Acl(_) => {
                        format!("error creating Network ACL for port: {}, due to", ingress.port)
                    }
                };
                let label = format!("open-{kind}({name} {ingress} from {sources})");
                words(label, object, Impact::None, failure)
            }
            Self::Close {
                at,
                rule,
                is_replaced,
                ..
            } => {
                let (kind, name, object) = at.words();
                let what = match at {
                    Firewall::Address(_) => "firewall rule",
                    Firewall::Acl(_) => "Network ACL item",
                };
                words(
                    format!("close-{kind}({name} {}, {})", rule.ingress, rule.id),
                    object,
                    if *is_replaced {
                        Impact::None
                    } else {
                        Impact::Minimal
                    },
                    format!("error deleting {what} {}", rule.id),
                )
            }
        }
    }
}

/// What is said of a step.
struct Words {
    label: String,
    object: String,
    impact: Impact,
    /// What stands in front of a failure, as upstream has it.
    failure: Option<String>,
}

impl RuleChange {
    fn words(&self, name: &str) -> Words {
        // The device is configured anew; connections of removed members break.
        let (label, impact, failure) = match self {
            Self::Update(to) => match &to.name {
                Some(new) => (format!("update-rule({name} -> {new})"), Impact::Minimal, None),
                None => (format!("update-rule({name})"), Impact::Minimal, None),
            },
            Self::Delete(impact) => (format!("delete-rule({name})"), *impact, Some("deleting")),
            Self::Assign(added) => {
                let label = format!("assign({name}: {})", added.join(", "));
                (label, Impact::None, Some("assigning hosts to"))
            }
            Self::Unassign(removed) => {
                let label = format!("remove({name}: {})", removed.join(", "));
                (label, Impact::Minimal, Some("removing hosts from"))
            }
        };
        Words {
            label,
            object: format!("load balancer rule {name}"),
            impact,
            failure: failure.map(|doing| format!("error {doing} load balancer rule {name}")),
        }
    }
}

impl Step for CloudStep {
    fn label(&self) -> String {
        self.words().label
    }

    fn object(&self) -> String {
        self.words().object
    }

    fn impact(&self) -> Impact {
        self.words().impact
    }

    fn lanes(&self) -> Vec<Lane> {
        let lane = match self {
            // Each is preceded by a look, which takes as long as it takes: so the order is kept.
            Self::Open {
                at: Firewall::Acl(list),
                ..
            }
            | Self::Close {
                at: Firewall::Acl(list),
                ..
            } => format!("acl/{}", list.id),
            // Services that ask for any address get one each.
            Self::Associate { address: None, .. } => return Vec::new(),
            other => other.target(),
        };
        vec![Lane::new(format!("cloudstack/{lane}"))]
    }
}
