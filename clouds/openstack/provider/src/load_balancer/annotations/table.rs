//! Every annotation of the provider, one entry each.

use bowline_cloud_provider::{AnnotationSpec, annotations};

/// The highest number that Octavia's tables hold: 32 bits.
const MAX_NUMBER: i64 = i32::MAX as i64;

/// Octavia's longest time-out, 24 days (`MAX_TIMEOUT` in `octavia/common/constants.py`).
const MAX_TIMEOUT_MS: i64 = 24 * 86_400 * 1_000;

annotations! {
    "";
    INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer", Bool, "[LoadBalancer] internal-lb", InPlace, Minimal,
        "No floating IP: the load balancer is reached at its address in the project's network. Cannot be switched off where `internal-lb=true`.";
    ID = "loadbalancer.openstack.org/load-balancer-id", Text, "", Written, None,
        "ID of the load balancer, once it exists. Set by hand on a new Service, it uses the load balancer that it names, alone or with other Services.";
    ADDRESS = "loadbalancer.openstack.org/load-balancer-address", Text, "", Written, None,
        "The floating IP, or the address in the project's network if there is none.";
    CLASS = "loadbalancer.openstack.org/class", Text, "", CreationOnly, None,
        "Name of a section `[LoadBalancerClass \"...\"]`, whose networks and subnets count instead of those of `[LoadBalancer]`.";
    NETWORK = "loadbalancer.openstack.org/network-id", Text, "[LoadBalancer] network-id", CreationOnly, None,
        "ID of the network that the load balancer's address comes from.";
    SUBNET = "loadbalancer.openstack.org/subnet-id", Text, "[LoadBalancer] subnet-id", CreationOnly, None,
        "ID of the subnet that the load balancer's address comes from. With neither network nor subnet, it is the one of the first node.";
    MEMBER_SUBNET = "loadbalancer.openstack.org/member-subnet-id", Text, "[LoadBalancer] member-subnet-id", InPlace, Minimal,
        "ID of the subnet that the nodes are reached in.";
    PORT = "loadbalancer.openstack.org/port-id", Text, "", CreationOnly, None,
        "ID of an existing Neutron port whose address the load balancer gets.";
    FLOATING_NETWORK = "loadbalancer.openstack.org/floating-network-id", Text, "[LoadBalancer] floating-network-id", CreationOnly, None,
        "ID of the external network that the floating IP comes from. A class that names one wins. Counts when a floating IP is created.";
    FLOATING_SUBNET_ID = "loadbalancer.openstack.org/floating-subnet-id", Text, "[LoadBalancer] floating-subnet-id", CreationOnly, None,
        "ID of the subnet that the floating IP comes from. Counts when a floating IP is created.";
    FLOATING_SUBNET = "loadbalancer.openstack.org/floating-subnet", Text, "[LoadBalancer] floating-subnet", CreationOnly, None,
        "Pattern for the name of the subnet that the floating IP comes from, such as `pub-*`; `~` in front makes it a regular expression, `!` negates it.";
    FLOATING_SUBNET_TAGS = "loadbalancer.openstack.org/floating-subnet-tags", Text, "[LoadBalancer] floating-subnet-tags", CreationOnly, None,
        "Tags of the subnet that the floating IP comes from, separated by commas: at least one of them, all of them with `&` in front, none of them with `!`.";
    KEEP_FLOATING_IP = "loadbalancer.openstack.org/keep-floatingip", Bool, "false", InPlace, None,
        "Never delete the floating IP: it stays in the project, leading nowhere.";
    PROXY_PROTOCOL = "loadbalancer.openstack.org/proxy-protocol", Text(Words(&["true", "v1", "v2", "false", ""])), "false", Rebuild, Considerable,
        "Write a PROXY protocol header to the members: `true` or `v1`, `v2`; any other value is off, and an event reports values other than these, `false` and the empty one.";
    X_FORWARDED_FOR = "loadbalancer.openstack.org/x-forwarded-for", Bool, "false", Rebuild, Considerable,
        "Speak HTTP and add the header `X-Forwarded-For`. Not together with the PROXY protocol.";
    TLS = "loadbalancer.openstack.org/default-tls-container-ref", Text, "[LoadBalancer] default-tls-container-ref", Rebuild, Considerable,
        "Reference of the certificate and key with which TLS ends at the load balancer. Another reference is a change in place; adding or removing it replaces the listeners. All ports of the Service have to be TCP.";
    CONNECTION_LIMIT = "loadbalancer.openstack.org/connection-limit", Int(Between(-1, MAX_NUMBER)), "-1", InPlace, None,
        "Connections that a listener accepts at a time; -1 is any number.";
    TIMEOUT_CLIENT_DATA = "loadbalancer.openstack.org/timeout-client-data", Int(Between(0, MAX_TIMEOUT_MS)), "50000", InPlace, None,
        "Milliseconds after which a silent client is dropped.";
    TIMEOUT_MEMBER_CONNECT = "loadbalancer.openstack.org/timeout-member-connect", Int(Between(0, MAX_TIMEOUT_MS)), "5000", InPlace, None,
        "Milliseconds that connecting to a member may take.";
    TIMEOUT_MEMBER_DATA = "loadbalancer.openstack.org/timeout-member-data", Int(Between(0, MAX_TIMEOUT_MS)), "50000", InPlace, None,
        "Milliseconds after which a silent member is dropped.";
    TIMEOUT_TCP_INSPECT = "loadbalancer.openstack.org/timeout-tcp-inspect", Int(Between(0, MAX_TIMEOUT_MS)), "0", InPlace, None,
        "Milliseconds to wait for more TCP packets for content inspection.";
    LB_METHOD = "loadbalancer.openstack.org/lb-method", Text(Words(&["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"])), "[LoadBalancer] lb-method", InPlace, None,
        "How a pool chooses a member, such as `ROUND_ROBIN`, `LEAST_CONNECTIONS` or `SOURCE_IP`; with the provider `ovn` only `SOURCE_IP_PORT`, and in newer releases of it `SOURCE_IP`.";
    FLAVOR = "loadbalancer.openstack.org/flavor-id", Text, "[LoadBalancer] flavor-id", CreationOnly, None,
        "ID of the flavor of the load balancer.";
    ZONE = "loadbalancer.openstack.org/availability-zone", Text, "[LoadBalancer] availability-zone", CreationOnly, None,
        "Availability zone of the load balancer.";
    MONITOR = "loadbalancer.openstack.org/enable-health-monitor", Bool, "[LoadBalancer] create-monitor", InPlace, Minimal,
        "Check the members. With `externalTrafficPolicy: Local` the check asks whether the node has endpoints of the Service.";
    MONITOR_DELAY = "loadbalancer.openstack.org/health-monitor-delay", Int(Between(0, MAX_NUMBER)), "[LoadBalancer] monitor-delay", InPlace, Minimal,
        "Seconds between two checks.";
    MONITOR_TIMEOUT = "loadbalancer.openstack.org/health-monitor-timeout", Int(Between(0, MAX_NUMBER)), "[LoadBalancer] monitor-timeout", InPlace, Minimal,
        "Seconds that a check may take.";
    MONITOR_MAX_RETRIES = "loadbalancer.openstack.org/health-monitor-max-retries", Int(Between(1, 10)), "[LoadBalancer] monitor-max-retries", InPlace, Minimal,
        "Good checks in a row that make a member up.";
    MONITOR_MAX_RETRIES_DOWN = "loadbalancer.openstack.org/health-monitor-max-retries-down", Int(Between(1, 10)), "[LoadBalancer] monitor-max-retries-down", InPlace, Minimal,
        "Bad checks in a row that make a member down.";
    BALANCER_TAGS = "loadbalancer.openstack.org/load-balancer-tags", CommaList, "", InPlace, None,
        "Tags of the load balancer, beside those that say which Services use it. Tags that others put on it stay.";
    LISTENER_TAGS = "loadbalancer.openstack.org/listener-tags", CommaList, "", InPlace, None,
        "Tags of the Service's listeners, beside those that say which Services use them. Tags that others put on them stay.";
    POOL_TAGS = "loadbalancer.openstack.org/pool-tags", CommaList, "", InPlace, None,
        "Tags of the Service's pools. Tags that others put on them stay.";
    ADDED_TAGS = "loadbalancer.openstack.org/added-tags", CommaList, "", Written, None,
        "The tags that were added for the annotations that end in `-tags`. A tag is removed again when none of these annotations names it any more, if it is listed here. Absent on Services without such annotations.";
    NODE_SELECTOR = "loadbalancer.openstack.org/node-selector", Text(Labels), "[LoadBalancer] node-selector", InPlace, Minimal,
        "Labels that a node must have to become a member: `key=value`, or `key` for any value, separated by commas. Empty: all nodes.";
    HOSTNAME = "loadbalancer.openstack.org/hostname", Text(Hostname), "", StatusOnly, None,
        "Host name that the Service's status shows instead of the address. It should resolve to it.";
    SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges", CommaList, "", InPlace, Minimal,
        "Networks in CIDR notation that may connect. Counts only if `spec.loadBalancerSourceRanges` is empty.";
}

/// The prefix of the provider's own keys.
pub(crate) const PREFIX: &str = "loadbalancer.openstack.org/";

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_holds_each_of_the_36_keys_once() {
        let keys: BTreeSet<&str> = annotation_table().iter().map(|entry| entry.key).collect();
        assert_eq!((keys.len(), annotation_table().len()), (36, 36));
        assert_eq!(keys.iter().filter(|key| !key.starts_with(PREFIX)).count(), 2);
    }
}
