//! What a project may have (Networking API v2.0, "Show quota details for a tenant"; Load Balancer API v2, "Show Project Quota").

use serde::Deserialize;

use super::Resource;

/// How many objects of a kind there are, and may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// The most; -1 is no limit.
    pub limit: i64,
    /// Those that are there.
    pub used: i64,
    /// Those that are being made.
    #[serde(default)]
    pub reserved: i64,
}

/// A project's quotas in Neutron.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct NetworkQuota {
    pub(crate) floatingip: Option<Usage>,
}

impl Resource for NetworkQuota {
    const ONE: &'static str = "quota";
    const MANY: &'static str = "quotas";

    fn id(&self) -> &str {
        ""
    }
}

/// A project's quotas in Octavia, each the most objects of a kind; -1 is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BalancerQuota {
    /// Load balancers.
    #[serde(default, alias = "loadbalancer")]
    pub load_balancer: Option<i64>,
    /// Listeners.
    pub listener: Option<i64>,
    /// Pools.
    pub pool: Option<i64>,
    /// Members.
    pub member: Option<i64>,
    /// Health monitors.
    #[serde(default, alias = "healthmonitor")]
    pub health_monitor: Option<i64>,
}

impl Resource for BalancerQuota {
    const ONE: &'static str = "quota";
    const MANY: &'static str = "quotas";

    fn id(&self) -> &str {
        ""
    }
}
