//! Decides what is done with each block. Pure.

use std::collections::BTreeMap;

use bowline_cloud_provider::{LoadBalancerStatus, LoadBalancerStep, Refusals, ServiceKey};
use bowline_phoenixnap_client::{BlockStatus, IpBlock, Membership};
use bowline_plan::{Answer, Note};

use crate::load_balancer::blocks::{self, Attachment};
use crate::load_balancer::evidence;
use crate::load_balancer::fate::{Fate, fate};
use crate::load_balancer::names::DELETE;
use crate::load_balancer::plan::answer::{LOOK, Next, wait};
use crate::load_balancer::step::CloudStep;
use crate::load_balancer::sweeper::observe::{Intent, Observed};
use crate::messages::{
    ADDRESS_IN_USE, BLOCK_LEFT_ALONE, FALLEN_OFF, MARK_UNCLEAR, ORPHAN, RELEASED, SURPLUS, SWEEP_FAILED,
    TAGS_CHANGED,
};

pub(super) fn plan(
    intent: &Intent,
    observed: &Observed,
    refusals: &Refusals<CloudStep>,
    network: &str,
) -> (Next, Vec<Note>) {
    let mut steps = Vec::new();
    let by_service = active_by_service(observed);
    let is_only = |block: &IpBlock| {
        let key = evidence::service_of(block);
        key.is_some_and(|key| by_service.get(&key).is_some_and(|blocks| blocks.len() == 1))
    };
    let mut notes = several(&by_service);
    notes.extend(observed.unlisted.iter().map(|(key, address)| {
        let text = format!("no IP block of the cluster has {address}, the address of service {key}");
        TAGS_CHANGED.note(text).about(key.to_string())
    }));
    // When to look again at what is on its way, or comes after it.
    let mut looks = Vec::new();
    let busy = |step: &CloudStep| {
        let later = observed.busy.get(&step.moves()?);
        later.filter(|_| step.network() == Some(network))
    };
    for block in &observed.blocks {
        let IpBlock { id, cidr, .. } = block;
        if let Some(why) = observed.failed.get(id) {
            notes.push(
                match evidence::is_marked(block) || observed.going.contains_key(id) {
                    true => SWEEP_FAILED.note(format!("IP block {id} ({cidr}): {why}")),
                    false => fallen_off(intent, block, why),
                },
            );
            continue;
        }
        if let (Some(is_overdue), false) = (observed.going.get(id), evidence::is_marked(block)) {
            let is_due = *is_overdue && !intent.is_seen_to(block);
            steps.extend(is_due.then(|| CloudStep::mark(block)));
            continue;
        }
        notes.extend(evidence::unclear(block).map(|text| MARK_UNCLEAR.note(text)));
        if !evidence::is_marked(block) {
            // Which one of several is to serve, a person says.
            let heal = heal(intent, block, network).filter(|_| is_only(block));
            match heal {
                Some(step) if let Some(why) = refusals.why(&step) => {
                    notes.push(fallen_off(intent, block, &why.reason));
                }
                Some(step) if let Some(later) = busy(&step) => looks.push(later.look),
                heal => steps.extend(heal),
            }
            if let Attachment::Never(refusal) = blocks::attachment(block, network)
                && intent.serves_its_service(block)
            {
                notes.push(fallen_off(intent, block, &refusal.reason));
            }
            notes.extend(look_at(intent, observed, block));
            continue;
        }
        let fate = fate(block, network);
        if !matches!(fate, Fate::LeaveAlone(_)) {
            notes.extend(released(intent, block));
        }
        match fate {
            Fate::Wait => looks.push(observed.look.unwrap_or(LOOK)),
            Fate::LeaveAlone(why) => {
                notes.push(BLOCK_LEFT_ALONE.note(format!("IP block {id} ({cidr}) {why}")))
            }
            Fate::Step(step) => match busy(&step) {
                Some(later) => looks.push(later.look),
                None => steps.push(step),
            },
        }
    }
    let (mut silent, mut steps): (Vec<_>, Vec<_>) = steps
        .into_iter()
        .partition(|step| step.block().is_some_and(|id| observed.silent.contains(id)));
    // What is on its way for long, whoever began it, is none that would wait.
    if steps.is_empty() && observed.look.is_none() && observed.busy.is_empty() {
        silent.truncate(1);
        steps = silent;
    }
    let steps: Vec<_> = steps.into_iter().map(LoadBalancerStep::Cloud).collect();
    let answer = Answer::apply_or(steps, || match looks.into_iter().min() {
        Some(look) => wait(look, "marked IP blocks are on their way".to_owned()),
        None => Answer::Settled(LoadBalancerStatus::empty()),
    });
    (answer, notes)
}

