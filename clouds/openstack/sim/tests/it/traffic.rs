//! Load balancers that carry real traffic, set up over the API.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bowline_openstack_sim::kit::dataplane::Transport;
use bowline_openstack_sim::{FloatingIpSpec, OpenstackSim, Provisioning, ServerSpec};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

use crate::support::{Caller, LB, id};

const DEADLINE: Duration = Duration::from_secs(20);

/// Answers its own address on each connection, and before it what it was told first, if that is a PROXY header.
fn stand_in(listener: TcpListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 64];
            let heard = tokio::time::timeout(Duration::from_millis(50), stream.read(&mut first)).await;
            let heard = heard.ok().and_then(Result::ok).unwrap_or_default();
            let header = String::from_utf8_lossy(&first[..heard]);
            let header = if header.starts_with("PROXY ") {
                "PROXY "
            } else {
                ""
            };
            let name = format!("{header}{}", stream.local_addr().unwrap().ip());
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

/// A load balancer on port 80 with these members, probed each second.
async fn create(caller: &Caller, protocols: (&str, &str, &str), members: &[(IpAddr, u16)]) -> String {
    let (listener, pool, probe) = protocols;
    let member = |(address, port): &(IpAddr, u16)| json!({ "address": address, "protocol_port": port });
    let monitor = json!({ "type": probe, "delay": 1, "timeout": 1, "max_retries": 1, "max_retries_down": 1 });
    let pool = json!({
        "name": "pool", "protocol": pool, "lb_algorithm": "ROUND_ROBIN", "healthmonitor": monitor,
        "members": members.iter().map(member).collect::<Vec<_>>(),
    });
    let listener = json!({ "protocol": listener, "protocol_port": 80, "default_pool": pool });
    let body = json!({ "vip_subnet_id": caller.sim.home().subnet, "listeners": [listener] });
    let (status, made) = caller
        .post(&format!("{LB}/loadbalancers"), json!({ "loadbalancer": body }))
        .await;
    assert_eq!(status, 201, "{made}");
    id(&made["loadbalancer"])
}

fn server(sim: &OpenstackSim, name: &str) -> IpAddr {
    let id = sim.add_server(ServerSpec::new(name));
    sim.address_of(id).unwrap()
}

