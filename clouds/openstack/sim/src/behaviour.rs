//! What differs from cloud to cloud, or changes from day to day, as switches.

mod table;

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

/// Switches that may be changed while the simulator runs. [`Default`] is a cloud as OpenStack's own installer makes it,
/// without waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// The life of a new token.
    #[serde(rename = "token_life_ms", with = "millis")]
    pub token_life: Duration,
    /// How long a new load balancer is `PENDING_CREATE`.
    #[serde(rename = "lb_create_time_ms", with = "millis")]
    pub lb_create_time: Duration,
    /// How long a load balancer is `PENDING_UPDATE` after a write to it or to a part of it.
    #[serde(rename = "lb_change_time_ms", with = "millis")]
    pub lb_change_time: Duration,
    /// How long a deleted load balancer is `PENDING_DELETE`.
    #[serde(rename = "lb_delete_time_ms", with = "millis")]
    pub lb_delete_time: Duration,
    /// Whether Octavia leaves its port behind when a load balancer goes, as after a clean-up that failed.
    pub keeps_vip_ports: bool,
    /// Whether Octavia hears from what carries the traffic: where its health manager is not reached, every operating status stays
    /// `OFFLINE`.
    pub hears_of_health: bool,
    /// How many of the next new load balancers end in `ERROR`.
    pub failing_creates: u32,
    /// How many of the next changes of a load balancer end in `ERROR`.
    pub failing_changes: u32,
    /// How many of the next deletions of load balancers end in `ERROR`, and everything stays.
    pub failing_deletes: u32,
    /// How many of the next changes of parts end with the part in `ERROR` and the load balancer `ACTIVE`.
    pub failing_part_changes: u32,
    /// The minor version of the newest API that Octavia offers: 30 is v2.30.
    pub octavia_minor_version: u32,
    /// Fields that Octavia's answers leave out, as those of another implementation of its API may.
    pub octavia_omits: Vec<String>,
    /// Octavia's drivers that are enabled. `octavia` is another name for `amphora`.
    pub providers: Vec<String>,
    /// Whether the port that OVN's driver makes names its device and the device's owner.
    pub ovn_marks_vip_ports: bool,
    /// Whether OVN's driver takes a port that is given.
    pub ovn_takes_ports: bool,
    /// Ids that are known as a `flavor_id` of a load balancer.
    pub lb_flavors: Vec<String>,
    /// Names that are known as an `availability_zone` of a load balancer.
    pub lb_zones: Vec<String>,
    /// Whether Octavia looks a certificate up in Barbican before it takes a listener that names it.
    pub checks_certificates: bool,
    /// The least `delay` in seconds of an `UDP-CONNECT` monitor.
    pub min_udp_connect_delay_s: u32,
    /// Neutron's extensions, by alias.
    pub extensions: Vec<String>,
    /// The most routes of a router: the quota `router_route`.
    pub max_routes: usize,
    /// The most address pairs of a port (`max_allowed_address_pair`).
    pub max_address_pairs: usize,
    /// The destination of a route on which Neutron fails (500), whatever else is asked for in the same request: a driver's bug.
    pub breaks_on_route: Option<String>,
    /// Whether an ordinary user may choose a floating IP's address.
    pub users_choose_addresses: bool,
    /// The most servers or flavors of one answer.
    pub nova_page_size: usize,
    /// The most objects of one answer of Neutron; `None` answers all of them, unless the caller asks for pages.
    pub neutron_page_size: Option<usize>,
    /// As [`Self::neutron_page_size`], of Octavia, which has a limit unless it is told to have none (`pagination_max_limit`).
    pub octavia_page_size: Option<usize>,
    /// Whether the expression that servers' names are searched for ignores case, as in most databases.
    pub names_ignore_case: bool,
    /// Whether every request is answered with 503.
    pub maintenance: bool,
    /// Limits of a project.
    pub quota: Quota,
}

impl Default for Behaviour {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self {
            token_life: Duration::from_secs(3_600),
            lb_create_time: Duration::ZERO,
            lb_change_time: Duration::ZERO,
            lb_delete_time: Duration::ZERO,
            keeps_vip_ports: false,
            hears_of_health: true,
            failing_creates: 0,
            failing_changes: 0,
            failing_deletes: 0,
            failing_part_changes: 0,
            octavia_minor_version: 30,
            octavia_omits: Vec::new(),
            providers: words(&["amphora", "octavia", "ovn"]),
            ovn_marks_vip_ports: true,
            ovn_takes_ports: true,
            lb_flavors: Vec::new(),
            lb_zones: Vec::new(),
            checks_certificates: false,
            min_udp_connect_delay_s: 3,
            extensions: words(&EXTENSIONS),
            max_routes: 30,
            max_address_pairs: 10,
            breaks_on_route: None,
            users_choose_addresses: false,
            nova_page_size: 1_000,
            neutron_page_size: None,
            octavia_page_size: Some(1_000),
            names_ignore_case: true,
            maintenance: false,
            quota: Quota::default(),
        }
    }
}

/// What Neutron with its own drivers offers, as far as this simulator does it.
const EXTENSIONS: [&str; 18] = [
    "address-scope",
    "allowed-address-pairs",
    "external-net",
    "extraroute",
    "extraroute-atomic",
    "filter-validation",
    "pagination",
    "port-security",
    "project-id",
    "quotas",
    "revision-if-match",
    "router",
    "security-group",
    "sorting",
    "standard-attr-revisions",
    "standard-attr-tag",
    "trunk",
    "trunk-details",
];

/// The most objects of a kind; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Load balancers.
    pub load_balancers: Option<usize>,
    /// Listeners.
    pub listeners: Option<usize>,
    /// Pools.
    pub pools: Option<usize>,
    /// Members.
    pub members: Option<usize>,
    /// Health monitors.
    pub health_monitors: Option<usize>,
    /// Ports.
    pub ports: Option<usize>,
    /// Floating IPs.
    pub floating_ips: Option<usize>,
    /// Security groups.
    pub security_groups: Option<usize>,
    /// Rules of security groups.
    pub security_group_rules: Option<usize>,
}
