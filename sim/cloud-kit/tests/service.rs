//! A small cloud behind the service: journal, faults and the two ways to call it.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_cloud_kit::{
    Arrival, Clock, Cloud, CloudService, Fault, Outcome, Reply, TransportError, serve, serve_connection,
    service,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Counts its writes and answers with the count.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Cloud for Counter {
    fn lanes(&self, request: &Request<Bytes>) -> Vec<String> {
        vec![request.uri().path().to_owned()]
    }

    fn handle(&self, request: Request<Bytes>, _arrival: Arrival) -> BoxFuture<'static, Reply> {
        let write = self.is_write(&request);
        let count = self.0.fetch_add(usize::from(write), Ordering::SeqCst) + usize::from(write);
        Box::pin(async move { service::json(StatusCode::OK, &serde_json::json!({ "count": count })) })
    }
}

fn cloud() -> (Counter, CloudService) {
    let counter = Counter::default();
    (counter.clone(), CloudService::new(counter, Clock::default()))
}

fn request(method: Method, path: &str) -> Request<Empty<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Empty::new())
        .unwrap()
}

async fn send(service: &CloudService, method: Method, path: &str) -> Result<(u16, String), TransportError> {
    let response = service.send(request(method, path)).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test(start_paused = true)]
async fn lost_answer_leaves_the_effect() {
    let (counter, service) = cloud();
    service.faults().add(Fault::write().nth(2).lose_answer());
    assert_eq!(send(&service, Method::POST, "/a").await.unwrap().0, 200);
    assert_eq!(
        send(&service, Method::POST, "/a").await,
        Err(TransportError::Dropped)
    );
    assert_eq!(counter.0.load(Ordering::SeqCst), 2);
    let entries = service.journal().entries();
    assert_eq!(
        (entries[1].outcome, entries[1].handled),
        (Some(Outcome::Dropped), Some(200))
    );
}

#[tokio::test(start_paused = true)]
async fn drop_before_has_no_effect() {
    let (counter, service) = cloud();
    service.faults().add(Fault::on(Method::POST, "/a").drop_before());
    assert_eq!(
        send(&service, Method::POST, "/a").await,
        Err(TransportError::Dropped)
    );
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    assert_eq!(service.journal().entries()[0].handled, None);
}

