//! What differs between server versions and set-ups, or changes from day to day, as switches.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

const API: &str = "The API reference.";
const SETTINGS: &str = "The global settings in the administrator's manual.";
const RULES: &str = "`LoadBalancingRulesManagerImpl` of the management server.";
const ROUTER: &str = "`NetworkHelperImpl.validateHAProxyLBRule` of the management server.";
const CONFLICTS: &str = "`FirewallManagerImpl.detectRulesConflict` of the management server.";

bowline_cloud_kit::switches! {
    /// Switches that may be changed while the simulator runs.
    Behaviour {
        /// The server's version as it says it, such as `4.22.0.0`. Decides what rules' CIDR lists can do: none before 4.18,
        /// no changes before 4.22.
        version: String = "4.22.0.0".to_owned(),
            documented(API) "Before 4.18 a rule takes no list of clients, and before 4.22 none is changed.";
        /// The most items of one page, and of a list without pages. `None` is no limit.
        page_size: Option<usize> = Some(500),
            documented(SETTINGS) "A list has at most as many items, with the count of all.";
        /// The time that a job takes once those before it on its network are done. Its effect comes at the end.
        job_time as "job_time_ms" with "millis": Duration = Duration::ZERO,
            documented(API) "A command that changes something begins a job, which takes this time.";
        /// Whether a job is carried out by the poll that tells its end, so that one that nobody asks after never ends.
        jobs_wait_for_polls: bool = false,
            on_demand() "A job is carried out by the poll that tells its end.";
        /// Whether a job that never ends holds up those after it on its network, as a queue of a real server does. Otherwise its
        /// place in the queue is lost, as after a restart of the server.
        stuck_jobs_hold_up: bool = false,
            on_demand() "A job that never ends holds up those after it on its network.";
        /// Commands that ordinary users may not use.
        forbidden_to_users: BTreeSet<String> = BTreeSet::from(["listManagementServersMetrics".to_owned()]),
            documented("The roles in the administrator's manual.") "A role may lack a command.";
        /// Commands that root admins may not use.
        forbidden_to_admins: BTreeSet<String> = BTreeSet::new(),
            documented("The roles in the administrator's manual.") "A role may lack a command.";
        /// The status of a command that the caller may not use: 432, or 401 or 531 on some servers.
        forbidden_status: u16 = 432,
            on_demand() "The status of a command that the role lacks: 432, 401 or 531.";
        /// The status of a command that there is not.
        unknown_command_status: u16 = 432,
            on_demand() "The status of a command that there is not: 432 or 401.";
        /// Whether a change with any method but POST is refused with 405.
        post_only: bool = false,
            on_demand() "A change with any method but POST is refused with 405.";
        /// How far ahead `expires` may be; `None` is for ever.
        max_expiry as "max_expiry_s": Option<u64> = None,
            on_demand() "A signature that expires later than this is refused.";
        /// How many seconds the server's clock is ahead of the simulator's; negative if it is behind.
        clock_skew_s: i64 = 0,
            on_demand() "The server's clock is off.";
        /// Whether answers have a `Date`, as those that come through a proxy: the management server itself sends none.
        sends_date: bool = false,
            on_demand() "An answer has a `Date`, as behind a proxy; the server itself sends none.";
        /// Whether ordinary users see virtual machines that are destroyed and not yet expunged, as root admins do.
        users_see_destroyed: bool = false,
            documented(SETTINGS) "Users see virtual machines that are destroyed and not yet expunged.";
        /// Whether a rule is made on a public address that is still on its way to somebody.
        pending_addresses_take_rules: bool = false,
            read(RULES) "A rule is made only on an address that is `Allocated`; the switch takes any.";
        /// Whether a public address is not taken back as long as load balancer rules are on it.
        releases_refuse_rules: bool = false,
            on_demand() "A public address is not taken back as long as load balancer rules are on it.";
        /// Whether what is on a public address stays when it is taken back.
        releases_leave_rules: bool = false,
            on_demand() "What is on a public address stays when that is taken back.";
        /// Whether a second rule on a port of a public address is refused whatever its protocol. Servers that were mended take
        /// one for TCP and one for UDP.
        protocols_conflict: bool = true,
            assumed(false => true, "`FirewallManagerImpl.detectRulesConflict` has no exception for load balancer \
                 rules in any version that was read; the Go manager names its rules as if one had.")
            "A second rule on a port of a public address is refused with 537 whatever its protocol.";
        /// Whether rules for UDP are taken, as by a provider of load balancing of another make. The virtual router's haproxy cannot carry
        /// it (`NetworkHelperImpl.validateHAProxyLBRule`).
        takes_udp: bool = false,
            read(ROUTER)
            "A virtual router refuses a rule for UDP with 431; the switch is for a provider of another make.";
        /// The port at which the virtual router's haproxy tells its statistics, for which no rule is taken (the same method; the setting
        /// `network.loadbalancer.haproxy.stats.port`). A provider of another make has none.
        stats_port: Option<u16> = Some(8081),
            read(ROUTER) "A virtual router refuses a rule for the port of its own statistics with 431.";
        /// Whether a rule for another tier than that of its public address is refused. Otherwise nobody looks at the tier that is asked
        /// for, and the rule leads to that of the address (`LoadBalancingRulesManagerImpl.createPublicLoadBalancer`).
        other_tiers_conflict: bool = false,
            read(RULES)
            "A rule for another tier than that of its public address leads to the tier of the address; the switch \
             refuses it with 537, as servers do that know VPCs in conserve mode.";
        /// What becomes of the protocol of a rule that is updated.
        protocol_updates: ProtocolUpdates = ProtocolUpdates::Stored,
            read(RULES)
            "An update stores the protocol of a rule, and the router hears of it with the next change; the switch \
             ignores it or tells at once.";
        /// Whether a second firewall rule for a port of a public address is refused whatever its sources, and not only if both
        /// name the same network.
        firewall_ports_conflict: bool = false,
            read(CONFLICTS)
            "Two firewall rules for a port conflict only if they name the same network; the switch refuses any \
             second one.";
        /// Whether a firewall rule takes networks of IPv6. Servers that do say so to the API alone: the router of the network has no use
        /// for them on an address of IPv4.
        firewall_takes_ipv6: bool = false,
            assumed(true => false, "Not known: the router of an IPv4 address has no use for them.")
            "A firewall rule takes networks of IPv6.";
        /// Requests of an account in a time.
        rate_limit: Option<RateLimit> = None,
            documented(SETTINGS) "More requests of an account than these are refused with 429.";
        /// Whether every command is refused with 503.
        maintenance: bool = false,
            on_demand() "Every command is refused with 503.";
        /// Whether new jobs are refused with 503, as by a server that is shutting down.
        refuses_jobs: bool = false,
            on_demand() "New jobs are refused with 503.";
        /// Limits.
        quota: Quota = Quota::default(),
            documented(SETTINGS) "What exceeds a limit is refused with 535.";
    } and {
        "the order of checks of a new rule": read(RULES)
            "Address and network first, then whether the router can carry it (431), then whether something has the \
             port (537).";
        "port 53 on the address of source NAT": read(RULES) "It is refused with 431 where the network offers DNS.";
        "members": read(RULES)
            "A virtual machine that is a member already, has no NIC in the network of the rule, or belongs to another \
             account (`RulesManagerImpl.checkRuleAndUserVm`), fails the whole job with 431.";
        "stickiness policies": read(RULES)
            "A rule has one: a new one takes the place of the other when its job is carried out, and a third beside two \
             is refused with 431. Which methods and parameters there are is checked, and of their values only times and \
             sizes (`NetworkHelperImpl.validateHAProxyLBRule`). `AppCookie` is taken, and the router's haproxy cannot read it.";
        "the list of clients of a new rule": read(RULES) "It is stored with blanks between the networks.";
        "firewall rules of an address that is not `Allocated`":
            read("`FirewallManagerImpl.listFirewallRules` of the management server.")
            "They are refused with 431, as a question and as a command.";
    }
}

