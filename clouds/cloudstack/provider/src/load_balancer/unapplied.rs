//! Rules that the virtual router has not taken: the API has them, and nobody is let in by them. Pure.
//!
//! A rule is in state `Add` until it is in force. When no job is under way, and the Service shows its address, it should be.

use std::time::Duration;

use bowline_plan::Ailment;

use crate::load_balancer::intent::Wanted;
use crate::load_balancer::objects::{FirewallId, RuleState};
use crate::load_balancer::observe::observed::Observed;

/// How long what is not in force yet is left alone: a job that somebody else began may be under way.
const SOON: Duration = Duration::from_secs(60);

/// How often it is looked whether it is in force by now.
const LATER: Duration = Duration::from_secs(300);

/// What to do about it.
const LOOK_AT_ROUTER: &str = "whoever runs CloudStack looks at the virtual router of the network, the agent of its host and the log of the \
    management server; restarting the network (restartNetwork) writes all rules to the router anew. What was changed within the last minute \
    may still be on its way";

/// What is not in force, of a Service that shows its address.
pub(super) fn ailments(wanted: &Wanted, observed: &Observed) -> Vec<Ailment> {
    let texts = match wanted.identity.published.is_empty() {
        true => Vec::new(),
        false => texts(wanted, observed),
    };
    texts
        .into_iter()
        .map(|text| Ailment::new(text, true, LOOK_AT_ROUTER))
        .collect()
}

/// When to look whether all is in force; `None` if it is.
pub(super) fn again(wanted: &Wanted, observed: &Observed) -> Option<Duration> {
    let pause = match wanted.identity.published.is_empty() {
        true => SOON,
        false => LATER,
    };
    (!texts(wanted, observed).is_empty()).then_some(pause)
}

fn texts(wanted: &Wanted, observed: &Observed) -> Vec<String> {
    if !observed.pending.is_empty() {
        return Vec::new();
    }
    let has_members = |id| {
        observed
            .members
            .get(id)
            .is_some_and(|members| !members.is_empty())
    };
    let rules = observed.rules.iter();
    let rules = rules.filter(|rule| rule.state == RuleState::Add && has_members(&rule.id));
    let rules = rules.map(|rule| {
        format!(
            "rule {} is in state Add: it has members, and the virtual router has not taken it, so nobody is let in by it",
            rule.name
        )
    });
    let ports = wanted.ingress_ports();
    let openings = observed.firewalls.iter().flat_map(|(at, rules)| {
        let new = rules.iter().filter(|rule| rule.is_new && ports.contains(&rule.ingress));
        new.map(move |rule| {
            let what = match at {
                FirewallId::Address(_) => "firewall rule",
                FirewallId::Acl(_) => "network ACL item",
            };
            format!(
                "{what} {} for {} is in state Add: the virtual router has not taken it, so nobody is let in by it",
                rule.id, rule.ingress
            )
        })
    });
    rules.chain(openings).collect()
}
