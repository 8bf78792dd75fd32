//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, LoadBalancerStatus};

use crate::intent::Wanted;
use crate::objects::AddressRef;

/// One entry: the host name of the annotation alone, else the address.
pub(crate) fn status(wanted: &Wanted, address: &AddressRef) -> LoadBalancerStatus {
    let entry = match &wanted.hostname {
        Some(hostname) => Ingress::hostname(hostname),
        None => Ingress::address(&address.ip, wanted.ip_mode),
    };
    LoadBalancerStatus { ingress: vec![entry] }
}
