//! Names of balancers and their parts. A different name would rebuild what is live, so none may ever change.

use std::net::IpAddr;

/// The tag that marks what was made for a Service: the Service's UID.
pub(crate) const TAG_SERVICE_UID: &str = "k8s-service-uid";
/// The tag that names the Service that something was made for: namespace and name.
pub(crate) const TAG_SERVICE_NAME: &str = "k8s-service-name";
/// The tag that proves which cluster something was made by: see [`ServicesView::cluster_uid`].
///
/// [`ServicesView::cluster_uid`]: bowline_cloud_provider::ServicesView::cluster_uid
pub(crate) const TAG_CLUSTER_UID: &str = "k8s-cluster-uid";
/// The tag that tells people which cluster something was made for.
pub(crate) const TAG_CLUSTER_NAME: &str = "k8s-cluster-name";
/// The most characters of a tag's value (cloudscale.ch API, "Tags").
pub(crate) const MAX_TAG_VALUE: usize = 256;

/// The name of a Service's balancer, unless an annotation gives another one.
pub(crate) fn balancer(service_uid: &str) -> String {
    format!("k8s-service-{service_uid}")
}

/// The UID in a balancer's name, if it has the name that nobody chose.
pub(crate) fn service_uid(name: &str) -> Option<&str> {
    name.trim().strip_prefix("k8s-service-")
}

/// The name of a port's pool: the protocol, and the port's name if it has one.
pub(crate) fn pool(protocol: &str, port_name: &str) -> String {
    let protocol = protocol.to_lowercase();
    if port_name.is_empty() {
        protocol
    } else {
        format!("{protocol}/{port_name}")
    }
}

/// The name of a port's listener.
pub(crate) fn listener(protocol: &str, port: u16) -> String {
    format!("{}/{port}", protocol.to_lowercase())
}

/// The name of a member: an IPv6 address stands in brackets.
pub(crate) fn member(address: &str, port: u16) -> String {
    if matches!(address.parse(), Ok(IpAddr::V6(_))) {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_live_balancers_have() {
        assert_eq!(balancer("0f6f"), "k8s-service-0f6f");
        assert_eq!(service_uid(" k8s-service-0f6f"), Some("0f6f"));
        assert_eq!(pool("TCP", ""), "tcp");
        assert_eq!(pool("UDP", "dns-Main"), "udp/dns-Main");
        assert_eq!(listener("TCP", 443), "tcp/443");
        assert_eq!(member("10.20.0.8", 31080), "10.20.0.8:31080");
        assert_eq!(member("fd12::9", 30999), "[fd12::9]:30999");
    }
}
