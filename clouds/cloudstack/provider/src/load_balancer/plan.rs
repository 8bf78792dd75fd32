//! Decides what comes next. Pure.
//!
//! A port is brought up in a chain: its rule, then the members of the rule; the firewall or the ACL list is opened beside
//! it. Chains of different ports do not wait for each other, and a chain waits only for its own jobs. What is not wanted
//! any more goes when its successor is complete: first the firewall rule, then the load balancer rule, so that what is left
//! after a crash still tells which port it belongs to.
//!
//! A decision that lacks facts ends with what has to be read for it ([`Unread`]); those that do not depend on it go on.

use std::collections::BTreeSet;

use bowline_cloud_provider::LoadBalancerPlan;
use bowline_plan::Refusal;

use super::annotations::SOURCE_CIDRS;
use super::claim::Asking;
use super::intent::{Intent, Wanted};
use super::objects::{DEFAULT_DENY, Filtering, Rule};
use super::observe::observed::{Need, Observed, Seen};
use super::observe::times::SEARCH;
use super::replaced_rules::ReplacedRules;
use super::status::status;
use super::step::CloudStep;
use crate::messages::DEFAULT_DENY as DEFAULT_DENY_EVENT;
use crate::version::Abilities;

mod absent;
mod acl;
mod any_address;
mod draft;
mod firewall;
mod home;
mod members;
mod port;
mod ports;
mod removal;
mod rollback;
#[cfg(test)]
mod tests;

use draft::{Draft, Stop};

/// Decides what comes next.
pub(crate) fn plan(intent: &Intent, observed: &Seen) -> LoadBalancerPlan<CloudStep> {
    draft(intent, observed).finish()
}

/// Which addresses the plan claims, to ask for them.
pub(crate) fn claimed(intent: &Intent, observed: &Seen) -> Vec<Asking> {
    draft(intent, observed).claim.askings().collect()
}

/// What the decision has to know first.
pub(crate) fn needs(intent: &Intent, observed: &Seen) -> BTreeSet<Need> {
    draft(intent, observed).needs
}

fn draft<'a>(intent: &'a Intent, observed: &'a Seen) -> Draft<'a> {
    let mut draft = Draft::new(intent.identity(), observed);
    let own = &observed.memory.own;
    if own.inherits_since.is_some() {
        return draft;
    }
    if own.failure.is_some() {
        rollback::plan(&mut draft, intent);
        return draft;
    }
    if own.lingers {
        draft.wait("rules are listed whose public IP was released".to_owned());
    }
    match intent {
        Intent::Wanted(wanted) => {
            draft.again = own.known.may_go.map(|left| left.min(SEARCH));
            let decided = wanted_plan(&mut draft, wanted);
            draft.take(decided);
            follow_anyway(&mut draft, wanted);
        }
        Intent::Absent(absent) => {
            let decided = absent::plan(&mut draft, absent);
            draft.take(decided);
        }
    }
    draft
}

/// What is refused makes no change, nor does what cannot be read. But the Nodes are followed all the same.
fn follow_anyway(draft: &mut Draft<'_>, wanted: &Wanted) {
    if draft.refusal.is_some() {
        *draft = Draft {
            notes: std::mem::take(&mut draft.notes),
            refusal: draft.refusal.take(),
            ..Draft::new(draft.identity, draft.observed)
        };
    } else if !draft.is_blind || draft.has_writes() {
        return;
    }
    members::follow_nodes(draft, wanted);
    if !draft.steps.is_empty() {
        draft.refusal = None; // later
    }
}

fn wanted_plan(draft: &mut Draft<'_>, wanted: &Wanted) -> Result<(), Stop> {
    draft.notes.extend(wanted.notes.iter().cloned());
    if let Some(refusal) = &wanted.refusal {
        return Err(refusal.clone().into());
    }
    let abilities = abilities(draft.observed, wanted)?;
    let home = home::find(draft, wanted)?;
    if let Filtering::DefaultAcl(list) = home.network.filtering()
        && list.name == DEFAULT_DENY
    {
        draft.notes.push(DEFAULT_DENY_EVENT.note(format!(
            "network {} uses the ACL list {}, which denies everything and takes no items: nobody reaches the service",
            home.network.name, list.name
        )));
    }
    ports::plan(draft, wanted, &home, abilities);
    // What serves at another address is not left for one where a port does not.
    let is_elsewhere = |rule: &Rule| rule.address.id != home.address.id && !rule.state.is_going();
    if draft.is_idle() && !draft.shortfalls.is_empty() && draft.observed.rules.iter().any(is_elsewhere) {
        members::follow_nodes(draft, wanted);
        return Ok(());
    }
    if draft.is_idle() {
        home::leave_others(draft, wanted, &home);
    }
    if draft.is_idle() {
        draft.claim.opens_only(&wanted.sources.cidrs);
        draft.replaced = ReplacedRules::default();
    }
    if draft.is_idle() {
        home::tidy_claim(draft, wanted, &home)?;
    }
    let mut here = draft.observed.rules.iter();
    let serves = here.any(|rule| rule.address.id == home.address.id && !rule.state.is_going());
    if draft.is_idle() && (serves || draft.shortfalls.is_empty()) {
        draft.settled = Some(status(wanted, &home.address)?);
    }
    Ok(())
}

/// What the server can do, if that is enough.
fn abilities(observed: &Observed, wanted: &Wanted) -> Result<Abilities, Stop> {
    let abilities = observed.abilities()?;
    if abilities.takes_cidrs == Some(false) && !wanted.cidrs.cidrs.is_everything() {
        let refusal = Refusal::new(format!(
            "annotation {} restricts who may connect, which CloudStack does from version 4.18 on",
            SOURCE_CIDRS.key
        ));
        let remedy = "use spec.loadBalancerSourceRanges, which the firewall goes by";
        return Err(refusal.with_remedy(remedy).into());
    }
    Ok(abilities)
}