#[tokio::test(start_paused = true)]
async fn answers_can_be_made_up_truncated_and_broken() {
    let (_, service) = cloud();
    let faults = service.faults();
    faults.add(Fault::path("/429").too_many_requests(Duration::from_secs(7)));
    faults.add(Fault::path("/html").html(502));
    faults.add(Fault::path("/short").truncate(5));
    faults.add(Fault::path("/empty").empty(200));
    faults.add(Fault::path("/broken").break_body(5));
    faults.add(Fault::path("/after").status_after(500));
    let throttled = service.send(request(Method::GET, "/429")).await.unwrap();
    assert_eq!(
        (throttled.status().as_u16(), &throttled.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    assert!(
        send(&service, Method::GET, "/html")
            .await
            .unwrap()
            .1
            .starts_with("<html>")
    );
    assert_eq!(
        send(&service, Method::GET, "/short").await.unwrap(),
        (200, r#"{"cou"#.to_owned())
    );
    assert_eq!(
        send(&service, Method::GET, "/empty").await.unwrap(),
        (200, String::new())
    );
    assert_eq!(
        send(&service, Method::GET, "/broken").await,
        Err(TransportError::BrokenBody)
    );
    assert_eq!(send(&service, Method::POST, "/after").await.unwrap().0, 500);
    assert_eq!(
        send(&service, Method::GET, "/count").await.unwrap().1,
        r#"{"count":1}"#
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_request_is_given_up_and_delay_takes_virtual_time() {
    let (counter, service) = cloud();
    service.faults().add(Fault::path("/hang").hang_after());
    service
        .faults()
        .add(Fault::path("/slow").delay(Duration::from_secs(3)));
    let hung = tokio::time::timeout(Duration::from_secs(20), send(&service, Method::POST, "/hang")).await;
    assert!(hung.is_err());
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    let begin = tokio::time::Instant::now();
    send(&service, Method::GET, "/slow").await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 3);
    let outcomes: Vec<_> = service
        .journal()
        .entries()
        .iter()
        .map(|entry| entry.outcome)
        .collect();
    assert_eq!(outcomes, [Some(Outcome::Hung), Some(Outcome::Answered(200))]);
}

#[tokio::test(start_paused = true)]
async fn a_late_effect_comes_after_its_lost_answer() {
    let (counter, service) = cloud();
    let late = Fault::path("/a").take_effect_late(Duration::from_secs(10));
    service.faults().add(late);
    let lost = send(&service, Method::POST, "/a").await;
    assert_eq!(lost, Err(TransportError::Dropped));
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn request_whose_caller_gave_up_is_still_carried_out() {
    let (counter, service) = cloud();
    service.set_latency(Duration::from_secs(30));
    let given_up = tokio::time::timeout(Duration::from_secs(20), send(&service, Method::POST, "/a")).await;
    assert!(given_up.is_err());
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    assert_eq!(service.journal().entries()[0].outcome, Some(Outcome::Abandoned));
}

#[tokio::test(start_paused = true)]
async fn simultaneous_writes_on_one_lane_are_recorded() {
    let (_, service) = cloud();
    let both = futures::future::join(
        send(&service, Method::POST, "/a"),
        send(&service, Method::POST, "/a"),
    );
    both.await.0.unwrap();
    assert_eq!(service.journal().overlaps().len(), 1);
    let apart = futures::future::join(
        send(&service, Method::POST, "/b"),
        send(&service, Method::GET, "/b"),
    );
    apart.await.0.unwrap();
    assert_eq!(service.journal().overlaps().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn faults_are_set_over_the_admin_path() {
    let (_, service) = cloud();
    let rule = r#"{"path":"/a","action":{"kind":"answer","status":503}}"#;
    let post = Request::post("/_sim/faults").body(rule.to_owned()).unwrap();
    assert_eq!(service.send(post).await.unwrap().status(), 201);
    assert_eq!(send(&service, Method::GET, "/a").await.unwrap().0, 503);
    let listed = send(&service, Method::GET, "/_sim/faults").await.unwrap().1;
    assert!(listed.contains(r#""struck":1"#), "{listed}");
    assert_eq!(
        send(&service, Method::DELETE, "/_sim/faults/1").await.unwrap().0,
        204
    );
    assert_eq!(
        send(&service, Method::DELETE, "/_sim/faults/1").await.unwrap().0,
        404
    );
    assert_eq!(service.journal().len(), 1, "admin requests are not recorded");
}

/// Sends raw HTTP and reads until the server closes.
async fn raw(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset is as good as an end here: the connection is gone.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(start_paused = true)]
async fn in_memory_stream_carries_http_under_a_paused_clock() {
    let (_, service) = cloud();
    service.set_latency(Duration::from_secs(3600));
    let (mut client, server) = tokio::io::duplex(1024);
    let serving = tokio::spawn(serve_connection(server, service));
    client
        .write_all(b"GET /a HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with(r#"{"count":0}"#), "{answer}");
    serving.await.unwrap();
}

#[tokio::test]
async fn socket_shows_answers_and_dropped_connections() {
    let (counter, service) = cloud();
    service.faults().add(Fault::path("/lost").lose_answer());
    service.faults().add(Fault::path("/broken").break_body(4));
    service.faults().add(Fault::path("/hang").hang_before());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = serve(listener, service.clone()).unwrap();
    let address = server.address();
    assert!(raw(address, "/a").await.ends_with(r#"{"count":1}"#));
    assert_eq!(raw(address, "/lost").await, "");
    let broken = raw(address, "/broken").await;
    assert!(
        broken.contains("content-length: 11") && !broken.contains("count\""),
        "{broken}"
    );
    assert_eq!(counter.0.load(Ordering::SeqCst), 3);
    let hung = tokio::spawn(async move { raw(address, "/hang").await });
    let begin = tokio::time::Instant::now();
    while service.journal().count(Method::POST, "/hang") == 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "request did not arrive"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A request that hangs does not keep the server from stopping.
    server.stop().await;
    assert_eq!(hung.await.unwrap(), "");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
