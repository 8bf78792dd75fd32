//! A refusal of the API, as people are told it: what was refused, by whom, and what helps. Pure.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_plan::{Refusal, RefusedBy};

use crate::load_balancer::names::Protocol;
use crate::load_balancer::objects::{NewRule, Rule};
use crate::load_balancer::observe::observed::{Pending, Seen};
use crate::load_balancer::step::{CloudStep, RuleChange};

/// A refusal, as people are told it.
pub(crate) fn refusal(observed: &Seen, step: &CloudStep, error: &CloudError) -> Refusal {
    let refusal = Refusal::new(error.to_string())
        .of_limit(error.kind() == ErrorKind::Exhausted)
        .by(match error.kind() {
            ErrorKind::Denied => RefusedBy::Denial,
            ErrorKind::Transient => error.failed_by(),
            _ => RefusedBy::Cloud,
        });
    match (step, error.kind()) {
        (CloudStep::CreateRule(new), ErrorKind::Conflict) if is_second(observed, new) => refusal.with_remedy(
            "this server takes a port of an address for one rule only, whatever its protocol: put the ports for UDP into a service of \
             their own, with another address",
        ),
        (CloudStep::CreateRule(new), ErrorKind::Conflict) => refusal.with_remedy(format!(
            "another load balancer rule or a port forwarding rule has port {} of {}: whoever owns the project removes that rule, or whoever owns \
             the Service takes another port",
            new.public_port, new.address.ip
        )),
        (_, ErrorKind::Transient) => {
            refusal.with_remedy("if it stays, CloudStack's management server has the cause in its log")
        }
        (CloudStep::Release { .. }, _) => refusal.with_remedy(
            "the address is kept: let the API keys release it, or release it by hand",
        ),
        (CloudStep::ChangeRule(_, RuleChange::Assign(_)), ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict) => refusal.with_remedy(
            "see that the virtual machine is not being removed, and that it is of the account or project of the load balancer rule: who \
             administers the cloud can assign it",
        ),
        // Of other rules the router's limits are no cause.
        (CloudStep::CreateRule(new), ErrorKind::Invalid)
            if new.protocol == Protocol::Udp || error.message().contains("cannot support") => refusal.with_remedy(
            "a virtual router balances no UDP and keeps its statistics port, 8081 by default, to itself: use another port, or a network \
             that something else balances",
        ),
        (CloudStep::Associate(_), _) => refusal.with_remedy(
            "make room for another public IP, or have it allowed",
        ),
        (CloudStep::ChangeRule(_, RuleChange::Delete(_) | RuleChange::Unassign(_)) | CloudStep::Close(_), _) => refusal.with_remedy(
            "let the API keys do it, or do it by hand",
        ),
        // Nothing that the Service could ask for is allowed then.
        (_, ErrorKind::Denied) => refusal,
        _ => refusal.with_remedy("change what the service asks for"),
    }
}

/// Whether the Service has a rule for the port already, for another protocol, or one is being made.
pub(crate) fn is_second(observed: &Seen, new: &NewRule) -> bool {
    let is_other = |protocol: Option<Protocol>| protocol.is_some_and(|it| it.ip() != new.protocol.ip());
    let is_rule = |rule: &Rule| rule.at() == new.at() && is_other(Protocol::parse(rule.protocol.as_str()));
    let is_made = |pending: &Pending| match &pending.step {
        CloudStep::CreateRule(other) => other.at() == new.at() && is_other(Some(other.protocol)),
        _ => false,
    };
    observed.rules.iter().any(is_rule) || observed.pending.iter().any(is_made)
}