#[tokio::test]
async fn load_balancer_carries_traffic_and_follows_its_members() {
    let sim = OpenstackSim::builder().seed(1).data_plane().build();
    let caller = Caller::new(&sim).await;
    let (mut members, mut stand_ins) = (Vec::new(), Vec::new());
    for name in ["n1", "n2"] {
        let address = server(&sim, name);
        assert!(address.is_loopback());
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        members.push((address, listener.local_addr().unwrap().port()));
        stand_ins.push(stand_in(listener));
    }
    let path = format!(
        "{LB}/loadbalancers/{}",
        create(&caller, ("TCP", "TCP", "TCP"), &members).await
    );
    let vip = sim.load_balancers()[0].vip;
    let address = eventually("listener bound", async || {
        sim.bound_address(vip.fixed_ip.address, 80)
    })
    .await;
    for (member, _) in &members {
        eventually("every member is reached", async || {
            (visit(address).await == member.to_string()).then_some(())
        })
        .await;
    }

    // One member goes down: it is left out, and the load balancer says so.
    let gone = stand_ins.remove(0);
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    eventually("degraded", async || {
        let (_, shown) = caller.get(&path).await;
        (shown["loadbalancer"]["operating_status"] == "DEGRADED").then_some(())
    })
    .await;
    for _ in 0..3 {
        assert_eq!(visit(address).await, members[1].0.to_string());
    }

    // A floating IP is one more way in.
    sim.add_floating_ip(FloatingIpSpec {
        port: Some(vip.port),
        ..FloatingIpSpec::default()
    });
    let outside = sim.floating_ips()[0].address.address;
    let second = eventually("floating IP bound", async || sim.bound_address(outside, 80)).await;
    assert_eq!(visit(second).await, members[1].0.to_string());

    // A client that is not allowed is turned away.
    let listener = format!("{LB}/listeners/{}", sim.listeners()[0].part.id);
    let nobody = json!({ "listener": { "allowed_cidrs": ["192.0.2.0/24"] } });
    assert_eq!(caller.put(&listener, nobody).await.0, 200);
    eventually("turned away", async || {
        visit(address).await.is_empty().then_some(())
    })
    .await;

    assert_eq!(caller.delete(&format!("{path}?cascade=true")).await.0, 204);
    eventually("unbound", async || {
        sim.bound_address(vip.fixed_ip.address, 80)
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(sim.bound_to(Transport::Tcp, outside, 80), None);
}

#[tokio::test]
async fn a_member_of_weight_0_keeps_its_connections_and_gets_new_ones_with_ovn_only() {
    for (provider, method) in [("amphora", "ROUND_ROBIN"), ("ovn", "SOURCE_IP_PORT")] {
        let sim = OpenstackSim::builder().data_plane().build();
        let caller = Caller::new(&sim).await;
        let address = server(&sim, "n1");
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let member = json!({ "address": address, "protocol_port": listener.local_addr().unwrap().port() });
        let pool = json!({ "name": "pool", "protocol": "TCP", "lb_algorithm": method, "members": [member] });
        let listeners = json!([{ "protocol": "TCP", "protocol_port": 80, "default_pool": pool }]);
        let body =
            json!({ "vip_subnet_id": sim.home().subnet, "provider": provider, "listeners": listeners });
        let path = format!("{LB}/loadbalancers");
        assert_eq!(caller.post(&path, json!({ "loadbalancer": body })).await.0, 201);
        let vip = sim.load_balancers()[0].vip.fixed_ip.address;
        let place = eventually("bound", async || sim.bound_address(vip, 80)).await;
        let mut open = eventually("connected", async || TcpStream::connect(place).await.ok()).await;
        let (mut served, _) = listener.accept().await.unwrap();

        let pool = sim.pools()[0].part.id;
        let member = sim.members()[0].part.id;
        let path = format!("{LB}/pools/{pool}/members/{member}");
        assert_eq!(
            caller.put(&path, json!({ "member": { "weight": 0 } })).await.0,
            200
        );
        let stand_in = stand_in(listener);
        let expected = if provider == "ovn" {
            address.to_string()
        } else {
            String::new()
        };
        eventually("what a new connection gets", async || {
            (visit(place).await == expected).then_some(())
        })
        .await;
        served.write_all(b"still here").await.unwrap();
        let mut heard = [0; 10];
        open.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"still here");
        stand_in.abort();
    }
}

#[tokio::test]
async fn members_are_told_about_the_client() {
    let sim = OpenstackSim::builder().data_plane().build();
    let caller = Caller::new(&sim).await;
    let address = server(&sim, "n1");
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _stand_in = stand_in(listener);
    create(&caller, ("TCP", "PROXY", "TCP"), &[(address, port)]).await;
    let vip = sim.load_balancers()[0].vip.fixed_ip.address;
    let place = eventually("bound", async || sim.bound_address(vip, 80)).await;
    eventually("header", async || {
        (visit(place).await == format!("PROXY {address}")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn datagrams_are_carried_to_a_member_that_was_moved() {
    let outside = "192.0.2.0/24".parse().unwrap();
    let sim = OpenstackSim::builder()
        .data_plane()
        .private_range(outside)
        .build();
    let caller = Caller::new(&sim).await;
    let address = server(&sim, "n1");
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let actual = socket.local_addr().unwrap();
    let echo = tokio::spawn(async move {
        let mut buffer = [0; 64];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            socket.send_to(&buffer[..length], from).await.unwrap();
        }
    });
    sim.move_member(Transport::Udp, SocketAddr::new(address, 30053), actual);
    sim.set_behaviour(|it| it.min_udp_connect_delay_s = 1);
    create(&caller, ("UDP", "UDP", "UDP-CONNECT"), &[(address, 30053)]).await;
    let vip = sim.load_balancers()[0].vip.fixed_ip.address;
    let place = eventually("bound", async || sim.bound_to(Transport::Udp, vip, 80)).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    eventually("echo", async || {
        let mut buffer = [0; 64];
        client.send_to(b"hello", place).await.unwrap();
        let heard = client.recv_from(&mut buffer);
        let heard = tokio::time::timeout(Duration::from_millis(200), heard).await;
        heard.is_ok().then_some(())
    })
    .await;
    echo.abort();
}

#[tokio::test]
async fn load_balancer_that_is_not_ready_carries_nothing() {
    let sim = OpenstackSim::builder().data_plane().build();
    sim.set_behaviour(|it| it.lb_create_time = Duration::from_millis(300));
    let caller = Caller::new(&sim).await;
    let begin = tokio::time::Instant::now();
    create(&caller, ("HTTP", "HTTP", "TCP"), &[]).await;
    let balancer = sim.load_balancers()[0].clone();
    let vip = balancer.vip.fixed_ip.address;
    eventually("bound", async || sim.bound_address(vip, 80)).await;
    assert!(begin.elapsed() >= Duration::from_millis(300));
    // A failed change leaves what carries the traffic.
    sim.set_provisioning(balancer.part.id, Provisioning::Error);
    assert!(sim.bound_address(vip, 80).is_some());
    sim.lose_load_balancer(balancer.part.id);
    eventually("unbound", async || {
        sim.bound_address(vip, 80).is_none().then_some(())
    })
    .await;
}