/// The active blocks of each Service that the tags name.
pub(super) fn active_by_service(observed: &Observed) -> BTreeMap<ServiceKey, Vec<&IpBlock>> {
    let mut by_service: BTreeMap<ServiceKey, Vec<&IpBlock>> = BTreeMap::new();
    let is_active = |block: &&IpBlock| {
        let is_going = evidence::is_marked(block) || observed.going.contains_key(&block.id);
        !is_going && !observed.orphans.contains(&block.id)
    };
    for block in observed.blocks.iter().filter(is_active) {
        if let Some(key) = evidence::service_of(block) {
            by_service.entry(key).or_default().push(block);
        }
    }
    by_service
}

/// The Services that have more than one block. A Service at which nothing changes is looked at every ten minutes only.
fn several(by_service: &BTreeMap<ServiceKey, Vec<&IpBlock>>) -> Vec<Note> {
    let several = by_service.iter().filter(|(_, blocks)| blocks.len() > 1);
    let told = several.map(|(key, blocks)| {
        let ids: Vec<&str> = blocks.iter().map(|block| block.id.as_str()).collect();
        let text = format!(
            "service {key} has {} IP blocks, and all of them are billed: {}",
            ids.len(),
            ids.join(", ")
        );
        SURPLUS.note(text).about(key.to_string())
    });
    told.collect()
}

/// That a marked block goes on whose address a Service lives.
fn released(intent: &Intent, block: &IpBlock) -> Option<Note> {
    let IpBlock { id, cidr, .. } = block;
    let (key, address) = intent.user_of(block)?;
    let text = format!(
        "IP block {id} ({cidr}) has the tag `delete`, so it is taken off its network and given back; {address}, the address of service {key}, leads nowhere then"
    );
    Some(RELEASED.note(text).about(key.to_string()))
}

/// Attaches an active block again that fell off, if a Service lives on its address.
fn heal(intent: &Intent, block: &IpBlock, network: &str) -> Option<CloudStep> {
    let has_fallen_off = matches!(
        block.status,
        BlockStatus::Unassigned | BlockStatus::ErrorAssigning
    );
    if !has_fallen_off || blocks::attachment(block, network) != Attachment::Needed {
        return None;
    }
    let service = intent.services.get(&evidence::service_of(block)?)?;
    let address = intent.address_of(service)?;
    blocks::contains(block, address).then(|| CloudStep::attach(block, network))
}

/// What became of an active block that cannot be attached again.
fn fallen_off(intent: &Intent, block: &IpBlock, why: &str) -> Note {
    let IpBlock { id, cidr, status, .. } = block;
    let key = evidence::service_of(block);
    let whose = key
        .as_ref()
        .map_or_else(String::new, |key| format!(" of service {key}"));
    let note = FALLEN_OFF.note(format!(
        "IP block {id} ({cidr}){whose} is {status} and cannot be attached again, so its address leads nowhere: {why}"
    ));
    match key.filter(|_| intent.serves_its_service(block)) {
        Some(key) => note.about(key.to_string()),
        None => note,
    }
}

/// What somebody should know of an active block.
fn look_at(intent: &Intent, observed: &Observed, block: &IpBlock) -> Option<Note> {
    if observed.orphans.contains(&block.id) {
        return Some(ORPHAN.note(orphan(intent, block)));
    }
    let key = evidence::service_of(block);
    if let Some((user, address)) = intent
        .user_of(block)
        .filter(|it| !intent.serves_its_service(block) && intent.shows(it))
    {
        let IpBlock { id, cidr, .. } = block;
        let missing = evidence::missing(block, &intent.cluster, user).join(", ");
        let text = format!(
            "IP block {id} ({cidr}) has {address}, the address of service {user}, and not the tags of this service: {missing}"
        );
        return Some(TAGS_CHANGED.note(text).about(user.to_string()));
    }
    let key = key?;
    let service = intent.services.get(&key)?;
    let address = intent.address_of(service)?.to_string();
    observed.used.contains(&address).then(|| {
        ADDRESS_IN_USE.note(format!(
            "a server of the public network uses {address}, the address of service {key}"
        ))
    })
}

