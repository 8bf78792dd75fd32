//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, LoadBalancerStatus};
use bowline_plan::Refusal;

use super::annotations::HOSTNAME;
use super::intent::Wanted;
use super::objects::AddressRef;

/// One entry: the host name of the annotation alone, else the address.
///
/// # Errors
///
/// When the API server would not take it. The balancer serves all the same.
pub(crate) fn status(wanted: &Wanted, address: &AddressRef) -> Result<LoadBalancerStatus, Refusal> {
    let entry = match &wanted.hostname {
        Some(hostname) => Ingress::asked_for(HOSTNAME.key, hostname)?,
        None => Ingress::address(&address.ip, wanted.ip_mode),
    };
    Ok(LoadBalancerStatus { ingress: vec![entry] })
}
