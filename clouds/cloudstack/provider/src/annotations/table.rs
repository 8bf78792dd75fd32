//! Every annotation of the provider, one entry each.

use bowline_cloud_provider::{AnnotationSpec, annotations};

annotations! {
    "service.beta.kubernetes.io/cloudstack-load-balancer-";
    PROXY_PROTOCOL = "proxy-protocol", Bool, "false", InPlace, Minimal,
        "`true`: connections of TCP ports begin with a PROXY protocol header. The backend must expect it. UDP ports are as without. Any value but exactly `true` means `false`.";
    HOSTNAME = "hostname", Text, "", StatusOnly, None,
        "Host name that the Service's status shows instead of the address. It should resolve to the address.";
    SOURCE_CIDRS = "source-cidrs", CommaList, "0.0.0.0/0", InPlace, Minimal,
        "Networks in CIDR notation, separated by commas, that the load balancer rules take connections from. The firewall and the network ACL go by `spec.loadBalancerSourceRanges`; a connection has to pass both. Empty: no restriction. Before CloudStack 4.22 a change makes the rules anew.";
    IP_ASSOCIATED = "ip-associated-by-controller", Bool, "false", Written, None,
        "`true`: the address in `spec.loadBalancerIP` was free and was associated for this Service, so it is released with it.";
    IP_IDS = "ip-ids", CommaList, "", Written, None,
        "IDs of the public IP addresses that were associated for this Service, separated by commas. They are released with it; no other address is. Absent on Services that an earlier manager made.";
    ACL_SOURCES = "acl-sources", Text, "", Written, None,
        "In a tier of a VPC, while `spec.loadBalancerSourceRanges` restricts who may connect: the source networks for which items of the ACL list were made. Lists are separated by semicolons. Only such items, and those for everybody, are removed again.";
    OPEN_PORTS = "open-ports", CommaList, "", Written, None,
        "Ports that stay open while their rule is made anew, separated by commas: the IDs of the address and of the network, protocol and port. Without a rule, nothing else tells that they have to be closed should the Service not want them any more.";
}

/// The prefix of the keys above.
pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/cloudstack-";

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}
