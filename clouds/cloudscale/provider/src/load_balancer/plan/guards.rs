//! What is refused. Most refusals stop everything but the members, which follow the nodes all the same.

use std::net::IpAddr;

use bowline_cloud_provider::keys::{LABEL_EXCLUDE_FROM_BALANCERS, TAINT_TO_BE_DELETED};
use bowline_cloudscale_client::{LoadBalancer, VipAddress};
use bowline_plan::{Answer, Note, Refusal, refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::intent::{Identity, VipWish, Wanted};
use crate::load_balancer::observe::Seen;
use crate::load_balancer::plan::answer::Next;
use crate::load_balancer::plan::desired::Desired;
use crate::load_balancer::step::{CloudStep, PartChange};
use crate::messages::{GONE, QUOTA_MET};

/// What forbids any write, members included: the nodes' servers are not there. Upstream fails already when one is missing.
pub(super) fn no_server(desired: &Desired<'_>) -> Option<Refusal> {
    let first = desired.left_out.first().filter(|_| desired.knows_no_server)?;
    if desired.is_elsewhere {
        return Some(refusal!(
            "the {} nodes to balance over are all of other clouds, first of them {first}; the load balancer is left as it is",
            desired.left_out.len();
            "add nodes of this cloud, or let those in that are left out: take the label {LABEL_EXCLUDE_FROM_BALANCERS} or the taint {TAINT_TO_BE_DELETED} off them"
        ));
    }
    let but = match desired.zones.is_empty() {
        true => "",
        false => ", though it has servers with the names of others",
    };
    Some(refusal!(
        "the project has no server of any of the {} nodes to balance over, first of them {first}{but}; the load balancer is left as it is",
        desired.left_out.len();
        "give the API token of the project with the nodes' servers, or delete the nodes whose servers do not exist any more"
    ))
}

/// Why no load balancer is made where there is no member that a zone could be taken from: what leaves out the nodes stands before the zone.
pub(super) fn without_zone(wanted: &Wanted) -> Refusal {
    let reason = "no loadbalancer zone set and no nodes to take it from";
    match &wanted.membership.selected_by {
        Some(selector) if wanted.membership.nodes.is_empty() => refusal!(
            "{reason}: the node selector {selector:?} fits no node";
            "compare {} with the labels of the nodes: kubectl get nodes --show-labels", keys::NODE_SELECTOR.key
        ),
        _ => Refusal::new(reason).with_remedy(format!(
            "set {}, or find out why no node may become a member",
            keys::ZONE.key
        )),
    }
}

/// What is told when the load balancer that a Service uses was deleted by somebody else.
pub(super) fn gone_note(identity: &Identity, seen: &Seen, next: &Next) -> Option<Note> {
    let id = identity.annotated.filter(|id| seen.gone.contains(id))?;
    // Bowline deletes one of a Service of another type, and takes its addresses off the status.
    identity.is_published.then(|| {
        let another = match next {
            Answer::Refused(_) => "another one is made when nothing is in the way of it",
            _ => "it gets another one",
        };
        let text = format!(
            "load balancer {id} of Service {} is gone: {another}, with other addresses of its own",
            identity.service
        );
        GONE.note(text).even_at_start()
    })
}

/// What is told where pools that serve make room for others.
pub(super) fn quota_note(balancer: &LoadBalancer, steps: &[CloudStep]) -> Option<Note> {
    let pools = steps.iter().filter_map(|step| match step {
        CloudStep::Part {
            change: PartChange::Pool { new, old: Some(old) },
            ..
        } => Some(format!("{} for {}", old.name, new.name)),
        _ => None,
    });
    let pools = pools.collect::<Vec<_>>().join(", ");
    (!pools.is_empty()).then(|| {
        QUOTA_MET.note(format!(
            "a quota leaves no room for a new pool beside an old one, so pools of load balancer {} go first, the next one only when the new one of the one before is there; a port is not served until its new pool is there: {pools}",
            balancer.uuid
        ))
    })
}

/// What forbids any write: another Service asks for the same floating IP.
pub(super) fn conflict(wanted: &Wanted) -> Option<Refusal> {
    let conflict = wanted.conflict.as_ref()?;
    Some(Refusal::new(conflict.clone()).with_remedy(format!(
        "take the floating IP off {} of one of the services",
        keys::FLOATING_IPS.key
    )))
}

/// What forbids changing the balancer, in upstream's order.
pub(super) fn before_change(
    wanted: &Wanted,
    desired: &Desired<'_>,
    balancer: &LoadBalancer,
    href: &str,
) -> Option<Refusal> {
    conflict(wanted)
        .or_else(|| (!vips_fit(&wanted.vips, &balancer.vip_addresses)).then(|| refused_vips(href, balancer)))
        .or_else(|| {
            (*balancer.flavor.slug != *wanted.flavor).then(|| {
                refusal!(
                    "flavor for {href} changed, please configure the previous flavor or contact support";
                    "set {} to {} again", keys::FLAVOR.key, balancer.flavor.slug
                )
            })
        })
        .or_else(|| match zone(wanted, desired) {
            Err(refusal) => Some(refusal),
            // Nothing says where the balancer shall stand: it stands well.
            Ok(None) => None,
            Ok(Some(zone)) => (*zone != *balancer.zone.slug).then(|| {
                refusal!(
                    "zone for {href} changed, please configure the previous zone or contact support";
                    "set {} to {} again", keys::ZONE.key, balancer.zone.slug
                )
            }),
        })
}

fn refused_vips(href: &str, balancer: &LoadBalancer) -> Refusal {
    let there = balancer.vip_addresses.iter().map(|vip| vip.address.as_str());
    refusal!(
        "VIP addresses for {href} changed, please re-create the service";
        "or take back what was changed in {}: the load balancer keeps {}",
        keys::VIP_ADDRESSES.key, Vec::from_iter(there).join(", ")
    )
}

/// Where the balancer shall stand: as annotated, else where all servers stand; `None` if neither says anything.
pub(super) fn zone(wanted: &Wanted, desired: &Desired<'_>) -> Result<Option<String>, Refusal> {
    if let Some(zone) = &wanted.zone {
        return Ok(Some(zone.clone()));
    }
    let mut zones = desired.zones.iter();
    match (zones.next(), zones.next()) {
        (_, Some(_)) => Err(refusal!(
            "no loadbalancer zone set and nodes in multiple zones";
            "set {}", keys::ZONE.key
        )),
        (zone, None) => Ok(zone.map(|zone| (*zone).to_owned())),
    }
}

/// Compares what is given, position by position. Nothing given is no wish, and so no change.
fn vips_fit(wishes: &[VipWish], vips: &[VipAddress]) -> bool {
    wishes.is_empty()
        || wishes.len() == vips.len()
            && wishes.iter().zip(vips).all(|(wish, vip)| {
                let subnet = vip.subnet.as_ref().map_or("", |subnet| &*subnet.uuid);
                let subnet_fits = wish
                    .subnet
                    .as_ref()
                    .is_none_or(|wanted| wanted.eq_ignore_ascii_case(subnet));
                let address_fits = wish.address.is_none_or(|wanted| {
                    // Of an address that is not known yet, nothing can be said.
                    vip.address.is_empty()
                        || vip
                            .address
                            .parse::<IpAddr>()
                            .is_ok_and(|address| address == wanted)
                });
                subnet_fits && address_fits
            })
}

#[cfg(test)]
mod tests {
    use bowline_cloudscale_client::SubnetStub;

    use super::*;

    fn vip(subnet: &str, address: &str) -> VipAddress {
        let subnet = SubnetStub { uuid: subnet.into() };
        VipAddress {
            address: address.into(),
            version: None,
            subnet: Some(subnet),
        }
    }

    fn wish(subnet: Option<&str>, address: Option<&str>) -> VipWish {
        VipWish {
            subnet: subnet.map(Into::into),
            address: address.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn only_what_is_given_is_compared() {
        let there = [vip("s1", "10.0.0.1"), vip("s2", "fd00::1")];
        let fits = |wishes: &[VipWish]| vips_fit(wishes, &there);
        assert!(fits(&[]));
        assert!(fits(&[wish(Some("s1"), None), wish(None, Some("fd00:0::1"))]));
        assert!(fits(&[wish(Some("S1"), Some("10.0.0.1")), wish(None, None)]));
        assert!(!fits(&[wish(Some("s1"), None)]));
        assert!(!fits(&[wish(Some("s2"), None), wish(Some("s1"), None)]));
        assert!(!fits(&[wish(None, Some("10.0.0.2")), wish(None, None)]));
    }
}
