//! Ports for servers that cannot choose one themselves.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Ports of 127.0.0.1 that nobody listens on; held together until all are known, so that they differ.
///
/// Another process can take one before the server binds it. Who starts servers tries again then.
///
/// # Errors
///
/// When the system has no port left.
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
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
