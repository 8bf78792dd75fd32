//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, LoadBalancerStatus};

use crate::intent::Wanted;
use crate::objects::AddressRef;

/// One entry: the host name of the annotation alone, else the address.
pub(crate) fn status(wanted: &Wanted, address: &AddressRef) -> LoadBalancerStatus {
    let entry = match &wanted.hostname {
        Some(hostname) => Ingress {
            hostname: Some(hostname.clone()),
            ..Ingress::default()
        },
        None => Ingress {
            ip: Some(address.ip.clone()),
            ip_mode: wanted.ip_mode,
            ..Ingress::default()
        },
    };
    LoadBalancerStatus { ingress: vec![entry] }
}
