//! Ports for servers that cannot choose one themselves.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux gives to connections and to servers that ask for any, so that none of those takes one
/// before the server binds it.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// How many this process has looked at.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// Ports of 127.0.0.1 that nobody listens on. This process gets none of them a second time before all have had their turn.
///
/// Another process can take one before the server binds it. Who starts servers tries again then.
///
/// # Errors
///
/// When nearly all are taken.
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free_port()?;
    }
    Ok(ports)
}

fn free_port() -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..COUNT {
        let looked_at = LOOKED_AT.fetch_add(1, Ordering::Relaxed);
        // Processes that run at once mostly have neighbouring numbers, and begin far from each other.
        let at = std::process::id().wrapping_mul(997).wrapping_add(looked_at) % COUNT;
        let port = u16::try_from(FIRST + at).map_err(io::Error::other)?;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let mut ports = free_ports::<20>().unwrap();
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
    }
}
