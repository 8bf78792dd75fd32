//! The file's sections and options, each once: field, kind, name and default.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_openstack_client::{Credentials, NetworkId, SubnetId};

use super::value::{Section, UrlText, Value, ValueError, section, sections};

section! {
    Credentials {
        username = "username";
        user_id = "user-id";
        password = "password";
        tenant_id = "tenant-id";
        tenant_name = "tenant-name";
        domain_id = "domain-id";
        domain_name = "domain-name";
        user_domain_id = "user-domain-id";
        user_domain_name = "user-domain-name";
        tenant_domain_id = "tenant-domain-id";
        tenant_domain_name = "tenant-domain-name";
        trust_id = "trust-id";
        trustee_id = "trustee-id";
        trustee_password = "trustee-password";
        application_credential_id = "application-credential-id";
        application_credential_name = "application-credential-name";
        application_credential_secret = "application-credential-secret";
        token = "token";
    }
}

sections! {
    /// `[Global]`: where the cloud is and what opens it.
    pub(super) Global {
        /// Keystone's URL.
        auth_url: UrlText = "auth-url";
        /// The region whose endpoints are used, and of all Nodes.
        region: String = "region";
        /// Which endpoints of the catalog are used.
        endpoint_type: String = "os-endpoint-type";
        /// Certificate authorities in place of the system's.
        ca_file: String = "ca-file";
        /// The same in place.
        ca_file_contents: String = "cafilecontents";
        /// The client's certificate.
        cert_file: String = "cert-file";
        /// The key of that certificate.
        key_file: String = "key-file";
        /// Whether certificates are left unchecked: exactly `true`.
        tls_insecure: String = "tls-insecure";
        /// Whether clouds.yaml is read.
        use_clouds: bool = "use-clouds";
        /// Where clouds.yaml is.
        clouds_file: String = "clouds-file";
        /// The entry of clouds.yaml.
        cloud: String = "cloud";
        /// Whether a Node without provider ID is deleted when no server has its name.
        delete_nodes_without_provider_id: bool = "delete-nodes-without-provider-id";
        /// How long a request may take; comes before the option of that name in `[Metadata]`.
        request_timeout: Duration = "request-timeout";
        + /// Who logs in.
        credentials: Credentials;
    }
    /// `[Networking]`: which addresses Nodes get.
    pub(super) Networking {
        /// Whether IPv6 addresses are left out.
        ipv6_support_disabled: bool = "ipv6-support-disabled";
        /// Networks whose addresses are external.
        public_network_name: Vec<String> = "public-network-name";
        /// Networks whose addresses are internal; none is all.
        internal_network_name: Vec<String> = "internal-network-name";
        /// Ranges in the order in which Nodes get their addresses.
        address_sort_order: String = "address-sort-order";
    }
    /// The defaults and limits of load balancers: `[LoadBalancer]`. An option that is not set, and one that is set to nothing, are `None`.
    #[derive(PartialEq, Eq)]
    pub LoadBalancerOptions {
        /// Whether Services get load balancers: `enabled`.
        is_enabled: bool = "enabled", true;
        /// `lb-version`: `v2` or nothing.
        version: String = "lb-version";
        /// Octavia's provider: `lb-provider`.
        provider: String = "lb-provider", "amphora";
        /// How pools choose a member: `lb-method`.
        method: String = "lb-method", "ROUND_ROBIN";
        /// Whether nodes get a security group for each Service: `manage-security-groups`.
        manages_security_groups: bool = "manage-security-groups";
        /// Whether no Service gets a floating IP: `internal-lb`.
        is_internal: bool = "internal-lb";
        /// Labels of nodes that become members: `node-selector`.
        node_selector: String = "node-selector";
        /// Whether a load balancer is deleted with all its parts in one call: `cascade-delete`.
        deletes_by_cascade: bool = "cascade-delete", true;
        /// The size of load balancers: `flavor-id`.
        flavor: Option<String> = "flavor-id";
        /// Where load balancers stand: `availability-zone`.
        zone: Option<String> = "availability-zone";
        /// Whether the status shows a host name where the PROXY protocol is on: `enable-ingress-hostname`.
        has_ingress_hostname: bool = "enable-ingress-hostname";
        /// What such a host name ends with: `ingress-hostname-suffix`.
        ingress_hostname_suffix: String = "ingress-hostname-suffix", "nip.io";
        /// The most Services that share a load balancer: `max-shared-lb`. With less than nothing to share, nothing is shared.
        max_shared: i64 = "max-shared-lb", 2;
        /// The certificate of Services that name none: `default-tls-container-ref`.
        tls_container: Option<String> = "default-tls-container-ref";
        /// What keeps certificates: `container-store`. References to another store than `barbican` are taken as they stand.
        container_store: String = "container-store", "barbican";
        /// Whether parts and members are made one by one: `provider-requires-serial-api-calls`.
        is_serial: bool = "provider-requires-serial-api-calls";
        /// The UID of this cluster's namespace `kube-system`: `cluster-uid`.
        cluster_uid: Option<String> = "cluster-uid";
        /// Whether load balancers under a former name of the cluster are renamed: `enable-lb-rename`.
        renames: bool = "enable-lb-rename", true;
        /// Names that the cluster had before: `former-cluster-name`.
        former_clusters: Vec<String> = "former-cluster-name";
        + /// Where addresses and members are.
        placement: PlacementOptions;
        + /// Where floating IPs come from.
        floating: FloatingOptions;
        + /// Health monitors.
        monitor: MonitorOptions;
        ~ /// How often a load balancer that is pending is looked at: `OCCM_WAIT_LB_ACTIVE_STEPS`.
        wait_steps: usize, 23;
        ~ /// The sections `[LoadBalancerClass "NAME"]` by name.
        classes: BTreeMap<String, ClassOptions>, BTreeMap::new();
    }
    /// `[LoadBalancerClass "NAME"]`: a set of defaults that a Service can choose.
    #[derive(PartialEq, Eq)]
    pub ClassOptions {
        + /// Where addresses and members are.
        placement: PlacementOptions;
        + /// Where floating IPs come from.
        floating: FloatingOptions;
    }
    /// Where the addresses of load balancers and members are.
    #[derive(PartialEq, Eq)]
    pub PlacementOptions {
        /// The network of addresses: `network-id`.
        network: Option<NetworkId> = "network-id";
        /// The subnet of addresses, and of members where no other is named: `subnet-id`.
        subnet: Option<SubnetId> = "subnet-id";
        /// The subnet of members: `member-subnet-id`.
        member_subnet: Option<SubnetId> = "member-subnet-id";
    }
    /// Where floating IPs come from.
    #[derive(PartialEq, Eq)]
    pub FloatingOptions {
        /// The network: `floating-network-id`.
        network: Option<NetworkId> = "floating-network-id";
        /// The subnet, by its id: `floating-subnet-id`.
        subnet: Option<SubnetId> = "floating-subnet-id";
        /// The subnets, by a pattern of names: `floating-subnet`.
        subnet_name: Option<String> = "floating-subnet";
        /// The subnets, by tags: `floating-subnet-tags`.
        subnet_tags: Option<String> = "floating-subnet-tags";
    }
    /// Health monitors.
    #[derive(PartialEq, Eq)]
    pub MonitorOptions {
        /// Whether members are probed: `create-monitor`.
        is_wanted: bool = "create-monitor";
        /// The time between two probes: `monitor-delay`.
        delay: Duration = "monitor-delay", Duration::from_secs(5);
        /// How long a probe may take: `monitor-timeout`.
        timeout: Duration = "monitor-timeout", Duration::from_secs(3);
        /// How many good probes make a member up: `monitor-max-retries`.
        max_retries: u32 = "monitor-max-retries", 1_u32;
        /// How many bad probes make a member down: `monitor-max-retries-down`.
        max_retries_down: u32 = "monitor-max-retries-down", 3_u32;
    }
    /// `[Route]`.
    pub(super) Route {
        /// The router that gets the routes.
        router_id: String = "router-id";
    }
    /// `[Metadata]`.
    pub(super) Metadata {
        /// Where an instance would look for what it is. Checked, and otherwise without effect, as upstream.
        search_order: String = "search-order";
        /// How long a request may take.
        request_timeout: Duration = "request-timeout";
    }
}

/// The sections, and the options of each. Letter case does not count.
pub(super) fn options() -> [(&'static str, Vec<&'static str>); 6] {
    [
        ("Global", Global::default().names()),
        ("Networking", Networking::default().names()),
        ("LoadBalancer", LoadBalancerOptions::default().names()),
        ("LoadBalancerClass", ClassOptions::default().names()),
        ("Route", Route::default().names()),
        ("Metadata", Metadata::default().names()),
    ]
}

/// The names of all options.
#[must_use]
pub fn option_names() -> BTreeSet<&'static str> {
    options().into_iter().flat_map(|(_, names)| names).collect()
}
