//! A Service without a block: refusals, the names of tags, the claim, the purchase, in this order.

use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, ServiceKey, facts};
use bowline_phoenixnap_client::{IpBlock, NewIpBlock};
use bowline_plan::{Answer, Plan, Refusal, refusal};
use jiff::Timestamp;

use crate::load_balancer::blocks::Address;
use crate::load_balancer::claim::{self, Claim};
use crate::load_balancer::intent::{Families, Identity, Wanted, correct_network};
use crate::load_balancer::observe::network::Shown;
use crate::load_balancer::observe::{Purchase, Seen};
use crate::load_balancer::plan::answer::{LOOK, PATIENCE, cloud, kube, wait};
use crate::load_balancer::step::CloudStep;
use crate::load_balancer::{blocks, evidence};
use crate::messages::{NETWORK_UNKNOWN, PURCHASE_PENDING};

/// What to do where the block of a Service lost its tags.
const PUT_BACK: &str = "whoever owns the project puts these tags back on the block, in the portal or by the API. Do not clear the field: another \
                        block with another address would be bought, and this one be billed on";

/// There is an address in the field, and no block of the Service.
pub(super) fn without_block(wanted: &Wanted, seen: &Seen, address: Address) -> Refusal {
    let Identity { key, cluster, .. } = &wanted.identity;
    let Some(block) = &seen.stray else {
        return Refusal::new(format!(
            "spec.loadBalancerIP {address} belongs to no IP block of service {key}, and a block cannot be requested by address"
        ))
        .with_remedy(if is_served(wanted) {
            "if the block was deleted, clear the field, and another address is allocated; if it is in another account, use the credentials of that one"
        } else {
            "clear the field, and an address is allocated"
        });
    };
    let IpBlock { id, cidr, .. } = block;
    let of_block = format!("spec.loadBalancerIP {address} is an address of IP block {id} ({cidr})");
    let missing = evidence::missing(block, cluster, key).join(", ");
    match (evidence::cluster_of(block), evidence::service_of(block)) {
        (Some(other), _) if other != cluster.uid => {
            refusal!(
                "{of_block}, which has the tags of another cluster, with the UID {other}";
                "clear the field, and an address is allocated. If that cluster is gone for good and this one has its Services, put these tags on the block instead: {missing}"
            )
        }
        _ if seen.going.contains(id) => {
            refusal!(
                "{of_block}, which is given back because service {key} asked for no load balancer a moment ago";
                "clear the field, and another block is bought"
            )
        }
        _ if evidence::is_marked(block) && cluster.owns(block) => {
            refusal!(
                "{of_block}, which has the tag `delete` and is given back";
                "remove the tag if service {key} is to keep the address; else clear the field, and another block is bought"
            )
        }
        (_, Some(other)) if other != *key => {
            let services = wanted.services.services();
            let other_lives_on_it = services
                .iter()
                .any(|it| ServiceKey::of(it) == other && blocks::is_used(block, &blocks::addresses_of(it)));
            if shows(wanted, address) && !other_lives_on_it {
                return refusal!(
                    "{of_block}, which has the tags of service {other} and not those of service {key} any more: somebody changed {missing}";
                    "{PUT_BACK}"
                );
            }
            refusal!(
                "{of_block}, which has the tags of service {other}";
                "clear the field, and an address is allocated"
            )
        }
        _ if is_served(wanted) => refusal!(
            "{of_block}, which does not have the tags of service {key} any more: somebody took off {missing}";
            "{PUT_BACK}"
        ),
        _ => refusal!(
            "{of_block}, which does not have the tags of service {key}: {missing}";
            "clear the field, and an address is allocated; or put these tags on the block if the Service is to have it: it is given back when the Service is deleted"
        ),
    }
}

/// Whether the status shows an address. Then there was a block.
fn is_served(wanted: &Wanted) -> bool {
    !facts::published_addresses(&wanted.service).is_empty()
}

