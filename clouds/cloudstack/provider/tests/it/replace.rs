//! Rules that the cloud cannot change where they stand: deleted and made anew, or brought back.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::{Canned, FaultBuilder};
use bowline_cloudstack_sim::{AddressSpec, JobFault, NetworkSpec};
use serde_json::json;

use crate::site::Site;
use crate::world::{MACHINES, NAME, Outcome, UID, WEB, World};

/// Something that no server changes in place, and the rule before and after.
struct Case {
    change: fn(&World),
    before: &'static str,
    after: &'static str,
    version: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        change: |world| world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000)),
        before: "tcp-443",
        after: "tcp-443",
        version: "4.22.0.0",
    },
    Case {
        change: |world| world.annotate(WEB, "source-cidrs", Some("10.9.0.0/16")),
        before: "tcp-443",
        after: "tcp-443",
        version: "4.20.1.0",
    },
    Case {
        change: |world| world.spec(WEB, |spec| spec["ports"][0]["protocol"] = json!("UDP")),
        before: "tcp-443",
        after: "udp-443",
        version: "4.22.0.0",
    },
    Case {
        change: |world| world.annotate(WEB, "source-cidrs", Some("10.9.0.0/16,192.0.2.0/24")),
        before: "tcp-443",
        after: "tcp-443",
        version: "4.22.0.0",
    },
    Case {
        change: |world| world.annotate(WEB, "proxy-protocol", Some("true")),
        before: "tcp-443",
        after: "tcp-proxy-443",
        version: "4.22.0.0",
    },
];

async fn site(case: &Case, is_vpc: bool) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.sim.set_behaviour(|behaviour| {
        behaviour.version = case.version.to_owned();
        behaviour.carry_everything();
    });
    world.restarted().await
}

async fn before(case: &Case, is_vpc: bool) -> World {
    let world = site(case, is_vpc).await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    world
}

/// For how long what was refused once is held back, and a moment more.
const PAUSE: Duration = Duration::from_secs(6);

/// Whose address the balancer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It was acquired for it.
    Ours,
    /// The Go manager acquired it, and wrote nothing down.
    GoManagers,
    /// A person acquired it and asked for it once.
    Persons,
}

const ORIGINS: [Origin; 3] = [Origin::Ours, Origin::GoManagers, Origin::Persons];

/// A balancer with one rule at such an address, which the status shows.
async fn at_address_of(origin: Origin, case: &Case, is_vpc: bool) -> (World, String) {
    let world = if origin == Origin::Persons {
        let world = site(case, is_vpc).await;
        let place = match world.sim.vpcs().first() {
            Some(vpc) => AddressSpec::in_vpc(&vpc.id),
            None => AddressSpec::default(),
        };
        world.sim.take_address(place);
        let ip = world.address().address.to_string();
        world.add(WEB, UID, &[("TCP", 443, 31443)]);
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
        world.run(WEB).await.settled();
        world.spec(WEB, |spec| {
            spec.as_object_mut().unwrap().remove("loadBalancerIP");
        });
        world.run(WEB).await.settled();
        world
    } else {
        before(case, is_vpc).await
    };
    if origin == Origin::GoManagers {
        world.annotate(WEB, "ip-ids", None);
    }
    let ip = world.address().address.to_string();
    world.publish_at(WEB, &ip);
    (world, ip)
}

/// The port's rule as anybody sees it, but for its ID.
fn look(world: &World, end: &str) -> (u16, String, Option<String>, Vec<String>) {
    let rule = world.rule(end);
    (rule.private_port, rule.algorithm, rule.cidrs, world.members(end))
}

fn refuse(world: &World) {
    let fault = Fault::operation("createLoadBalancerRule");
    world.sim.faults().add(saying(fault, 431));
}

/// The API itself says that it does not.
fn saying(fault: FaultBuilder, code: u16) -> Fault {
    let text = json!({ "response": {
        "uuidList": [], "errorcode": code, "cserrorcode": 4350, "errortext": "not that one",
    } });
    fault.answer(Canned::json(code, &text.to_string()))
}

