//! Rules that carry real traffic.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bowline_cloudstack_sim::kit::dataplane::Transport;
use bowline_cloudstack_sim::{
    AclItemSpec, AddressSpec, CloudstackSim, FirewallSpec, NetworkSpec, NicSpec, RuleSpec, VmSpec, VmState,
    VpcSpec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

const DEADLINE: Duration = Duration::from_secs(20);
const NODE_PORT: u16 = 30080;

/// A virtual machine that answers its name and what it heard first on the node port, wherever that could be bound.
async fn worker(sim: &CloudstackSim, network: &str, name: &'static str) -> (String, JoinHandle<()>) {
    let id = sim.add_vm(VmSpec::with_nics(name, [NicSpec::on(network)]));
    let wanted = SocketAddr::new(sim.vm(&id).unwrap().nics[0].address, NODE_PORT);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sim.move_member(Transport::Tcp, wanted, listener.local_addr().unwrap());
    let answering = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = [0_u8; 64];
            let length = stream.read(&mut heard).await.unwrap_or_default();
            stream.write_all(name.as_bytes()).await.unwrap_or_default();
            stream.write_all(&heard[..length]).await.unwrap_or_default();
        }
    });
    (id, answering)
}

async fn visit(sim: &CloudstackSim, address: IpAddr) -> Option<String> {
    let bound = sim.bound_address(address, 80)?;
    let mut answer = String::new();
    let mut stream = TcpStream::connect(bound).await.ok()?;
    stream.write_all(b"hi").await.ok()?;
    stream.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// Tries until the answer is right.
async fn eventually(
    sim: &CloudstackSim,
    address: IpAddr,
    what: &str,
    is_right: impl Fn(Option<&str>) -> bool,
) {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let found = visit(sim, address).await;
        if is_right(found.as_deref()) {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "{what}: {found:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn answers(sim: &CloudstackSim, address: IpAddr, wanted: &str) {
    eventually(sim, address, wanted, |found| found == Some(wanted)).await;
}

async fn is_closed(sim: &CloudstackSim, address: IpAddr, why: &str) {
    eventually(sim, address, why, |found| found.is_none()).await;
    assert_eq!(sim.bound_address(address, 80), None, "{why}");
}

fn address_of(sim: &CloudstackSim, id: &str) -> IpAddr {
    let held = sim.addresses();
    held.iter().find(|it| it.id == id).unwrap().address
}

#[tokio::test]
async fn rule_carries_to_running_members_while_the_firewall_lets_it() {
    let sim = CloudstackSim::builder().data_plane().build();
    let network = sim.network();
    let (one, _first) = worker(&sim, &network, "one").await;
    let (two, _second) = worker(&sim, &network, "two").await;
    let id = sim.take_address(AddressSpec::default());
    let address = address_of(&sim, &id);
    assert!(address.is_loopback());
    let opening = sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 80));
    let rule = sim.add_rule(RuleSpec {
        members: vec![one.clone(), two.clone()],
        ..RuleSpec::new("a", &id, 80, NODE_PORT)
    });
    answers(&sim, address, "onehi").await;
    answers(&sim, address, "twohi").await;
    sim.set_vm_state(&one, VmState::Stopped);
    answers(&sim, address, "twohi").await;
    assert_eq!(
        visit(&sim, address).await.as_deref(),
        Some("twohi"),
        "only one is left"
    );

    sim.remove_firewall_rule(&opening);
    is_closed(&sim, address, "no firewall rule").await;
    sim.add_firewall_rule(FirewallSpec::new(&id, "udp", 80));
    sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 81));
    let range = sim.add_firewall_rule(FirewallSpec {
        ports: Some((70, 90)),
        ..FirewallSpec::new(&id, "tcp", 80).cidrs(["127.0.0.0/8"])
    });
    answers(&sim, address, "twohi").await;
    sim.edit_rule(&rule, |it| it.cidrs = Some("10.0.0.0/8 192.0.2.0/24".to_owned()));
    is_closed(&sim, address, "no client is in both lists").await;
    sim.edit_rule(&rule, |it| it.cidrs = Some("10.0.0.0/8 127.0.0.1".to_owned()));
    answers(&sim, address, "twohi").await;
    sim.edit_rule(&rule, |it| it.cidrs = Some(String::new()));
    answers(&sim, address, "twohi").await;
    sim.remove_firewall_rule(&range);
    sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 80).cidrs(["192.0.2.0/24"]));
    eventually(&sim, address, "this client may not come", |found| found.is_none()).await;
    sim.release_address(&id);
    is_closed(&sim, address, "nobody's").await;
}

