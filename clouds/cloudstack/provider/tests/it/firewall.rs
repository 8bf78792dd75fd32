//! Firewall rules that cannot be made: what works meanwhile stays, or comes back.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AddressSpec, FirewallSpec, JobFault};
use serde_json::json;
use tokio::time::advance;

use crate::site::Site;
use crate::world::{Outcome, Run, WEB, World};

const OLD: &str = "tcp 443 192.0.2.0/24";

/// TCP 443 alone, for 192.0.2.0/24.
async fn served() -> World {
    let world = World::with_service().await;
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    ranges(&world, &["192.0.2.0/24"]);
    world.run(WEB).await.settled();
    world.publish_at(WEB, &world.address().address.to_string());
    assert_eq!(world.openings(), [OLD]);
    world
}

fn ranges(world: &World, ranges: &[&str]) {
    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = json!(ranges));
}

fn refusal(code: u16) -> Canned {
    let body = format!(r#"{{"createfirewallruleresponse":{{"errorcode":{code},"errortext":"no"}}}}"#);
    Canned::json(code, &body)
}

/// The server takes one firewall rule for a port.
fn takes_one(world: &World) {
    world
        .sim
        .set_behaviour(|behaviour| behaviour.firewall_ports_conflict = true);
}

#[tokio::test(start_paused = true)]
async fn a_persons_rule_for_several_ports_that_is_in_the_way_closes_nothing() {
    for is_known in [true, false] {
        let world = served().await;
        let address = world.address().id;
        let range = || {
            world.sim.add_firewall_rule(FirewallSpec {
                ports: Some((400, 500)),
                ..FirewallSpec::new(&address, "tcp", 443).cidrs(["10.0.0.0/8"])
            })
        };
        let before = is_known.then(range);
        ranges(&world, &["192.0.2.0/24", "10.0.0.0/8"]);
        let (range, run) = match before {
            Some(range) => (range, world.run(WEB).await),
            // A person makes it when what stands in is open, and the firewall is read already.
            None => {
                let pause = Duration::from_secs(2);
                let person = async {
                    tokio::time::sleep(pause / 2).await;
                    range()
                };
                tokio::join!(person, world.run_paused(WEB, 1, pause))
            }
        };
        let complaint = run.complaint();
        assert!(complaint.contains(&range), "{complaint}");
        assert!(complaint.contains("tcp/400-500 from 10.0.0.0/8"), "{complaint}");
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains(&range));
        assert_eq!(writes, Vec::<String>::new());
        let openings = world.openings();
        let is_open = |from: &str| {
            openings
                .iter()
                .any(|it| it.starts_with("tcp 443") && it.contains(from))
        };
        assert!(is_open("192.0.2."), "{openings:?}");
        world.sim.remove_firewall_rule(&range);
        world.run(WEB).await.settled();
        assert_eq!(world.openings(), ["tcp 443 192.0.2.0/24,10.0.0.0/8"]);
    }
}

/// A person's address with a rule for several ports that TCP 443 cannot be opened beside.
fn blocked_address(world: &World) -> (String, String) {
    let ip = "203.0.113.77";
    let id = world.sim.take_address(AddressSpec::at(ip.parse().unwrap()));
    let range = world.sim.add_firewall_rule(FirewallSpec {
        ports: Some((400, 500)),
        ..FirewallSpec::new(&id, "tcp", 443)
    });
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
    (ip.to_owned(), range)
}

