//! Why a load balancer is not shared with others.

use bowline_openstack_client::LoadBalancer;
use bowline_plan::{Refusal, refusal};

use super::{guards, rename};
use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::Family;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::is_pending;

/// What forbids to use a load balancer together with others.
pub(super) fn refusal(
    wanted: &Wanted,
    features: Features,
    seen: &View<'_>,
    (balancer, role): (&LoadBalancer, Role),
) -> Option<Refusal> {
    if role == Role::Owner {
        return None;
    }
    let identity = &wanted.identity;
    if !features.tags {
        return Some(refusal!(
            "shared load balancer is only supported with the tag feature in the cloud load balancer service";
            "Octavia has it from API version 2.5 on; take {} off to get a load balancer of its own", keys::ID.key
        ));
    }
    let users = evidence::users(balancer);
    // What bears a claim out is read when Octavia has done with another change, such as the owner's renaming.
    let has_joined = evidence::bears_tag(identity, balancer)
        && (is_pending(balancer) || rename::is_borne_out(identity, seen, balancer));
    let most = usize::try_from(identity.options.max_shared).unwrap_or(0);
    if !has_joined && users + 1 > most {
        let else_helps =
            "max-shared-lb of [LoadBalancer] in cloud.conf says how many may share one".to_owned();
        return Some(refusal!(
            "load balancer {} already shared with {users} Services", balancer.id;
            "{}", guards::of_namesake(identity, &balancer.tags, else_helps)
        ));
    }
    if !has_joined && let Some(refusal) = of_other_family(wanted, balancer) {
        return Some(refusal);
    }
    wanted
        .is_internal
        .then(|| Refusal::new("internal Service cannot share a load balancer"))
}

/// Why a load balancer without an address of the Service's first IP family is not joined: Octavia would refuse the listeners.
fn of_other_family(wanted: &Wanted, balancer: &LoadBalancer) -> Option<Refusal> {
    let family = wanted.family()?;
    let second = balancer.additional_vips.iter().map(|vip| &vip.ip_address);
    let addresses: Vec<&str> = second
        .chain([&balancer.vip_address])
        .map(String::as_str)
        .collect();
    // One that cannot be read proves nothing.
    let is_other = |address: &&str| Family::of_text(address).is_some_and(|there| there != family);
    if !addresses.iter().all(is_other) {
        return None;
    }
    let (id, service) = (&balancer.id, &wanted.identity.service);
    Some(refusal!(
        "Service {service} is to have an {family} address, and load balancer {id} has none ({})",
        addresses.join(", ");
        "name a load balancer with an {family} address in {}, or take that off to get a load balancer of its own",
        keys::ID.key
    ))
}
