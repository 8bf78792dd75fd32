//! The way through an HTTP proxy, by `CONNECT` (RFC 9110, section 9.3.6).

use std::io;

use http::{HeaderValue, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::stream::{Stream, host_and_port};

/// The longest answer that is read, in bytes.
const LONGEST: usize = 8 << 10;

/// What is said of a proxy that does not take the credentials, or wants some.
pub(crate) const UNAUTHORIZED: &str =
    "it wants other credentials (407); name them in its URL, as in http://USER:PASSWORD@HOST:PORT";

pub(crate) async fn open(stream: Stream, auth: Option<&HeaderValue>, target: &Uri) -> io::Result<Stream> {
    let mut stream = TokioIo::new(stream);
    ask(&mut stream, auth, target).await?;
    Ok(stream.into_inner())
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    auth: Option<&HeaderValue>,
    target: &Uri,
) -> io::Result<()> {
    let (host, port) = host_and_port(target)?;
    let at = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let mut request = format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n").into_bytes();
    if let Some(auth) = auth {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(auth.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;

    let mut answer = Vec::new();
    // Byte by byte, so that nothing of what comes behind the head is taken from the target. It comes once per connection.
    while !answer.ends_with(b"\r\n\r\n") && !answer.ends_with(b"\n\n") {
        if answer.len() >= LONGEST {
            return Err(io::Error::other("its answer to CONNECT does not end"));
        }
        answer.push(stream.read_u8().await?);
    }
    match status(&answer) {
        Some(200) => Ok(()),
        Some(407) => Err(io::Error::other(UNAUTHORIZED)),
        Some(status) => Err(io::Error::other(format!(
            "it refused CONNECT with the status {status}"
        ))),
        None => Err(io::Error::other("its answer to CONNECT is not HTTP")),
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(answer.split(|byte| *byte == b'\n').next()?).ok()?;
    let mut words = text.trim_end().splitn(3, ' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the proxy is asked, and what comes of its answer.
    async fn asking(
        target: &'static str,
        auth: Option<&'static str>,
        answer: &'static str,
    ) -> (String, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(64 << 10);
        let auth = auth.map(HeaderValue::from_static);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        let target = Uri::from_static(target);
        let outcome = ask(&mut ours, auth.as_ref(), &target).await;
        let mut asked = vec![0; 4096];
        let length = theirs.read(&mut asked).await.unwrap();
        asked.truncate(length);
        let mut rest = String::new();
        if outcome.is_ok() {
            drop(theirs);
            ours.read_to_string(&mut rest).await.unwrap();
        }
        let outcome = outcome.map_or_else(|error| error.to_string(), |()| format!("open, then {rest:?}"));
        (String::from_utf8(asked).unwrap(), outcome)
    }

    #[tokio::test]
    async fn the_target_is_asked_for_with_the_credentials() {
        let (asked, outcome) = asking(
            "https://api:6443/x",
            Some("Basic eA=="),
            "HTTP/1.1 200 OK\r\nA: b\r\n\r\nfirst",
        )
        .await;
        assert_eq!(
            asked,
            "CONNECT api:6443 HTTP/1.1\r\nHost: api:6443\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        );
        // What comes behind the answer is the target's.
        assert_eq!(outcome, "open, then \"first\"");
        let (asked, _) = asking("https://[2001:db8::1]/", None, "HTTP/1.0 200\n\n").await;
        assert_eq!(
            asked,
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn what_is_no_consent_is_told() {
        for (answer, expected) in [
            (
                "HTTP/1.1 403 Forbidden\r\n\r\n",
                "it refused CONNECT with the status 403",
            ),
            (
                "HTTP/1.1 204 hunter2\r\n\r\n",
                "it refused CONNECT with the status 204",
            ),
            (
                "HTTP/1.1 407 \r\n\r\n",
                "it wants other credentials (407); name them in its URL, as in http://USER:PASSWORD@HOST:PORT",
            ),
            ("SSH-2.0-hunter2\r\n\r\n", "its answer to CONNECT is not HTTP"),
            ("HTTP/1.1 OK\r\n\r\n", "its answer to CONNECT is not HTTP"),
        ] {
            assert_eq!(asking("https://api/", None, answer).await.1, expected, "{answer}");
        }
        let endless: &'static str = "HTTP/1.1 200 OK\r\n".repeat(1000).leak();
        assert_eq!(
            asking("https://api/", None, endless).await.1,
            "its answer to CONNECT does not end"
        );
    }
}
