//! The PROXY protocol header, versions 1 and 2 (haproxy, `doc/proxy-protocol.txt`).

use std::net::{IpAddr, SocketAddr};

use super::config::ProxyVersion;

const V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY.
const V2_PROXY: u8 = 0x21;

/// The bytes that go before those of the client: who it is, and which address it called.
pub(super) fn header(version: ProxyVersion, client: SocketAddr, called: SocketAddr) -> Vec<u8> {
    let addresses = (client.ip().to_canonical(), called.ip().to_canonical());
    match version {
        ProxyVersion::V1 => {
            let family = match addresses {
                (IpAddr::V4(_), IpAddr::V4(_)) => "TCP4",
                (IpAddr::V6(_), IpAddr::V6(_)) => "TCP6",
                // One of them cannot be said in the family of the other.
                _ => return b"PROXY UNKNOWN\r\n".to_vec(),
            };
            let (from, to) = addresses;
            format!(
                "PROXY {family} {from} {to} {} {}\r\n",
                client.port(),
                called.port()
            )
            .into_bytes()
        }
        ProxyVersion::V2 => {
            let (family, octets) = match addresses {
                (IpAddr::V4(from), IpAddr::V4(to)) => (0x11, [from.octets(), to.octets()].concat()),
                (IpAddr::V6(from), IpAddr::V6(to)) => (0x21, [from.octets(), to.octets()].concat()),
                _ => (0x00, Vec::new()),
            };
            let mut block = octets;
            if family != 0 {
                block.extend(client.port().to_be_bytes());
                block.extend(called.port().to_be_bytes());
            }
            let length = u16::try_from(block.len()).unwrap_or_default().to_be_bytes();
            [V2_SIGNATURE.as_slice(), &[V2_PROXY, family], &length, &block].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_a_line() {
        let header = |client: &str, called: &str| {
            let bytes = header(ProxyVersion::V1, client.parse().unwrap(), called.parse().unwrap());
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            header("127.0.0.1:4000", "127.77.0.10:443"),
            "PROXY TCP4 127.0.0.1 127.77.0.10 4000 443\r\n"
        );
        assert_eq!(
            header("[::1]:4000", "[2001:db8::4]:443"),
            "PROXY TCP6 ::1 2001:db8::4 4000 443\r\n"
        );
        assert_eq!(header("[::1]:4000", "127.77.0.10:443"), "PROXY UNKNOWN\r\n");
    }

    #[test]
    fn version_2_is_binary() {
        let bytes = header(
            ProxyVersion::V2,
            "127.0.0.1:258".parse().unwrap(),
            "127.77.0.10:443".parse().unwrap(),
        );
        let expected = [
            V2_SIGNATURE.as_slice(),
            &[0x21, 0x11, 0, 12, 127, 0, 0, 1, 127, 77, 0, 10, 1, 2, 1, 187],
        ]
        .concat();
        assert_eq!(bytes, expected);
        let six = header(
            ProxyVersion::V2,
            "[::1]:1".parse().unwrap(),
            "[::1]:2".parse().unwrap(),
        );
        assert_eq!((six[13], six[15], six.len()), (0x21, 36, 16 + 36));
    }
}
