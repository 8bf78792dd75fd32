//! The writes to the cloud, as data. Each starts a job.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{NewStickinessPolicy, RuleUpdate};
use bowline_plan::{Impact, Lane, Step};
use jiff::Timestamp;

use crate::load_balancer::claim::{AddressRequest, Subject};
use crate::load_balancer::objects::{
    AddressRef, Firewall, FirewallId, FirewallRule, FirewallRuleId, IngressPort, NetworkId, NewRule, Place,
    PublicPort, Rule, StickinessPolicy, VirtualMachineId,
};
use crate::load_balancer::stickiness;

/// One write to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudStep {
    /// Acquires a public IP address.
    Associate(Acquisition),
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
    ChangeRule(Box<Rule>, RuleChange),
    /// Creates a rule of a firewall that lets a port in.
    Open(Opening),
    /// Deletes a rule of a firewall.
    Close(Closing),
}

/// A public IP address to be acquired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acquisition {
    /// Which one; any that the cloud chooses if none.
    pub(crate) address: Option<AddressRef>,
    /// Where it is to lead: in a tier it belongs to the VPC.
    pub(crate) to: Place,
    /// When it was claimed.
    pub(crate) since: Timestamp,
}

/// A rule of a firewall to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The firewall.
    pub(crate) at: Firewall,
    /// The network that the port leads to.
    pub(crate) network: NetworkId,
    /// The port.
    pub(crate) ingress: IngressPort,
    /// For whom.
    pub(crate) sources: Vec<String>,
    /// Whether it says in other words what another rule says, for a moment.
    pub(crate) stands_in: bool,
}

/// A rule of a firewall to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The firewall.
    pub(crate) at: Firewall,
    /// The rule.
    pub(crate) rule: FirewallRule,
    /// The ID of another item of the ACL list that says the same and stays, so that nobody misses this one.
    pub(crate) twin: Option<FirewallRuleId>,
    /// Whether the port stays open by another rule, or nothing is behind it.
    pub(crate) is_replaced: bool,
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
    /// Gives it a stickiness policy, in the place of the one that it has.
    Stick(NewStickinessPolicy),
    /// Deletes a stickiness policy of it.
    Unstick(StickinessPolicy),
}

