//! Decides what comes next. Pure.
//!
//! A Service without a block: refusals, the names of tags, the claim, the purchase. With one: the attachment, the address
//! in its field, the status. A block that is attached late is no reason to keep its address back.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep, facts};
use bowline_phoenixnap_client::{IpBlock, NewIpBlock};
use bowline_plan::{Answer, Note, Plan, Refusal};
use jiff::Timestamp;

use crate::blocks::{self, Attachment};
use crate::claim::{self, Claim};
use crate::events::{BLOCK_NOT_ATTACHED, BLOCK_PENDING, IPV4_ONLY, NETWORK_UNKNOWN, PURCHASE_PENDING};
use crate::intent::{Families, Identity, Intent, Wanted};
use crate::observe::network::Shown;
use crate::observe::{Purchase, Seen};
use crate::status;
use crate::step::CloudStep;
use crate::tags;

mod absent;

/// How often a block that is on its way is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// How often it is looked whether the network has taken a block of another Service.
const SOON: Duration = Duration::from_secs(1);

/// How long a block may be on its way before somebody is told.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) type Next = Answer<LoadBalancerStep<CloudStep>, LoadBalancerStatus>;

/// Decides what comes next for a Service on a network.
pub(crate) fn plan(intent: &Intent, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
    match intent {
        Intent::Wanted(wanted) => wanted_plan(wanted, seen, network),
        Intent::Absent(identity) => absent::plan(identity, seen),
    }
}

fn wanted_plan(wanted: &Wanted, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
    let key = &wanted.identity.key;
    let field = match wanted.identity.address() {
        Ok(field) => field,
        Err(text) => {
            let reason = format!("spec.loadBalancerIP of service {key} is no IP address: {text}");
            return Plan::new(Answer::Refused(
                Refusal::new(reason).with_remedy("clear the field, and an address is allocated"),
            ));
        }
    };
    match (seen.blocks.as_slice(), field) {
        ([], Some(address)) => Plan::new(Answer::Refused(without_block(wanted, seen, address))),
        ([], None) => purchase(wanted, seen, network),
        ([block], field) => existing(wanted, seen, block, field, network),
        (several, _) => {
            let ids: Vec<&str> = several.iter().map(|block| block.id.as_str()).collect();
            Plan::new(Answer::Refused(
                Refusal::new(format!(
                    "service {key} has more than one IP block: {}",
                    ids.join(", ")
                ))
                .with_remedy(
                    "mark all but one with the tag `delete`, or delete the service, which marks all of them",
                ),
            ))
        }
    }
}

/// There is an address in the field, and no block of the Service.
fn without_block(wanted: &Wanted, seen: &Seen, address: IpAddr) -> Refusal {
    let key = &wanted.identity.key;
    let Some(block) = &seen.stray else {
        return Refusal::new(format!(
            "spec.loadBalancerIP {address} belongs to no IP block of service {key}, and a block cannot be requested by address"
        ))
        .with_remedy(if is_served(wanted) {
            "use the credentials of the account that the block was bought with; if it is given up for good, clear the field, and another address is allocated"
        } else {
            "clear the field, and an address is allocated"
        });
    };
    let IpBlock { id, cidr, .. } = block;
    let of_block = format!("spec.loadBalancerIP {address} is an address of IP block {id} ({cidr})");
    match tags::service_of(block) {
        _ if tags::is_marked(block) => {
            Refusal::new(format!("{of_block}, which has the tag `delete` and is given back")).with_remedy(format!(
                "remove the tag if service {key} is to keep the address; else clear the field, and another block is bought"
            ))
        }
        Some(other) if other != *key => {
            Refusal::new(format!("{of_block}, which has the tags of service {other}"))
                .with_remedy("clear the field, and an address is allocated")
        }
        _ => Refusal::new(format!("{of_block}, which does not have the tags of service {key} any more")).with_remedy(
            format!(
                "put the tags serviceNamespace={} and serviceName={} back on the block; if the field were cleared, another block would be bought",
                key.namespace, key.name
            ),
        ),
    }
}

/// Whether the status shows an address. Then there was a block.
fn is_served(wanted: &Wanted) -> bool {
    !facts::published_addresses(&wanted.service).is_empty()
}

