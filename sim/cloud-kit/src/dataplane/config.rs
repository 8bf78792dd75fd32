//! What the data plane should be, as plain data.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use indexmap::IndexMap;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// All listeners and pools. Names of pools and members are the simulator's ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Listeners; of two at one place the later one counts.
    pub listeners: Vec<ListenerConfig>,
    /// Pools by id.
    pub pools: BTreeMap<String, PoolConfig>,
}

/// What is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A place where clients arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// What is carried.
    pub transport: Transport,
    /// The address clients are told.
    pub address: IpAddr,
    /// The port clients are told.
    pub port: u16,
    /// The pool's id; without one, connections are closed at once.
    pub pool: Option<String>,
    /// Clients that may come; everybody if empty.
    pub allowed: Vec<IpNet>,
    /// How long silence is borne.
    pub timeouts: Timeouts,
}

/// How long silence is borne. Zero is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Nothing from or to the client. Also the life of a UDP session without datagrams.
    pub client_idle: Duration,
    /// No connection to the member.
    pub member_connect: Duration,
    /// Nothing from or to the member.
    pub member_idle: Duration,
}

impl Default for Timeouts {
    /// 50 s, 5 s, 50 s, which is what OpenStack's Octavia and clouds built like it use.
    fn default() -> Self {
        Self {
            client_idle: Duration::from_secs(50),
            member_connect: Duration::from_secs(5),
            member_idle: Duration::from_secs(50),
        }
    }
}

/// How connections are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// In turn.
    RoundRobin,
    /// To the member with the fewest open connections.
    LeastConnections,
    /// The same client address goes to the same member while the set of usable members stays.
    SourceIp,
}

/// The PROXY protocol header that a member gets first on a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// The text form.
    V1,
    /// The binary form.
    V2,
}

/// Members and how they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// How connections are spread.
    pub algorithm: Algorithm,
    /// Header towards members.
    pub proxy: Option<ProxyVersion>,
    /// Members by id; their order is the order of turns.
    pub members: IndexMap<String, MemberConfig>,
    /// Without one, all enabled members are used.
    pub monitor: Option<MonitorConfig>,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// Where it is.
    pub address: IpAddr,
    /// Port for traffic.
    pub port: u16,
    /// Port for probes.
    pub monitor_port: u16,
    /// Whether it gets new connections.
    pub enabled: bool,
}

/// How members are watched.
///
/// The first probe decides alone; after it, `up_threshold` good ones in a row bring a member up and `down_threshold` bad
/// ones down. Until the first probe a member gets no connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// What is tried.
    pub probe: Probe,
    /// Time from one probe's start to the next one's.
    pub delay: Duration,
    /// Time for one probe.
    pub timeout: Duration,
    /// Good probes in a row.
    pub up_threshold: u32,
    /// Bad probes in a row.
    pub down_threshold: u32,
}

/// Status codes as the clouds write them: `200` or `200-204`.
pub fn codes(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some(low.trim().parse().ok()?..=high.trim().parse().ok()?)
}

/// What a monitor tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A TCP connection.
    Tcp,
    /// An HTTP request.
    Http {
        /// Over TLS, with any certificate.
        tls: bool,
        /// Method.
        method: String,
        /// Path.
        path: String,
        /// `Some` is version 1.1 with this host, or the member's address if the text is empty; `None` is version 1.0.
        host: Option<String>,
        /// Status codes that are good.
        expected: Vec<RangeInclusive<u16>>,
    },
    /// A TLS handshake, with any certificate.
    TlsHello,
    /// Echo requests need a privilege, so that this only asks whether the address is on this machine's loopback
    /// interface, where it always answers.
    Ping,
    /// A datagram that is not refused within the time-out.
    UdpConnect,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_one_or_a_range() {
        assert_eq!(codes("200"), Some(200..=200));
        assert_eq!(codes("200-204"), Some(200..=204));
        assert_eq!(codes("x"), None);
    }
}
