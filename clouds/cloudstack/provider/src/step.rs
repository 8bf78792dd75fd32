//! The writes to the cloud, as data. Each starts a job.

use bowline_cloud_provider::CloudError;
use bowline_plan::{Impact, Lane, Step};
use jiff::Timestamp;

use crate::claim::{Asking, Subject};
use crate::names::Protocol;
use crate::objects::{
    AddressRef, Algorithm, Firewall, FirewallRule, FirewallRuleId, IngressPort, NetworkId, NewRule, Place,
    PublicPort, Rule, RuleId, VirtualMachineId,
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
        /// Its port.
        port: PublicPort,
        /// The rule.
        rule: RuleRef,
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
    Update(RuleAttributes),
    /// Deletes it, which does this to traffic.
    Delete(Impact),
    /// Gives it members.
    Assign(Vec<VirtualMachineId>),
    /// Takes members away from it.
    Unassign(Vec<VirtualMachineId>),
}

/// A load balancer rule by its ID, with its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleRef {
    pub(crate) id: RuleId,
    pub(crate) name: String,
}

/// What can be changed of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleAttributes {
    pub(crate) algorithm: Algorithm,
    pub(crate) protocol: Protocol,
    /// Not sent if none.
    pub(crate) cidrs: Option<Vec<String>>,
    /// Not sent if none.
    pub(crate) name: Option<String>,
}

impl CloudStep {
    /// Changes a rule.
    pub(crate) fn change(rule: &Rule, change: RuleChange) -> Self {
        Self::ChangeRule {
            port: PublicPort::of(rule),
            rule: RuleRef {
                id: rule.id.clone(),
                name: rule.name.clone(),
            },
            change,
        }
    }

    /// Deletes a rule.
    pub(crate) fn delete(rule: &Rule, impact: Impact) -> Self {
        Self::change(rule, RuleChange::Delete(impact))
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
            Self::ChangeRule { port, .. } => port.target(),
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
        match self.failure_prefix() {
            Some(prefix) => failure.context(prefix),
            None => failure,
        }
    }

    /// Those words; `None` for an update.
    fn failure_prefix(&self) -> Option<String> {
        match self {
            Self::Associate { .. } => Some("error associating new IP address".to_owned()),
            Self::Release { address, .. } => Some(format!("error releasing load balancer IP {}", address.ip)),
            Self::CreateRule(new) => Some(format!("error creating load balancer rule {}", new.name)),
            Self::ChangeRule { rule, change, .. } => {
                let what = match change {
                    RuleChange::Update(_) => return None,
                    RuleChange::Delete(_) => "deleting",
                    RuleChange::Assign(_) => "assigning hosts to",
                    RuleChange::Unassign(_) => "removing hosts from",
                };
                Some(format!("error {what} load balancer rule {}", rule.name))
            }
            Self::Open {
                at: Firewall::Address(address),
                ingress,
                sources,
                ..
            } => Some(format!(
                "error creating new firewall rule for public IP {}, proto {}, port {}, allowed {}",
                address.id,
                ingress.protocol,
                ingress.port,
                sources.join(",")
            )),
            Self::Open { ingress, .. } => Some(format!(
                "error creating Network ACL for port: {}, due to",
                ingress.port
            )),
            Self::Close { at, rule, .. } => Some(match at {
                Firewall::Address(_) => format!("error deleting firewall rule {}", rule.id),
                Firewall::Acl(_) => format!("error deleting Network ACL item {}", rule.id),
            }),
        }
    }
}

impl RuleChange {
    fn label(&self, name: &str) -> String {
        match self {
            Self::Update(to) => match &to.name {
                Some(new) => format!("update-rule({name} -> {new})"),
                None => format!("update-rule({name})"),
            },
            Self::Delete(_) => format!("delete-rule({name})"),
            Self::Assign(instances) => format!("assign({name}: {})", instances.join(", ")),
            Self::Unassign(instances) => format!("remove({name}: {})", instances.join(", ")),
        }
    }
}

impl Step for CloudStep {
    fn label(&self) -> String {
        match self {
            Self::Associate { address, to, .. } => match address {
                Some(address) => format!("associate-ip({})", address.ip),
                None => format!("associate-ip(any for network {})", to.network),
            },
            Self::Release { address, .. } => format!("release-ip({})", address.ip),
            Self::CreateRule(new) => format!("create-rule({} -> {})", new.name, new.private_port),
            Self::ChangeRule { rule, change, .. } => change.label(&rule.name),
            Self::Open {
                at, ingress, sources, ..
            } => {
                let (kind, name) = at.short();
                format!("open-{kind}({name} {ingress} from {})", sources.join(","))
            }
            Self::Close { at, rule, .. } => {
                let (kind, name) = at.short();
                format!("close-{kind}({name} {}, {})", rule.ingress, rule.id)
            }
        }
    }

    fn object(&self) -> String {
        match self {
            Self::Associate { address: None, .. } => "public IP".to_owned(),
            Self::Associate {
                address: Some(address),
                ..
            }
            | Self::Release { address, .. } => format!("public IP {}", address.ip),
            Self::CreateRule(NewRule { name, .. })
            | Self::ChangeRule {
                rule: RuleRef { name, .. },
                ..
            } => format!("load balancer rule {name}"),
            Self::Open { at, .. } | Self::Close { at, .. } => match at {
                Firewall::Address(address) => format!("firewall of {}", address.ip),
                Firewall::Acl(list) => format!("ACL list {}", list.name),
            },
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::Associate { .. }
            | Self::Release { is_live: false, .. }
            | Self::CreateRule(_)
            | Self::Open { .. }
            | Self::Close {
                is_replaced: true, ..
            } => Impact::None,
            Self::Release { is_live: true, .. } => Impact::Major,
            Self::Close {
                is_replaced: false, ..
            } => Impact::Minimal,
            Self::ChangeRule { change, .. } => match change {
                RuleChange::Assign(_) => Impact::None,
                // The device is configured anew; connections of removed members break.
                RuleChange::Update(_) | RuleChange::Unassign(_) => Impact::Minimal,
                RuleChange::Delete(impact) => *impact,
            },
        }
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