/// Where a block for the Service is bought, or why none can be of use to it.
fn location<'a>(wanted: &'a Wanted, seen: &Seen, network: &str) -> Result<&'a str, Refusal> {
    let key = &wanted.identity.key;
    if wanted.families == Families::Ipv6 {
        let text = format!("service {key} asks for IPv6 only, which is not supported: IP blocks are IPv4");
        return Err(Refusal::new(text).with_remedy("add IPv4 to spec.ipFamilies"));
    }
    let Some(location) = &wanted.location else {
        let text = format!("no location is known to buy an IP block for service {key} in");
        return Err(Refusal::new(text).with_remedy(format!(
            "set PNAP_LOCATION, or the annotation {} of the service",
            wanted.location_annotation
        )));
    };
    let nothing = |why: &str| {
        Refusal::new(format!(
            "nothing could be attached to public network {network}, so no IP block is bought: {why}"
        ))
    };
    let of_network = match &seen.network {
        Some(Shown::Denied(denied)) => {
            return Err(nothing(denied).with_remedy(
                "correct the ID behind the type of load balancer (PNAP_LOAD_BALANCER), or use credentials of the network's account",
            ));
        }
        Some(Shown::Known(known)) if known.is_lost() => {
            let status = known.status.as_deref().unwrap_or_default();
            return Err(nothing(&format!("it is {status}")).with_remedy(
                "look at the network in the portal, or name another one behind the type of load balancer (PNAP_LOAD_BALANCER)",
            ));
        }
        Some(Shown::Known(known)) => known.location.as_deref(),
        Some(Shown::Unknown(_) | Shown::NotServed) | None => None,
    };
    match of_network.filter(|other| !other.eq_ignore_ascii_case(location)) {
        None => Ok(location),
        Some(other) => Err(Refusal::new(format!(
            "an IP block in {location} cannot be attached to the public network, which is in {other}; none is bought"
        ))),
    }
}

/// There is no block yet.
fn purchase(wanted: &Wanted, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
    let identity = &wanted.identity;
    let location = match location(wanted, seen, network) {
        Err(refusal) => return Plan::new(Answer::Refused(refusal)),
        Ok(location) => location,
    };
    let memory = &seen.memory.own;
    let is_claimed = identity.own_claim(memory.reconcile).is_some();
    let buy = CloudStep::BuyBlock {
        new: NewIpBlock {
            location: location.to_owned(),
            cidr_block_size: blocks::SIZE,
            tags: identity.cluster.of_new_block(&identity.key),
            description: wanted.block_description.clone(),
        },
    };
    // Nothing was bought, so nobody has to wait for it.
    let refused = |refusal: &Refusal| {
        Plan::new(match is_claimed {
            true => kube(KubeWrite::AnnotateService(Claim::withdrawn())),
            false => Answer::Refused(refusal.clone()),
        })
    };
    if let Some(refusal) = seen.memory.refusals.why(&buy) {
        return refused(refusal);
    }
    let Some(missing) = &seen.missing_names else {
        // The Service began to ask for a block only after it was looked at, or the names turned out to be others.
        return look_at_names();
    };
    // Never twice under one claim.
    let is_made = memory.purchase == Purchase::Made;
    let has_run_out = is_made || memory.purchase == Purchase::ClaimExpired;
    if !is_claimed || has_run_out {
        if let Some(pending) = pending_purchase(identity, seen) {
            return pending.plan(identity, "no other one is bought");
        }
        if has_run_out {
            // Start anew, with a new time.
            return Plan::new(Answer::Refused(Refusal::new(if is_made {
                "an IP block was bought two minutes ago, and the list does not show it"
            } else {
                "the claim to buy an IP block ran out before the purchase could begin"
            })));
        }
    }
    if let Some(left) = seen.unlisted.filter(|_| identity.claim.is_none()) {
        let reason = "a block that an earlier process asked for may not be listed yet";
        return Plan::new(wait(LOOK.min(left), reason.to_owned()));
    }
    if let Some(Shown::Unknown(why)) = &seen.network {
        let text = format!(
            "no IP block is bought for service {} before it is known whether public network {network} has a place: {why}",
            identity.key
        );
        if is_claimed || seen.memory.own.age >= PATIENCE {
            return refused(&Refusal::new(text));
        }
        let next = wait(LOOK, "the public network cannot be read".to_owned());
        return Plan::new(next).with_notes(vec![NETWORK_UNKNOWN.note(text)]);
    }
    if let Some(full) = &seen.full {
        return refused(full);
    }
    if let Some(block) = &seen.unanswered {
        let reason = format!("whether public network {network} takes IP block {block} is not known yet");
        return Plan::new(wait(SOON, reason));
    }
    if memory.purchase == Purchase::NamesForgotten {
        return look_at_names();
    }
    if !missing.is_empty() {
        let names = missing.iter().map(|name| CloudStep::CreateTagName {
            name,
            service: identity.key.clone(),
        });
        return Plan::new(cloud(names.collect()));
    }
    if !is_claimed {
        let claim = Claim {
            holder: identity.holder.clone(),
            reconcile: memory.reconcile,
            time: identity.now(seen),
        };
        return Plan::new(kube(claim.write()));
    }
    Plan::new(cloud(vec![buy]))
}

/// A purchase that may be under way, or whose answer was lost.
struct PendingPurchase<'a> {
    holder: &'a str,
    time: Timestamp,
    left: Duration,
}

