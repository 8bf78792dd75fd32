//! What this double does, and how that is known.

use bowline_cloud_kit::behaviour::{Basis, Behaves, Behaviour as Row};

use super::Behaviour;

const CONFIGURATION: &str = "The service's configuration reference.";
const ANY: &str = "Any API may.";

const fn documented(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Documented, name, does, source)
}

const fn read(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Source, name, does, source)
}

const fn on_demand(name: &'static str, does: &'static str) -> Row<Behaviour> {
    Row::known(Basis::OnDemand, name, does, ANY)
}

impl Behaves for Behaviour {
    const TABLE: &'static [Row<Self>] = &[
        documented(
            "token_life_ms",
            "A token is good for this time, by default an hour.",
            CONFIGURATION,
        ),
        on_demand(
            "lb_create_time_ms",
            "A new load balancer is `PENDING_CREATE` for this time.",
        ),
        on_demand(
            "lb_change_time_ms",
            "A load balancer is `PENDING_UPDATE` for this time after a write to it or to a part of it.",
        ),
        on_demand(
            "lb_delete_time_ms",
            "A deleted load balancer is `PENDING_DELETE` for this time.",
        ),
        on_demand(
            "keeps_vip_ports",
            "The port of a load balancer stays when that goes, as after a clean-up that failed.",
        ),
        on_demand(
            "hears_of_health",
            "Where Octavia's health manager is not reached, every operating status stays `OFFLINE`.",
        ),
        on_demand("failing_creates", "So many new load balancers end in `ERROR`."),
        on_demand(
            "failing_changes",
            "So many changes of a load balancer end in `ERROR`.",
        ),
        read(
            "failing_deletes",
            "So many deletions of load balancers end in `ERROR`, and all parts stay.",
            "Octavia's `worker/v2/tasks/lifecycle_tasks.py`, `LoadBalancerToErrorOnRevertTask`.",
        ),
        read(
            "failing_part_changes",
            "So many changes of parts end with the part in `ERROR` and all else `ACTIVE`.",
            "Octavia's `worker/v2/tasks/lifecycle_tasks.py`.",
        ),
        documented(
            "octavia_minor_version",
            "A field that came with a later version is not known.",
            "The history of versions in Octavia's API reference.",
        ),
        on_demand(
            "octavia_omits",
            "Answers leave these fields out, as those of another implementation of the API.",
        ),
        documented("providers", "No other driver can be named.", CONFIGURATION),
        documented("lb_flavors", "No other flavor can be named.", CONFIGURATION),
        documented("lb_zones", "No other zone can be named.", CONFIGURATION),
        read(
            "min_udp_connect_delay_s",
            "A shorter delay of an `UDP-CONNECT` monitor is refused.",
            "`udp_connect_min_interval_health_monitor` of Octavia.",
        ),
        documented(
            "extensions",
            "What an extension is for is there if the extension is.",
            "Neutron's API reference.",
        ),
        documented(
            "max_routes",
            "A router has at most so many routes.",
            CONFIGURATION,
        ),
        documented(
            "max_address_pairs",
            "A port has at most so many address pairs.",
            CONFIGURATION,
        ),
        on_demand(
            "breaks_on_route",
            "Neutron fails on this route, whatever else is asked for with it.",
        ),
        on_demand("maintenance", "Every request is answered with 503."),
        read(
            "quota",
            "What exceeds a limit of the project is refused, by Octavia with 403 and by Neutron with 409.",
            "`QuotaException` of Octavia, `OverQuota` of Neutron.",
        ),
        Row::assumed(
            "octavia_page_size",
            "An answer has at most so many objects.",
            "Operators set it (`pagination_max_limit`, by default 1000).",
            |it, world| it.octavia_page_size = world.pick(Some(1_000), Some(2)),
        ),
        Row::assumed(
            "neutron_page_size",
            "An answer has at most so many objects.",
            "Operators set it (`pagination_max_limit`, by default none).",
            |it, world| it.neutron_page_size = world.pick(None, Some(2)),
        ),
        Row::assumed(
            "nova_page_size",
            "An answer has at most so many servers or flavors.",
            "Operators set it (`[api] max_limit`, by default 1000).",
            |it, world| it.nova_page_size = world.pick(1_000, 2),
        ),
        Row::assumed(
            "names_ignore_case",
            "The expression that servers' names are searched for ignores case, or does not.",
            "It is a question of Nova's database: MySQL ignores case as it is set up by default, PostgreSQL does not.",
            |it, world| it.names_ignore_case = world.pick(true, false),
        ),
        Row::assumed(
            "users_choose_addresses",
            "An ordinary user may choose the address of a floating IP.",
            "Neutron's policy `create_floatingip:floating_ip_address`, which operators set; by default administrators may.",
            |it, world| it.users_choose_addresses = world.pick(true, false),
        ),
        Row::assumed(
            "checks_certificates",
            "Octavia looks a certificate up in Barbican before it takes a listener that names it.",
            "Operators choose what keeps certificates (`cert_manager`); Octavia's own default looks them up.",
            |it, world| it.checks_certificates = world.pick(false, true),
        ),
        Row::assumed(
            "ovn_marks_vip_ports",
            "The port that OVN's driver makes for a load balancer names its device and the device's owner.",
            "`create_vip_port` of ovn-octavia-provider does since April 2026; before, a port had its name alone.",
            |it, world| it.ovn_marks_vip_ports = world.pick(true, false),
        ),
        read(
            "the order of Octavia's lists",
            "The second of their creation, then the ID, which says nothing.",
            "`DEFAULT_SORT_KEYS` of Octavia.",
        ),
        read(
            "the order of Neutron's lists",
            "The ID.",
            "`PaginationNativeHelper` of Neutron's `api_common.py`.",
        ),
    ];
}
