//! A floating IP that is to be created: where it comes from, and why none can.

use bowline_openstack_client::{LoadBalancer, NewFloatingIp};
use bowline_plan::Refusal;

use crate::load_balancer::intent::Wanted;
use crate::load_balancer::intent::settings::ADDRESS;
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::step::FloatingIpChange;
use crate::load_balancer::subnets::floating::{self, FloatingError, WantedSubnet};

/// The creation of a floating IP; `None` if there is no network that it could come from.
pub(super) fn creation(
    wanted: &Wanted,
    observed: &View<'_>,
    balancer: Option<&LoadBalancer>,
) -> Result<Option<FloatingIpChange>, FloatingError> {
    if let Some(flaw) = wanted.flaws.iter().find(|flaw| flaw.what == ADDRESS) {
        let (text, settings) = (flaw.text.clone(), &[][..]);
        return Err(FloatingError { text, settings });
    }
    let networks = observed.networks();
    let subnets = match (&wanted.floating.network, &wanted.floating.subnet) {
        (Some(_), WantedSubnet::Any) => &[][..],
        _ => observed.subnets(),
    };
    let network = match &wanted.floating.network {
        Some(network) => {
            // Where they cannot be listed, Neutron tells when the floating IP is asked for.
            if let Ok(networks) = networks {
                floating::check_network(network, networks)?;
            }
            Some(network)
        }
        None => floating::detect_network(networks.unwrap_or_default(), subnets).map(|network| &network.id),
    };
    let Some(network) = network else {
        return Ok(None);
    };
    // A pattern chooses among subnets; an address that is asked for has its subnet.
    let subnet = match (&wanted.floating.subnet, &wanted.address) {
        (WantedSubnet::Matching(_), Some(_)) => &WantedSubnet::Any,
        (subnet, _) => subnet,
    };
    let chosen = floating::check(subnet, network, subnets)?.into_iter();
    let mut chosen = chosen.map(|subnet| subnet.id.clone());
    let new = NewFloatingIp {
        floating_network_id: network.clone(),
        port_id: balancer.and_then(|balancer| balancer.vip_port_id.clone()),
        fixed_ip_address: balancer.and_then(fixed_address),
        subnet_id: chosen.next(),
        floating_ip_address: wanted.address.clone(),
        description: names::floating_ip_description(&wanted.identity.cluster, &wanted.identity.service),
    };
    let other_subnets = chosen.collect();
    Ok(Some(FloatingIpChange::Create { new, other_subnets }))
}

/// Why no floating IP can be made, and which setting to correct.
pub(super) fn fault(wanted: &Wanted, error: &FloatingError) -> Refusal {
    let refusal = Refusal::new(error.text.clone());
    match wanted.origins(error.settings) {
        origins if origins.is_empty() => refusal,
        origins => refusal.with_remedy(format!("correct {origins}")),
    }
}

/// The address that a floating IP is to lead to: the load balancer's port may have several, of which Neutron chooses none.
pub(super) fn fixed_address(balancer: &LoadBalancer) -> Option<String> {
    Some(balancer.vip_address.clone()).filter(|address| !address.is_empty())
}
