//! Addresses of this demo's own on the loopback interface.
//!
//! Two demos on one machine must not meet: with the same seed they have the same node ports. So each takes a block of
//! addresses, and holds it with a socket.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;

/// The first and the last second octet that are tried. The first few are often in use, as by resolvers at 127.0.0.53
/// and Debian's 127.0.1.1.
const BLOCKS: std::ops::RangeInclusive<u8> = 10..=250;

/// The port of a kubelet, which nobody listens on for real in these addresses.
const HELD_PORT: u16 = 10250;

/// A block of 127/8, free for others again when this is dropped.
pub(crate) struct Block {
    octet: u8,
    _held: Option<TcpListener>,
}

impl Block {
    pub(crate) fn take() -> anyhow::Result<Self> {
        for octet in BLOCKS {
            match TcpListener::bind((Ipv4Addr::new(127, octet, 0, 1), HELD_PORT)) {
                Ok(listener) => {
                    return Ok(Self {
                        octet,
                        _held: Some(listener),
                    });
                }
                // Only 127.0.0.1 can be bound here: everything will be at ports of that, which nobody else can have.
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    return Ok(Self { octet, _held: None });
                }
                Err(_) => {}
            }
        }
        Err(io::Error::from(io::ErrorKind::AddrInUse)).context("all loopback addresses are taken")
    }

    /// For nodes, in CIDR notation.
    pub(crate) fn nodes(&self) -> String {
        format!("127.{}.0.0/24", self.octet)
    }

    /// For load balancers, in CIDR notation.
    pub(crate) fn balancers(&self) -> String {
        format!("127.{}.1.0/24", self.octet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_demos_share_addresses() {
        let one = Block::take().unwrap();
        let other = Block::take().unwrap();
        assert!(one._held.is_none() || one.nodes() != other.nodes());
        assert_ne!(one.nodes(), one.balancers());
    }
}