/// What makes a block one.
fn orphan(intent: &Intent, block: &IpBlock) -> String {
    let IpBlock { id, cidr, .. } = block;
    let whose = match evidence::service_of(block) {
        None => "bears the tags of the cluster and of no service".to_owned(),
        Some(key) if intent.services.contains_key(&key) => {
            format!("bears the tags of service {key}, which is no load balancer any more")
        }
        Some(key) => format!("bears the tags of service {key}, which does not exist"),
    };
    let mark = evidence::unclear_mark(block)
        .map(|value| format!(", and the tag {DELETE}={value}, which marks nothing"));
    format!("IP block {id} ({cidr}) {whose}{}", mark.unwrap_or_default())
}

/// Which servers use addresses of a block; `None` if none is seen to.
fn users(block: &IpBlock, members: &[Membership]) -> Option<String> {
    let uses = members.iter().flat_map(|member| {
        let server = member.resource_id.as_deref().unwrap_or("unknown");
        let ips = member.ips.iter().filter(|ip| {
            let ip = ip.parse();
            ip.is_ok_and(|ip| blocks::contains(block, ip))
        });
        ips.map(move |ip| format!("server {server} uses {ip}"))
    });
    let uses: Vec<String> = uses.collect();
    (!uses.is_empty()).then(|| uses.join(" and "))
}

/// What is billed, and no run gives back.
pub(super) fn left_over(
    intent: &Intent,
    block: &IpBlock,
    network: &str,
    members: &[Membership],
) -> Option<String> {
    if intent.has_orphan(block) {
        return Some(orphan(intent, block));
    }
    let IpBlock { id, cidr, .. } = block;
    match fate(block, network) {
        Fate::LeaveAlone(why) if evidence::is_marked(block) => Some(format!(
            "IP block {id} ({cidr}) is marked to be given back, and {why}"
        )),
        Fate::Step(CloudStep::Detach { network, .. }) if evidence::is_marked(block) => {
            let user = users(block, members)?;
            Some(format!(
                "IP block {id} ({cidr}) is marked to be given back, and public network {network} keeps it as long as {user}"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(status: &str, assigned: Option<(&str, Option<&str>)>) -> IpBlock {
        let mut value = serde_json::json!({ "id": "b1", "cidr": "198.51.100.8/29", "status": status });
        if let Some((kind, id)) = assigned {
            value["assignedResourceType"] = kind.into();
            value["assignedResourceId"] = id.into();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_marked_block_goes_by_its_own_state_and_network() {
        let own = Some(("PUBLIC_NETWORK", Some("old")));
        let cidr = "198.51.100.8/29";
        let detach = |network: &str| {
            Fate::Step(CloudStep::Detach {
                block: "b1".to_owned(),
                cidr: cidr.to_owned(),
                network: network.to_owned(),
            })
        };
        let delete = || {
            Fate::Step(CloudStep::Delete {
                block: "b1".to_owned(),
                cidr: cidr.to_owned(),
            })
        };
        for (status, assigned, expected) in [
            ("unassigned", None, delete()),
            ("unassigning", own, Fate::Wait),
            ("creating", None, Fate::Wait),
            ("assigning", own, Fate::Wait),
            ("assigned", own, detach("old")),
            ("assigned", None, detach("net")),
            ("assigned", Some(("public network", None)), detach("net")),
            ("error unassigning", own, detach("old")),
            ("error assigning", own, detach("old")),
            ("error assigning", None, delete()),
        ] {
            assert_eq!(
                fate(&block(status, assigned), "net"),
                expected,
                "{status} {assigned:?}"
            );
        }
        for (status, assigned) in [
            ("assigned", Some(("server", Some("s1")))),
            ("unassigned", Some(("server", Some("s1")))),
            ("subnetted", None),
            ("", own),
            ("lost", own),
        ] {
            assert!(
                matches!(fate(&block(status, assigned), "net"), Fate::LeaveAlone(_)),
                "{status}"
            );
        }
    }
}