/// What has to be so for a step to be right. The plan was made because it was so; whoever makes the step looks once more right before
/// that, because others write there at the same time. Where it is not so any more, nothing is sent, and a plan is made anew.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Precondition<'a> {
    /// The claim is young: a process that stood still must not ask for what others have looked for meanwhile.
    YoungClaim(Timestamp),
    /// The address is what it was, and no rules of others are on it, which would go with it.
    Alone(&'a AddressRef),
    /// The ACL list has no item that lets in the same: one is in the list from the moment that its command was taken.
    NoneAlike(&'a Opening),
    /// Nothing else is deleting the item: before that begins, it is listed as if it stayed.
    NotGoing(&'a FirewallRuleId),
    /// The firewall has this other item, which says the same and stays.
    Twin(&'a Firewall, &'a FirewallRuleId),
    /// No other rule relies on the item of the ACL list.
    Unused(&'a Firewall, &'a FirewallRule),
}

impl CloudStep {
    /// What is looked at once more before the step is made, in this order.
    pub(crate) fn preconditions(&self) -> Vec<Precondition<'_>> {
        match self {
            Self::Associate(new) => vec![Precondition::YoungClaim(new.since)],
            Self::Release { address, .. } => vec![Precondition::Alone(address)],
            Self::Open(new) if new.at.is_acl() => vec![Precondition::NoneAlike(new)],
            Self::Close(old) => old.preconditions(),
            Self::Open(_) | Self::CreateRule(_) | Self::ChangeRule(..) => Vec::new(),
        }
    }

    /// Whether another step asks the API for the same, whatever is known of the object by then.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::ChangeRule(_, RuleChange::Unstick(one)),
                Self::ChangeRule(_, RuleChange::Unstick(two)),
            ) => one.id == two.id,
            (Self::ChangeRule(one, change), Self::ChangeRule(two, other)) => {
                one.id == two.id && change == other
            }
            (Self::Close(one), Self::Close(two)) => one.rule.id == two.rule.id,
            (Self::Associate(one), Self::Associate(two)) => {
                (&one.address, &one.to) == (&two.address, &two.to)
            }
            _ => self == other,
        }
    }

    /// Releases an address.
    pub(crate) fn release(address: &AddressRef, is_live: bool) -> Self {
        let address = address.clone();
        Self::Release { address, is_live }
    }

    /// Whether it assigns or removes members.
    pub(crate) fn changes_members(&self) -> bool {
        matches!(
            self,
            Self::ChangeRule(_, RuleChange::Assign(_) | RuleChange::Unassign(_))
        )
    }

    /// The rule that gets members by it, and these.
    pub(crate) fn assigned(&self) -> Option<(&Rule, &[VirtualMachineId])> {
        match self {
            Self::ChangeRule(rule, RuleChange::Assign(added)) => Some((rule, added)),
            _ => None,
        }
    }

    /// Changes a rule.
    pub(crate) fn change(rule: &Rule, change: RuleChange) -> Self {
        Self::ChangeRule(Box::new(rule.clone()), change)
    }

    /// Deletes a rule.
    pub(crate) fn delete(rule: &Rule, impact: Impact) -> Self {
        Self::change(rule, RuleChange::Delete(impact))
    }

    /// Deletes a rule of a firewall, or an item of an ACL list that has no twin.
    pub(crate) fn close(at: &Firewall, rule: &FirewallRule, is_replaced: bool) -> Self {
        Self::Close(Closing {
            at: at.clone(),
            rule: rule.clone(),
            twin: None,
            is_replaced,
        })
    }

    /// What the step is about: nothing else is written there while its job is under way.
    pub(crate) fn target(&self) -> String {
        match self {
            Self::Associate(new) => match &new.address {
                Some(address) => format!("address/{}", address.id),
                None => format!("network/{}/address", new.to.network),
            },
            Self::Release { address, .. } => format!("address/{}", address.id),
            Self::CreateRule(new) => port_target(new.at()),
            Self::ChangeRule(rule, _) => port_target(rule.at()),
            Self::Open(new) => new.at.target(new.ingress),
            Self::Close(old) => old.at.target(old.rule.ingress),
        }
    }

    /// Whether something that is there goes by it.
    pub(crate) fn takes_away(&self) -> bool {
        match self {
            Self::Release { .. } | Self::Close(_) => true,
            Self::ChangeRule(_, RuleChange::Delete(_) | RuleChange::Unassign(_)) => true,
            Self::Associate(_) | Self::CreateRule(_) | Self::ChangeRule(..) | Self::Open(_) => false,
        }
    }

    /// What may be asked for by it, if it acquires an address under a claim.
    pub(crate) fn address_request(&self) -> Option<AddressRequest> {
        let Self::Associate(new) = self else {
            return None;
        };
        Some(AddressRequest {
            subject: match &new.address {
                Some(address) => Subject::Address(address.id.clone()),
                None => Subject::Any(new.to.network.clone()),
            },
            since: new.since,
        })
    }

    /// The ID of the firewall rule or of the item of an ACL list that the step deletes.
    pub(crate) fn closed(&self) -> Option<&str> {
        match self {
            Self::Close(old) => Some(old.rule.id.as_str()),
            _ => None,
        }
    }

    /// A failure with the words in front of it that upstream has.
    pub(crate) fn said(&self, failure: CloudError) -> CloudError {
        failure.context(self.words().failure)
    }

    /// What is said of each kind of step.
    fn words(&self) -> Words {
        let (label, object, impact, failure) = match self {
            Self::Associate(Acquisition { address, to, .. }) => {
                let (which, object) = match address {
                    Some(AddressRef { ip, .. }) => (ip.clone(), format!("public IP {ip}")),
                    None => (format!("any for network {}", to.network), "public IP".to_owned()),
                };
                let failure = "error associating new IP address".to_owned();
                (format!("associate-ip({which})"), object, Impact::None, failure)
            }
            Self::Release { address, is_live } => {
                let (ip, impact) = (&address.ip, impact_if(*is_live, Impact::Major));
                let (object, failure) = (
                    format!("public IP {ip}"),
                    format!("error releasing load balancer IP {ip}"),
                );
                (format!("release-ip({ip})"), object, impact, failure)
            }
            Self::CreateRule(new) => {
                let object = format!("load balancer rule {}", new.name);
                let failure = format!("error creating {object}");
                let label = format!("create-rule({} -> {})", new.name, new.private_port);
                (label, object, Impact::None, failure)
            }
            Self::ChangeRule(rule, change) => {
                let (label, impact, doing) = change.words(&rule.name);
                let object = format!("load balancer rule {}", rule.name);
                let failure = format!("error {doing} {object}");
                (label, object, impact, failure)
            }
            Self::Open(new) => {
                let (ingress, sources) = (new.ingress, new.sources.join(","));
                let (kind, object) = firewall(&new.at);
                let (name, IngressPort { protocol, port }) = (&new.at.name, ingress);
                let failure = match &new.at.id {
                    FirewallId::Address(id) => format!(
                        "error creating new firewall rule for public IP {id}, proto {protocol}, port {port}, allowed {sources}"
                    ),
                    FirewallId::Acl(_) => format!("error creating Network ACL for port: {port}, due to"),
                };
                let label = format!("open-{kind}({name} {ingress} from {sources})");
                (label, object, Impact::None, failure)
            }
            Self::Close(old) => {
                let (kind, object) = firewall(&old.at);
                let (name, FirewallRule { id, ingress, .. }) = (&old.at.name, &old.rule);
                let what = match old.at.is_acl() {
                    false => "firewall rule",
                    true => "Network ACL item",
                };
                let label = format!("close-{kind}({name} {ingress}, {id})");
                let impact = impact_if(!old.is_replaced, Impact::Minimal);
                let failure = format!("error deleting {what} {id} for {ingress} of {object}");
                (label, object, impact, failure)
            }
        };
        Words {
            label,
            object,
            impact,
            failure,
        }
    }
}