/// Whether the status shows this address.
fn shows(wanted: &Wanted, address: Address) -> bool {
    facts::published_addresses(&wanted.service).contains(&address.to_string())
}

/// Where a block for the Service is bought, or why none can be of use to it.
fn location<'a>(wanted: &'a Wanted, seen: &Seen, network: &str) -> Result<&'a str, Refusal> {
    let key = &wanted.identity.key;
    if wanted.families == Families::Ipv6 {
        return Err(refusal!(
            "service {key} asks for IPv6 only, which is not supported: IP blocks are IPv4";
            "add IPv4 to spec.ipFamilies"
        ));
    }
    let Some(location) = &wanted.location else {
        return Err(refusal!(
            "no location is known to buy an IP block for service {key} in";
            "set PNAP_LOCATION, or the annotation {} of the service", wanted.location_annotation
        ));
    };
    let nothing = |why: &str| {
        Refusal::new(format!(
            "nothing could be attached to public network {network}, so no IP block is bought: {why}"
        ))
    };
    let of_network = match &seen.network {
        Some(Shown::Denied(denied)) => {
            return Err(nothing(denied).with_remedy(correct_network(&wanted.network_source, network)));
        }
        Some(Shown::Known(known)) if known.is_lost() => {
            let status = known.status.as_deref().unwrap_or_default();
            let remedy = format!(
                "whoever owns the project looks at the network in the portal; if it goes, whoever runs the manager names another one in {}",
                wanted.network_source
            );
            return Err(nothing(&format!("it is {status}")).with_remedy(remedy));
        }
        Some(Shown::Known(known)) => known.location.as_deref(),
        Some(Shown::Unknown(_) | Shown::NotServed) | None => None,
    };
    match of_network.filter(|other| !other.eq_ignore_ascii_case(location)) {
        None => Ok(location),
        Some(other) => {
            let text = format!(
                "an IP block in {location} cannot be attached to the public network, which is in {other}; none is bought"
            );
            Err(Refusal::new(text).with_remedy(wanted.correct_location(location, other)))
        }
    }
}

/// There is no block yet.
pub(super) fn purchase(wanted: &Wanted, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
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
    // Anybody may have taken the claim of an earlier process off the Service.
    let sought = seen.memory.sought_as_inherited();
    if let Some(after) = sought.filter(|_| identity.claim.is_none()) {
        let reason = "a block that an earlier process asked for may not be listed yet";
        return Plan::new(wait(after, reason.to_owned()));
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
    if seen.unanswered.is_some() && is_claimed {
        return Plan::new(kube(KubeWrite::AnnotateService(Claim::withdrawn())));
    }
    if let Some(later) = &seen.unanswered {
        return Plan::new(wait(later.look, later.why.clone()));
    }
    if memory.purchase == Purchase::NamesForgotten {
        return look_at_names();
    }
    if !missing.is_empty() {
        let names = missing.iter().map(|name| CloudStep::CreateTagName { name });
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
pub(super) struct PendingPurchase<'a> {
    holder: &'a str,
    time: Timestamp,
    left: Duration,
}

/// The purchase that stands in the way, if there is one: a claim says so, or this process knows it of itself.
pub(super) fn pending_purchase<'a>(identity: &'a Identity, seen: &Seen) -> Option<PendingPurchase<'a>> {
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
    // Where both are, the next look finds the one that lasts longer.
    asked.or(claimed)
}

impl PendingPurchase<'_> {
    /// The block is looked for until the claim is old enough.
    pub(super) fn plan(&self, identity: &Identity, meanwhile: &str) -> LoadBalancerPlan<CloudStep> {
        let Self { holder, time, .. } = self;
        // The age of what the process remembers differs by a few nanoseconds each time.
        let time = Timestamp::from_second(time.as_second()).unwrap_or(*time);
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

fn look_at_names() -> LoadBalancerPlan<CloudStep> {
    Plan::new(Answer::LookAgain {
        reason: "the names of tags".to_owned(),
    })
}
