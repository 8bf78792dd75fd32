//! The annotation by which newer versions of kube-vip take an address, kept equal to the field if the operator wants it.
//! Pure.
//!
//! It is everybody's: a value that somebody else wrote stays. What we wrote is told by a second annotation, of our own, with
//! the same value.

use bowline_cloud_provider::{Service, facts};

use crate::annotations::VIP_ADDRESS;

/// kube-vip reads it before the status and the field.
const ADDRESSES: &str = "kube-vip.io/loadbalancerIPs";

/// The annotation of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VipAnnotation {
    value: Option<String>,
    /// The value that we wrote.
    written: Option<String>,
}

impl VipAnnotation {
    pub(crate) fn of(service: &Service) -> Self {
        let text = |key: &str| facts::annotation(service, key).map(str::to_owned);
        Self {
            value: text(ADDRESSES),
            written: text(VIP_ADDRESS.key),
        }
    }

    /// The annotations that bring it to this address; without one, that take away what we wrote.
    pub(crate) fn brought_to(&self, address: Option<&str>) -> Vec<(String, Option<String>)> {
        let is_ours = self.value.is_some() && self.value == self.written;
        let set = |value: Option<&str>| (ADDRESSES.to_owned(), value.map(str::to_owned));
        let mark = |value: Option<&str>| (VIP_ADDRESS.key.to_owned(), value.map(str::to_owned));
        match (&self.value, address) {
            (Some(value), Some(address)) if is_ours && value == address => Vec::new(),
            (None, Some(_)) => vec![set(address), mark(address)],
            _ if is_ours => vec![set(address), mark(address)],
            _ if self.written.is_some() => vec![mark(None)],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(value: Option<&str>, written: Option<&str>, address: Option<&str>) -> String {
        let annotation = VipAnnotation {
            value: value.map(str::to_owned),
            written: written.map(str::to_owned),
        };
        let changes = annotation.brought_to(address).into_iter();
        let shown = changes.map(|(key, value)| {
            let key = key.rsplit('/').next().unwrap_or_default().to_owned();
            format!("{key}={}", value.unwrap_or_default())
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_value_of_somebody_else_is_never_touched() {
        for address in [Some("192.0.2.2"), None] {
            for value in ["192.0.2.9", "192.0.2.2", "dhcp", ""] {
                assert_eq!(brought(Some(value), None, address), "", "{value}");
            }
            assert_eq!(
                brought(Some("192.0.2.9"), Some("192.0.2.2"), address),
                "kube-vip-address="
            );
        }
    }

    #[test]
    fn what_is_ours_follows_the_address_and_goes_with_it() {
        let [two, three] = [Some("192.0.2.2"), Some("192.0.2.3")];
        assert_eq!(
            brought(None, None, two),
            "loadbalancerIPs=192.0.2.2 kube-vip-address=192.0.2.2"
        );
        assert_eq!(brought(two, two, two), "");
        assert_eq!(
            brought(two, two, three),
            "loadbalancerIPs=192.0.2.3 kube-vip-address=192.0.2.3"
        );
        assert_eq!(brought(two, two, None), "loadbalancerIPs= kube-vip-address=");
        assert_eq!(
            brought(None, two, two),
            "loadbalancerIPs=192.0.2.2 kube-vip-address=192.0.2.2"
        );
        assert_eq!(brought(None, two, None), "kube-vip-address=");
        assert_eq!(brought(None, None, None), "");
    }
}