impl Behaviour {
    /// Balances by a provider of another make than the virtual router: it carries UDP and has no port of its own.
    pub fn carry_everything(&mut self) {
        (self.takes_udp, self.stats_port) = (true, None);
    }

    /// Whether the server is at least of this major and minor version.
    pub(crate) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.version.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().unwrap_or_default()
        });
        let version = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        version >= (major, minor)
    }
}

/// What a server makes of the protocol in an update of a load balancer rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolUpdates {
    /// It stores and lists it. The router is not told, until it is told something else.
    #[default]
    Stored,
    /// Nothing.
    Ignored,
    /// It stores it, and tells the router.
    Applied,
}

/// Limits of an owner; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Public addresses.
    pub addresses: Option<usize>,
}

/// The most requests of an account in a time; further ones are refused with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many.
    pub requests: usize,
    /// In which time.
    #[serde(rename = "per_ms", with = "millis")]
    pub per: Duration,
}

/// What goes wrong with jobs that are accepted from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFault {
    /// Only jobs of this command; all if absent.
    #[serde(default)]
    pub command: Option<String>,
    /// The first of these jobs that it strikes, counted from 1 since it was added.
    #[serde(default = "one")]
    pub nth: u64,
    /// How many of them in a row it strikes; for ever if `null`.
    #[serde(default = "once")]
    pub times: Option<u64>,
    /// What goes wrong.
    #[serde(default)]
    pub kind: JobFaultKind,
    /// The failed job's error code.
    #[serde(default = "internal_error")]
    pub code: u16,
    /// The failed job's text.
    #[serde(default = "injected")]
    pub text: String,
}

