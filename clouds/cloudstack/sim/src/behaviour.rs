//! What differs between server versions and set-ups, or changes from day to day, as switches.

mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

/// Switches that may be changed while the simulator runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// The server's version as it says it, such as `4.22.0.0`. Decides what rules' CIDR lists can do: none before 4.18,
    /// no changes before 4.22.
    pub version: String,
    /// The most items of one page, and of a list without pages. `None` is no limit.
    pub page_size: Option<usize>,
    /// The time that a job takes once those before it on its network are done. Its effect comes at the end.
    #[serde(rename = "job_time_ms", with = "millis")]
    pub job_time: Duration,
    /// The poll that is the first one to tell that a job is done.
    pub job_polls: u32,
    /// Whether a job is carried out by the poll that tells its end, so that one that nobody asks after never ends.
    pub jobs_wait_for_polls: bool,
    /// Whether a job that never ends holds up those after it on its network, as a queue of a real server does. Otherwise its
    /// place in the queue is lost, as after a restart of the server.
    pub stuck_jobs_hold_up: bool,
    /// Commands that ordinary users may not use.
    pub forbidden_to_users: BTreeSet<String>,
    /// Commands that root admins may not use.
    pub forbidden_to_admins: BTreeSet<String>,
    /// The status of a command that the caller may not use: 432, or 401 or 531 on some servers.
    pub forbidden_status: u16,
    /// The status of a command that there is not.
    pub unknown_command_status: u16,
    /// Whether a change with any method but POST is refused with 405.
    pub post_only: bool,
    /// How far ahead `expires` may be; `None` is for ever.
    #[serde(rename = "max_expiry_s")]
    pub max_expiry: Option<u64>,
    /// How many seconds the server's clock is ahead of the simulator's; negative if it is behind.
    pub clock_skew_s: i64,
    /// Whether answers have a `Date`, as those that come through a proxy: the management server itself sends none.
    pub sends_date: bool,
    /// Whether ordinary users see virtual machines that are destroyed and not yet expunged, as root admins do.
    pub users_see_destroyed: bool,
    /// Whether public addresses that nobody has are listed.
    pub lists_free_addresses: bool,
    /// Whether a rule is made on a public address that is still on its way to somebody.
    pub pending_addresses_take_rules: bool,
    /// Whether a public address is not taken back as long as load balancer rules are on it.
    pub releases_refuse_rules: bool,
    /// Whether what is on a public address stays when it is taken back.
    pub releases_leave_rules: bool,
    /// Whether a second rule on a port of a public address is refused whatever its protocol. Servers that were mended take
    /// one for TCP and one for UDP.
    pub protocols_conflict: bool,
    /// Whether rules for UDP are taken, as by a provider of load balancing of another make. The virtual router's haproxy cannot carry
    /// it (`NetworkHelperImpl.validateHAProxyLBRule`).
    pub takes_udp: bool,
    /// The port at which the virtual router's haproxy tells its statistics, for which no rule is taken (the same method; the setting
    /// `network.loadbalancer.haproxy.stats.port`). A provider of another make has none.
    pub stats_port: Option<u16>,
    /// Whether a rule for another tier than that of its public address is refused. Otherwise nobody looks at the tier that is asked
    /// for, and the rule leads to that of the address (`LoadBalancingRulesManagerImpl.createPublicLoadBalancer`).
    pub other_tiers_conflict: bool,
    /// What becomes of the protocol of a rule that is updated.
    pub protocol_updates: ProtocolUpdates,
    /// Whether a second firewall rule for a port of a public address is refused whatever its sources, and not only if both
    /// name the same network.
    pub firewall_ports_conflict: bool,
    /// Whether a firewall rule takes networks of IPv6. Servers that do say so to the API alone: the router of the network has no use
    /// for them on an address of IPv4.
    pub firewall_takes_ipv6: bool,
    /// Requests of an account in a time.
    pub rate_limit: Option<RateLimit>,
    /// Whether every command is refused with 503.
    pub maintenance: bool,
    /// Whether new jobs are refused with 503, as by a server that is shutting down.
    pub refuses_jobs: bool,
    /// Limits.
    pub quota: Quota,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            version: "4.22.0.0".to_owned(),
            page_size: Some(500),
            job_time: Duration::ZERO,
            job_polls: 2,
            jobs_wait_for_polls: false,
            stuck_jobs_hold_up: false,
            forbidden_to_users: BTreeSet::from(["listManagementServersMetrics".to_owned()]),
            forbidden_to_admins: BTreeSet::new(),
            forbidden_status: 432,
            unknown_command_status: 432,
            post_only: false,
            max_expiry: None,
            clock_skew_s: 0,
            sends_date: false,
            users_see_destroyed: false,
            lists_free_addresses: true,
            pending_addresses_take_rules: false,
            releases_refuse_rules: false,
            releases_leave_rules: false,
            protocols_conflict: true,
            takes_udp: false,
            stats_port: Some(8081),
            other_tiers_conflict: false,
            protocol_updates: ProtocolUpdates::Stored,
            firewall_ports_conflict: false,
            firewall_takes_ipv6: false,
            rate_limit: None,
            maintenance: false,
            refuses_jobs: false,
            quota: Quota::default(),
        }
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
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth.max(1);
        self
    }

    /// At all of them from then on.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// With another code and text.
    #[must_use]
    pub fn saying(mut self, code: u16, text: &str) -> Self {
        (self.code, self.text) = (code, text.to_owned());
        self
    }

    /// With its effect, which it denies.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.kind = JobFaultKind::Kept;
        self
    }

    /// Without an end.
    #[must_use]
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
