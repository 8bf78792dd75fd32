use bowline_kube_io::{SystemClock, UserInfo};
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioExecutor;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::advance;

use super::*;
use crate::config::AccessConfig;
use crate::health::Health;
use crate::metrics::{BuildInfo, Metrics};
use crate::serving::{Authorities, Pages, Reviews, SiteParts};

const SECOND: Duration = Duration::from_secs(1);
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// An API server that takes its time over a token.
struct Slow(Duration);

impl Reviews for Slow {
    fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            Ok(None)
        })
    }

    fn access<'a>(&'a self, _: &'a UserInfo, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Ok(true) })
    }
}

/// A client's end of a connection that is served.
fn connect(is_http2: bool) -> DuplexStream {
    let site = Site::new(
        &AccessConfig::default(),
        SiteParts {
            health: Arc::new(Health::default()),
            metrics: Arc::new(Metrics::new(Registry::default(), &BuildInfo::default())),
            authorities: Authorities::nobody(),
            reviews: Some(Arc::new(Slow(IDLE_TIME * 2))),
            pages: Pages::default(),
            clock: Arc::new(SystemClock),
            debug: None,
        },
    );
    let handler = Handler::new(&ServingConfig::default(), Arc::new(site));
    let (client, server) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move { handler.serve(server, Arc::from([]), is_http2).await });
    client
}

/// Until the server closes: how long that takes from now, and what it says meanwhile.
async fn closed(client: &mut DuplexStream) -> (Duration, String) {
    let begun = Instant::now();
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
    (begun.elapsed(), String::from_utf8(said).unwrap())
}

/// One whole answer; its body is `ok`.
async fn answered(client: &mut DuplexStream) -> String {
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\nok") {
        assert_ne!(client.read_buf(&mut said).await.unwrap(), 0, "closed");
    }
    String::from_utf8(said).unwrap()
}

/// Within the grain of the timer.
#[track_caller]
fn assert_about(found: Duration, wanted: Duration) {
    assert!(found >= wanted && found < wanted + SECOND, "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_nothing_is_cut_off_after_32_seconds() {
    let (took, said) = closed(&mut connect(false)).await;
    assert_about(took, HEADER_TIME);
    assert_eq!(said, "");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_drips_its_headers_is_cut_off_all_the_same() {
    let mut client = connect(false);
    let begun = Instant::now();
    let mut drops = REQUEST.iter();
    while client.write_all(&[*drops.next().unwrap()]).await.is_ok() {
        assert!(begun.elapsed() < IDLE_TIME, "nobody cuts it off");
        tokio::time::sleep(SECOND * 4).await;
    }
    let whole_drops = SECOND * 4 + SECOND;
    assert!(begun.elapsed() >= HEADER_TIME && begun.elapsed() < HEADER_TIME + whole_drops);
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_rest_for_90_seconds_between_two_requests() {
    let mut client = connect(false);
    for _ in 0..3 {
        client.write_all(REQUEST).await.unwrap();
        assert!(answered(&mut client).await.starts_with("HTTP/1.1 200 "));
        // Longer than headers may take: the rest does not count as such.
        advance(IDLE_TIME - SECOND).await;
    }
    client.write_all(REQUEST).await.unwrap();
    answered(&mut client).await;
    let (took, said) = closed(&mut client).await;
    assert_about(took, IDLE_TIME);
    assert_eq!(said, "");
}

#[tokio::test(start_paused = true)]
async fn headers_of_a_second_request_have_to_come_in_time_as_well() {
    let mut client = connect(false);
    client.write_all(REQUEST).await.unwrap();
    answered(&mut client).await;
    advance(SECOND * 20).await;
    client.write_all(b"GET /healthz").await.unwrap();
    let (took, _) = closed(&mut client).await;
    assert_about(took, HEADER_TIME);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_long_is_no_rest() {
    let mut client = connect(false);
    client
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\n\r\n")
        .await
        .unwrap();
    let (took, said) = closed(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 401 "), "{said}");
    assert_about(took, IDLE_TIME * 2 + IDLE_TIME);
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_http2_may_rest_for_as_long() {
    let stream = TokioIo::new(connect(true));
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let mut ask = async || {
        let request = Request::get("https://localhost/healthz").body(Empty::<bytes::Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    assert_eq!(ask().await, "ok");
    tokio::time::sleep(IDLE_TIME - SECOND).await;
    assert_eq!(ask().await, "ok");
    let begun = Instant::now();
    connection.await.unwrap().unwrap();
    assert_about(begun.elapsed(), IDLE_TIME);
}
