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

/// A project's quotas in Octavia.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BalancerQuota {
    #[serde(default, alias = "loadbalancer")]
    pub(crate) load_balancer: Option<i64>,
}

impl Resource for BalancerQuota {
    const ONE: &'static str = "quota";
    const MANY: &'static str = "quotas";

    fn id(&self) -> &str {
        ""
    }
}
