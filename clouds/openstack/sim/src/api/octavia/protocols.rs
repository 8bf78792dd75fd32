//! Which protocols go together, which addresses members may have, and the words of Octavia's enums.

use std::net::IpAddr;

use crate::error::ApiError;
use crate::model::balancing::{ListenerProtocol, MonitorKind, PoolProtocol};
use serde_json::json;

pub(super) const LISTENER_PROTOCOLS: [&str; 7] = [
    "HTTP",
    "HTTPS",
    "PROMETHEUS",
    "SCTP",
    "TCP",
    "TERMINATED_HTTPS",
    "UDP",
];
pub(super) const POOL_PROTOCOLS: [&str; 7] = ["HTTP", "HTTPS", "PROXY", "PROXYV2", "SCTP", "TCP", "UDP"];
pub(super) const ALGORITHMS: [&str; 4] = ["LEAST_CONNECTIONS", "ROUND_ROBIN", "SOURCE_IP_PORT", "SOURCE_IP"];
pub(super) const MONITOR_KINDS: [&str; 7] =
    ["HTTP", "HTTPS", "PING", "SCTP", "TCP", "TLS-HELLO", "UDP-CONNECT"];
pub(super) const PERSISTENCE_KINDS: [&str; 3] = ["APP_COOKIE", "HTTP_COOKIE", "SOURCE_IP"];

/// Listeners of one load balancer that share a port space; datagrams and associations have one each.
pub(super) fn port_space(protocol: ListenerProtocol) -> u8 {
    match protocol {
        ListenerProtocol::Udp => 1,
        ListenerProtocol::Sctp => 2,
        _ => 0,
    }
}

/// As Octavia writes it.
pub(super) fn word(protocol: impl serde::Serialize) -> String {
    json!(protocol).as_str().unwrap_or_default().to_owned()
}

/// Refuses a pool that a listener cannot have.
pub(super) fn check_pool(listener: ListenerProtocol, pool: PoolProtocol) -> Result<(), ApiError> {
    use PoolProtocol as P;
    let fitting: &[P] = match listener {
        ListenerProtocol::Tcp => &[P::Tcp, P::Http, P::Https, P::Proxy, P::Proxyv2],
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => &[P::Http, P::Proxy, P::Proxyv2],
        ListenerProtocol::Https => &[P::Https, P::Tcp, P::Proxy, P::Proxyv2],
        ListenerProtocol::Udp => &[P::Udp],
        ListenerProtocol::Sctp => &[P::Sctp],
        ListenerProtocol::Prometheus => &[],
    };
    match fitting.contains(&pool) {
        true => Ok(()),
        false => Err(ApiError::invalid(format!(
            "The pool protocol '{}' is invalid while the listener protocol is '{}'.",
            word(pool),
            word(listener)
        ))),
    }
}

/// Refuses a monitor that a pool cannot have.
pub(super) fn check_monitor(pool: PoolProtocol, kind: MonitorKind) -> Result<(), ApiError> {
    use MonitorKind as M;
    let is_plain = matches!(pool, PoolProtocol::Udp | PoolProtocol::Sctp);
    match kind {
        M::Tcp | M::Http => Ok(()),
        M::UdpConnect | M::Sctp if is_plain => Ok(()),
        M::UdpConnect | M::Sctp => Err(ApiError::invalid(format!(
            "The {} type is only supported for pools of type UDP/SCTP.",
            word(kind)
        ))),
        _ if is_plain => Err(ApiError::invalid(format!(
            "The associated pool protocol is {}, so only a UDP-CONNECT/SCTP/TCP/HTTP health monitor is supported.",
            word(pool)
        ))),
        _ => Ok(()),
    }
}

/// An address that no member may have: `reserved_ips` of Octavia's configuration, where nobody set it.
pub(super) fn check_reserved(address: IpAddr) -> Result<(), ApiError> {
    match address == IpAddr::from([169, 254, 169, 254]) {
        false => Ok(()),
        true => Err(ApiError::invalid_option(address, "member address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<T: serde::de::DeserializeOwned>(word: &str) -> T {
        serde_json::from_value(json!(word)).unwrap()
    }

    #[test]
    fn pools_fit_the_listeners_that_octavia_lets_them_have() {
        for (listener, pools) in [
            ("TCP", "HTTP HTTPS PROXY PROXYV2 TCP"),
            ("HTTP", "HTTP PROXY PROXYV2"),
            ("TERMINATED_HTTPS", "HTTP PROXY PROXYV2"),
            ("HTTPS", "HTTPS PROXY PROXYV2 TCP"),
            ("UDP", "UDP"),
            ("SCTP", "SCTP"),
            ("PROMETHEUS", ""),
        ] {
            let fits = |pool: &&str| check_pool(parsed(listener), parsed(pool)).is_ok();
            let fitting: Vec<&str> = POOL_PROTOCOLS.into_iter().filter(fits).collect();
            assert_eq!(fitting.join(" "), pools, "{listener}");
        }
    }

    #[test]
    fn monitors_fit_the_pools_that_octavia_lets_them_watch() {
        for (pool, kinds) in [
            ("TCP", "HTTP HTTPS PING TCP TLS-HELLO"),
            ("PROXYV2", "HTTP HTTPS PING TCP TLS-HELLO"),
            ("UDP", "HTTP SCTP TCP UDP-CONNECT"),
            ("SCTP", "HTTP SCTP TCP UDP-CONNECT"),
        ] {
            let fits = |kind: &&str| check_monitor(parsed(pool), parsed(kind)).is_ok();
            let fitting: Vec<&str> = MONITOR_KINDS.into_iter().filter(fits).collect();
            assert_eq!(fitting.join(" "), kinds, "{pool}");
        }
    }
}
