//! Load balancers that carry real traffic, set up over the API.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_cloudscale_sim::kit::dataplane::Transport;
use bowline_cloudscale_sim::{CloudscaleSim, FloatingSpec, ServerSpec, Target};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::support::{Balancer, Caller, private_server};

const DEADLINE: Duration = Duration::from_secs(20);

/// Answers its own address on each connection.
fn stand_in(listener: TcpListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let name = stream.local_addr().unwrap().ip().to_string();
            stream.write_all(name.as_bytes()).await.unwrap_or_default();
        }
    })
}

async fn visit(address: SocketAddr) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address).await {
        stream.read_to_string(&mut answer).await.unwrap_or_default();
    }
    answer
}

/// Tries until it is there.
async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn load_balancer_carries_traffic_and_follows_its_members() {
    let sim = CloudscaleSim::builder().seed(1).data_plane().build();
    let caller = Caller::new(&sim, "t");
    let (mut members, mut stand_ins) = (Vec::new(), Vec::new());
    for name in ["n1", "n2"] {
        let address = private_server(&sim, name);
        assert!(address.is_loopback());
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        members.push((address, listener.local_addr().unwrap().port()));
        stand_ins.push(stand_in(listener));
    }
    let lb = Balancer::with_members(&caller, "lb", &members).await;
    let monitor = format!(
        "/v1/load-balancers/health-monitors/{}",
        sim.health_monitors()[0].uuid
    );
    for change in [
        json!({ "delay_s": 1 }),
        json!({ "down_threshold": 1 }),
        json!({ "up_threshold": 1 }),
    ] {
        assert_eq!(caller.patch(&monitor, change).await.0, 204);
    }
    let vip = sim.load_balancers()[0].vips[0].address;
    let address = eventually("listener bound", async || sim.bound_address(vip, 80)).await;
    let names: Vec<String> = members.iter().map(|(address, _)| address.to_string()).collect();
    for name in &names {
        eventually("every member is reached", async || {
            (visit(address).await == *name).then_some(())
        })
        .await;
    }
    assert_eq!(caller.get(&lb.path()).await.1["status"], "running");

    // One member goes down: it is left out, and the load balancer says so.
    let gone = stand_ins.remove(0);
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let path = lb.path();
    let status = async || caller.get(&path).await.1["status"].as_str().unwrap().to_owned();
    eventually("degraded", async || (status().await == "degraded").then_some(())).await;
    for _ in 0..3 {
        assert_eq!(visit(address).await, names[1]);
    }

    // A floating IP is one more way in.
    let floating = sim.add_floating_ip(FloatingSpec::default());
    sim.assign_floating_ip(floating, Some(Target::LoadBalancer(lb.uuid.parse().unwrap())));
    let second = eventually("floating IP bound", async || sim.bound_address(floating, 80)).await;
    assert_eq!(visit(second).await, names[1]);

    // A client that is not allowed is turned away.
    let listener = format!("/v1/load-balancers/listeners/{}", sim.listeners()[0].uuid);
    assert_eq!(
        caller
            .patch(&listener, json!({ "allowed_cidrs": ["192.0.2.0/24"] }))
            .await
            .0,
        204
    );
    eventually("turned away", async || {
        visit(address).await.is_empty().then_some(())
    })
    .await;

    assert_eq!(caller.delete(&lb.path()).await.0, 204);
    eventually("unbound", async || {
        sim.bound_address(vip, 80).is_none().then_some(())
    })
    .await;
    assert_eq!(sim.bound_to(Transport::Tcp, floating, 80), None);
}

#[tokio::test]
async fn member_whose_address_cannot_be_bound_is_reached_where_it_was_moved_to() {
    let outside = "192.0.2.0/24".parse().unwrap();
    let sim = CloudscaleSim::builder()
        .data_plane()
        .private_range(outside)
        .build();
    let caller = Caller::new(&sim, "t");
    let address = private_server(&sim, "n1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let actual = listener.local_addr().unwrap();
    let _stand_in = stand_in(listener);
    sim.move_member(Transport::Tcp, SocketAddr::new(address, 30080), actual);
    Balancer::with_members(&caller, "lb", &[(address, 30080)]).await;
    let vip = sim.load_balancers()[0].vips[0].address;
    let place = eventually("bound", async || sim.bound_address(vip, 80)).await;
    eventually("the member is reached", async || {
        (visit(place).await == "127.0.0.1").then_some(())
    })
    .await;
}

#[tokio::test]
async fn load_balancer_in_creation_carries_nothing() {
    let sim = CloudscaleSim::builder().data_plane().build();
    sim.set_behaviour(|it| it.lb_create_time = Duration::from_millis(300));
    let caller = Caller::new(&sim, "t");
    let begin = tokio::time::Instant::now();
    Balancer::create(&caller, "lb").await;
    let vip = sim.load_balancers()[0].vips[0].address;
    eventually("bound", async || sim.bound_address(vip, 80)).await;
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn simulator_is_served_on_a_socket() {
    let sim = CloudscaleSim::builder()
        .base_url("https://elsewhere.test")
        .build();
    let uuid = sim.add_server(ServerSpec::new("n1"));
    let server = sim
        .serve(TcpListener::bind("127.0.0.1:0").await.unwrap())
        .unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request =
        "GET /v1/servers HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains(&format!("https://elsewhere.test/v1/servers/{uuid}")),
        "{answer}"
    );
    server.stop().await;
}
