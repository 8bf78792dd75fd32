//! The blocks go: first the address out of the Service, then the marks. The sweeper does the rest.

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, LoadBalancerStatus, Pauses};
use bowline_phoenixnap_client::IpBlock;
use bowline_plan::{Answer, Plan};

use crate::load_balancer::blocks;
use crate::load_balancer::intent::Identity;
use crate::load_balancer::names::DELETE;
use crate::load_balancer::observe::releases::MARK_AGAIN;
use crate::load_balancer::observe::{MarkName, Seen};
use crate::load_balancer::plan::answer::{cloud, kube, wait};
use crate::load_balancer::plan::attach::address_write;
use crate::load_balancer::plan::purchase::pending_purchase;
use crate::load_balancer::step::CloudStep;

/// Between two looks at a list that is behind.
const UNTIL_SHOWN: Pauses = Pauses::of_micros(&[500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000]);

pub(super) fn plan(identity: &Identity, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    if seen.blocks.is_empty() {
        // What is bought after the last look would belong to nobody.
        if let Some(pending) = pending_purchase(identity, seen) {
            return pending.plan(identity, "the service keeps its finalizer");
        }
        // Somebody gave the block back by hand, and kube-vip would still be told its address.
        let leftover = identity.vip.brought_to(None);
        return Plan::new(if leftover.is_empty() {
            Answer::Settled(LoadBalancerStatus::empty())
        } else {
            kube(KubeWrite::AnnotateService(leftover))
        });
    }
    // The address is out before its block goes; and a purchase that can be seen is nothing to wait for.
    let field = if is_ours(identity, seen) {
        String::new()
    } else {
        identity.field.clone()
    };
    // What was there before a purchase says nothing of it.
    let is_bought = seen.blocks.iter().any(|block| !seen.going.contains(&block.id));
    if let Some(write) = address_write(identity, field, None, is_bought) {
        return Plan::new(kube(write));
    }
    if seen.memory.own.mark == MarkName::Missing {
        return Plan::new(cloud(vec![CloudStep::CreateTagName { name: DELETE }]));
    }
    // The answer said that it bears its mark, and it must not go on before a list says so: a Service of the same name would take it.
    let is_marked = |block: &IpBlock| seen.memory.own.marked.contains(&block.id);
    let all_are = seen.blocks.iter().all(is_marked);
    if all_are && seen.memory.waited() < MARK_AGAIN {
        let reason = "the list of IP blocks does not show yet that they are marked";
        return Plan::new(wait(seen.memory.pause(UNTIL_SHOWN), reason.to_owned()));
    }
    let unmarked = seen.blocks.iter().filter(|block| all_are || !is_marked(block));
    Plan::new(cloud(unmarked.map(CloudStep::mark).collect()))
}

/// Whether the address in the field is one of the blocks' that go, or may be. Any other one is for somebody else, as for the
/// controller of the class that the Service has by now.
fn is_ours(identity: &Identity, seen: &Seen) -> bool {
    let Ok(Some(address)) = identity.address() else {
        return false;
    };
    let mut blocks = seen.blocks.iter();
    blocks.any(|block| blocks::network(block).is_none() || address.is_of(block))
}