/// How a job goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobFaultKind {
    /// It fails without effect; what it was to make is gone.
    #[default]
    Undone,
    /// It says that it failed and has its effect all the same.
    Kept,
    /// It never ends and never has its effect. What it was to make stays as it is then.
    Stuck,
}

fn one() -> u64 {
    1
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn once() -> Option<u64> {
    Some(1)
}

fn internal_error() -> u16 {
    530
}

fn injected() -> String {
    "injected fault".to_owned()
}

impl JobFault {
    /// The next job fails with 530 and without effect.
    pub fn any() -> Self {
        Self {
            command: None,
            nth: one(),
            times: once(),
            kind: JobFaultKind::Undone,
            code: internal_error(),
            text: injected(),
        }
    }

    /// The next job of a command fails with 530 and without effect.
    pub fn of(command: &str) -> Self {
        Self {
            command: Some(command.to_owned()),
            ..Self::any()
        }
    }

    /// At this job, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth.max(1);
        self
    }

    /// At all of them from then on.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// With another code and text.
    pub fn saying(mut self, code: u16, text: &str) -> Self {
        (self.code, self.text) = (code, text.to_owned());
        self
    }

    /// With its effect, which it denies.
    pub fn kept(mut self) -> Self {
        self.kind = JobFaultKind::Kept;
        self
    }

    /// Without an end.
    pub fn stuck(mut self) -> Self {
        self.kind = JobFaultKind::Stuck;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let server = |version: &str| Behaviour {
            version: version.to_owned(),
            ..Behaviour::default()
        };
        assert!(server("4.22.0.0").is_at_least(4, 22));
        assert!(server("4.22").is_at_least(4, 18));
        assert!(!server("4.9.3.0").is_at_least(4, 18));
        assert!(!server("4").is_at_least(4, 18));
        assert!(server("5.0.0.0-SNAPSHOT").is_at_least(4, 22));
    }
}
