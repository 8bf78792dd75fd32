//! Announced addresses that carry real traffic.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bowline_phoenixnap_sim::kit::dataplane::Transport;
use bowline_phoenixnap_sim::{
    AnnouncedPort, Announcement, BlockSpec, NetworkSpec, PhoenixnapSim, ServerSpec, ServerStatus,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::support::{Caller, NETWORK};

const DEADLINE: Duration = Duration::from_secs(20);

/// A server in the network with something that answers its name on the node port, wherever that could be bound.
async fn worker(sim: &PhoenixnapSim, name: &'static str, node_port: u16) -> (String, JoinHandle<()>) {
    let id = sim.add_server(ServerSpec::on(NETWORK, name));
    let address: IpAddr = sim.server(&id).unwrap().private_addresses[0].parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sim.move_member(
        Transport::Tcp,
        SocketAddr::new(address, node_port),
        listener.local_addr().unwrap(),
    );
    let answering = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(name.as_bytes()).await.unwrap_or_default();
        }
    });
    (id, answering)
}

async fn visit(sim: &PhoenixnapSim, address: IpAddr) -> Option<String> {
    let bound = sim.bound_address(address, 80)?;
    let mut answer = String::new();
    let mut stream = TcpStream::connect(bound).await.ok()?;
    stream.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// Tries until the address answers so, or not at all.
async fn eventually(sim: &PhoenixnapSim, address: IpAddr, wanted: Option<&str>) {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let found = visit(sim, address).await;
        if found.as_deref() == wanted {
            return;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "{found:?} instead of {wanted:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn announcement(address: IpAddr, node: &str) -> Announcement {
    let port = AnnouncedPort {
        transport: Transport::Tcp,
        port: 80,
        node_port: 30080,
    };
    Announcement {
        address,
        node: node.to_owned(),
        ports: vec![port],
    }
}

#[tokio::test]
async fn announced_address_carries_while_its_block_is_attached_and_its_node_runs() {
    let sim = PhoenixnapSim::builder().seed(1).data_plane().build();
    sim.add_network(NetworkSpec::with_id(NETWORK, "k8s-vips"));
    let (one, _first) = worker(&sim, "one", 30080).await;
    let (_, _second) = worker(&sim, "two", 30080).await;
    let caller = Caller::new(&sim).await;
    let block = caller.buy().await;
    let cidr = sim.block(&block).unwrap().cidr;
    let address = cidr.hosts().nth(1).unwrap();
    assert!(address.is_loopback());

    // Announced too early, it begins to carry when the block is there.
    sim.announce([announcement(address, "one")]);
    sim.set_behaviour(|it| it.attach_time = Duration::from_millis(200));
    let begin = tokio::time::Instant::now();
    assert_eq!(caller.attach(&block).await.0, 202);
    eventually(&sim, address, Some("one")).await;
    assert!(begin.elapsed() >= Duration::from_millis(200));

    // Another node takes the address over when the first one is gone.
    sim.set_server_status(&one, ServerStatus::PoweredOff);
    eventually(&sim, address, None).await;
    sim.announce([announcement(address, "TWO")]);
    eventually(&sim, address, Some("two")).await;

    assert_eq!(caller.detach(&block).await.0, 202);
    eventually(&sim, address, None).await;
    assert_eq!(sim.announcements().len(), 1);
}

#[tokio::test]
async fn only_usable_addresses_of_attached_blocks_are_carried_by_members() {
    let sim = PhoenixnapSim::builder().seed(1).data_plane().build();
    sim.add_network(NetworkSpec::with_id(NETWORK, "k8s-vips"));
    let (_, _answering) = worker(&sim, "one", 30080).await;
    sim.add_server(ServerSpec::new("stranger"));
    let attached = sim.add_block(BlockSpec::default().network(NETWORK));
    let loose = sim.add_block(BlockSpec::default());
    let addresses = |id: &str| -> Vec<IpAddr> { sim.block(id).unwrap().cidr.hosts().collect() };
    let (inside, outside) = (addresses(&attached), addresses(&loose));
    let last = inside[5];
    sim.announce([
        announcement(inside[0], "one"),
        announcement(inside[1], "stranger"),
        announcement(inside[2], "nobody"),
        announcement(outside[1], "one"),
        announcement(last, "one"),
    ]);
    eventually(&sim, last, Some("one")).await;
    for address in [inside[0], inside[1], inside[2], outside[1]] {
        assert_eq!(sim.bound_address(address, 80), None, "{address}");
    }
}
