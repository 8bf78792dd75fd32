//! Decides what comes next. Pure.
//!
//! A port is brought up in a chain: its rule, then the members of the rule; the firewall or the ACL list is opened beside
//! it. Chains of different ports do not wait for each other, and a chain waits only for its own jobs. What is not wanted
//! any more goes when its successor is complete: first the firewall rule, then the load balancer rule, so that what is left
//! after a crash still tells which port it belongs to.
//!
//! A decision that lacks facts ends with what has to be read for it (`Unread`); those that do not depend on it go on.

use std::collections::BTreeSet;

use bowline_cloud_provider::LoadBalancerPlan;
use bowline_plan::refusal;

use crate::load_balancer::annotations::SOURCE_CIDRS;
use crate::load_balancer::claim::AddressRequest;
use crate::load_balancer::intent::{Intent, Wanted};
use crate::load_balancer::objects::{DEFAULT_DENY, Filtering};
use crate::load_balancer::observe::observed::{Need, Observed, Seen};
use crate::load_balancer::observe::times::{HANGS, SEARCH};
use crate::load_balancer::replaced_rules::ReplacedRules;
use crate::load_balancer::status::status;
use crate::load_balancer::step::{Closing, CloudStep, RuleChange};
use crate::load_balancer::unapplied;
use crate::messages::DEFAULT_DENY as DEFAULT_DENY_EVENT;
use crate::version::Abilities;

mod absent;
mod acl;
mod any_address;
mod builder;
mod firewall;
mod home;
mod members;
mod port;
mod ports;
mod removal;
mod rollback;
#[cfg(test)]
mod tests;

use self::builder::{Builder, Stop};

/// Decides what comes next.
pub(crate) fn plan(intent: &Intent, observed: &Seen) -> LoadBalancerPlan<CloudStep> {
    build(intent, observed).finish()
}

/// Which addresses the plan claims, to ask for them.
pub(crate) fn claimed(intent: &Intent, observed: &Seen) -> Vec<AddressRequest> {
    build(intent, observed).claim.open_requests().collect()
}

/// What the decision has to know first.
pub(crate) fn needs(intent: &Intent, observed: &Seen) -> BTreeSet<Need> {
    build(intent, observed).needs
}

fn build<'a>(intent: &'a Intent, observed: &'a Seen) -> Builder<'a> {
    let mut plan = Builder::new(intent.identity(), observed);
    let own = &observed.memory.own;
    if own.inherits_since.is_some() {
        return plan;
    }
    if own.failure.is_some() {
        rollback::plan(&mut plan, intent);
        return plan;
    }
    if own.lingers {
        plan.wait("rules are listed whose public IP was released".to_owned());
    }
    match intent {
        Intent::Wanted(wanted) => {
            plan.again = own.known.may_go.map(|left| left.min(SEARCH));
            let decided = wanted_plan(&mut plan, wanted);
            plan.take(decided);
            follow_anyway(&mut plan, wanted);
        }
        Intent::Absent(absent) => {
            let decided = absent::plan(&mut plan, absent);
            plan.take(decided);
        }
    }
    plan
}

/// What is refused makes no change, nor does what cannot be read. But the Nodes are followed all the same.
fn follow_anyway(plan: &mut Builder<'_>, wanted: &Wanted) {
    if plan.refusal.is_some() {
        *plan = Builder {
            notes: std::mem::take(&mut plan.notes),
            refusal: plan.refusal.take(),
            ..Builder::new(plan.identity, plan.observed)
        };
    } else if !plan.is_blind || plan.has_writes() {
        return;
    }
    members::follow_nodes(plan, wanted);
    if !plan.steps.is_empty() {
        plan.refusal = None; // later
    }
}

/// Whether something is there yet that could not be removed.
fn keeps_something(observed: &Seen) -> bool {
    let is_there = |step: &CloudStep| match step {
        CloudStep::ChangeRule(rule, RuleChange::Delete(_)) => {
            observed.rules.iter().any(|it| it.id == rule.id)
        }
        CloudStep::Close(Closing { rule, .. }) => {
            observed.firewalls.values().flatten().any(|it| it.id == rule.id)
        }
        _ => false,
    };
    observed.memory.refusals.iter().any(|(step, _)| is_there(step))
}

