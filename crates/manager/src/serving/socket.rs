//! The listening socket.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::ServingError;
use super::holder::{PROC, holder};
use crate::config::ServingConfig;

/// Waiting connections that the system keeps. At the pace that [`places`](super::places) leaves to one address, the last
/// one waits for 0.9 s.
const BACKLOG: u32 = 1024;

/// What the system keeps of a connection that nobody reads, in bytes: a cluster counts it as memory of the container.
/// Requests are short, and answers are taken at once by those who want them.
const RECEIVED: u32 = 16 * 1024;
const SENT: u32 = 64 * 1024;

/// Listens on the configured address. An unspecified address means all interfaces of both families, where the computer
/// has IPv6.
pub(super) fn listen(config: &ServingConfig) -> Result<TcpListener, ServingError> {
    let address = SocketAddr::new(config.address, config.port);
    if config.address.is_unspecified() {
        let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), config.port);
        match open(config, both) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                return Err(taken(address, error));
            }
            // No IPv6 on this machine.
            Err(_) => {}
        }
    }
    open(config, address).map_err(|source| taken(address, source))
}

fn taken(address: SocketAddr, source: std::io::Error) -> ServingError {
    let holder = match source.kind() {
        std::io::ErrorKind::AddrInUse => holder(Path::new(PROC), address.port()),
        _ => String::new(),
    };
    ServingError::Listen {
        address,
        source,
        holder,
    }
}

fn open(config: &ServingConfig, address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // Go's listeners always do; without it a restart would wait for old connections to linger out.
    socket.set_reuseaddr(true)?;
    if config.shares_port {
        socket.set_reuseport(true)?;
    }
    socket.set_recv_buffer_size(RECEIVED)?;
    socket.set_send_buffer_size(SENT)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Confirms at once what was received so far. Many clients hold their request back until the end of their handshake is
/// confirmed (Nagle's algorithm), and the system takes 40 ms over that if there is nothing to send.
pub(super) fn confirm(stream: &TcpStream) {
    // It is a wish: without it the request comes later.
    #[cfg(target_os = "linux")]
    let _ = stream.set_quickack(true);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}