/// The purchase that stands in the way, if there is one: a claim says so, or this process knows it of itself.
fn pending_purchase<'a>(identity: &'a Identity, seen: &Seen) -> Option<PendingPurchase<'a>> {
    let now = identity.now(seen);
    let claim = identity.claim.as_ref().filter(|_| !seen.is_claim_void);
    let claimed = claim.and_then(|claim| {
        Some(PendingPurchase {
            holder: &claim.holder,
            time: claim.time,
            left: claim.bars_for(now)?,
        })
    });
    let asked = seen.asked.and_then(|age| {
        Some(PendingPurchase {
            holder: &identity.holder,
            time: now.checked_sub(age).ok()?,
            left: claim::PATIENCE.checked_sub(age)?,
        })
    });
    claimed
        .into_iter()
        .chain(asked)
        .max_by_key(|pending| pending.left)
}

impl PendingPurchase<'_> {
    /// The block is looked for until the claim is old enough.
    fn plan(&self, identity: &Identity, meanwhile: &str) -> LoadBalancerPlan<CloudStep> {
        let Self { holder, time, .. } = self;
        let text = format!(
            "{holder} began to buy an IP block for service {} at {time}, and the outcome is not known. Bowline looks for the block; meanwhile, for two minutes at most, {meanwhile}",
            identity.key
        );
        // A moment more, so that the last look is not too early.
        let after = LOOK.min(self.left + Duration::from_millis(100));
        Plan::new(wait(
            after,
            "the outcome of a purchase is not known yet".to_owned(),
        ))
        .with_notes(vec![PURCHASE_PENDING.note(text)])
    }
}

impl Identity {
    /// The wall time of the last look.
    fn now(&self, seen: &Seen) -> Timestamp {
        self.now.saturating_add(seen.memory.own.age).unwrap_or(self.now)
    }
}

/// The block is there.
fn existing(
    wanted: &Wanted,
    seen: &Seen,
    block: &IpBlock,
    field: Option<IpAddr>,
    network: &str,
) -> LoadBalancerPlan<CloudStep> {
    let mut notes = Vec::new();
    if wanted.families == Families::Dual {
        notes.push(IPV4_ONLY.note("the service asks for IPv4 and IPv6 and gets an IPv4 address"));
    }
    let answer = with_block(wanted, seen, block, field, network, &mut notes);
    Plan::new(answer).with_notes(notes)
}

fn with_block(
    wanted: &Wanted,
    seen: &Seen,
    block: &IpBlock,
    field: Option<IpAddr>,
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
        (Some(field), _) if blocks::contains(block, field) => field,
        (Some(field), _) => {
            return Answer::Refused(
                Refusal::new(format!(
                    "spec.loadBalancerIP {field} is outside of {cidr}, the IP block {id} of service {key}"
                ))
                .with_remedy("clear the field, or set it to an address of the block"),
            );
        }
        (None, Some(third)) => third.into(),
        (None, None) => {
            return Answer::Refused(Refusal::new(format!(
                "the API gives IP block {id} of service {key} a CIDR that has no third IPv4 address: {cidr}"
            )));
        }
    };
    match attachment {
        Attachment::Never(reason) => return Answer::Refused(Refusal::new(reason)),
        Attachment::Later(reason) => return later(seen, network, reason, notes),
        Attachment::Needed => {
            if let Some(reason) = &seen.busy {
                return later(seen, network, reason.clone(), notes);
            }
            // What was said of the last try holds while the next one is made, so that it is said once.
            let refused = seen.memory.own.refused.as_ref();
            notes.extend(refused.map(|reason| unattached(seen, network, reason)));
            return cloud(vec![CloudStep::Attach {
                block: id.clone(),
                cidr: cidr.clone(),
                network: network.to_owned(),
            }]);
        }
        Attachment::Done => {}
    }
    let value = field.map_or_else(|| address.to_string(), |_| wanted.identity.field.clone());
    let vip = wanted.keeps_kube_vip_annotation.then(|| address.to_string());
    match address_write(&wanted.identity, value, vip.as_deref()) {
        Some(write) => kube(write),
        None => Answer::Settled(status::status(&wanted.service, address)),
    }
}

/// The write that brings the field to its value and kube-vip's annotation to its own, and takes the claim away, whose block
/// is there: one write for all of it, if there is anything to write.
fn address_write(identity: &Identity, ip: String, vip: Option<&str>) -> Option<KubeWrite> {
    let mut annotations = identity.vip.brought_to(vip);
    if identity.has_claim_text {
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
    // That a block is not there at once is the way of things; a refusal is not.
    if seen.memory.own.refused.is_some() || seen.memory.own.age >= LOOK {
        notes.push(unattached(seen, network, &reason));
    }
    wait(LOOK, reason)
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

pub(crate) fn cloud(steps: Vec<CloudStep>) -> Next {
    let steps = steps.into_iter().map(LoadBalancerStep::Cloud).collect();
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

fn kube(write: KubeWrite) -> Next {
    let steps = vec![LoadBalancerStep::Kube(write)];
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

fn look_at_names() -> LoadBalancerPlan<CloudStep> {
    Plan::new(Answer::LookAgain {
        reason: "the names of tags".to_owned(),
    })
}

pub(crate) fn wait(after: Duration, reason: String) -> Next {
    Answer::Wait { after, reason }
}