#[tokio::test(start_paused = true)]
async fn a_rule_comes_back_even_if_the_process_stopped_in_between() {
    for case in &CASES {
        for k in 0.. {
            let mut world = before(case, false).await;
            let expected = look(&world, case.before);
            (case.change)(&world);
            let stopped = world.run_steps(WEB, k).await;
            world.restart().await;
            if world.rules().is_empty() {
                refuse(&world);
                let run = world.run(WEB).await;
                assert!(run.complaint().contains("not that one"), "{}", run.complaint());
                assert_eq!(look(&world, case.before), expected, "stopped after {k}");
                tokio::time::sleep(PAUSE).await;
            }
            world.run(WEB).await.settled();
            assert_eq!(world.rules(), [case.after], "stopped after {k}");
            world.check("in the end");
            if matches!(stopped.outcome, Outcome::Settled(_)) {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_gap_of_a_port_is_as_short_as_can_be() {
    let world = World::with_service().await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(2));
    world.run(WEB).await.settled();
    world.spec(WEB, |spec| {
        spec["ports"][0]["nodePort"] = json!(32000);
        spec["ports"][1]["nodePort"] = json!(32001);
        spec["ports"].as_array_mut().unwrap().push(json!(
            { "name": "http", "protocol": "TCP", "port": 80, "nodePort": 31080 }
        ));
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
    });
    let run = world.run(WEB).await.settled();
    let steps: Vec<String> = run.steps().iter().map(|step| step.replace(NAME, "")).collect();
    let rule_steps: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.split_once('(').map(|(kind, _)| kind))
        .filter(|kind| ["delete-rule", "create-rule", "assign"].contains(kind))
        .take(6)
        .collect();
    let one = ["delete-rule", "create-rule", "assign"];
    assert_eq!(rule_steps, [one, one].concat(), "{steps:#?}");
    // What is made anew was told to the Service at once.
    let notes = steps.iter().filter(|step| step.contains("replaced-rules"));
    assert_eq!(notes.count(), 2, "{steps:#?}");
    assert_eq!(world.members("tcp-80"), MACHINES);
}

#[tokio::test(start_paused = true)]
async fn the_only_rule_is_made_anew_at_the_address_it_had_with_no_write_in_between() {
    for case in &CASES {
        for (is_vpc, origin) in [false, true]
            .into_iter()
            .flat_map(|is| ORIGINS.map(|it| (is, it)))
        {
            let (world, ip) = at_address_of(origin, case, is_vpc).await;
            let what = format!("{} to {}, {origin:?}, VPC {is_vpc}", case.before, case.after);
            // The rule for another protocol is in the way everywhere, not only where the double is unkind.
            world.sim.set_behaviour(|it| it.protocols_conflict = true);
            (case.change)(&world);
            let (run, calls) = world.calls_of(world.run(WEB)).await;
            assert_eq!(run.published(), [ip.as_str()], "{what}");
            assert_eq!(world.address().address.to_string(), ip, "{what}");
            // A rule for another protocol was tried beside it before.
            let of = |command| calls.iter().rposition(|call| call.starts_with(command)).unwrap();
            let between = &calls[of("deleteLoadBalancerRule") + 1..of("createLoadBalancerRule")];
            // Who relies on the item of the former protocol is asked when its rule is gone: rules, forwardings and static NATs at once.
            let may_ask = is_vpc && case.before != case.after;
            assert!(between.len() <= 3 * usize::from(may_ask), "{what}: {calls:#?}");
            world.delete(WEB);
            world.run(WEB).await.settled();
            assert_eq!(
                world.sim.addresses().is_empty(),
                origin != Origin::Persons,
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_in_between_finds_the_address_again() {
    for (is_vpc, origin) in [false, true]
        .into_iter()
        .flat_map(|is| ORIGINS.map(|it| (is, it)))
    {
        for is_wanted in [true, false] {
            for k in 0.. {
                let (mut world, ip) = at_address_of(origin, &CASES[0], is_vpc).await;
                (CASES[0].change)(&world);
                let stopped = world.run_steps(WEB, k).await;
                world.restart().await;
                let what = format!("{origin:?}, VPC {is_vpc}, wanted {is_wanted}, stopped after {k}");
                if is_wanted {
                    assert_eq!(
                        world.run(WEB).await.settled().published(),
                        [ip.as_str()],
                        "{what}"
                    );
                    assert_eq!(world.address().address.to_string(), ip, "{what}");
                }
                world.delete(WEB);
                world.run(WEB).await.settled();
                assert_eq!(
                    world.sim.addresses().is_empty(),
                    origin != Origin::Persons,
                    "{what}"
                );
                if matches!(stopped.outcome, Outcome::Settled(_)) {
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_given_away_in_between_is_left_to_whoever_has_it() {
    for (origin, is_wanted) in ORIGINS.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let (mut world, ip) = at_address_of(origin, &CASES[0], false).await;
        let other = world.sim.add_network(NetworkSpec::new("other"));
        (CASES[0].change)(&world);
        // Up to the deletion of the rule, which is noted first.
        world.run_steps(WEB, 2).await;
        world.restart().await;
        assert_eq!(world.rules(), Vec::<String>::new(), "{origin:?}");
        world.sim.release_address(&world.address().id);
        let taken = AddressSpec {
            network: Some(other.clone()),
            ..AddressSpec::at(ip.parse().unwrap())
        };
        let taken = world.sim.take_address(taken);
        if is_wanted {
            let run = world.run(WEB).await.settled();
            assert_ne!(run.published(), [ip.as_str()], "{origin:?}");
            assert_eq!(world.rules(), ["tcp-443"]);
        }
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.address().id, taken, "{origin:?}, wanted {is_wanted}");
    }
}

/// The API refuses what takes the rule's place; the rule itself it would make again.
async fn refused(world: &World, case: &Case, is_first: bool) {
    refuse(world);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("not that one"), "{}", run.complaint());
    let tries = writes.iter().filter(|call| *call == "createLoadBalancerRule");
    // A rule in another protocol, or one that was refused before, is asked for beside the one that is there, which then need not come
    // back.
    let expected = if case.after == case.before && is_first {
        2
    } else {
        1
    };
    assert_eq!(
        (tries.count(), world.rules()),
        (expected, vec![case.before.to_owned()])
    );
}

/// Nothing is written, and people are told all the same.
async fn held(world: &World, case: &Case) {
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert_eq!(writes, Vec::<String>::new());
    let text = format!("error creating load balancer rule {NAME}-{}: ", case.after);
    assert!(run.complaint().starts_with(&text), "{}", run.complaint());
    assert!(run.complaint().contains("not that one"), "{}", run.complaint());
    assert_eq!(world.annotation(WEB, "replaced-rules"), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_each_time_is_tried_less_and_less_often() {
    for case in &CASES {
        for is_vpc in [false, true] {
            let world = before(case, is_vpc).await;
            let expected = look(&world, case.before);
            (case.change)(&world);
            refused(&world, case, true).await;
            for pause in [5, 10, 20, 40] {
                let part = Duration::from_secs(pause) / 3;
                let first = world.run(WEB).await; // takes its note away
                assert!(first.complaint().contains("not that one"));
                for _ in 0..2 {
                    tokio::time::sleep(part - Duration::from_millis(500)).await;
                    held(&world, case).await;
                    assert_eq!(look(&world, case.before), expected);
                }
                tokio::time::sleep(part + Duration::from_secs(1)).await;
                refused(&world, case, false).await;
            }
            tokio::time::sleep(Duration::from_secs(81)).await;
            world.run(WEB).await.settled();
            assert_eq!(world.rules(), [case.after]);
            assert!(world.run(WEB).await.settled().waves.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_is_refused_the_rest_goes_on() {
    for case in &CASES {
        let world = before(case, false).await;
        (case.change)(&world);
        refused(&world, case, true).await;
        // The Nodes are followed.
        world.remove_node("pool-a-8");
        world.run(WEB).await;
        assert_eq!(world.members(case.before), ["cp-a", "pool-a-7"]);
        held(&world, case).await;
        // So is what people change, and what was refused is tried with it.
        world.spec(WEB, |spec| {
            spec["ports"].as_array_mut().unwrap().push(json!(
                { "name": "http", "protocol": "TCP", "port": 80, "nodePort": 31080 }
            ));
        });
        refuse(&world);
        world.run(WEB).await;
        tokio::time::sleep(PAUSE).await;
        world.run(WEB).await.settled();
        let is_proxied = case.after.contains("proxy");
        let mut expected = [case.after, if is_proxied { "tcp-proxy-80" } else { "tcp-80" }];
        expected.sort();
        assert_eq!(world.rules(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_tried_at_once_after_any_change_and_by_a_new_process() {
    type Change = fn(&World);
    let changes: [Option<Change>; 3] = [
        None,
        Some(|world| world.annotate(WEB, "hostname", Some("edge.example.org"))),
        Some(|world| world.spec(WEB, |spec| spec["externalTrafficPolicy"] = json!("Local"))),
    ];
    for change in changes {
        for case in &CASES {
            let mut world = before(case, false).await;
            (case.change)(&world);
            refused(&world, case, true).await;
            world.run(WEB).await;
            held(&world, case).await;
            match change {
                Some(change) => change(&world),
                None => world.restart().await,
            }
            world.run(WEB).await.settled();
            assert_eq!(world.rules(), [case.after]);
        }
    }
}

/// Refuses a command for as long as the cloud is not mended: in its answer, or in its job.
fn refuse_always(world: &World, command: &str, code: u16) {
    match code {
        0 => world.sim.fail_jobs(JobFault::of(command).always()),
        code => drop(
            world
                .sim
                .faults()
                .add(saying(Fault::operation(command).always(), code)),
        ),
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_part_of_a_replacement_is_refused_the_plan_ends_and_says_why() {
    let opening = [
        ["createFirewallRule", "deleteFirewallRule"],
        ["createNetworkACL", "deleteNetworkACL"],
    ];
    for (case, is_vpc) in CASES.iter().flat_map(|case| [(case, false), (case, true)]) {
        let commands = [
            "deleteLoadBalancerRule",
            "createLoadBalancerRule",
            "assignToLoadBalancerRule",
        ];
        for command in commands.into_iter().chain(opening[usize::from(is_vpc)]) {
            for (code, stop) in [431, 432, 537, 0]
                .into_iter()
                .flat_map(|code| [0, 2].map(|stop| (code, stop)))
            {
                let what = format!(
                    "{} to {}, VPC {is_vpc}, {command} {code}, stopped after {stop}",
                    case.before, case.after
                );
                let mut world = before(case, is_vpc).await;
                refuse_always(&world, command, code);
                (case.change)(&world);
                if stop > 0 {
                    // Such as between the note of a replaced rule and its deletion.
                    world.run_steps(WEB, stop).await;
                    world.restart().await;
                }
                for _ in 0..3 {
                    let (run, calls) = world.calls_of(world.run(WEB)).await;
                    assert!(calls.len() < 40, "{what}: {calls:?}");
                    if !matches!(run.outcome, Outcome::Settled(_)) {
                        let complaint = run.complaint();
                        assert!(
                            complaint.contains("not that one") || code == 0,
                            "{what}: {complaint}"
                        );
                    }
                    // The former rule cannot come back either. Both stand where a server takes TCP and UDP on one port.
                    let may_lack = command == "createLoadBalancerRule";
                    assert!(!world.rules().is_empty() || may_lack, "{what}");
                    tokio::time::sleep(PAUSE).await;
                }
                world.sim.faults().clear();
                world.sim.clear_job_faults();
                tokio::time::sleep(Duration::from_secs(60)).await;
                world.run(WEB).await.settled();
                assert_eq!(world.rules(), [case.after], "{what}");
                assert_eq!(world.annotation(WEB, "replaced-rules"), None, "{what}");
                world.check(&what);
            }
        }
    }
}
