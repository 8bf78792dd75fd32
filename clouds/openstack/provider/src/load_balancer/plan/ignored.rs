//! What the Service asks for and an existing load balancer, its own or one that it shares, cannot become.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{FloatingIp, LoadBalancer};
use bowline_plan::Note;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::Role;
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::intent::settings::ADDRESS;
use crate::messages::CHANGE_IGNORED;

/// A note that names all of it and what has to be done; `None` if there is nothing.
pub(super) fn note(
    wanted: &Wanted,
    features: Features,
    (balancer, role): (&LoadBalancer, Role),
    floating_ip: Option<&FloatingIp>,
) -> Option<Note> {
    let mut ignored = Vec::new();
    let mut compare = |key: &str, asked: Option<&str>, there: Option<&str>| {
        if let Some(asked) = asked
            && there.is_some_and(|there| there != asked)
        {
            let origin = wanted.origins(&[key]);
            ignored.push(format!(
                "{origin} is {asked}, it has {}",
                there.unwrap_or_default()
            ));
        }
    };
    // `null` where none was given.
    let flavor = balancer.flavor_id.as_deref().unwrap_or("none");
    let zone = balancer.availability_zone.as_deref().unwrap_or("none");
    for (entry, there) in [
        (
            &keys::NETWORK,
            balancer.vip_network_id.as_ref().map(|id| id.as_str()),
        ),
        (
            &keys::SUBNET,
            balancer.vip_subnet_id.as_ref().map(|id| id.as_str()),
        ),
        (&keys::PORT, balancer.vip_port_id.as_ref().map(|id| id.as_str())),
        (&keys::FLAVOR, Some(flavor).filter(|_| features.flavors)),
        (&keys::ZONE, Some(zone).filter(|_| features.zones)),
    ] {
        compare(entry.key, wanted.on_service(entry), there);
    }
    let address = wanted.address.as_deref().map(spelling::of_address);
    let reached_at = floating_ip.map_or(balancer.vip_address.as_str(), |ip| {
        ip.floating_ip_address.as_str()
    });
    let reached_at = spelling::of_address(reached_at);
    if !reached_at.is_empty() {
        compare(ADDRESS, address.as_deref(), Some(&reached_at));
    }
    // As the load balancer's own, the address of a floating IP would be refused.
    let is_of_subnet = wanted.publishes_own_address()
        && !reached_at.is_empty()
        && address.is_some_and(|asked| asked != reached_at);
    if wanted.second_family().is_some() && balancer.additional_vips.is_empty() {
        ignored.push("spec.ipFamilies asks for a second address, it has one".to_owned());
    }
    if role == Role::Owner && wanted.second_family().is_none() && !balancer.additional_vips.is_empty() {
        ignored.push(
            "spec.ipFamilies asks for one address, it has two, and nothing is served at the second one"
                .to_owned(),
        );
    }
    (!ignored.is_empty()).then(|| {
        let (id, ignored, service) = (&balancer.id, ignored.join("; "), &wanted.identity.service);
        CHANGE_IGNORED.note(match role {
            Role::Owner => {
                let with = match is_of_subnet {
                    true => format!(
                        ", with {ADDRESS} taken off before or set to a free address of the load balancer's subnet"
                    ),
                    false => String::new(),
                };
                format!(
                    "load balancer {id} cannot be changed in this: {ignored}; take the change back, or delete Service {service} and create it anew{with}"
                )
            }
            // The subnet of its address counts for the guest's members all the same.
            Role::Guest => format!(
                "load balancer {id} was not made for Service {service}, and cannot be changed in this: {ignored}; take that off the Service (its members' subnet is {}), or take {} off it to get a load balancer of its own",
                keys::MEMBER_SUBNET.key,
                keys::ID.key
            ),
        })
    })
}
