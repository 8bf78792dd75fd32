//! The way through a SOCKS proxy of version 5 (RFC 1928), with user and password (RFC 1929) where it wants them.
//!
//! Names are looked up by the proxy, for `socks5` as for `socks5h`, as Go's library does.

use std::io;
use std::net::IpAddr;

use http::Uri;
use hyper_util::rt::TokioIo;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::proxy::Login;
use crate::stream::{Stream, host_and_port};

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
/// Ways to log in.
const NOTHING: u8 = 0;
const PASSWORD: u8 = 2;
/// Forms of an address.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

pub(crate) async fn open(stream: Stream, login: Option<&Login>, target: &Uri) -> io::Result<Stream> {
    let mut stream = TokioIo::new(stream);
    ask(&mut stream, login, target).await?;
    Ok(stream.into_inner())
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    login: Option<&Login>,
    target: &Uri,
) -> io::Result<()> {
    let (host, port) = host_and_port(target)?;
    // A proxy that wants no password may not know how to take one, so both ways are offered.
    let offer: &[u8] = match login {
        Some(_) => &[VERSION, 2, NOTHING, PASSWORD],
        None => &[VERSION, 1, NOTHING],
    };
    stream.write_all(offer).await?;
    stream.flush().await?;
    match (answer(stream).await?, login) {
        ([VERSION, NOTHING], _) => {}
        ([VERSION, PASSWORD], Some(login)) => {
            let mut words = vec![1];
            for word in [&login.user, login.password.expose_secret()] {
                words.push(u8::try_from(word.len()).map_err(io::Error::other)?);
                words.extend_from_slice(word);
            }
            stream.write_all(&words).await?;
            stream.flush().await?;
            if answer(stream).await? != [1, 0] {
                return Err(io::Error::other("it refused the user or the password of its URL"));
            }
        }
        ([VERSION, _], None) => {
            return Err(io::Error::other(
                "it wants a user and a password; name them in its URL, as in socks5://USER:PASSWORD@HOST:PORT",
            ));
        }
        ([VERSION, _], Some(_)) => return Err(io::Error::other("it takes no user and password")),
        _ => return Err(io::Error::other("it does not speak SOCKS version 5")),
    }

    let mut request = vec![VERSION, CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend_from_slice(&address.octets());
        }
        Err(_) => {
            let length = u8::try_from(host.len())
                .map_err(|_| io::Error::other("the target's name is too long for it"))?;
            request.extend_from_slice(&[NAME, length]);
            request.extend_from_slice(host.as_bytes());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await?;
    stream.flush().await?;

    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [VERSION, code, _, form] = head else {
        return Err(io::Error::other("it does not speak SOCKS version 5"));
    };
    if code != 0 {
        return Err(io::Error::other(refusal(code)));
    }
    // From where it connected, which nobody needs.
    let length = match form {
        IPV4 => 4,
        IPV6 => 16,
        NAME => stream.read_u8().await?.into(),
        _ => return Err(io::Error::other("it does not speak SOCKS version 5")),
    };
    let mut bound = vec![0; length + 2];
    stream.read_exact(&mut bound).await?;
    Ok(())
}

async fn answer<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; 2]> {
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

fn refusal(code: u8) -> &'static str {
    match code {
        2 => "it does not allow connections to the target",
        3 => "it finds no way to the target's network",
        4 => "it finds no way to the target",
        5 => "the target refused the connection",
        6 => "the target did not answer it in time",
        7 => "it makes no connections",
        8 => "it does not know this kind of address",
        _ => "it failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        Login {
            user: b"anna".to_vec(),
            password: b"pw".to_vec().into(),
        }
    }

    /// What the proxy is told, after it has said all of this, and what comes of it.
    async fn asking(target: &'static str, login: Option<Login>, says: &[u8]) -> (Vec<u8>, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        theirs.write_all(says).await.unwrap();
        theirs.shutdown().await.unwrap();
        let outcome = ask(&mut ours, login.as_ref(), &Uri::from_static(target)).await;
        drop(ours);
        let mut told = Vec::new();
        theirs.read_to_end(&mut told).await.unwrap();
        (
            told,
            outcome.map_or_else(|error| error.to_string(), |()| "open".to_owned()),
        )
    }

    #[tokio::test]
    async fn each_form_of_a_target_is_asked_for() {
        let consent = [5, 0, 5, 0, 0, 1, 10, 0, 0, 1, 1, 1];
        for (target, form) in [
            ("https://api:6443/", &b"\x03\x03api\x19\x2b"[..]),
            ("http://api/", b"\x03\x03api\x00\x50"),
            ("https://10.0.0.7/", b"\x01\x0a\x00\x00\x07\x01\xbb"),
            (
                "https://[2001:db8::1]/",
                b"\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb",
            ),
        ] {
            let (told, outcome) = asking(target, None, &consent).await;
            assert_eq!(outcome, "open");
            assert_eq!(told, [b"\x05\x01\x00\x05\x01\x00", form].concat(), "{target}");
        }
        for bound in [
            &[5, 0, 5, 0, 0, 3, 1, b'x', 1, 1][..],
            &[&[5, 0, 5, 0, 0, 4][..], &[0; 18]].concat(),
        ] {
            assert_eq!(asking("https://api/", None, bound).await.1, "open");
        }
    }

    #[tokio::test]
    async fn a_password_is_said_only_to_a_proxy_that_wants_it() {
        let rest = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let (told, outcome) = asking("https://a/", Some(login()), &[&[5, 2, 1, 0][..], &rest].concat()).await;
        assert_eq!(outcome, "open");
        assert!(
            told.starts_with(b"\x05\x02\x00\x02\x01\x04anna\x02pw\x05\x01"),
            "{told:?}"
        );
        let (told, outcome) = asking("https://a/", Some(login()), &[&[5, 0][..], &rest].concat()).await;
        assert_eq!(outcome, "open");
        assert!(!told.windows(4).any(|word| word == b"anna"), "{told:?}");
    }

    #[tokio::test]
    async fn what_is_no_consent_is_told() {
        for (login, says, expected) in [
            (None, &[5, 255][..], "it wants a user and a password"),
            (None, &[5, 2], "it wants a user and a password"),
            (Some(login()), &[5, 255], "it takes no user and password"),
            (
                Some(login()),
                &[5, 2, 1, 1],
                "it refused the user or the password",
            ),
            (None, b"HTTP/1.1 400", "it does not speak SOCKS version 5"),
            (None, &[5, 0, 5, 2, 0, 1], "it does not allow connections"),
            (None, &[5, 0, 5, 5, 0, 1], "the target refused"),
            (None, &[5, 0, 5, 99, 0, 1], "it failed"),
            (None, &[5, 0, 5, 0, 0, 9], "it does not speak SOCKS version 5"),
            (None, &[5, 0, 5], "eof"),
        ] {
            let (_, outcome) = asking("https://a/", login, says).await;
            assert!(outcome.contains(expected), "{says:?}: {outcome}");
        }
    }
}