#[tokio::test]
async fn a_list_with_a_comma_stops_every_change_in_its_network_and_a_restart_stops_the_traffic() {
    let sim = CloudstackSim::builder().data_plane().build();
    let network = sim.network();
    let (one, _first) = worker(&sim, &network, "one").await;
    let (two, _second) = worker(&sim, &network, "two").await;
    let caller = crate::support::Caller::new(&sim);
    let id = caller.associate().await;
    let address = address_of(&sim, &id);
    for port in [80, 81] {
        sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", port));
    }
    let assign = async |command: &str, rule: &str, vm: &str| {
        let members = [("id", rule), ("virtualmachineids", vm)];
        caller.run(command, &members).await.unwrap();
    };
    let web = caller.rule(&id, "web", 80).await;
    assign("assignToLoadBalancerRule", &web, &one).await;
    answers(&sim, address, "onehi").await;
    let other = caller.rule(&id, "other", 81).await;
    let lists = [("id", other.as_str()), ("cidrlist", "10.0.0.0/8,192.0.2.0/24")];
    caller.run("updateLoadBalancerRule", &lists).await.unwrap();
    // All of it succeeds, and none of it is in force.
    assign("assignToLoadBalancerRule", &web, &two).await;
    assign("removeFromLoadBalancerRule", &web, &one).await;
    assert_eq!(sim.member_names(&web), ["two"]);
    answers(&sim, address, "onehi").await;
    assert_eq!(
        sim.check_invariants(),
        [
            "the router of network k8s takes no change: rule other lists clients as `10.0.0.0/8,192.0.2.0/24`",
            "rule web is not in force as it is stored"
        ]
    );
    sim.restart_router(&network);
    is_closed(&sim, address, "haproxy does not start").await;
    caller
        .run("deleteLoadBalancerRule", &[("id", &other)])
        .await
        .unwrap();
    answers(&sim, address, "twohi").await;
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test]
async fn proxy_rule_says_who_comes_and_udp_carries_datagrams() {
    let sim = CloudstackSim::builder().data_plane().build();
    let network = sim.network();
    let (one, _first) = worker(&sim, &network, "one").await;
    let id = sim.take_address(AddressSpec::default());
    let address = address_of(&sim, &id);
    sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 80));
    let spec = RuleSpec {
        protocol: Some("tcp-proxy".into()),
        algorithm: Some("source".into()),
        members: vec![one.clone()],
        ..RuleSpec::new("a", &id, 80, NODE_PORT)
    };
    sim.add_rule(spec);
    let header = format!("onePROXY TCP4 127.0.0.1 {address} ");
    eventually(&sim, address, "a header", |found| {
        found.is_some_and(|it| it.starts_with(&header))
    })
    .await;

    let echo = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let wanted = SocketAddr::new(sim.vm(&one).unwrap().nics[0].address, 30053);
    sim.move_member(Transport::Udp, wanted, echo.local_addr().unwrap());
    sim.add_firewall_rule(FirewallSpec::new(&id, "udp", 53));
    sim.add_rule(RuleSpec {
        protocol: Some("udp".into()),
        members: vec![one],
        ..RuleSpec::new("b", &id, 53, 30053)
    });
    let end = tokio::time::Instant::now() + DEADLINE;
    let bound = loop {
        if let Some(bound) = sim.bound_to(Transport::Udp, address, 53) {
            break bound;
        }
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.send_to(b"ping", bound).await.unwrap();
    let mut heard = [0_u8; 16];
    let (length, _) = tokio::time::timeout(DEADLINE, echo.recv_from(&mut heard))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&heard[..length], b"ping");
}

#[tokio::test]
async fn tier_is_guarded_by_its_acl_list() {
    let sim = CloudstackSim::builder().data_plane().build();
    let vpc = sim.add_vpc(VpcSpec::new("vpc"));
    let list = sim.add_acl_list("tier-acl", &vpc);
    let tier = sim.add_network(NetworkSpec::tier("web", &vpc, &list));
    let (one, _first) = worker(&sim, &tier, "one").await;
    let id = sim.take_address(AddressSpec::in_vpc(&vpc));
    let address = address_of(&sim, &id);
    sim.add_rule(RuleSpec {
        network: Some(tier.clone()),
        members: vec![one],
        ..RuleSpec::new("a", &id, 80, NODE_PORT)
    });
    is_closed(&sim, address, "an empty list").await;
    sim.add_acl_item(AclItemSpec {
        is_ingress: false,
        ..AclItemSpec::new(&list, "tcp", 80)
    });
    sim.add_acl_item(AclItemSpec::new(&list, "udp", 80));
    is_closed(&sim, address, "neither item is about it").await;
    let allow = sim.add_acl_item(AclItemSpec {
        number: Some(10),
        ..AclItemSpec::new(&list, "tcp", 80)
    });
    answers(&sim, address, "onehi").await;
    let deny = sim.add_acl_item(AclItemSpec {
        number: Some(5),
        is_allow: false,
        ..AclItemSpec::new(&list, "all", 80)
    });
    is_closed(&sim, address, "denied first").await;
    sim.remove_acl_item(&deny);
    answers(&sim, address, "onehi").await;
    sim.remove_acl_item(&allow);
    is_closed(&sim, address, "no item").await;
    for (name, is_open) in [("default_allow", true), ("default_deny", false)] {
        let list = sim.acl_list(name).unwrap();
        sim.edit_network(&tier, |it| it.acl = Some(list));
        if is_open {
            answers(&sim, address, "onehi").await;
        } else {
            is_closed(&sim, address, name).await;
        }
    }
}

#[tokio::test]
async fn slow_job_carries_when_it_is_done() {
    let sim = CloudstackSim::builder().data_plane().build();
    let network = sim.network();
    let (one, _first) = worker(&sim, &network, "one").await;
    let caller = crate::support::Caller::new(&sim);
    let id = caller.associate().await;
    let rule = caller.rule(&id, "a", 80).await;
    sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 80));
    sim.set_behaviour(|it| it.job_time = Duration::from_millis(200));
    let begin = tokio::time::Instant::now();
    let members = [("id", rule.as_str()), ("virtualmachineids", one.as_str())];
    caller.post("assignToLoadBalancerRule", &members).await.unwrap();
    let address = address_of(&sim, &id);
    answers(&sim, address, "onehi").await;
    assert!(
        begin.elapsed() >= Duration::from_millis(200),
        "nobody polls, and it is done all the same"
    );
}
