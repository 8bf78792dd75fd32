//! How long a load balancer is waited for.

use std::collections::BTreeSet;

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{LoadBalancer, LoadBalancerId, ProvisioningStatus};

use crate::load_balancer::evidence::{self, Found};
use crate::load_balancer::intent::Intent;
use crate::load_balancer::memory::{Memory, looks};
use crate::load_balancer::observed::{Observed, is_pending, since};

/// The looks at a load balancer that is being deleted, 72 s, before another one is made beside it. A Go manager makes it at once; by
/// then the address is mostly free again.
const GOING_LOOKS: usize = 15;

/// The load balancers of a Service that are left alone in `PENDING_DELETE`. A cloud that gets rid of none would be asked for one after the
/// other.
const MOST_LEFT_ALONE: usize = 1;

/// The looks at a load balancer that was deleted, before the reconcile fails and is tried again by the schedule.
const DELETION_LOOKS: usize = 24;

/// The looks at a load balancer that somebody else is changing, 13 s: then the Service says what it waits for, and tries again by the
/// schedule. A Go manager fails at once.
const CHANGE_LOOKS: usize = 8;

/// What a person can do about a load balancer that stays pending.
const PENDING_REMEDY: &str = "Octavia takes no other change until it has done with this one, and Bowline goes on then; if it stays so, ask the operator of the cloud to look at Octavia's workers: one whose work was lost is set free by them only";

/// A load balancer that stays as it is for too long is an error: the reconcile is tried again by the schedule.
pub(super) fn give_up_in_time(
    intent: &Intent,
    observed: &mut Observed,
    memory: &mut Memory,
    is_ours: impl Fn(&LoadBalancerId) -> bool,
) -> Result<(), CloudError> {
    let identity = intent.identity();
    let is_wanted = matches!(intent, Intent::Wanted(_));
    let going = match evidence::resolve(identity, observed) {
        Found::Going(balancer) if is_wanted => Some(balancer.id.clone()),
        _ => None,
    };
    if let Some(going) = going {
        if looks(memory) < GOING_LOOKS {
            return Ok(());
        }
        let left = observed.left_alone.iter();
        let others = observed
            .balancers
            .iter()
            .filter(|there| evidence::is_going(there));
        let all: BTreeSet<&str> = left
            .chain(others.map(|it| &it.id))
            .map(|id| id.as_str())
            .collect();
        if all.len() > MOST_LEFT_ALONE {
            let ids: Vec<&str> = all.into_iter().collect();
            return Err(CloudError::transient(format!(
                "load balancers {} stay PENDING_DELETE, and no more of them are made; {PENDING_REMEDY}",
                ids.join(", ")
            )));
        }
        observed.leave_alone(going);
        return Ok(());
    }
    let is_waited_for = |balancer: &&LoadBalancer| {
        let is_other = is_wanted && evidence::is_going(balancer);
        is_pending(balancer) && !is_other && evidence::is_candidate(identity, balancer)
    };
    let pending = || observed.balancers.iter().filter(is_waited_for);
    let meant = pending().find(|balancer| evidence::is_meant(identity, balancer));
    let pending = meant.or_else(|| pending().next());
    let is_changed_by_others = pending.is_some_and(|balancer| {
        balancer.provisioning_status == ProvisioningStatus::PendingUpdate && !is_ours(&balancer.id)
    });
    let steps = identity.options.wait_steps;
    let limit = match is_changed_by_others {
        true => steps.min(CHANGE_LOOKS),
        false => steps,
    };
    let looks = looks(memory);
    // Where others make one change after the other, each would be news.
    let now = pending.map(since).unwrap_or_default();
    let is_one = *memory.own.pending_since.get_or_insert_with(|| now.clone()) == now;
    let since = |balancer| match is_changed_by_others && !is_one {
        true => String::new(),
        false => since(balancer),
    };
    let text = match (pending, intent) {
        (Some(balancer), _) if evidence::is_going(balancer) => {
            if looks < DELETION_LOOKS {
                return Ok(());
            }
            format!(
                "loadbalancer failed to delete within the allotted time: load balancer {} stays PENDING_DELETE; {PENDING_REMEDY}",
                balancer.id
            )
        }
        _ if looks < limit => return Ok(()),
        (Some(balancer), Intent::Absent(_)) => format!(
            "load balancer {} is in immutable status, current provisioning status: {}; {}{PENDING_REMEDY}",
            balancer.id,
            balancer.provisioning_status,
            since(balancer)
        ),
        (Some(balancer), Intent::Wanted(_)) if is_changed_by_others => format!(
            "load balancer {} is not ACTIVE, current provisioning status: {}; {}{PENDING_REMEDY}",
            balancer.id,
            balancer.provisioning_status,
            since(balancer)
        ),
        (Some(balancer), Intent::Wanted(_)) => format!(
            "timeout waiting for the loadbalancer {} ACTIVE, current provisioning status: {}; {}{PENDING_REMEDY}",
            balancer.id,
            balancer.provisioning_status,
            since(balancer)
        ),
        (None, _) if memory.own.is_busy => {
            let ids: Vec<&str> = observed
                .balancers
                .iter()
                .map(|balancer| balancer.id.as_str())
                .collect();
            format!(
                "a change that another Service made of load balancer {} is under way; {PENDING_REMEDY}",
                ids.join(", ")
            )
        }
        (None, _) => return Ok(()),
    };
    Err(CloudError::transient(text))
}
