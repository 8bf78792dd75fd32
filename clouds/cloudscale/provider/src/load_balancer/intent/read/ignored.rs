//! Fields of a Service that have no effect on a load balancer.

use bowline_cloud_provider::facts;
use bowline_cloud_provider::k8s::Service;
use bowline_cloud_provider::keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES;
use bowline_plan::Note;

use crate::load_balancer::annotations as keys;
use crate::messages::IGNORED_FIELDS;

pub(super) fn ignored_fields(service: &Service) -> Option<Note> {
    let spec = service.spec.as_ref()?;
    let mut fields = Vec::new();
    let has_ranges = spec
        .load_balancer_source_ranges
        .as_ref()
        .is_some_and(|ranges| !ranges.is_empty());
    if has_ranges {
        fields.push(format!(
            "loadBalancerSourceRanges (use {})",
            keys::LISTENER_ALLOWED_CIDRS.key
        ));
    }
    if facts::has_source_ranges_annotation(service) {
        fields.push(format!(
            "annotation {ANNOTATION_LOAD_BALANCER_SOURCE_RANGES} (use {})",
            keys::LISTENER_ALLOWED_CIDRS.key
        ));
    }
    if spec.load_balancer_ip.as_deref().is_some_and(|ip| !ip.is_empty()) {
        fields.push(format!(
            "loadBalancerIP (use {} or {})",
            keys::VIP_ADDRESSES.key,
            keys::FLOATING_IPS.key
        ));
    }
    if spec.session_affinity.as_deref() == Some("ClientIP") {
        fields.push(format!(
            "sessionAffinity (use {}: source_ip)",
            keys::POOL_ALGORITHM.key
        ));
    }
    if spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty()) {
        fields.push(format!("externalIPs (use {})", keys::FLOATING_IPS.key));
    }
    // The API server writes one family into every Service.
    if spec
        .ip_families
        .as_ref()
        .is_some_and(|families| families.len() > 1)
    {
        fields.push(format!("ipFamilies (use {})", keys::VIP_ADDRESSES.key));
    }
    (!fields.is_empty()).then(|| {
        IGNORED_FIELDS.note(format!(
            "fields without effect on the load balancer: {}",
            fields.join(", ")
        ))
    })
}
