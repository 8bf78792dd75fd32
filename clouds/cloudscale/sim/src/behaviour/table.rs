//! What this double does, and how that is known.

use bowline_cloud_kit::behaviour::{Basis, Behaves, Behaviour as Row};

use super::{Behaviour, MonitorStatus, OverlapMode, PoolDelete, RefusalKeys};

const SDK: &str = "The vendor's Go SDK and its live tests.";
const CLIENTS: &str = "The vendor's Terraform provider and Ansible collection.";
const OCTAVIA: &str =
    "Octavia is as in the unkind world; what the vendor's load balancers are made of is not known.";
const ANY: &str = "Any API may.";
const NOBODY: &str = "Nobody says.";

const fn known(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Documented, name, does, source)
}

const fn on_demand(name: &'static str, does: &'static str) -> Row<Behaviour> {
    Row::known(Basis::OnDemand, name, does, ANY)
}

impl Behaves for Behaviour {
    const TABLE: &'static [Row<Self>] = &[
        known(
            "lb_create_time_ms",
            "A new load balancer is `changing` for this time, from zero to two minutes.",
            SDK,
        ),
        known(
            "lb_change_time_ms",
            "A load balancer is `changing` for this time after a write to it or to a part of it.",
            CLIENTS,
        ),
        known(
            "lb_delete_time_ms",
            "A deleted load balancer can be read for this time.",
            CLIENTS,
        ),
        known(
            "lb_write_time_ms",
            "A write to a load balancer takes this time, up to two minutes.",
            CLIENTS,
        ),
        known(
            "server_change_time_ms",
            "A server that is created, started, stopped or rebooted is `changing` for this time.",
            SDK,
        ),
        known(
            "create_answers_changing",
            "The answer to a POST of a load balancer says `changing`.",
            SDK,
        ),
        known(
            "refuse_delete_while_creating",
            "A DELETE of what is still being created is refused with 400.",
            CLIENTS,
        ),
        known(
            "vip_order",
            "A load balancer that was created without wishes has an IPv4 and an IPv6 address, IPv4 first.",
            SDK,
        ),
        known(
            "status_follows_members",
            "The status of a load balancer follows the health of its members.",
            CLIENTS,
        ),
        on_demand(
            "list_lag_ms",
            "Lists do not show an object for this time after its creation.",
        ),
        on_demand("maintenance", "Every request is answered with 503."),
        on_demand("quota", "What exceeds a limit of the project is refused."),
        on_demand(
            "unkept_attributes",
            "A PATCH of these attributes is answered with 204 and changes nothing.",
        ),
        known(
            "the name of a load balancer",
            "Several may have the same.",
            CLIENTS,
        ),
        known(
            "the deletion of a load balancer",
            "Its pools, listeners, members and monitors go with it; floating IPs lose their target.",
            CLIENTS,
        ),
        known("the order of `allowed_cidrs`", "It is kept.", CLIENTS),
        Row::assumed(
            "overlap",
            "A write that meets another one on the same load balancer is applied at once, held back or refused.",
            "Clients of the vendor write one thing after the other; what happens otherwise, nobody says.",
            |it, world| it.overlap = world.pick(OverlapMode::ApplyAtOnce, OverlapMode::Refuse(409)),
        ),
        Row::assumed(
            "refuse_writes_while_changing",
            "A write to a load balancer that is `changing` is taken or refused.",
            NOBODY,
            |it, world| it.refuse_writes_while_changing = world.pick(None, Some(409)),
        ),
        Row::assumed(
            "duplicate_members",
            "A pool takes several members with the same address and port, or refuses the second one.",
            OCTAVIA,
            |it, world| it.duplicate_members = world.pick(true, false),
        ),
        Row::assumed(
            "unique_listener_ports",
            "A load balancer has one listener for each protocol and port.",
            OCTAVIA,
            |it, world| it.unique_listener_ports = world.pick(false, true),
        ),
        Row::assumed(
            "one_monitor_per_pool",
            "A pool has one monitor, and refuses the second one.",
            OCTAVIA,
            |it, world| it.one_monitor_per_pool = world.pick(false, true),
        ),
        Row::assumed(
            "second_monitor_text",
            "The words of that refusal.",
            NOBODY,
            |it, world| {
                let text = world.pick("The pool already has a health monitor.", "Invalid.");
                it.second_monitor_text = text.to_owned();
            },
        ),
        Row::assumed(
            "listener_port_patchable",
            "The protocol and the port of a listener can be changed, or only by a new listener.",
            "One client of the vendor sends such a PATCH, another one does not.",
            |it, world| it.listener_port_patchable = world.pick(true, false),
        ),
        Row::assumed(
            "pool_delete",
            "A DELETE of a pool takes its listeners along, leaves them without a pool, or is refused while there are parts. \
             Members and monitor go with it.",
            "The Go manager deletes pools and leaves their listeners to the API; Octavia detaches them, and answers show \
             listeners whose pool is null.",
            |it, world| it.pool_delete = world.pick(PoolDelete::Cascade, PoolDelete::DetachListeners),
        ),
        Row::assumed(
            "lists_newest_first",
            "Lists begin with the oldest or the newest object.",
            "The vendor promises no order.",
            |it, world| it.lists_newest_first = world.pick(false, true),
        ),
        Row::assumed(
            "one_attribute_per_patch",
            "A PATCH of several attributes is refused.",
            "The vendor says so of servers, and of nothing else.",
            |it, world| it.one_attribute_per_patch = world.pick(false, true),
        ),
        Row::assumed(
            "masks_host_bits",
            "A network with the bits of a host in it is refused, or taken and shown without them.",
            NOBODY,
            |it, world| it.masks_host_bits = world.pick(true, false),
        ),
        Row::assumed(
            "cuts_names_to",
            "A name that is longer is cut.",
            "Databases do; the vendor names no limit.",
            |it, world| it.cuts_names_to = world.pick(None, Some(255)),
        ),
        Row::assumed(
            "monitor_refusals",
            "Which key the refusal of a health monitor has.",
            "Those of a field, in one public test; whether all have, nobody says.",
            |it, world| it.monitor_refusals = world.pick(RefusalKeys::Attribute, RefusalKeys::NonField),
        ),
        Row::assumed(
            "min_udp_connect_delay_s",
            "A shorter delay of a `udp-connect` monitor is refused.",
            OCTAVIA,
            |it, world| it.min_udp_connect_delay_s = world.pick(None, Some(3)),
        ),
        Row::assumed(
            "unprobed_member",
            "What a member shows before its health is known.",
            NOBODY,
            |it, world| it.unprobed_member = world.pick(MonitorStatus::Up, MonitorStatus::Changing),
        ),
    ];
}