/// A port as something that is written to.
fn port_target((address, port): PublicPort<'_>) -> String {
    match port {
        Some(number) => format!("address/{}/port/{number}", address.id),
        None => format!("address/{}/port", address.id),
    }
}

/// A firewall in a word, and for people.
fn firewall(at: &Firewall) -> (&'static str, String) {
    match at.is_acl() {
        false => ("firewall", format!("firewall of {}", at.name)),
        true => ("acl", format!("ACL list {}", at.name)),
    }
}

fn impact_if(is_felt: bool, impact: Impact) -> Impact {
    if is_felt { impact } else { Impact::None }
}

/// What is said of a step.
struct Words {
    label: String,
    object: String,
    impact: Impact,
    /// What stands in front of a failure, as upstream has it.
    failure: String,
}

impl Closing {
    fn preconditions(&self) -> Vec<Precondition<'_>> {
        let is_shared = self.at.is_acl();
        let going = (is_shared && self.is_replaced).then_some(Precondition::NotGoing(&self.rule.id));
        let stays = match &self.twin {
            Some(twin) => Some(Precondition::Twin(&self.at, twin)),
            None => is_shared.then_some(Precondition::Unused(&self.at, &self.rule)),
        };
        going.into_iter().chain(stays).collect()
    }
}

impl RuleChange {
    /// The label, the impact, and what could not be done if it fails.
    fn words(&self, name: &str) -> (String, Impact, &'static str) {
        // The device is configured anew; connections of removed members break.
        match self {
            Self::Update(to) => match &to.name {
                Some(new) => (
                    format!("update-rule({name} -> {new})"),
                    Impact::Minimal,
                    "updating",
                ),
                None => (format!("update-rule({name})"), Impact::Minimal, "updating"),
            },
            Self::Delete(impact) => (format!("delete-rule({name})"), *impact, "deleting"),
            Self::Assign(added) => {
                let label = format!("assign({name}: {})", added.join(", "));
                (label, Impact::None, "assigning hosts to")
            }
            Self::Unassign(removed) => {
                let label = format!("remove({name}: {})", removed.join(", "));
                (label, Impact::Minimal, "removing hosts from")
            }
            Self::Stick(new) => {
                let label = format!("stick({name}: {})", stickiness::shown(new));
                (label, Impact::Minimal, "creating stickyness policy of")
            }
            Self::Unstick(old) => {
                let label = format!("unstick({name}: {})", old.method);
                (label, Impact::Minimal, "deleting stickyness policy of")
            }
        }
    }
}

