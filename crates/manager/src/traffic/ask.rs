//! One question to the workload, on a connection of its own.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// More than the workload ever says, in bytes.
const LONGEST: u64 = 16 << 10;

/// What the workload says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The pod that answers.
    pub(super) pod: String,
    /// Where the workload sees the question come from.
    pub(super) source: IpAddr,
    /// Where it comes from; `None`: from the API server.
    pub(super) own: Option<IpAddr>,
}

/// Asks what is at this address. HTTP/1.0 has the server close the connection, so that each question is a new one to the load balancer; no
/// proxy is asked, because the way of the packets is what is tried.
pub(super) async fn ask(address: SocketAddr) -> Result<Answer, String> {
    match timeout(ANSWERED_WITHIN, exchange(address)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", ANSWERED_WITHIN.as_secs())),
    }
}

async fn exchange(address: SocketAddr) -> Result<Answer, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(text)?;
    let own = stream.local_addr().map_err(text)?.ip();
    let request = format!("GET / HTTP/1.0\r\nHost: {address}\r\nUser-Agent: bowline\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut answer = Vec::new();
    stream
        .take(LONGEST)
        .read_to_end(&mut answer)
        .await
        .map_err(text)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.lines().next().unwrap_or_default() {
        "" => Err("the connection was closed without an answer".to_owned()),
        status if status.split(' ').nth(1) == Some("200") => read(body, Some(own)),
        status => Err(format!("it answers {status:?}")),
    }
}

/// Reads what the workload says of itself.
pub(super) fn read(body: &str, own: Option<IpAddr>) -> Result<Answer, String> {
    let value = |name: &str| {
        let line = body.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim_start_matches([' ', ':']).trim())
    };
    let source: Option<SocketAddr> = value("RemoteAddr").and_then(|text| text.parse().ok());
    match (value("Hostname"), source) {
        (Some(pod), Some(source)) => Ok(Answer {
            pod: pod.to_owned(),
            source: source.ip().to_canonical(),
            own,
        }),
        _ => Err(
            "what answers is not the workload: the lines `Hostname:` and `RemoteAddr:` are missing"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_tells_its_pod_and_whom_it_sees() {
        let body = "Hostname: pod-a\nIP: 10.1.0.7\nRemoteAddr: 192.0.2.9:4711\nGET / HTTP/1.0\n";
        let answer = read(body, None).unwrap();
        assert_eq!(
            (answer.pod.as_str(), answer.source.to_string()),
            ("pod-a", "192.0.2.9".to_owned())
        );
        let mapped = read("Hostname: a\nRemoteAddr: [2001:db8::1]:1\n", None).unwrap();
        assert_eq!(mapped.source.to_string(), "2001:db8::1");
        assert!(read("<html>welcome</html>", None).is_err());
    }
}