fn published_although_refused(run: &Run) -> Vec<Option<String>> {
    let status = run.published_although_refused.iter();
    status
        .flat_map(|status| &status.ingress)
        .map(|entry| entry.ip.clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_port_that_cannot_be_opened_hides_no_address_of_those_that_serve() {
    let world = World::with_service().await;
    let (ip, range) = blocked_address(&world);
    for _ in 0..2 {
        let run = world.run(WEB).await;
        let complaint = run.complaint();
        assert!(
            complaint.starts_with("port tcp/443 of 203.0.113.77 cannot"),
            "{complaint}"
        );
        assert!(complaint.contains(&range), "{complaint}");
        assert_eq!(published_although_refused(&run), [Some(ip.clone())]);
    }
    assert!(world.openings().contains(&"udp 4500 0.0.0.0/0".to_owned()));
    world.sim.remove_firewall_rule(&range);
    assert_eq!(world.run(WEB).await.settled().published(), [ip]);
}

#[tokio::test(start_paused = true)]
async fn an_address_is_not_left_for_one_where_a_port_cannot_be_opened() {
    let world = World::with_service().await;
    let before = world.run(WEB).await.settled().published();
    let address = world.address().id;
    let rules = || {
        let mut rules = world.sim.rules();
        rules.retain(|rule| rule.address == address);
        rules
    };
    let (ip, range) = blocked_address(&world);
    let run = world.run(WEB).await;
    assert!(run.complaint().contains(&range), "{}", run.complaint());
    // The status stays.
    assert_eq!(published_although_refused(&run), []);
    world.publish_at(WEB, &before[0]);
    world.remove_node("pool-a-8");
    world.run(WEB).await;
    let members: Vec<usize> = rules().iter().map(|rule| rule.members.len()).collect();
    assert_eq!(members, [2, 2]);
    world.sim.remove_firewall_rule(&range);
    assert_eq!(world.run(WEB).await.settled().published(), [ip]);
    assert!(rules().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_value_that_the_server_refuses_closes_nothing() {
    for wish in [
        &["192.0.2.0/24", "10.0.0.0/8"][..], // needs a stand-in
        &["10.0.0.0/8"],
    ] {
        let world = served().await;
        ranges(&world, wish);
        world.sim.faults().add(
            Fault::operation("createFirewallRule")
                .always()
                .answer(refusal(431)),
        );
        for _ in 0..3 {
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(run.complaint().contains("error creating new firewall rule"));
            assert_eq!(writes, ["createFirewallRule"]);
            assert_eq!(world.openings(), [OLD]);
            advance(Duration::from_secs(1_800)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_was_closed_for_one_that_is_refused_comes_back() {
    let world = served().await;
    takes_one(&world);
    ranges(&world, &["198.51.100.0/24"]);
    // Beside the old one, and in its place.
    let refuse = |code| {
        let fault = Fault::operation("createFirewallRule").nth(2);
        world.sim.faults().add(fault.answer(refusal(code)))
    };
    refuse(431);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("error creating new firewall rule"));
    assert_eq!(
        writes,
        [
            "createFirewallRule",
            "deleteFirewallRule",
            "createFirewallRule",
            "createFirewallRule"
        ]
    );
    assert_eq!(world.openings(), [OLD]);
    // It is not closed for the same again as long as that is held back.
    for _ in 0..3 {
        advance(Duration::from_secs(1)).await;
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains("stays as it is"), "{}", run.complaint());
        assert_eq!(writes, Vec::<String>::new());
    }
    assert_eq!(world.openings(), [OLD]);
    ranges(&world, &["198.51.100.0/25"]);
    world.run(WEB).await.settled();
    assert_eq!(world.openings(), ["tcp 443 198.51.100.0/25"]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_refused_closes_nothing_after_another_change_either() {
    let world = served().await;
    takes_one(&world);
    ranges(&world, &["198.51.100.0/24"]);
    let fault = Fault::operation("createFirewallRule").nth(2);
    world.sim.faults().add(fault.answer(refusal(431)));
    world.run(WEB).await;
    for node in ["pool-a-8", "pool-a-7"] {
        world.remove_node(node);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains("stays as it is"), "{}", run.complaint());
        assert_eq!(writes, ["removeFromLoadBalancerRule"]);
        assert_eq!(published_although_refused(&run).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_after_a_while() {
    let world = served().await;
    takes_one(&world);
    ranges(&world, &["198.51.100.0/24"]);
    world.sim.fail_jobs(JobFault::of("createFirewallRule"));
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("injected fault"), "{}", run.complaint());
    assert_eq!(world.openings(), [OLD]);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("stays as it is"), "{}", run.complaint());
    assert_eq!(writes, Vec::<String>::new());
    advance(Duration::from_secs(31)).await;
    world.run(WEB).await.settled();
    assert_eq!(world.openings(), ["tcp 443 198.51.100.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_also_comes_back_if_it_is_the_next_try_that_hears_the_refusal() {
    let world = served().await;
    takes_one(&world);
    ranges(&world, &["198.51.100.0/24"]);
    let faults = world.sim.faults();
    faults.add(Fault::operation("createFirewallRule").nth(2).drop_before());
    let run = world.run(WEB).await;
    assert!(matches!(run.outcome, Outcome::Failed(_)), "{:?}", run.outcome);
    assert_eq!(world.openings(), Vec::<String>::new());
    faults.add(Fault::operation("createFirewallRule").answer(refusal(431)));
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("stays as it is"), "{}", run.complaint());
    assert_eq!(world.openings(), [OLD]);
}

/// Both are closed side by side, and the first one that is refused ends it.
#[tokio::test(start_paused = true)]
async fn a_port_that_was_closed_beside_one_that_is_refused_comes_back_too() {
    let world = World::with_service().await;
    ranges(&world, &["192.0.2.0/24"]);
    world.run(WEB).await.settled();
    let before = world.openings();
    assert_eq!(before.len(), 2);
    takes_one(&world);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(3));
    ranges(&world, &["198.51.100.0/24"]);
    let faults = world.sim.faults();
    // Beside the old ones; then the first one in the place of its own.
    faults.add(Fault::operation("createFirewallRule").nth(3).answer(refusal(431)));
    for _ in 0..4 {
        world.run(WEB).await;
        let shut = |openings: &[String]| openings.len() < 2;
        assert!(!shut(&world.openings()), "{:?}", world.openings());
    }
}

#[tokio::test(start_paused = true)]
async fn single_addresses_that_cannot_be_halved_stay_open_if_the_new_rule_is_refused() {
    let world = World::with_service().await;
    ranges(&world, &["192.0.2.1/32"]);
    world.run(WEB).await.settled();
    let before = world.openings();
    ranges(&world, &["192.0.2.1/32", "192.0.2.2/32"]);
    // Both ports at once.
    world.sim.fail_jobs(JobFault {
        times: Some(2),
        ..JobFault::of("createFirewallRule")
    });
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("injected fault"), "{}", run.complaint());
    assert_eq!(world.openings(), before);
}

#[tokio::test(start_paused = true)]
async fn the_annotation_of_kubernetes_for_source_ranges_has_no_effect_and_is_told_of() {
    let world = World::of(Site::new(), false).await;
    world.add_web();
    let key = "service.beta.kubernetes.io/load-balancer-source-ranges";
    world.edit(WEB, |service| {
        let annotations = service.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), "192.0.2.0/24".to_owned());
    });
    let run = world.run(WEB).await.settled();
    let told = run.notes.iter().find(|note| note.text.contains(key));
    assert_eq!(told.map(|note| note.reason), Some("IgnoredServiceFields"));
    assert_eq!(world.openings()[0], "tcp 443 0.0.0.0/0");
}

#[tokio::test(start_paused = true)]
async fn networks_of_ipv6_are_left_out_or_refused_before_anything_is_acquired() {
    for is_vpc in [false, true] {
        let world = World::of(Site::new(), is_vpc).await;
        world.add_web();
        ranges(&world, &["::/0"]);
        for _ in 0..2 {
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(run.complaint().contains("IPv6 only"), "{}", run.complaint());
            assert_eq!(writes, Vec::<String>::new());
        }
        ranges(&world, &["10.0.0.0/8", "::/0"]);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.settled().has_note("IgnoredServiceFields"));
        let acquired = writes.iter().filter(|it| *it == "associateIpAddress");
        assert_eq!(acquired.count(), 1);
        let open = if is_vpc {
            world.acl_items()
        } else {
            world.openings()
        };
        assert_eq!(open.len(), 2);
        assert!(open.iter().all(|it| it.ends_with(" 10.0.0.0/8")), "{open:?}");
        // Other ones change nothing.
        ranges(&world, &["10.0.0.0/8", "2001:db8::1/128"]);
        let (_, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, Vec::<String>::new());
    }
}
