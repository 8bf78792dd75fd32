//! The file's sections and options, each once: field, kind, name and default.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_http::Secret;

use super::value::{Section, UrlText, Value, ValueError, sections};

sections! {
    /// `[Global]`: where the cloud is and what opens it.
    Global {
        /// Keystone's URL.
        auth_url: UrlText = "auth-url";
        /// The user's name.
        username: String = "username";
        /// The user's id.
        user_id: String = "user-id";
        /// The password.
        password: Option<Secret> = "password";
        /// The project's id.
        tenant_id: String = "tenant-id";
        /// The project's name.
        tenant_name: String = "tenant-name";
        /// The domain of user and project, by its id.
        domain_id: String = "domain-id";
        /// The domain of user and project, by its name.
        domain_name: String = "domain-name";
        /// The user's domain, by its id.
        user_domain_id: String = "user-domain-id";
        /// The user's domain, by its name.
        user_domain_name: String = "user-domain-name";
        /// The project's domain, by its id.
        tenant_domain_id: String = "tenant-domain-id";
        /// The project's domain, by its name.
        tenant_domain_name: String = "tenant-domain-name";
        /// A trust.
        trust_id: String = "trust-id";
        /// To whom it is given.
        trustee_id: String = "trustee-id";
        /// The password of that user.
        trustee_password: Option<Secret> = "trustee-password";
        /// An application credential, by its id.
        application_credential_id: String = "application-credential-id";
        /// An application credential, by its name.
        application_credential_name: String = "application-credential-name";
        /// Its secret.
        application_credential_secret: Option<Secret> = "application-credential-secret";
        /// A token that was made before.
        token: Option<Secret> = "token";
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
    }
    /// `[Networking]`: which addresses Nodes get.
    Networking {
        /// Whether IPv6 addresses are left out.
        ipv6_support_disabled: bool = "ipv6-support-disabled";
        /// Networks whose addresses are external.
        public_network_name: Vec<String> = "public-network-name";
        /// Networks whose addresses are internal; none is all.
        internal_network_name: Vec<String> = "internal-network-name";
        /// Ranges in the order in which Nodes get their addresses.
        address_sort_order: String = "address-sort-order";
    }
    /// `[LoadBalancer]`.
    LoadBalancer {
        /// Whether Services get load balancers.
        enabled: bool = "enabled", true;
        /// `v2` or nothing.
        lb_version: String = "lb-version";
        /// What makes load balancers.
        lb_provider: String = "lb-provider", "amphora";
        /// How pools choose a member.
        lb_method: String = "lb-method", "ROUND_ROBIN";
        /// The subnet of addresses, and of members where no other is named.
        subnet_id: String = "subnet-id";
        /// The subnet of members.
        member_subnet_id: String = "member-subnet-id";
        /// The network of addresses.
        network_id: String = "network-id";
        /// The network of floating IPs.
        floating_network_id: String = "floating-network-id";
        /// The subnet of floating IPs, by its id.
        floating_subnet_id: String = "floating-subnet-id";
        /// The subnets of floating IPs, by a pattern of names.
        floating_subnet: String = "floating-subnet";
        /// The subnets of floating IPs, by tags.
        floating_subnet_tags: String = "floating-subnet-tags";
        /// Whether members are probed.
        create_monitor: bool = "create-monitor";
        /// The time between two probes.
        monitor_delay: Duration = "monitor-delay", Duration::from_secs(5);
        /// How long a probe may take.
        monitor_timeout: Duration = "monitor-timeout", Duration::from_secs(3);
        /// How many good probes make a member up.
        monitor_max_retries: u32 = "monitor-max-retries", 1_u32;
        /// How many bad probes make a member down.
        monitor_max_retries_down: u32 = "monitor-max-retries-down", 3_u32;
        /// Whether Nodes get security groups that let the traffic in.
        manage_security_groups: bool = "manage-security-groups";
        /// Whether no load balancer gets a floating IP.
        internal_lb: bool = "internal-lb";
        /// Which Nodes are members.
        node_selector: String = "node-selector";
        /// Whether a load balancer is deleted with all its parts in one call.
        cascade_delete: bool = "cascade-delete", true;
        /// The size of load balancers.
        flavor_id: String = "flavor-id";
        /// Where load balancers stand.
        availability_zone: String = "availability-zone";
        /// Whether Services with the PROXY protocol get a host name in place of an address.
        enable_ingress_hostname: bool = "enable-ingress-hostname";
        /// What follows the address in that name.
        ingress_hostname_suffix: String = "ingress-hostname-suffix", "nip.io";
        /// How many Services may share a load balancer.
        max_shared_lb: i64 = "max-shared-lb", 2;
        /// The certificate of Services that name none.
        default_tls_container_ref: String = "default-tls-container-ref";
        /// What keeps certificates.
        container_store: String = "container-store", "barbican";
        /// Whether the provider takes no more than one change at a time.
        provider_requires_serial_api_calls: bool = "provider-requires-serial-api-calls";
        /// The UID of this cluster's namespace `kube-system`.
        cluster_uid: String = "cluster-uid";
        /// Whether load balancers under a former name of the cluster are renamed.
        enable_lb_rename: bool = "enable-lb-rename", true;
        /// Names that the cluster had before.
        former_cluster_name: Vec<String> = "former-cluster-name";
    }
    /// `[LoadBalancerClass "NAME"]`: a set of defaults that a Service can choose.
    Class {
        /// The network of floating IPs.
        floating_network_id: String = "floating-network-id";
        /// The subnet of floating IPs, by its id.
        floating_subnet_id: String = "floating-subnet-id";
        /// The subnets of floating IPs, by a pattern of names.
        floating_subnet: String = "floating-subnet";
        /// The subnets of floating IPs, by tags.
        floating_subnet_tags: String = "floating-subnet-tags";
        /// The network of addresses.
        network_id: String = "network-id";
        /// The subnet of addresses.
        subnet_id: String = "subnet-id";
        /// The subnet of members.
        member_subnet_id: String = "member-subnet-id";
    }
    /// `[Route]`.
    Route {
        /// The router that gets the routes.
        router_id: String = "router-id";
    }
    /// `[Metadata]`.
    Metadata {
        /// Where an instance would look for what it is. Checked, and otherwise without effect, as upstream.
        search_order: String = "search-order";
        /// How long a request may take.
        request_timeout: Duration = "request-timeout";
    }
}

/// The sections, and the options of each. Letter case does not count.
pub(super) const OPTIONS: [(&str, &[&str]); 6] = [
    ("Global", Global::NAMES),
    ("Networking", Networking::NAMES),
    ("LoadBalancer", LoadBalancer::NAMES),
    ("LoadBalancerClass", Class::NAMES),
    ("Route", Route::NAMES),
    ("Metadata", Metadata::NAMES),
];

/// The names of all options.
#[must_use]
pub fn option_names() -> BTreeSet<&'static str> {
    OPTIONS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect()
}
