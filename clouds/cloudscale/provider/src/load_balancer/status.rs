//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, LoadBalancerStatus};
use bowline_cloudscale_client::LoadBalancer;
use bowline_plan::Refusal;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::intent::Publish;

/// The status: the forced host name alone, or the balancer's own addresses in the API's order. Floating IPs never show.
///
/// # Errors
///
/// When the API server would not take it. The balancer serves all the same.
pub(crate) fn status(publish: &Publish, balancer: &LoadBalancer) -> Result<LoadBalancerStatus, Refusal> {
    let ingress = match publish {
        Publish::Hostname(hostname) => vec![Ingress::asked_for(keys::FORCE_HOSTNAME.key, hostname)?],
        Publish::Addresses(mode) => balancer
            .vip_addresses
            .iter()
            .filter(|vip| !vip.address.is_empty()) // predicted, and not known before the balancer exists
            .map(|vip| Ingress::address(&vip.address, *mode))
            .collect(),
    };
    Ok(LoadBalancerStatus { ingress })
}
