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
/// Longer than a connection may rest.
const REVIEW_TIME: Duration = Duration::from_secs(180);
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// An API server that takes its time over a token.
struct Slow;

impl Reviews for Slow {
    fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        Box::pin(async {
            tokio::time::sleep(REVIEW_TIME).await;
            Ok(None)
        })
    }

    fn access<'a>(&'a self, _: &'a UserInfo, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Ok(true) })
    }
}

/// A client's end of a connection that is served.
fn connect(is_http2: bool) -> DuplexStream {
    connect_to(&ServingConfig::default(), is_http2)
}

fn connect_to(config: &ServingConfig, is_http2: bool) -> DuplexStream {
    let site = Site::new(
        &AccessConfig::default(),
        SiteParts {
            health: Arc::new(Health::default()),
            metrics: Arc::new(Metrics::new(Registry::default(), &BuildInfo::default())),
            authorities: Authorities::nobody(),
            reviews: Some(Arc::new(Slow)),
            pages: Pages::default(),
            clock: Arc::new(SystemClock),
            debug: None,
        },
    );
    let handler = Handler::new(config, Arc::new(site));
    let (near, far) = tokio::io::duplex(1 << 16);
    let (client, allowance) = (Arc::default(), Allowance::default());
    tokio::spawn(async move { handler.serve(far, &client, allowance, is_http2).await });
    near
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
    assert_about(took, REVIEW_TIME + IDLE_TIME);
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

/// A request with a header section of about this many bytes.
fn request_of(bytes: usize) -> Vec<u8> {
    let padding = "x".repeat(bytes);
    format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\npadding: {padding}\r\n\r\n").into_bytes()
}

/// Writes as much as is taken.
async fn say(client: &mut DuplexStream, bytes: &[u8]) {
    let _ = client.write_all(bytes).await;
}

#[tokio::test(start_paused = true)]
async fn headers_of_33_kib_are_refused_and_those_of_31_are_not() {
    let mut client = connect(false);
    client.write_all(&request_of(31 * 1024)).await.unwrap();
    assert!(answered(&mut client).await.starts_with("HTTP/1.1 200 "));
    say(&mut client, &request_of(33 * 1024)).await;
    let (_, said) = closed(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn headers_that_never_end_are_refused_at_32_kib() {
    let mut client = connect(false);
    let header = request_of(1 << 20);
    say(&mut client, &header[..header.len() - 4]).await;
    let (_, said) = closed(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn more_than_a_hundred_headers_are_refused() {
    let mut client = connect(false);
    let many = "a: b\r\n".repeat(101);
    say(
        &mut client,
        format!("GET /healthz HTTP/1.1\r\n{many}\r\n").as_bytes(),
    )
    .await;
    let (_, said) = closed(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_too_long_is_not_repeated() {
    let mut client = connect(false);
    let path = "\"".repeat(2000);
    say(
        &mut client,
        format!("GET /{path} HTTP/1.1\r\nconnection: close\r\n\r\n").as_bytes(),
    )
    .await;
    let (_, said) = closed(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 414 ") && said.len() < 500, "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_does_not_hold_up_its_answer() {
    for head in ["content-length: 1000000000", "transfer-encoding: chunked"] {
        let mut client = connect(false);
        let request = format!("POST /healthz HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let (took, said) = closed(&mut client).await;
        assert!(said.starts_with("HTTP/1.1 405 "), "{said}");
        assert!(took < SECOND * 2, "{took:?}");
    }
}

/// The preface of HTTP/2 with settings that change nothing.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The next frame: its kind and its payload.
async fn next_frame(client: &mut DuplexStream) -> (u8, Vec<u8>) {
    let mut head = [0; 9];
    client.read_exact(&mut head).await.unwrap();
    let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    client.read_exact(&mut payload).await.unwrap();
    (head[3], payload)
}

/// `GET https /healthz`, from the table of HPACK.
const HEADERS: &[u8] = b"\x82\x87\x44\x08/healthz\x41\x01a";
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

async fn http2(config: &ServingConfig) -> (DuplexStream, std::collections::BTreeMap<u16, u32>) {
    let mut client = connect_to(config, true);
    client.write_all(PREFACE).await.unwrap();
    let (kind, payload) = next_frame(&mut client).await;
    assert_eq!(kind, 4, "settings come first");
    let settings = payload
        .chunks(6)
        .map(|it| {
            let value = u32::from_be_bytes([it[2], it[3], it[4], it[5]]);
            (u16::from_be_bytes([it[0], it[1]]), value)
        })
        .collect();
    (client, settings)
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_is_told_of_few_streams_small_windows_and_short_headers() {
    let (_client, settings) = http2(&ServingConfig::default()).await;
    let (streams, window, headers) = (3, 4, 6);
    assert_eq!(settings[&streams], HTTP2_STREAMS);
    assert_eq!(settings[&window], HTTP2_WINDOW);
    assert_eq!(settings[&headers], MAX_HEADER_LIST);

    let config = ServingConfig {
        http2_streams: Some(100_000),
        ..ServingConfig::default()
    };
    assert_eq!(http2(&config).await.1[&streams], MAX_HTTP2_STREAMS);
}

/// Sends frames until the server has had enough, and gives its reason; `None` if it takes them all.
async fn fed_up(frames: impl Iterator<Item = Vec<u8>>) -> Option<u32> {
    let (client, _) = http2(&ServingConfig::default()).await;
    let (mut reader, mut writer) = tokio::io::split(client);
    let send = async {
        for frame in frames {
            if writer.write_all(&frame).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    };
    let mut said = Vec::new();
    let (_, read) = tokio::join!(send, reader.read_to_end(&mut said));
    read.unwrap();
    let mut left = said.as_slice();
    while let [0, high, low, kind, _, _, _, _, _, rest @ ..] = left {
        let (payload, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        let reason = payload
            .get(4..8)
            .map_or(0, |it| u32::from_be_bytes(it.try_into().unwrap()));
        if *kind == 7 && reason != 0 {
            return Some(reason);
        }
        left = rest;
    }
    None
}

const ENHANCE_YOUR_CALM: u32 = 11;

#[tokio::test(start_paused = true)]
async fn streams_that_are_taken_back_at_once_end_the_connection() {
    let streams = (0..1000).map(|n| {
        let stream = 2 * n + 1;
        let mut frames = frame(1, END_HEADERS | END_STREAM, stream, HEADERS);
        frames.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
        frames
    });
    assert_eq!(fed_up(streams).await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test(start_paused = true)]
async fn streams_beyond_the_bound_end_the_connection() {
    // Without an end, so that none of them is answered.
    let streams = (0..1000).map(|n| frame(1, END_HEADERS, 2 * n + 1, HEADERS));
    assert_eq!(fed_up(streams).await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test(start_paused = true)]
async fn headers_that_go_on_in_frame_after_frame_end_the_connection() {
    let first = std::iter::once(frame(1, 0, 1, HEADERS));
    let more = (0..1000).map(|_| frame(9, 0, 1, b""));
    assert_eq!(fed_up(first.chain(more)).await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test(start_paused = true)]
async fn headers_of_17_kib_over_http2_are_refused() {
    let stream = TokioIo::new(connect(true));
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/healthz").header("padding", "x".repeat(17 * 1024));
    let response = sender
        .send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap())
        .await;
    assert_eq!(response.unwrap().status(), 431);
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_asks_for_nothing_is_cut_off_after_32_seconds() {
    let (mut client, _) = http2(&ServingConfig::default()).await;
    let begun = Instant::now();
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
    assert_about(begun.elapsed(), HEADER_TIME);
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_connection_are_answered_at_a_bounded_pace() {
    for is_http2 in [false, true] {
        let begun = Instant::now();
        if is_http2 {
            let (client, _) = http2(&ServingConfig::default()).await;
            let (mut reader, mut writer) = tokio::io::split(client);
            for n in 0..4 + 32 {
                // One after the other: more at once would be refused.
                writer
                    .write_all(&frame(1, END_HEADERS | END_STREAM, 2 * n + 1, HEADERS))
                    .await
                    .unwrap();
                let mut said = Vec::new();
                while !said.ends_with(b"ok") && !said.ends_with(b"\0\0") {
                    assert_ne!(reader.read_buf(&mut said).await.unwrap(), 0, "closed");
                }
            }
        } else {
            let mut client = connect(false);
            client.write_all(&REQUEST.repeat(4 + 32)).await.unwrap();
            let mut said = Vec::new();
            while said.windows(2).filter(|it| it == b"ok").count() < 4 + 32 {
                assert_ne!(client.read_buf(&mut said).await.unwrap(), 0, "closed");
            }
        }
        assert_about(begun.elapsed(), SECOND);
    }
}
