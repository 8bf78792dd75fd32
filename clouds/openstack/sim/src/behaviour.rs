//! What differs from cloud to cloud, or changes from day to day, as switches.

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

const CONFIGURATION: &str = "The service's configuration reference.";
const REFUSALS: &str = "The walk `refusals` on the real services.";
const PARTS: &str = "The walk `parts` on the real services.";
const NEUTRON: &str = "The walk `neutron` on the real services.";

bowline_cloud_kit::switches! {
    /// Switches that may be changed while the simulator runs. [`Default`] is a cloud as OpenStack's own installer makes it,
    /// without waiting.
    Behaviour {
        /// The life of a new token.
        token_life as "token_life_ms" with "millis": Duration = Duration::from_secs(3_600),
            documented(CONFIGURATION) "A token is good for this time, by default an hour.";
        /// How long a new load balancer is `PENDING_CREATE`.
        lb_create_time as "lb_create_time_ms" with "millis": Duration = Duration::ZERO,
            on_demand() "A new load balancer is `PENDING_CREATE` for this time.";
        /// How long a load balancer is `PENDING_UPDATE` after a write to it or to a part of it.
        lb_change_time as "lb_change_time_ms" with "millis": Duration = Duration::ZERO,
            on_demand() "A load balancer is `PENDING_UPDATE` for this time after a write to it or to a part of it.";
        /// How long a deleted load balancer is `PENDING_DELETE`.
        lb_delete_time as "lb_delete_time_ms" with "millis": Duration = Duration::ZERO,
            on_demand() "A deleted load balancer is `PENDING_DELETE` for this time.";
        /// Whether Octavia leaves its port behind when a load balancer goes, as after a clean-up that failed.
        keeps_vip_ports: bool = false,
            on_demand() "The port of a load balancer stays when that goes, as after a clean-up that failed.";
        /// Whether Octavia hears from what carries the traffic: where its health manager is not reached, every operating status stays
        /// `OFFLINE`.
        hears_of_health: bool = true,
            on_demand() "Where Octavia's health manager is not reached, every operating status stays `OFFLINE`.";
        /// How many of the next new load balancers end in `ERROR`.
        failing_creates: u32 = 0,
            on_demand() "So many new load balancers end in `ERROR`.";
        /// How many of the next changes of a load balancer end in `ERROR`.
        failing_changes: u32 = 0,
            on_demand() "So many changes of a load balancer end in `ERROR`.";
        /// How many of the next deletions of load balancers end in `ERROR`, and everything stays.
        failing_deletes: u32 = 0,
            read("Octavia's `worker/v2/tasks/lifecycle_tasks.py`, `LoadBalancerToErrorOnRevertTask`.")
            "So many deletions of load balancers end in `ERROR`, and all parts stay.";
        /// How many of the next changes of parts end with the part in `ERROR` and the load balancer `ACTIVE`.
        failing_part_changes: u32 = 0,
            read("Octavia's `worker/v2/tasks/lifecycle_tasks.py`.")
            "So many changes of parts end with the part in `ERROR` and all else `ACTIVE`.";
        /// The minor version of the newest API that Octavia offers: 30 is v2.30.
        octavia_minor_version: u32 = 30,
            documented("The history of versions in Octavia's API reference.")
            "A field or a word that came with a later version is not known.";
        /// Fields that Octavia's answers leave out, as those of another implementation of its API may.
        octavia_omits: Vec<String> = Vec::new(),
            on_demand() "Answers leave these fields out, as those of another implementation of the API.";
        /// Octavia's drivers that are enabled. `octavia` is another name for `amphora`.
        providers: Vec<String> = words(&["amphora", "octavia", "ovn"]),
            documented(CONFIGURATION) "No other driver can be named.";
        /// Whether the port that OVN's driver makes names its device and the device's owner.
        ovn_marks_vip_ports: bool = true,
            assumed(true => false, "`create_vip_port` of ovn-octavia-provider does since April 2026; before, a \
                 port had its name alone.")
            "The port that OVN's driver makes for a load balancer names its device and the device's owner.";
        /// Whether OVN's driver takes a port that is given.
        ovn_takes_ports: bool = true,
            assumed(true => false, "`create_vip_port` of ovn-octavia-provider does since July 2026; before, it \
                 asked Neutron for another port with the same address, which is refused.")
            "OVN's driver takes a port that is given for a load balancer, and leaves it when that goes.";
        /// Ids that are known as a `flavor_id` of a load balancer.
        lb_flavors: Vec<String> = Vec::new(),
            documented(CONFIGURATION) "No other flavor can be named.";
        /// Names that are known as an `availability_zone` of a load balancer.
        lb_zones: Vec<String> = Vec::new(),
            documented(CONFIGURATION) "No other zone can be named.";
        /// Whether Octavia looks a certificate up in Barbican before it takes a listener that names it.
        checks_certificates: bool = false,
            assumed(false => true, "Operators choose what keeps certificates (`cert_manager`); Octavia's own \
                 default looks them up.")
            "Octavia looks a certificate up in Barbican before it takes a listener that names it.";
        /// The least `delay` in seconds of an `UDP-CONNECT` monitor.
        min_udp_connect_delay_s: u32 = 3,
            read("`udp_connect_min_interval_health_monitor` of Octavia.")
            "A shorter delay of an `UDP-CONNECT` monitor is refused.";
        /// Neutron's extensions, by alias.
        extensions: Vec<String> = words(&EXTENSIONS),
            documented("Neutron's API reference.") "What an extension is for is there if the extension is.";
        /// The most routes of a router: the quota `router_route`.
        max_routes: usize = 30,
            documented(CONFIGURATION) "A router has at most so many routes.";
        /// The most address pairs of a port (`max_allowed_address_pair`).
        max_address_pairs: usize = 10,
            documented(CONFIGURATION) "A port has at most so many address pairs.";
        /// The destination of a route on which Neutron fails (500), whatever else is asked for in the same request: a driver's bug.
        breaks_on_route: Option<String> = None,
            on_demand() "Neutron fails on this route, whatever else is asked for with it.";
        /// Whether an ordinary user may choose a floating IP's address.
        users_choose_addresses: bool = false,
            assumed(true => false, "Neutron's policy `create_floatingip:floating_ip_address`, which operators set; \
                 by default administrators may.")
            "An ordinary user may choose the address of a floating IP.";
        /// The most servers or flavors of one answer.
        nova_page_size: usize = 1_000,
            assumed(1_000 => 2, "Operators set it (`[api] max_limit`, by default 1000).")
            "An answer has at most so many servers or flavors.";
        /// The most objects of one answer of Neutron; `None` answers all of them, unless the caller asks for pages.
        neutron_page_size: Option<usize> = None,
            assumed(None => Some(2), "Operators set it (`pagination_max_limit`, by default none).")
            "An answer has at most so many objects.";
        /// As [`Self::neutron_page_size`], of Octavia, which has a limit unless it is told to have none (`pagination_max_limit`).
        octavia_page_size: Option<usize> = Some(1_000),
            assumed(Some(1_000) => Some(2), "Operators set it (`pagination_max_limit`, by default 1000).")
            "An answer has at most so many objects.";
        /// Whether the expression that servers' names are searched for ignores case, as in most databases.
        names_ignore_case: bool = true,
            assumed(true => false, "It is a question of Nova's database: MySQL ignores case as it is set up by \
                 default, PostgreSQL does not.")
            "The expression that servers' names are searched for ignores case, or does not.";
        /// Whether every request is answered with 503.
        maintenance: bool = false,
            on_demand() "Every request is answered with 503.";
        /// Limits of a project.
        quota: Quota = Quota::default(),
            seen(REFUSALS)
            "What exceeds a limit of the project is refused, by Octavia with 403 and by Neutron with 409.";
    } and {
        "a load balancer that is refused": seen(REFUSALS)
            "Its port stays, and has its address, where its parts, their quotas or what its driver knows of them \
             are refused.";
        "a load balancer that is refused before": seen(REFUSALS)
            "No port is made for a body that cannot be read, an address that cannot be had, or beyond the quota of \
             load balancers.";
        "an address that cannot be had": seen(REFUSALS)
            "It is refused with 409 in Neutron's words if it is taken, the subnet has no more or the quota of \
             ports is met, and with 500 and no words if it is outside of the subnet.";
        "an address that cannot be had with `ovn`": read("`create_vip_port` of ovn-octavia-provider.")
            "It is refused with 500 in Neutron's words, whatever the reason.";
        "a new load balancer with `ovn`": read("`loadbalancer_create` of ovn-octavia-provider.")
            "It is `ACTIVE` before its parts are.";
        "pools within a load balancer": seen(REFUSALS)
            "They have names, each its own. Method and session persistence are not looked at there, as they are in \
             a pool by itself.";
        "`SOURCE_IP_PORT` with `amphora`": seen(PARTS) "It is refused with 501 in a pool by itself.";
        "members for datagrams with `amphora`": seen(PARTS)
            "Those of no family of the load balancer are refused with 501.";
        "the host's bits of `allowed_cidrs`": seen(REFUSALS) "They are cut off.";
        "what an entry of a batch of members leaves out": seen(PARTS)
            "It gets its default: weight 1, no standby, switched on, no monitor of its own. Name, subnet and tags \
             stay.";
        "a member of weight 0": read("`member_create` and `member_update` of ovn-octavia-provider, and HAProxy's configuration in Octavia.")
            "With `amphora` it gets no new connections. With `ovn` weights are taken and change nothing.";
        "twins of members": seen(PARTS)
            "One that is there and comes twice in a batch is refused with 400, any other one with 409.";
        "the quota of members in a batch": seen(PARTS) "It is asked how many more there are than before.";
        "no members for a pool without any": seen(PARTS) "It is taken, and nothing is under way after that.";
        "a write while a change is under way": seen(PARTS)
            "It is refused with 409. What is wrong with a part, and its quota, are found out first, but for \
             batches of members.";
        "the deletion of a pool": seen(PARTS)
            "Its members and its monitor go with it, its listeners stay without a pool.";
        "the deletion of a listener": seen(PARTS) "Its pool stays.";
        "members that come with a load balancer": seen("The walk `balancers` on the real services.")
            "They are in `NO_MONITOR` until they are probed, even if there is a monitor.";
        "a listener in `ERROR`": read("`test_and_set_lb_and_listeners_prov_status` of Octavia.")
            "It is well again when its pool, or what is below that, is written.";
        "a pool in `ERROR`": read("`_test_lb_and_listener_and_pool_statuses` of Octavia.")
            "It takes neither members nor a monitor.";
        "methods, protocols, monitors, source ranges and members with `ovn`":
            read("`driver.py` of ovn-octavia-provider.")
            "What its driver does not know is refused with 501.";
        "members and pools that go with `ovn`":
            read("`member_batch_update` and `pool_delete` in `driver.py`, `request_handler` in `helper.py` of \
                 ovn-octavia-provider.")
            "Where a change takes several requests to OVN, load balancer and parts are `ACTIVE` between them, also \
             those that are to go.";
        "the health of a member with `ovn`":
            read("`member_create` and `hm_update_event` in `helper.py` of ovn-octavia-provider.")
            "With a health monitor it is `ONLINE` before it is probed, and `OFFLINE` when its port is gone, which does \
             not count for its pool.";
        "the session persistence of a pool that is there with `ovn`":
            read("`pool_update` in `driver.py` and `helper.py` of ovn-octavia-provider.")
            "A change that does not name `admin_state_up` too is made, and leaves the pool in `ERROR`. To take it \
             back changes nothing.";
        "session persistence with `ovn`": read("`affinity_timeout` in `helper.py` of ovn-octavia-provider.")
            "It is one for all pools of a protocol, and ends when any of them goes.";
        "security groups of a person on the address":
            read("`_validate_cidr_compatible_with_vip` in Octavia's `api/v2/controllers/listener.py`, \
                 `_update_security_group_rules` in its `network/drivers/neutron/allowed_address_pairs.py`.")
            "A listener that names allowed CIDRs is refused with 400, and those that are there let everybody in.";
        "the removal of routes": read("`_update_extra_routes` in Neutron's `db/extraroute_db.py`.")
            "All routes that stay are looked at, and so is the quota: one that is wrong by now, or one too many, \
             refuses it.";
        "a floating IP with port forwardings":
            read("`_check_floatingip_request` in Neutron's `services/portforwarding/pf_plugin.py`.")
            "It has a router and no port. To have it lead to a port, and to delete it, is refused with 409.";
        "the order of Octavia's lists": seen(NEUTRON)
            "The second of their creation, then the ID, which says nothing.";
        "the order of Neutron's lists": seen(NEUTRON) "The ID.";
        "a page after an object that is gone":
            read("`Pager.to_kwargs` in Neutron's `objects/base.py`, `get_marker_obj` in neutron-lib's \
                 `db/utils.py`.")
            "Lists of security groups, floating IPs and subnets begin anew. Neutron refuses the others with 404, \
             Octavia and Nova with 400.";
        "twins of security group rules": seen(NEUTRON)
            "A protocol is its number too, and no prefix at all is everybody: such rules are refused with 409.";
        "a group that a port is asked to join twice": seen(NEUTRON) "The change is refused with 400.";
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
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
