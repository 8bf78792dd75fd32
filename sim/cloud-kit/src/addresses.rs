//! Counting through a range of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

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
