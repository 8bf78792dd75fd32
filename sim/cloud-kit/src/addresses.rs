//! Ranges of addresses, and counting through them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// An IPv4 range; a prefix that is too long makes it a single address.
pub fn v4_range(octets: [u8; 4], prefix: u8) -> IpNet {
    let address = Ipv4Addr::from(octets);
    Ipv4Net::new(address, prefix).map_or_else(|_| IpNet::from(IpAddr::V4(address)), IpNet::V4)
}

/// An IPv6 range below the documentation prefix `2001:db8::/32`, whose next 16 bits are `third`.
pub fn documentation_v6_range(third: u16, prefix: u8) -> IpNet {
    let address = Ipv6Addr::new(0x2001, 0xdb8, third, 0, 0, 0, 0, 0);
    Ipv6Net::new(address, prefix).map_or_else(|_| IpNet::from(IpAddr::V6(address)), IpNet::V6)
}

/// How many addresses a range has, its first and last one included.
pub fn host_count(range: IpNet) -> u128 {
    1_u128
        .checked_shl(u32::from(range.max_prefix_len() - range.prefix_len()))
        .unwrap_or(u128::MAX)
}

/// The `host`th address of a range, counted from 0, which is the network's own.
pub fn nth(range: IpNet, host: u128) -> IpAddr {
    match range.network() {
        IpAddr::V4(base) => IpAddr::V4(Ipv4Addr::from(
            u32::from(base).wrapping_add(u32::try_from(host).unwrap_or(u32::MAX)),
        )),
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).wrapping_add(host))),
    }
}

/// The first address of a range after the network's own, if a host can have it.
pub fn first_host(range: IpNet) -> Option<IpAddr> {
    (host_count(range) > 2).then(|| nth(range, 1))
}

/// Which addresses of which range are in use, and where the search for the next one begins. Ranges are named by ids.
/// The host number `FIRST` is handed out first; those below are for routers and the like.
#[derive(Debug, Default)]
pub struct Leases<K, const FIRST: u64> {
    taken: BTreeSet<(K, IpAddr)>,
    cursors: BTreeMap<K, u128>,
}

impl<K: Copy + Ord, const FIRST: u64> Leases<K, FIRST> {
    /// Takes the next free address of a range, other than this one, in turn.
    pub fn next(&mut self, key: K, range: IpNet, other_than: Option<IpAddr>) -> Option<IpAddr> {
        let hosts = host_count(range);
        let first = u128::from(FIRST).min(hosts.saturating_sub(2)).max(1);
        let cursor = self.cursors.entry(key).or_insert(first);
        for _ in 0..hosts.min(1 << 20) {
            let host = *cursor;
            // Host 0 is the network and the last one the broadcast address.
            *cursor = if host + 2 >= hosts { 1 } else { host + 1 };
            let address = nth(range, host);
            if host + 1 < hosts && Some(address) != other_than && self.taken.insert((key, address)) {
                return Some(address);
            }
        }
        None
    }

    /// Takes one address; whether it was free.
    pub fn take(&mut self, key: K, address: IpAddr) -> bool {
        self.taken.insert((key, address))
    }

    /// Makes an address free.
    pub fn release(&mut self, key: K, address: IpAddr) {
        self.taken.remove(&(key, address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_from_the_network() {
        let range = "198.51.100.8/29".parse().unwrap();
        assert_eq!(host_count(range), 8);
        assert_eq!(nth(range, 2), "198.51.100.10".parse::<IpAddr>().unwrap());
        assert_eq!(first_host(range), "198.51.100.9".parse().ok());
        assert_eq!(first_host("198.51.100.8/31".parse().unwrap()), None);
        let long = "2001:db8::/32".parse().unwrap();
        assert_eq!(nth(long, 0x1_0000), "2001:db8::1:0".parse::<IpAddr>().unwrap());
    }
}
