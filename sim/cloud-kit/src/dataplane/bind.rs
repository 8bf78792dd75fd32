//! Binding listeners on the loopback interface.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, UdpSocket};

/// Where to try, best first: the place itself, another port of its address, any port of the plain loopback address.
fn places(wanted: SocketAddr) -> Vec<SocketAddr> {
    let plain = match wanted.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let mut places = Vec::new();
    if wanted.ip().is_loopback() {
        places.extend([wanted, SocketAddr::new(wanted.ip(), 0)]);
    }
    places.push(SocketAddr::new(plain, 0));
    places
}

/// Binds a TCP listener and says where.
pub(super) async fn tcp(wanted: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let mut last = None;
    for place in places(wanted) {
        match TcpListener::bind(place).await {
            Ok(socket) => {
                let bound = socket.local_addr()?;
                return Ok((socket, bound));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

/// Binds a UDP socket and says where.
pub(super) async fn udp(wanted: SocketAddr) -> io::Result<(UdpSocket, SocketAddr)> {
    let mut last = None;
    for place in places(wanted) {
        match UdpSocket::bind(place).await {
            Ok(socket) => {
                let bound = socket.local_addr()?;
                return Ok((socket, bound));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_tried() {
        let outside = places("203.0.113.4:80".parse().unwrap());
        assert_eq!(outside, ["127.0.0.1:0".parse().unwrap()]);
        let inside = places("127.77.0.4:80".parse().unwrap());
        assert_eq!(inside.len(), 3);
        assert!(inside.iter().all(|place| place.ip().is_loopback()));
        assert_eq!(
            places("[2001:db8::4]:80".parse().unwrap()),
            ["[::1]:0".parse().unwrap()]
        );
    }
}
