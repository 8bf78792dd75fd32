//! What this double does, and how that is known.

use bowline_cloud_kit::behaviour::{Basis, Behaves, Behaviour as Row};

use super::Behaviour;

const API: &str = "The API reference.";
const SETTINGS: &str = "The global settings in the administrator's manual.";
const RULES: &str = "`LoadBalancingRulesManagerImpl` of the management server.";
const ROUTER: &str = "`NetworkHelperImpl.validateHAProxyLBRule` of the management server.";
const CONFLICTS: &str = "`FirewallManagerImpl.detectRulesConflict` of the management server.";
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
            "version",
            "Before 4.18 a rule takes no list of clients, and before 4.22 none is changed.",
            API,
        ),
        documented(
            "page_size",
            "A list has at most as many items, with the count of all.",
            SETTINGS,
        ),
        documented(
            "job_time_ms",
            "A command that changes something begins a job, which takes this time.",
            API,
        ),
        on_demand(
            "job_polls",
            "The poll of this number is the first to tell that a job is done.",
        ),
        on_demand(
            "jobs_wait_for_polls",
            "A job is carried out by the poll that tells its end.",
        ),
        on_demand(
            "stuck_jobs_hold_up",
            "A job that never ends holds up those after it on its network.",
        ),
        documented(
            "forbidden_to_users",
            "A role may lack a command.",
            "The roles in the administrator's manual.",
        ),
        documented(
            "forbidden_to_admins",
            "A role may lack a command.",
            "The roles in the administrator's manual.",
        ),
        on_demand(
            "forbidden_status",
            "The status of a command that the role lacks: 432, 401 or 531.",
        ),
        on_demand(
            "unknown_command_status",
            "The status of a command that there is not: 432 or 401.",
        ),
        on_demand(
            "post_only",
            "A change with any method but POST is refused with 405.",
        ),
        on_demand(
            "max_expiry_s",
            "A signature that expires later than this is refused.",
        ),
        on_demand("clock_skew_s", "The server's clock is off."),
        on_demand(
            "sends_date",
            "An answer has a `Date`, as behind a proxy; the server itself sends none.",
        ),
        documented(
            "users_see_destroyed",
            "Users see virtual machines that are destroyed and not yet expunged.",
            SETTINGS,
        ),
        on_demand(
            "lists_free_addresses",
            "Public addresses that nobody has are listed.",
        ),
        read(
            "pending_addresses_take_rules",
            "A rule is made only on an address that is `Allocated`; the switch takes any.",
            RULES,
        ),
        on_demand(
            "releases_refuse_rules",
            "A public address is not taken back as long as load balancer rules are on it.",
        ),
        on_demand(
            "releases_leave_rules",
            "What is on a public address stays when that is taken back.",
        ),
        Row::assumed(
            "protocols_conflict",
            "A second rule on a port of a public address is refused with 537 whatever its protocol.",
            "`FirewallManagerImpl.detectRulesConflict` has no exception for load balancer rules in any version that was read; the Go manager \
             names its rules as if one had.",
            |it, world| it.protocols_conflict = world.pick(false, true),
        ),
        read(
            "takes_udp",
            "A virtual router refuses a rule for UDP with 431; the switch is for a provider of another make.",
            ROUTER,
        ),
        read(
            "stats_port",
            "A virtual router refuses a rule for the port of its own statistics with 431.",
            ROUTER,
        ),
        read(
            "other_tiers_conflict",
            "A rule for another tier than that of its public address leads to the tier of the address; the switch refuses it with 537, as \
             servers do that know VPCs in conserve mode.",
            RULES,
        ),
        read(
            "protocol_updates",
            "An update stores the protocol of a rule, and the router hears of it with the next change; the switch ignores it or tells at once.",
            RULES,
        ),
        read(
            "firewall_ports_conflict",
            "Two firewall rules for a port conflict only if they name the same network; the switch refuses any second one.",
            CONFLICTS,
        ),
        Row::assumed(
            "firewall_takes_ipv6",
            "A firewall rule takes networks of IPv6.",
            "Not known: the router of an IPv4 address has no use for them.",
            |it, world| it.firewall_takes_ipv6 = world.pick(true, false),
        ),
        documented(
            "rate_limit",
            "More requests of an account than these are refused with 429.",
            SETTINGS,
        ),
        on_demand("maintenance", "Every command is refused with 503."),
        on_demand("refuses_jobs", "New jobs are refused with 503."),
        documented("quota", "What exceeds a limit is refused with 535.", SETTINGS),
        read(
            "the order of checks of a new rule",
            "Address and network first, then whether the router can carry it (431), then whether something has the port (537).",
            RULES,
        ),
        read(
            "port 53 on the address of source NAT",
            "It is refused with 431 where the network offers DNS.",
            RULES,
        ),
        read(
            "members",
            "A virtual machine that is a member already, or has no NIC in the network of the rule, fails the whole job with 431.",
            RULES,
        ),
        read(
            "the list of clients of a new rule",
            "It is stored with blanks between the networks.",
            RULES,
        ),
        read(
            "firewall rules of an address that is not `Allocated`",
            "They are refused with 431, as a question and as a command.",
            "`FirewallManagerImpl.listFirewallRules` of the management server.",
        ),
    ];
}
