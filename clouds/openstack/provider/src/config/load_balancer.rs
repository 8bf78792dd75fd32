//! What `[LoadBalancer]` and its classes say. An option that is not set, and one that is set to nothing, are `None`.

pub(super) mod read;

use std::collections::BTreeMap;

use bowline_openstack_client::{NetworkId, SubnetId};

/// The defaults and limits of load balancers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancerOptions {
    /// Octavia's provider: `lb-provider`.
    pub provider: String,
    /// How pools choose a member: `lb-method`.
    pub method: String,
    /// Where addresses and members are.
    pub placement: PlacementOptions,
    /// Where floating IPs come from.
    pub floating: FloatingOptions,
    /// Health monitors: `create-monitor` and `monitor-*`.
    pub monitor: MonitorOptions,
    /// Whether nodes get a security group for each Service: `manage-security-groups`.
    pub manages_security_groups: bool,
    /// Whether no Service gets a floating IP: `internal-lb`.
    pub is_internal: bool,
    /// Labels of nodes that become members: `node-selector`.
    pub node_selector: String,
    /// Whether a load balancer is deleted with all its parts in one call: `cascade-delete`.
    pub deletes_by_cascade: bool,
    /// `flavor-id`.
    pub flavor: Option<String>,
    /// `availability-zone`.
    pub zone: Option<String>,
    /// Whether the status shows a host name where the PROXY protocol is on: `enable-ingress-hostname`.
    pub has_ingress_hostname: bool,
    /// What such a host name ends with: `ingress-hostname-suffix`.
    pub ingress_hostname_suffix: String,
    /// The most Services that share a load balancer: `max-shared-lb`.
    pub max_shared: usize,
    /// `default-tls-container-ref`.
    pub tls_container: Option<String>,
    /// `container-store`.
    pub container_store: ContainerStore,
    /// Whether parts and members are made one by one: `provider-requires-serial-api-calls`.
    pub is_serial: bool,
    /// The UID of this cluster's namespace `kube-system`: `cluster-uid`.
    pub cluster_uid: Option<String>,
    /// Whether load balancers under a former name of the cluster are renamed: `enable-lb-rename`.
    pub renames: bool,
    /// Names that the cluster had before: `former-cluster-name`.
    pub former_clusters: Vec<String>,
    /// How often a load balancer that is pending is looked at: `OCCM_WAIT_LB_ACTIVE_STEPS`.
    pub wait_steps: usize,
    /// The sections `[LoadBalancerClass "NAME"]` by name.
    pub classes: BTreeMap<String, ClassOptions>,
}

impl Default for LoadBalancerOptions {
    fn default() -> Self {
        Self {
            provider: "amphora".into(),
            method: "ROUND_ROBIN".into(),
            placement: PlacementOptions::default(),
            floating: FloatingOptions::default(),
            monitor: MonitorOptions::default(),
            manages_security_groups: false,
            is_internal: false,
            node_selector: String::new(),
            deletes_by_cascade: true,
            flavor: None,
            zone: None,
            has_ingress_hostname: false,
            ingress_hostname_suffix: "nip.io".into(),
            max_shared: 2,
            tls_container: None,
            container_store: ContainerStore::Barbican,
            is_serial: false,
            cluster_uid: None,
            renames: true,
            former_clusters: Vec::new(),
            wait_steps: 23,
            classes: BTreeMap::new(),
        }
    }
}

/// Where the addresses of load balancers and members are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacementOptions {
    /// `network-id`.
    pub network: Option<NetworkId>,
    /// `subnet-id`.
    pub subnet: Option<SubnetId>,
    /// `member-subnet-id`.
    pub member_subnet: Option<SubnetId>,
}

/// Where floating IPs come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FloatingOptions {
    /// `floating-network-id`.
    pub network: Option<NetworkId>,
    /// `floating-subnet-id`.
    pub subnet: Option<SubnetId>,
    /// `floating-subnet`: a pattern of names.
    pub subnet_name: Option<String>,
    /// `floating-subnet-tags`.
    pub subnet_tags: Option<String>,
}

/// A section `[LoadBalancerClass "NAME"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassOptions {
    /// Where addresses and members are.
    pub placement: PlacementOptions,
    /// Where floating IPs come from.
    pub floating: FloatingOptions,
}

/// Health monitors. Times are whole seconds, as Octavia takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorOptions {
    /// `create-monitor`.
    pub is_wanted: bool,
    /// `monitor-delay`, in seconds.
    pub delay_s: i64,
    /// `monitor-timeout`, in seconds.
    pub timeout_s: i64,
    /// `monitor-max-retries`.
    pub max_retries: i64,
    /// `monitor-max-retries-down`.
    pub max_retries_down: i64,
}

impl Default for MonitorOptions {
    fn default() -> Self {
        Self {
            is_wanted: false,
            delay_s: 5,
            timeout_s: 3,
            max_retries: 1,
            max_retries_down: 3,
        }
    }
}

/// Where certificates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerStore {
    /// In Barbican: a reference is checked before it is used.
    Barbican,
    /// Elsewhere: a reference is taken as it stands.
    External,
}
