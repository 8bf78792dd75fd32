//! What this double does, and how that is known.

use bowline_cloud_kit::behaviour::{Basis, Behaves, Behaviour as Row};

use super::Behaviour;

const CONFIGURATION: &str = "The service's configuration reference.";
const REFUSALS: &str = "The walk `refusals` on the real services.";
const PARTS: &str = "The walk `parts` on the real services.";
const NEUTRON: &str = "The walk `neutron` on the real services.";
const ANY: &str = "Any API may.";

const fn documented(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Documented, name, does, source)
}

const fn read(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Source, name, does, source)
}

const fn seen(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Seen, name, does, source)
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
            "A field or a word that came with a later version is not known.",
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
        seen(
            "quota",
            "What exceeds a limit of the project is refused, by Octavia with 403 and by Neutron with 409.",
            REFUSALS,
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
        Row::assumed(
            "ovn_takes_ports",
            "OVN's driver takes a port that is given for a load balancer, and leaves it when that goes.",
            "`create_vip_port` of ovn-octavia-provider does since July 2026; before, it asked Neutron for another port with the same address, which is refused.",
            |it, world| it.ovn_takes_ports = world.pick(true, false),
        ),
        seen(
            "a load balancer that is refused",
            "Its port stays, and has its address, where its parts, their quotas or what its driver knows of them are refused.",
            REFUSALS,
        ),
        seen(
            "a load balancer that is refused before",
            "No port is made for a body that cannot be read, an address that cannot be had, or beyond the quota of load balancers.",
            REFUSALS,
        ),
        seen(
            "an address that cannot be had",
            "It is refused with 409 in Neutron's words if it is taken, the subnet has no more or the quota of ports is met, and with 500 \
             and no words if it is outside of the subnet.",
            REFUSALS,
        ),
        read(
            "an address that cannot be had with `ovn`",
            "It is refused with 500 in Neutron's words, whatever the reason.",
            "`create_vip_port` of ovn-octavia-provider.",
        ),
        read(
            "a new load balancer with `ovn`",
            "It is `ACTIVE` before its parts are.",
            "`loadbalancer_create` of ovn-octavia-provider.",
        ),
        seen(
            "pools within a load balancer",
            "They have names, each its own. Method and session persistence are not looked at there, as they are in a pool by itself.",
            REFUSALS,
        ),
        seen(
            "`SOURCE_IP_PORT` with `amphora`",
            "It is refused with 501 in a pool by itself.",
            PARTS,
        ),
        seen(
            "members for datagrams with `amphora`",
            "Those of no family of the load balancer are refused with 501.",
            PARTS,
        ),
        seen(
            "the host's bits of `allowed_cidrs`",
            "They are cut off.",
            REFUSALS,
        ),
        seen(
            "what an entry of a batch of members leaves out",
            "It gets its default: weight 1, no standby, switched on, no monitor of its own. Name, subnet and tags stay.",
            PARTS,
        ),
        seen(
            "twins of members",
            "One that is there and comes twice in a batch is refused with 400, any other one with 409.",
            PARTS,
        ),
        seen(
            "the quota of members in a batch",
            "It is asked how many more there are than before.",
            PARTS,
        ),
        seen(
            "no members for a pool without any",
            "It is taken, and nothing is under way after that.",
            PARTS,
        ),
        seen(
            "a write while a change is under way",
            "It is refused with 409. What is wrong with a part, and its quota, are found out first, but for batches of members.",
            PARTS,
        ),
        seen(
            "the deletion of a pool",
            "Its members and its monitor go with it, its listeners stay without a pool.",
            PARTS,
        ),
        seen("the deletion of a listener", "Its pool stays.", PARTS),
        seen(
            "members that come with a load balancer",
            "They are in `NO_MONITOR` until they are probed, even if there is a monitor.",
            "The walk `balancers` on the real services.",
        ),
        read(
            "a listener in `ERROR`",
            "It is well again when its pool, or what is below that, is written.",
            "`test_and_set_lb_and_listeners_prov_status` of Octavia.",
        ),
        read(
            "a pool in `ERROR`",
            "It takes neither members nor a monitor.",
            "`_test_lb_and_listener_and_pool_statuses` of Octavia.",
        ),
        read(
            "methods, protocols, monitors, source ranges and members with `ovn`",
            "What its driver does not know is refused with 501.",
            "`driver.py` of ovn-octavia-provider.",
        ),
        read(
            "members and pools that go with `ovn`",
            "Where a change takes several requests to OVN, load balancer and parts are `ACTIVE` between them, also those that are to go.",
            "`member_batch_update` and `pool_delete` in `driver.py`, `request_handler` in `helper.py` of ovn-octavia-provider.",
        ),
        read(
            "the session persistence of a pool that is there with `ovn`",
            "A change that does not name `admin_state_up` too is made, and leaves the pool in `ERROR`. To take it back changes nothing.",
            "`pool_update` in `driver.py` and `helper.py` of ovn-octavia-provider.",
        ),
        read(
            "session persistence with `ovn`",
            "It is one for all pools of a protocol, and ends when any of them goes.",
            "`affinity_timeout` in `helper.py` of ovn-octavia-provider.",
        ),
        read(
            "security groups of a person on the address",
            "A listener that names allowed CIDRs is refused with 400, and those that are there let everybody in.",
            "`_validate_cidr_compatible_with_vip` in Octavia's `api/v2/controllers/listener.py`, `_update_security_group_rules` in its \
             `network/drivers/neutron/allowed_address_pairs.py`.",
        ),
        read(
            "the removal of routes",
            "All routes that stay are looked at, and so is the quota: one that is wrong by now, or one too many, refuses it.",
            "`_update_extra_routes` in Neutron's `db/extraroute_db.py`.",
        ),
        read(
            "a floating IP with port forwardings",
            "It has a router and no port. To have it lead to a port, and to delete it, is refused with 409.",
            "`_check_floatingip_request` in Neutron's `services/portforwarding/pf_plugin.py`.",
        ),
        seen(
            "the order of Octavia's lists",
            "The second of their creation, then the ID, which says nothing.",
            NEUTRON,
        ),
        seen("the order of Neutron's lists", "The ID.", NEUTRON),
        read(
            "a page after an object that is gone",
            "Lists of security groups, floating IPs and subnets begin anew. Neutron refuses the others with 404, Octavia and Nova with 400.",
            "`Pager.to_kwargs` in Neutron's `objects/base.py`, `get_marker_obj` in neutron-lib's `db/utils.py`.",
        ),
        seen(
            "twins of security group rules",
            "A protocol is its number too, and no prefix at all is everybody: such rules are refused with 409.",
            NEUTRON,
        ),
        seen(
            "a group that a port is asked to join twice",
            "The change is refused with 400.",
            NEUTRON,
        ),
    ];
}
