//! Sockets, and the pools of connections over them, as both stacks take them.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connector::{Connector, Sockets};
use crate::fence::Fenced;
use crate::names::{Names, OnLookup};

/// A peer that has died without a word is found out within 45 s: by probes on a connection on which nothing happens, at
/// the latest after 15 + 3 x 5 s, and otherwise when nothing that was sent is acknowledged for 30 s.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// How long an unused connection is kept, as in Go: longer than the pauses between the controllers' passes, shorter than
/// what middleboxes remember.
const IDLE: Duration = Duration::from_secs(90);

/// What one connection buffers of an answer at most, in bytes; also the longest head of an answer. Left to itself a buffer
/// that once saw a long list grows to 400 KiB and stays so for as long as the connection. TLS hands over no more at a time.
const READ_BUFFER: usize = 16 * 1024;

/// Makes sockets; several addresses of a host share `limit`, so that a dead one does not use it up.
pub fn tcp(limit: Duration, on_lookup: Option<OnLookup>) -> HttpConnector<Names> {
    let mut tcp = HttpConnector::new_with_resolver(Names {
        resolver: GaiResolver::new(),
        on_lookup,
    });
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(limit));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

/// A client that keeps its connections for later requests.
pub fn pool<S, B>(connector: Connector<S>) -> Client<Connector<S>, B>
where
    S: Sockets,
    B: Body<Data: Send> + Send,
{
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http1_max_buf_size(READ_BUFFER)
        // A connection that a firewall forgot is found before the next call runs into its timeout.
        .http2_keep_alive_interval(Duration::from_secs(30))
        .http2_keep_alive_timeout(Duration::from_secs(10))
        .build(connector)
}

/// The pool that both stacks have outside of tests.
pub type Pool = Client<Connector<HttpConnector<Names>>, Fenced<Full<Bytes>>>;

/// Sends a request. Its use is that it is not generic: so the client's code for these types is compiled with this crate,
/// and the crates above find it there instead of having a copy each.
pub fn send(pool: &Pool, request: Request<Fenced<Full<Bytes>>>) -> ResponseFuture {
    pool.request(request)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tower::Service as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_peer_that_has_died_without_a_word_is_found_out_by_the_kernel_within_45_s() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = format!("http://{}", listener.local_addr().unwrap());
        let io = tcp(10 * SECOND, None)
            .call(target.parse().unwrap())
            .await
            .unwrap();
        let stream = io.into_inner();
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let idle = socket.tcp_keepalive_time().unwrap();
        let probes = socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert!(idle + probes <= 45 * SECOND, "{idle:?} {probes:?}");
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(30 * SECOND));
    }
}
