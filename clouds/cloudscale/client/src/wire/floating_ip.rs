//! Floating IPs (cloudscale.ch API, "Floating IPs").

use serde::Deserialize;

use super::{FloatingIpType, LoadBalancerId, ServerId, Slug, Stub};

/// A floating IP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    /// The address with its length, e.g. `198.51.100.7/32`. The part before the slash is the id in URLs.
    pub network: String,
    /// 4 or 6.
    pub ip_version: Option<u8>,
    /// The server that it leads to.
    pub server: Option<Stub<ServerId>>,
    /// The load balancer that it leads to.
    pub load_balancer: Option<Stub<LoadBalancerId>>,
    /// Where it may go.
    #[serde(rename = "type", default)]
    pub kind: Option<FloatingIpType>,
    /// Its region; `None` for a global one.
    pub region: Option<Slug>,
}
