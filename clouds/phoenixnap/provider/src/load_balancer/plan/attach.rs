//! A Service with its block: the attachment, the address in its field, the status.

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan};
use bowline_phoenixnap_client::{BlockStatus, IpBlock};
use bowline_plan::{Answer, Note, Plan, Refusal, refusal};

use crate::load_balancer::blocks::{self, Address, Attachment};
use crate::load_balancer::claim::Claim;
use crate::load_balancer::evidence;
use crate::load_balancer::intent::{Families, Identity, Wanted};
use crate::load_balancer::observe::Seen;
use crate::load_balancer::observe::busy::Later;
use crate::load_balancer::plan::answer::{LOOK, Next, PATIENCE, cloud, kube, wait};
use crate::load_balancer::status;
use crate::load_balancer::step::CloudStep;
use crate::messages::{BLOCK_NOT_ATTACHED, BLOCK_PENDING, IPV4_ONLY, MARK_UNCLEAR};

/// The block is there.
pub(super) fn existing(
    wanted: &Wanted,
    seen: &Seen,
    block: &IpBlock,
    field: Option<Address>,
    network: &str,
) -> LoadBalancerPlan<CloudStep> {
    let mut notes = Vec::new();
    if wanted.families == Families::Dual {
        notes.push(IPV4_ONLY.note("the service asks for IPv4 and IPv6 and gets an IPv4 address"));
    }
    notes.extend(evidence::unclear(block).map(|text| MARK_UNCLEAR.note(text)));
    let answer = with_block(wanted, seen, block, field, network, &mut notes);
    // What comes of an attachment is looked at: it may fail.
    let is_on_its_way = block.status == BlockStatus::Assigning && matches!(answer, Answer::Settled(_));
    Plan {
        again: is_on_its_way.then_some(LOOK),
        ..Plan::new(answer).with_notes(notes)
    }
}

fn with_block(
    wanted: &Wanted,
    seen: &Seen,
    block: &IpBlock,
    field: Option<Address>,
    network: &str,
    notes: &mut Vec<Note>,
) -> Next {
    let key = &wanted.identity.key;
    let IpBlock { id, cidr, .. } = block;
    let attachment = blocks::attachment(block, network);
    let address = match (field, blocks::service_address(block)) {
        // A block that is being made need not say yet which one it is.
        (_, None) if cidr.is_empty() && matches!(attachment, Attachment::Later(_)) => {
            return later(seen, network, format!("IP block {id} is {}", block.status), notes);
        }
        (Some(field), _) if field.is_of(block) => field,
        (Some(field), _) => {
            return Answer::Refused(refusal!(
                "spec.loadBalancerIP {field} is outside of {cidr}, the IP block {id} of service {key}";
                "clear the field, or set it to an address of the block"
            ));
        }
        (None, Some(third)) => third,
        (None, None) => {
            return Answer::Refused(Refusal::new(format!(
                "the API gives IP block {id} of service {key} a CIDR that has no third IPv4 address: {cidr}"
            )));
        }
    };
    match attachment {
        Attachment::Never(refusal) => return Answer::Refused(refusal),
        Attachment::Later(reason) => return later(seen, network, reason, notes),
        Attachment::Needed => {
            if let Some(Later { why, look, .. }) = &seen.busy {
                // What was said of this block, whatever the network is at work on by now.
                let reason = seen.memory.own.refused.as_ref().unwrap_or(why);
                notes.extend(told_later(seen, network, reason));
                let if_it_stays = format!(
                    "{reason}; if it stays so, whoever owns the project looks at public network {network} in the portal: one that stays BUSY is \
                     for phoenixNAP's support, and IP block {id} is billed meanwhile"
                );
                return wait(*look, if_it_stays);
            }
            // What was said of the last try holds while the next one is made, so that it is said once.
            let refused = seen.memory.own.refused.as_ref();
            notes.extend(refused.map(|reason| unattached(seen, network, reason)));
            let attach = CloudStep::attach(block, network);
            if let Some(why) = seen.memory.refusals.why(&attach)
                && block.status == BlockStatus::ErrorAssigning
            {
                notes.push(BLOCK_NOT_ATTACHED.note(why.reason.clone()));
            }
            return cloud(vec![attach]);
        }
        Attachment::Done => {}
    }
    let value = field.map_or_else(|| address.to_string(), |_| wanted.identity.field.clone());
    let vip = wanted.keeps_kube_vip_annotation.then(|| address.to_string());
    match address_write(&wanted.identity, value, vip.as_deref(), true) {
        Some(write) => kube(write),
        // Its address was shown when that began for the first time.
        None if block.status == BlockStatus::Assigning && seen.memory.own.has_failed => wait(
            LOOK,
            format!("IP block {id} is assigning, and its attachment failed before"),
        ),
        None => Answer::Settled(status::status(&wanted.service, address)),
    }
}

/// The address that this process wrote into the field is out of it.
pub(super) fn cleared(wanted: &Wanted) -> Next {
    kube(KubeWrite::SetLoadBalancerIp {
        seen: wanted.identity.field.clone(),
        ip: String::new(),
        annotations: wanted.identity.vip.brought_to(None),
    })
}

/// The write that brings the field to its value and kube-vip's annotation to its own, and takes the claim away, if its block
/// is there: one write for all of it, if there is anything to write.
pub(super) fn address_write(
    identity: &Identity,
    ip: String,
    vip: Option<&str>,
    is_bought: bool,
) -> Option<KubeWrite> {
    let mut annotations = identity.vip.brought_to(vip);
    if identity.has_claim_text && is_bought {
        annotations.extend(Claim::withdrawn());
    }
    match (identity.field == ip, annotations.is_empty()) {
        (true, true) => None,
        (true, false) => Some(KubeWrite::AnnotateService(annotations)),
        (false, _) => Some(KubeWrite::SetLoadBalancerIp {
            seen: identity.field.clone(),
            ip,
            annotations,
        }),
    }
}

fn later(seen: &Seen, network: &str, reason: String, notes: &mut Vec<Note>) -> Next {
    notes.extend(told_later(seen, network, &reason));
    wait(LOOK, reason)
}

/// That a block is not there at once is the way of things; a refusal is not.
fn told_later(seen: &Seen, network: &str, reason: &str) -> Option<Note> {
    let is_told = seen.memory.own.refused.is_some() || seen.memory.own.age >= LOOK;
    is_told.then(|| unattached(seen, network, reason))
}

/// What people are told of a block that cannot be attached now.
fn unattached(seen: &Seen, network: &str, reason: &str) -> Note {
    if seen.memory.own.age >= PATIENCE {
        let minutes = PATIENCE.as_secs() / 60;
        return BLOCK_NOT_ATTACHED.note(format!(
            "not attached to public network {network} after more than {minutes} minutes: {reason}"
        ));
    }
    BLOCK_PENDING.note(format!("not attached to public network {network} yet: {reason}"))
}
