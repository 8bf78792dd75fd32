//! The simulator as its users meet it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use bowline_paper_sim::{MachineSpec, PaperSim};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn call(sim: &PaperSim, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://paper/v1/{path}"))
        .header("Authorization", "Bearer token")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let answer = sim.service().send(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[tokio::test(start_paused = true)]
async fn every_refusal_says_why_in_the_same_form() {
    let sim = PaperSim::builder().build();
    let (_, balancer) = call(&sim, Method::POST, "balancers", json!({"name": "a"})).await;
    let id = balancer["id"].as_str().unwrap();
    let no_machine = "00000000-0000-4000-8000-000000000000";
    let table = [
        (
            Method::GET,
            "machines/x".to_owned(),
            json!(null),
            404,
            "not_found",
        ),
        (
            Method::GET,
            "nothing".to_owned(),
            json!(null),
            404,
            "no_such_path",
        ),
        (Method::POST, "balancers".to_owned(), json!({}), 422, "invalid"),
        (
            Method::POST,
            "balancers".to_owned(),
            json!({"name": "a", "color": 1}),
            422,
            "invalid",
        ),
        (
            Method::PUT,
            format!("balancers/{id}/members/{no_machine}"),
            json!(null),
            422,
            "invalid",
        ),
        (
            Method::PUT,
            format!("balancers/{id}/ports/sctp-1"),
            json!({"node_port": 1}),
            422,
            "invalid",
        ),
        (
            Method::GET,
            format!("machines?after={no_machine}"),
            json!(null),
            422,
            "invalid",
        ),
    ];
    for (method, path, body, status, code) in table {
        let (found, said) = call(&sim, method, &path, body).await;
        assert_eq!((found, said["code"].as_str()), (status, Some(code)), "{path}");
        assert!(!said["message"].as_str().unwrap().is_empty(), "{path}");
    }
    sim.set_token(Some("another".to_owned()));
    assert_eq!(call(&sim, Method::GET, "machines", json!(null)).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_takes_no_change_while_it_is_built_or_changed() {
    let sim = PaperSim::builder().build();
    sim.set_behaviour(|behaviour| behaviour.build_time = Duration::from_secs(5));
    let (_, balancer) = call(&sim, Method::POST, "balancers", json!({"name": "a"})).await;
    let port = format!("balancers/{}/ports/tcp-80", balancer["id"].as_str().unwrap());
    let put = || call(&sim, Method::PUT, &port, json!({"node_port": 30080}));
    assert_eq!(
        (balancer["state"].as_str(), put().await.0),
        (Some("building"), 409)
    );
    tokio::time::advance(Duration::from_secs(5)).await;
    let (status, balancer) = put().await;
    assert_eq!((status, balancer["state"].as_str()), (200, Some("ready")));
    sim.service().set_latency(Duration::from_millis(20));
    let (one, other) = tokio::join!(put(), put());
    assert_eq!((one.0, other.0), (200, 409));
    assert_eq!(sim.check_invariants().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_routes_of_a_removed_machine_lead_nowhere() {
    let sim = PaperSim::builder().build();
    let machine = sim.add_machine(MachineSpec::new("n1"));
    let route = json!({"destination": "10.200.1.0/24", "machine": machine, "description": "", "via": []});
    assert_eq!(call(&sim, Method::POST, "routes", route.clone()).await.0, 201);
    assert_eq!(call(&sim, Method::POST, "routes", route).await.0, 409);
    sim.remove_machine(machine);
    let (_, routes) = call(&sim, Method::GET, "routes", json!(null)).await;
    assert_eq!(routes["items"][0]["machine"], Value::Null);
    assert_eq!(routes["items"][0]["blackhole"], json!(true));
}

/// On sockets, so in real time: waits by looking again, with a deadline.
#[tokio::test]
async fn a_port_carries_traffic_to_a_member() {
    let sim = PaperSim::builder().data_plane().build();
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node_port = backend.local_addr().unwrap().port();
    let answering = tokio::spawn(async move {
        let (mut stream, _) = backend.accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
    });
    let machine = sim.add_machine(MachineSpec {
        private: vec!["127.0.0.1".parse().unwrap()],
        ..MachineSpec::new("n1")
    });
    let (_, balancer) = call(&sim, Method::POST, "balancers", json!({"name": "a"})).await;
    let path = format!("balancers/{}", balancer["id"].as_str().unwrap());
    call(
        &sim,
        Method::PUT,
        &format!("{path}/members/{machine}"),
        json!(null),
    )
    .await;
    let port = json!({"node_port": node_port});
    call(&sim, Method::PUT, &format!("{path}/ports/tcp-8080"), port).await;
    let address = sim.balancers()[0].addresses[0];
    let bound = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            if let Some(bound) = sim.bound_to(Transport::Tcp, address, 8080) {
                return bound;
            }
            tokio::task::yield_now().await;
        }
    });
    let mut client = TcpStream::connect(bound.await.unwrap()).await.unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
    answering.await.unwrap();
}