fn wanted_plan(plan: &mut Builder<'_>, wanted: &Wanted) -> Result<(), Stop> {
    plan.notes.extend(wanted.notes.iter().cloned());
    if let Some(refusal) = &wanted.refusal {
        return Err(refusal.clone().into());
    }
    plan.claim.is_sticky |= wanted.stickiness.is_some();
    plan.left_out.extend(wanted.cannot_stick.clone());
    let abilities = abilities(plan.observed, wanted)?;
    let home = home::find(plan, wanted)?;
    if let Filtering::DefaultAcl(list) = home.network.filtering()
        && list.name == DEFAULT_DENY
    {
        plan.notes.push(DEFAULT_DENY_EVENT.note(format!(
            "network {} uses the ACL list {}, which denies everything and takes no items: nobody reaches the service",
            home.network.name, list.name
        )));
    }
    ports::plan(plan, wanted, &home, abilities);
    // One job that hangs keeps nobody from the ports that are served by now.
    let hangs = !plan.observed.pending.is_empty() && plan.observed.memory.waited() >= HANGS;
    if hangs && wanted.identity.published.is_empty() && ports::serves_one(plan, wanted, &home) {
        plan.publish = status(wanted, &home.address).ok();
    }
    // What serves at another address is not left for one where a port does not.
    let is_elsewhere = !ports::elsewhere(plan, &home).is_empty();
    if plan.is_idle() && !plan.shortfalls.is_empty() && is_elsewhere {
        ports::follow_elsewhere(plan, wanted, &home, abilities);
        ports::forget_replaced(plan);
        return Ok(());
    }
    // What serves by now is told before what served so far is taken away.
    let moves = is_elsewhere && !home::is_shown(wanted, &home.address);
    let waits_for_left = plan.has_only_jobs() && ports::change_members_elsewhere(plan, &home);
    if moves && hangs && waits_for_left && plan.shortfalls.is_empty() {
        plan.publish = status(wanted, &home.address).ok();
    }
    if plan.is_idle() && moves {
        // It may be refused for long. Until then what is shown follows the Service, and that the new address came is written down.
        let came = plan.came(&home.address.id);
        ports::follow_elsewhere(plan, wanted, &home, abilities);
        ports::forget_replaced(plan);
        // Members and publication do not wait for each other. A rule that is made anew is not left in between.
        if !came && plan.steps.iter().all(CloudStep::changes_members) {
            plan.publish = status(wanted, &home.address).ok();
        }
    }
    if plan.is_idle() {
        home::leave_others(plan, wanted, &home);
    }
    if plan.is_idle() {
        plan.claim.is_sticky &= wanted.stickiness.is_some() || !plan.left_out.is_empty();
        // Of what could not be closed nothing else tells whose it is.
        if !keeps_something(plan.observed) {
            plan.claim.opens_only(&wanted.sources.cidrs);
            plan.replaced = ReplacedRules::default();
        }
    }
    if plan.is_idle() {
        home::tidy_claim(plan, wanted, &home)?;
    }
    let cannot_stick = wanted
        .stickiness
        .as_ref()
        .and_then(|wanted| wanted.refusal(&home.network));
    plan.left_out.extend(cannot_stick);
    let mut here = plan.observed.rules.iter();
    let serves = here.any(|rule| {
        let is_there = rule.address.id == home.address.id && !rule.state.is_going();
        is_there && (plan.left_out.is_empty() || port::may_serve(plan, rule))
    });
    let is_whole = plan.shortfalls.is_empty() && plan.left_out.is_empty();
    if plan.is_idle() && (serves || is_whole) {
        plan.settled = Some(status(wanted, &home.address)?);
        let again = unapplied::again(wanted, plan.observed);
        plan.again = plan.again.into_iter().chain(again).min();
    }
    Ok(())
}

/// What the server can do, if that is enough.
fn abilities(observed: &Observed, wanted: &Wanted) -> Result<Abilities, Stop> {
    let abilities = observed.abilities()?;
    if abilities.takes_cidrs == Some(false) && !wanted.cidrs.cidrs.is_everything() {
        let refusal = refusal!(
            "annotation {} restricts who may connect, which CloudStack does from version 4.18 on", SOURCE_CIDRS.key;
            "use spec.loadBalancerSourceRanges, which the firewall goes by"
        );
        return Err(refusal.into());
    }
    Ok(abilities)
}
