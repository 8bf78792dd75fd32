//! Choosing a member.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::{Algorithm, MemberConfig, PoolConfig, ProxyVersion};

/// A pool as it is used.
pub(super) struct PoolState {
    inner: Mutex<Inner>,
}

struct Inner {
    config: PoolConfig,
    /// What the probes found.
    health: BTreeMap<String, bool>,
    /// Open connections.
    open: BTreeMap<String, usize>,
    /// Connections given out so far.
    turn: usize,
}

/// A member that was chosen. Counts as an open connection while it lives.
pub(super) struct Chosen {
    pub(super) member: String,
    pub(super) address: SocketAddr,
    pub(super) proxy: Option<ProxyVersion>,
    pool: Arc<PoolState>,
}

impl Drop for Chosen {
    fn drop(&mut self) {
        let mut inner = self.pool.lock();
        if let Some(open) = inner.open.get_mut(&self.member) {
            *open -= 1;
            if *open == 0 {
                inner.open.remove(&self.member);
            }
        }
    }
}

impl PoolState {
    pub(super) fn new(config: PoolConfig) -> Self {
        let inner = Inner {
            config,
            health: BTreeMap::new(),
            open: BTreeMap::new(),
            turn: 0,
        };
        Self {
            inner: Mutex::new(inner),
        }
    }

    /// Takes a new description over. A member that is still at its place stays in use until a probe speaks against it:
    /// a change of the monitor is no reason to stop the traffic.
    pub(super) fn replace(&self, config: PoolConfig) {
        let mut inner = self.lock();
        let mut health = BTreeMap::new();
        if config.monitor.is_some() {
            for (id, member) in config.members.iter().filter(|(_, member)| member.enabled) {
                let Some(before) = inner.config.members.get(id) else {
                    continue;
                };
                if !before.enabled || (before.address, before.port) != (member.address, member.port) {
                    continue;
                }
                let known = if inner.config.monitor.is_some() {
                    inner.health.get(id).copied()
                } else {
                    Some(true)
                };
                health.extend(known.map(|up| (id.clone(), up)));
            }
        }
        inner.config = config;
        inner.health = health;
    }

    pub(super) fn health(&self, member: &str) -> Option<bool> {
        self.lock().health.get(member).copied()
    }

    /// Notes what a watch found; whether that is news.
    pub(super) fn set_health(&self, member: &str, up: bool) -> bool {
        self.lock().health.insert(member.to_owned(), up) != Some(up)
    }

    /// Whether a member may be used.
    pub(super) fn is_usable(&self, member: &str) -> bool {
        let inner = self.lock();
        inner
            .config
            .members
            .get(member)
            .is_some_and(|config| inner.usable(member, config))
    }

    /// The member for a new connection of a client.
    pub(super) fn choose(self: &Arc<Self>, client: IpAddr) -> Option<Chosen> {
        let mut inner = self.lock();
        let usable: Vec<(&String, &MemberConfig)> = inner
            .config
            .members
            .iter()
            .filter(|(id, config)| inner.usable(id, config))
            .collect();
        let count = usable.len();
        if count == 0 {
            return None;
        }
        let index = match inner.config.algorithm {
            Algorithm::RoundRobin => inner.turn % count,
            Algorithm::LeastConnections => {
                (0..count).min_by_key(|&index| inner.open_connections(usable[index].0))?
            }
            Algorithm::SourceIp => hash(client) % count,
        };
        let (id, config) = usable[index];
        let (member, address) = (id.clone(), SocketAddr::new(config.address, config.port));
        let proxy = inner.config.proxy;
        inner.turn = inner.turn.wrapping_add(1);
        *inner.open.entry(member.clone()).or_default() += 1;
        drop(inner);
        Some(Chosen {
            member,
            address,
            proxy,
            pool: Arc::clone(self),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn usable(&self, id: &str, config: &MemberConfig) -> bool {
        let up = self.config.monitor.is_none() || self.health.get(id) == Some(&true);
        // Nothing outside this machine is ever dialled.
        config.enabled && up && config.address.is_loopback()
    }

    fn open_connections(&self, id: &str) -> usize {
        self.open.get(id).copied().unwrap_or_default()
    }
}

/// The same on every machine and in every run: FNV-1a, then the finish of MurmurHash3, without which near addresses
/// have near hashes.
fn hash(client: IpAddr) -> usize {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    let start = 0xcbf2_9ce4_8422_2325;
    let mut hash = match client.to_canonical() {
        IpAddr::V4(address) => address.octets().into_iter().fold(start, step),
        IpAddr::V6(address) => address.octets().into_iter().fold(start, step),
    };
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    usize::try_from(hash >> 33).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::dataplane::config::{MonitorConfig, Probe};

    fn pool(algorithm: Algorithm, monitored: bool) -> Arc<PoolState> {
        let member = |port| MemberConfig {
            address: "127.0.0.1".parse().unwrap(),
            port,
            monitor_port: port,
            enabled: port != 9,
        };
        let members =
            [("a", 1), ("b", 2), ("c", 3), ("off", 9)].map(|(id, port)| (id.to_owned(), member(port)));
        let monitor = MonitorConfig {
            probe: Probe::Tcp,
            delay: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            up_threshold: 1,
            down_threshold: 1,
        };
        let monitor = monitored.then_some(monitor);
        Arc::new(PoolState::new(PoolConfig {
            algorithm,
            proxy: None,
            members: members.into(),
            monitor,
        }))
    }

    fn client(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn round_robin_takes_turns_among_enabled_members() {
        let pool = pool(Algorithm::RoundRobin, false);
        let turns: Vec<_> = (0..4)
            .map(|_| pool.choose(client(1)).unwrap().member.clone())
            .collect();
        assert_eq!(turns, ["a", "b", "c", "a"]);
    }

    #[test]
    fn least_connections_counts_open_ones() {
        let pool = pool(Algorithm::LeastConnections, false);
        let a = pool.choose(client(1)).unwrap();
        let b = pool.choose(client(1)).unwrap();
        let c = pool.choose(client(1)).unwrap();
        assert_eq!((&*a.member, &*b.member, &*c.member), ("a", "b", "c"));
        drop(b);
        assert_eq!(pool.choose(client(1)).unwrap().member, "b");
    }

    #[test]
    fn source_ip_sticks_and_spreads() {
        let pool = pool(Algorithm::SourceIp, false);
        let of = |last| pool.choose(client(last)).unwrap().member.clone();
        assert!((1..50).all(|last| of(last) == of(last)));
        let hit: std::collections::BTreeSet<_> = (1..50).map(of).collect();
        assert_eq!(hit.len(), 3);
    }

    #[test]
    fn monitored_member_is_used_only_while_up() {
        let pool = pool(Algorithm::RoundRobin, true);
        assert!(pool.choose(client(1)).is_none(), "not probed yet");
        assert!(pool.set_health("b", true));
        assert!(!pool.set_health("b", true), "no news");
        assert_eq!(pool.choose(client(1)).unwrap().member, "b");
        pool.set_health("b", false);
        assert!(pool.choose(client(1)).is_none());
    }
}