impl Step for CloudStep {
    fn removes(&self) -> bool {
        matches!(
            self,
            Self::ChangeRule(_, RuleChange::Delete(_) | RuleChange::Unassign(_)) | Self::Close(_)
        )
    }

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
            // Each is preceded by a look, which takes as long as it takes: so the order is kept. And the server puts no two jobs of one list
            // behind each other: each sends the whole list to the router, as it was when the job began.
            Self::Open(Opening { at, .. }) | Self::Close(Closing { at, .. }) if at.is_acl() => {
                format!("acl/{}", at.id.as_str())
            }
            // Services that ask for any address get one each.
            Self::Associate(Acquisition { address: None, .. }) => return Vec::new(),
            other => other.target(),
        };
        vec![Lane::new(format!("cloudstack/{lane}"))]
    }

    /// An address that was released may be another Service's by then, and so may the rules on it. An item of an ACL list is for all who rely
    /// on it.
    fn concerns_others(&self) -> bool {
        match self {
            Self::Release { .. } => true,
            Self::Close(old) => old.at.is_acl(),
            _ => false,
        }
    }

    /// A change of a rule is refused where that is gone.
    fn may_be_left(&self) -> bool {
        matches!(self, Self::Associate(_) | Self::CreateRule(_) | Self::Open(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancer::names::IpProtocol;

    #[test]
    fn a_change_of_a_rule_is_the_same_whatever_state_the_rule_is_in() {
        let rule = |state: &str, id: &str| {
            let text = format!(
                r#"{{"id":"{id}","name":"a","state":"{state}","publicipid":"ip","publicip":"203.0.113.1"}}"#
            );
            crate::load_balancer::observe::wire::rule(&serde_json::from_str(&text).unwrap())
        };
        let assign = |rule: &Rule, vm: &str| CloudStep::change(rule, RuleChange::Assign(vec![vm.into()]));
        let refused = assign(&rule("Add", "r"), "a");
        assert!(refused.is_same(&assign(&rule("Active", "r"), "a")));
        assert!(!refused.is_same(&assign(&rule("Add", "r"), "b")));
        assert!(!refused.is_same(&assign(&rule("Add", "s"), "a")));
    }

    #[test]
    fn what_others_may_change_meanwhile_is_required() {
        let address = AddressRef {
            id: "ip".into(),
            ip: "203.0.113.1".to_owned(),
        };
        let list = Firewall {
            id: FirewallId::Acl("list".into()),
            name: "web".to_owned(),
        };
        let ingress = IngressPort {
            protocol: IpProtocol::Tcp,
            port: 80,
        };
        let rule = FirewallRule {
            id: "item".into(),
            ingress,
            sources: Vec::<String>::new().iter().collect(),
            has_reason: false,
            is_new: false,
            is_going: false,
        };
        let twin = FirewallRuleId::from("twin");
        let close = |at: &Firewall, is_replaced: bool, twin: Option<&FirewallRuleId>| {
            CloudStep::Close(Closing {
                at: at.clone(),
                rule: rule.clone(),
                twin: twin.cloned(),
                is_replaced,
            })
        };
        let own = Firewall::of(&address);
        for (step, required) in [
            (
                CloudStep::release(&address, true),
                vec![Precondition::Alone(&address)],
            ),
            (close(&own, true, None), vec![]),
            (
                close(&own, true, Some(&twin)),
                vec![Precondition::Twin(&own, &twin)],
            ),
            (
                close(&list, false, None),
                vec![Precondition::Unused(&list, &rule)],
            ),
            (
                close(&list, true, None),
                vec![
                    Precondition::NotGoing(&rule.id),
                    Precondition::Unused(&list, &rule),
                ],
            ),
            (
                close(&list, true, Some(&twin)),
                vec![Precondition::NotGoing(&rule.id), Precondition::Twin(&list, &twin)],
            ),
        ] {
            assert_eq!(step.preconditions(), required, "{step:?}");
        }
    }
}
