//! Every annotation of the provider, one entry each.

use bowline_cloud_provider::{AnnotationSpec, annotations};

annotations! {
    "service.beta.kubernetes.io/cloudstack-load-balancer-";
    PROXY_PROTOCOL = "proxy-protocol", Bool, "false", Rebuild, Considerable,
        "`true`: connections of TCP ports begin with a PROXY protocol header. The backend must expect it. UDP ports do not change. Any value but exactly `true` means `false`. A change replaces the rules of TCP ports.";
    HOSTNAME = "hostname", Text(Hostname), "", StatusOnly, None,
        "Host name that the Service's status shows instead of the address. It should resolve to the address.";
    IP_MODE = "ip-mode", Text(Words(&["", "Proxy", "VIP"])), "", StatusOnly, None,
        "`ipMode` of the address in the Service's status, from Kubernetes 1.30 on: `Proxy`, so that connections from inside of the cluster also take the way through the load balancer and bear its PROXY protocol header, or `VIP`. Empty: it is not set, which means `VIP`.";
    ADDRESS = "address", Text(Address), "", InPlace, Major,
        "Public IP address of the load balancer, instead of the one in `spec.loadBalancerIP`, which goes by the same rules. A change moves the load balancer.";
    KEEP_IP = "keep-ip", Bool, "false", InPlace, None,
        "`true`: the address is never released, neither with the Service nor when the load balancer moves to another one. It is yours then.";
    SOURCE_CIDRS = "source-cidrs", CommaList(Networks), "0.0.0.0/0", Rebuild, Considerable,
        "Networks in CIDR notation, separated by commas, that the load balancer rules take connections from. The firewall and the network ACL use `spec.loadBalancerSourceRanges`; a connection must pass both. Empty: no restriction. A change replaces the rules. From CloudStack 4.22 on, a change to a single IPv4 network does not.";
    STICKINESS_METHOD = "stickyness-method-name", Text(WordsOfAnyCase(&["", "LbCookie", "AppCookie", "SourceBased"])), "", InPlace, Minimal,
        "By what the rules lead a client to the same member again: `LbCookie`, a cookie that the load balancer sets; `AppCookie`, one of the application, which a virtual router cannot do; or `SourceBased`, the client's address. With a cookie a virtual router reads the connections of all ports as HTTP, so TLS that ends at the backend does not work. Empty: nothing is asked for, and a policy of somebody else stays.";
    STICKINESS_PARAMS = "stickyness-method-param", CommaList, "", InPlace, Minimal,
        "Parameters of the method, as `NAME=VALUE` with commas between them. A virtual router knows for `LbCookie` `cookie-name`, `mode`, `domain`, `nocache`, `indirect` and `postonly`, and for `SourceBased` `tablesize` and `expire`. `true` switches one on that has no value.";
    BALANCER_ID = "id", Text, "", Written, None,
        "ID of the public IP address, as Leaseweb's manager writes it. Where it is, the rules of that manager on this address are the Service's. It is removed with the load balancer if the Service stays.";
    NETWORK_ID = "network-id", Text, "", Written, None,
        "ID of the network, as Leaseweb's manager writes it beside the ID of the address.";
    IP_ASSOCIATED = "ip-associated-by-controller", Bool, "false", Written, None,
        "`true`: the address in `spec.loadBalancerIP` was free and was associated for this Service, so it is released with it. Whoever takes the mark off, or sets it to anything else, keeps the address.";
    IP_IDS = "ip-ids", CommaList, "", Written, None,
        "IDs of the public IP addresses that were associated for this Service, separated by commas. They are released with it; no other address is, and the requested one only with the mark. `shared` stands before one that was associated for another Service and that this one asks for: whoever goes last releases it. `going` stands before one that is being released. Absent on Services that an earlier manager made.";
    IP_NETWORKS = "ip-networks", CommaList, "", Written, None,
        "Where the addresses in `ip-ids` lead: ID of the address, ID of the network, and ID of the VPC if the network is a tier, separated by blanks. One that leads elsewhere now was acquired again by somebody, and is not released.";
    STICKY_POLICIES = "sticky-policies", Bool, "false", Written, None,
        "`true`: stickiness policies are created for the rules of the Service. Where no method is asked for any more, they are found by their names and deleted, and this with them.";
    ACL_SOURCES = "acl-sources", Text, "", Written, None,
        "In a tier of a VPC, while `spec.loadBalancerSourceRanges` restricts who may connect: the source networks for which items of the ACL list were made. Lists are separated by semicolons. Only such items, and those for everybody, are removed again.";
    REPLACED_RULES = "replaced-rules", Json, "", Written, None,
        "Rules that are being replaced, as JSON: each as it was. If the new one is refused, the old one is created again. If the Service no longer wants the port, only this note says that it has to be closed. Also deleted rules that leave an item of an ACL list that others need: it is checked again when the rule is gone.";
}

/// The prefix of the keys above.
pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/cloudstack-";

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}
