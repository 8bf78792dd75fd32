//! Every annotation of the provider, one entry each.

use bowline_cloud_provider::{AnnotationSpec, annotations};

annotations! {
    "k8s.cloudscale.ch/";
    UUID = "loadbalancer-uuid", Text(Uuid), "", Written, None,
        "UUID of the load balancer, once it exists. Set by hand, it adopts the load balancer that it names.";
    CONFIG_VERSION = "loadbalancer-config-version", Text(Words(&["1"])), "1", Written, None,
        "Version of the defaults that the load balancer was made with. Only `1` is known.";
    NAME = "loadbalancer-name", Text(NotBlank), "k8s-service-<service UID>", InPlace, None,
        "Name of the load balancer. A change renames it.";
    FLAVOR = "loadbalancer-flavor", Text, "lb-standard", Refused, None,
        "Flavor of the load balancer.";
    ZONE = "loadbalancer-zone", Text, "", Refused, None,
        "Zone of the load balancer, such as `rma1`. Empty: the zone of all nodes. Written once it is known.";
    VIP_ADDRESSES = "loadbalancer-vip-addresses", Json(Vips), "[]", Refused, None,
        "Addresses of the load balancer: a list of objects with `subnet` (UUID) and `address`, either of them optional. Empty: one public IPv4 and one public IPv6 address. With a subnet, the load balancer is private.";
    FLOATING_IPS = "loadbalancer-floating-ips", List(Addresses), "[]", InPlace, Minimal,
        "Floating IPs that lead to the load balancer, such as `[\"198.51.100.7/32\"]`. One that is taken off the list stays where it is.";
    POOL_ALGORITHM = "loadbalancer-pool-algorithm", Text(Words(&["round_robin", "least_connections", "source_ip"])), "round_robin", Rebuild, Considerable,
        "How a pool chooses a member: `round_robin`, `least_connections` or `source_ip`.";
    POOL_PROTOCOL = "loadbalancer-pool-protocol", Text(Words(&["tcp", "proxy", "proxyv2"])), "tcp", Rebuild, Considerable,
        "The protocol to the members of TCP ports: `tcp`, or `proxy` and `proxyv2` for a PROXY protocol header. UDP ports always use `udp`.";
    LISTENER_PROTOCOL = "loadbalancer-listener-protocol", Text(Words(&["tcp"])), "tcp", Rebuild, Minimal,
        "What listeners of TCP ports accept: `tcp`. UDP ports always use `udp`.";
    LISTENER_ALLOWED_CIDRS = "loadbalancer-listener-allowed-cidrs", List(Networks), "[]", InPlace, Minimal,
        "Networks in CIDR notation that may connect. Empty: everyone.";
    LISTENER_ALLOWED_SUBNETS = "loadbalancer-listener-allowed-subnets", List(Uuids), "[]", Rebuild, Considerable,
        "UUIDs of subnets: only node addresses in one of them become members. Empty: all private addresses.";
    TIMEOUT_CLIENT_DATA = "loadbalancer-timeout-client-data-ms", Int(Between(0, i64::MAX)), "50000", InPlace, None,
        "Milliseconds after which a silent client is dropped.";
    TIMEOUT_MEMBER_CONNECT = "loadbalancer-timeout-member-connect-ms", Int(Between(0, i64::MAX)), "5000", InPlace, None,
        "Milliseconds that connecting to a member may take.";
    TIMEOUT_MEMBER_DATA = "loadbalancer-timeout-member-data-ms", Int(Between(0, i64::MAX)), "50000", InPlace, None,
        "Milliseconds after which a silent member is dropped.";
    MONITOR_TYPE = "loadbalancer-health-monitor-type", Text(Words(&["ping", "tcp", "http", "https", "tls-hello", "udp-connect"])), "tcp", Rebuild, Minimal,
        "How members are checked: `ping`, `tcp`, `http`, `https`, `tls-hello` or `udp-connect`. With `externalTrafficPolicy: Local` it is always `http`.";
    MONITOR_HTTP = "loadbalancer-health-monitor-http", Json(HttpCheck), "{}", InPlace, Minimal,
        "Details of `http` and `https` checks: an object with `expected_codes`, `method`, `url_path`, `version` and `host`. Another `version` replaces the monitor.";
    MONITOR_DELAY = "loadbalancer-health-monitor-delay-s", Int(Between(1, i64::MAX)), "2", InPlace, Minimal,
        "Seconds between two checks.";
    MONITOR_TIMEOUT = "loadbalancer-health-monitor-timeout-s", Int(Between(1, i64::MAX)), "1", InPlace, Minimal,
        "Seconds that a check may take.";
    MONITOR_UP_THRESHOLD = "loadbalancer-health-monitor-up-threshold", Int(Between(1, i64::MAX)), "2", InPlace, Minimal,
        "Good checks in a row that make a member up.";
    MONITOR_DOWN_THRESHOLD = "loadbalancer-health-monitor-down-threshold", Int(Between(1, i64::MAX)), "3", InPlace, Minimal,
        "Bad checks in a row that make a member down.";
    FORCE_HOSTNAME = "loadbalancer-force-hostname", Text(Hostname), "", StatusOnly, None,
        "Host name that the Service's status shows instead of addresses. It should resolve to the load balancer.";
    IP_MODE = "loadbalancer-ip-mode", Text(Words(&["Proxy", "VIP"])), "Proxy", StatusOnly, None,
        "`ipMode` of the addresses in the Service's status, from Kubernetes 1.30 on: `Proxy` or `VIP`.";
    NODE_SELECTOR = "loadbalancer-node-selector", Text(Selector), "", InPlace, Minimal,
        "Label selector: only nodes that fit become members. Empty: all nodes.";
}

/// What the keys of everything from cloudscale.ch begin with.
pub(crate) const DOMAIN: &str = "k8s.cloudscale.ch/";

/// The prefix of the keys above.
pub(crate) const PREFIX: &str = "k8s.cloudscale.ch/loadbalancer-";

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bowline_cloud_provider::ValueKind;

    use super::*;

    #[test]
    fn the_table_holds_each_of_the_24_keys_once() {
        let keys: BTreeSet<&str> = annotation_table().iter().map(|entry| entry.key).collect();
        assert_eq!((keys.len(), annotation_table().len()), (24, 24));
        assert!(keys.iter().all(|key| key.starts_with(PREFIX)));
    }

    #[test]
    fn defaults_of_numbers_are_those_that_live_balancers_have() {
        let numbers: Vec<&str> = annotation_table()
            .iter()
            .filter(|entry| entry.kind == ValueKind::Int)
            .map(|entry| entry.default)
            .collect();
        assert_eq!(numbers, ["50000", "5000", "50000", "2", "1", "2", "3"]);
    }
}
