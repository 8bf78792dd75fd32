//! Which of the security groups that bear a Service's name are the Service's.
//!
//! The name holds the Service's UID, and Neutron lets several groups have one: where a list was behind, a controller that was
//! stopped meanwhile makes another one. A person can make one too.

use bowline_openstack_client::{SecurityGroup, SecurityGroupId};
use bowline_plan::{Refusal, refusal};

use crate::load_balancer::intent::Identity;
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;

/// A Service's groups.
pub(super) struct Own<'a> {
    /// The one that is used.
    pub(super) kept: Option<&'a SecurityGroup>,
    /// Others that were surely made for the Service.
    pub(super) surplus: Vec<&'a SecurityGroup>,
}

/// Tells the Service's groups apart: of those that were surely made for it, one that ports have is kept before one that none has,
/// then the oldest. One that stands alone is used whoever made it, as the Go manager does.
pub(super) fn of<'a>(identity: &Identity, seen: &View<'a>) -> Result<Own<'a>, Refusal> {
    let mut made = made_for(identity, seen);
    made.sort_by(|a, b| rank(seen, a).cmp(&rank(seen, b)));
    let all = seen.groups(identity);
    let (kept, mut surplus) = match (made.split_first(), all) {
        (Some((kept, surplus)), _) => (Some(*kept), surplus.to_vec()),
        (None, []) => (None, Vec::new()),
        (None, [alone]) => (Some(alone), Vec::new()),
        (None, several) => return Err(ambiguous(identity, several)),
    };
    surplus.extend(former(identity, seen));
    surplus.retain(|there| kept.is_none_or(|kept| kept.id != there.id)); // whatever a list shows twice
    Ok(Own { kept, surplus })
}

/// The groups that were surely made for the Service: their description says so too. No other one is ever deleted.
pub(super) fn made_for<'a>(identity: &Identity, seen: &View<'a>) -> Vec<&'a SecurityGroup> {
    described(identity, seen.groups(identity)).collect()
}

/// The groups that were surely made for Services of this name before: those were deleted without their finalizer.
pub(super) fn former<'a>(identity: &Identity, seen: &View<'a>) -> impl Iterator<Item = &'a SecurityGroup> {
    described(identity, seen.former_groups(identity))
}

fn described<'a>(
    identity: &Identity,
    groups: &'a [SecurityGroup],
) -> impl Iterator<Item = &'a SecurityGroup> {
    groups
        .iter()
        .filter(|there| names::is_security_group_of(&identity.service, &there.description))
}

/// The lesser is kept.
fn rank<'a>(seen: &View<'_>, group: &'a SecurityGroup) -> (bool, Option<&'a str>, &'a SecurityGroupId) {
    let mut ports = seen.ports().iter();
    let is_used = ports.any(|port| port.security_groups.contains(&group.id));
    (!is_used, group.created_at.as_deref(), &group.id)
}

fn ambiguous(identity: &Identity, several: &[SecurityGroup]) -> Refusal {
    let ids: Vec<&str> = several.iter().map(|there| there.id.as_str()).collect();
    refusal!(
        "multiple security groups of Service {} found where only one expected: {}", identity.service, ids.join(", ");
        "delete those that no port has"
    )
}
