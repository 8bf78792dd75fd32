//! One part that the server refuses, or fails at: everything else is served, and nothing is taken away for it.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::{Canned, FaultBuilder};
use bowline_cloudstack_sim::model::Owner;
use bowline_cloudstack_sim::{CloudstackSim, JobFault, UserSpec, VmSpec};
use serde_json::json;

use crate::world::{MACHINES, Outcome, UID, WEB, World};

const PAUSE: Duration = Duration::from_secs(5);

/// A world whose keys see every account.
async fn of_admin() -> World {
    let admin = UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin();
    World::built(|builder| builder.user(admin), "").await
}

/// A Node whose virtual machine is of another account than the rules, so that no rule takes it.
fn stranger(world: &World, name: &str) -> String {
    let id = world.sim.add_vm(VmSpec {
        owner: Some(Owner::Account("other".to_owned())),
        ..VmSpec::new(name)
    });
    world.add_node(name, Some(&id));
    id
}

fn joins(world: &World, name: &str) {
    let id = world.sim.add_vm(VmSpec::new(name));
    world.add_node(name, Some(&id));
}

/// The API itself says so.
fn saying(fault: FaultBuilder, code: u16) -> Fault {
    let text = json!({ "response": {
        "uuidList": [], "errorcode": code, "cserrorcode": 4350, "errortext": "not that one",
    } });
    fault.answer(Canned::json(code, &text.to_string()))
}

impl World {
    /// The ports that are served: with a rule that has members, and open.
    pub(crate) fn served(&self) -> Vec<u16> {
        let openings = [self.openings(), self.acl_items()].concat();
        let is_open = |port: u16| {
            openings
                .iter()
                .any(|open| open.split(' ').any(|word| word == port.to_string()))
        };
        let rules = self.sim.rules().into_iter();
        let served = rules.filter(|rule| rule.members.len() == MACHINES.len() && is_open(rule.public_port));
        served.map(|rule| rule.public_port).collect()
    }

    /// The ID of the one address that rules are on.
    #[track_caller]
    pub(crate) fn address_of_rules(&self) -> String {
        let addresses: BTreeSet<String> = self.sim.rules().into_iter().map(|rule| rule.address).collect();
        assert_eq!(addresses.len(), 1, "{addresses:?}");
        addresses.into_iter().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_virtual_machine_that_no_rule_takes_keeps_no_other_out_and_none_in() {
    let world = of_admin().await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    let id = stranger(&world, "node-b");
    joins(&world, "node-a");
    joins(&world, "node-c");
    world.remove_node("cp-a");
    for _ in 0..4 {
        let run = world.run(WEB).await;
        let complaint = run.complaint();
        assert!(
            complaint.contains(&format!("virtual machine node-b ({id}) does not become a member")),
            "{complaint}"
        );
        assert!(run.published_although_refused.is_some());
        assert_eq!(
            world.members("tcp-443"),
            ["node-a", "node-c", "pool-a-7", "pool-a-8"]
        );
        tokio::time::sleep(PAUSE).await;
    }
    // A port that is new gets all who can be had.
    world.spec(WEB, |spec| {
        let port = json!({ "name": "http", "protocol": "TCP", "port": 80, "nodePort": 31080 });
        spec["ports"].as_array_mut().unwrap().push(port);
    });
    assert!(!world.run(WEB).await.complaint().is_empty());
    assert_eq!(world.members("tcp-80"), world.members("tcp-443"));
    // Who was refused is tried alone, and less and less often.
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    assert!(!world.run(WEB).await.complaint().is_empty());
    let (_, writes) = world.writes_of(world.run(WEB)).await;
    assert_eq!(writes, Vec::<String>::new());
    world.remove_node("node-b");
    assert_eq!(world.run(WEB).await.settled().published().len(), 1);
    world.check("in the end");
}

#[tokio::test(start_paused = true)]
async fn a_new_service_is_published_only_if_anybody_can_be_its_member() {
    let world = of_admin().await;
    for name in MACHINES {
        world.remove_node(name);
    }
    stranger(&world, "node-b");
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("node-b"), "{}", run.complaint());
    assert!(run.published_although_refused.is_none());
    joins(&world, "node-a");
    let run = world.run(WEB).await;
    assert!(run.published_although_refused.is_some(), "{}", run.complaint());
    assert_eq!(world.members("tcp-443"), ["node-a"]);
}

#[tokio::test(start_paused = true)]
async fn with_an_address_that_is_not_taken_back_nothing_stays_open() {
    for is_denied in [false, true] {
        for is_moved in [false, true] {
            let what = format!("denied {is_denied}, moved {is_moved}");
            let world = World::with_service().await;
            world.run(WEB).await.settled();
            let address = world.address_of_rules();
            let command = "disassociateIpAddress";
            let refuse = || match is_denied {
                true => drop(
                    world
                        .sim
                        .faults()
                        .add(saying(Fault::operation(command).always(), 432)),
                ),
                false => world.sim.fail_jobs(JobFault::of(command).always()),
            };
            refuse();
            match is_moved {
                true => world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77")),
                false => world.delete(WEB),
            }
            for _ in 0..3 {
                let run = world.run(WEB).await;
                // One that is on its way is left for later by a balancer that has moved.
                if is_denied || !is_moved {
                    let complaint = run.complaint();
                    assert!(
                        complaint.contains("error releasing load balancer IP"),
                        "{what}: {complaint}"
                    );
                }
                let rules = world.sim.rules();
                assert!(
                    rules.iter().all(|rule| rule.address != address),
                    "{what}: {rules:?}"
                );
                // After a job that failed the address is on its way: the server lists no firewall rule of it, and none is in force.
                if is_denied {
                    assert_eq!(world.openings().len(), 2 * usize::from(is_moved), "{what}");
                }
                tokio::time::sleep(PAUSE).await;
            }
            world.sim.faults().clear();
            world.sim.clear_job_faults();
            tokio::time::sleep(Duration::from_secs(60)).await;
            world.run(WEB).await.settled();
            assert!(
                world.sim.addresses().iter().all(|held| held.id != address),
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_protocol_that_is_refused_interrupts_nothing() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    let rule = world.rule("tcp-443").id;
    let refused = saying(Fault::operation("createLoadBalancerRule").always(), 431);
    world.sim.faults().add(refused);
    world.annotate(WEB, "proxy-protocol", Some("true"));
    for _ in 0..3 {
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains("stays as it is"), "{}", run.complaint());
        assert_eq!(writes, ["createLoadBalancerRule"]);
        assert_eq!(world.rule("tcp-443").id, rule);
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    world.sim.faults().clear();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.run(WEB).await.settled();
    assert_eq!(world.members("tcp-proxy-443"), MACHINES);
}

#[tokio::test(start_paused = true)]
async fn a_firewall_rule_that_conflicts_with_something_unseen_closes_its_port_once() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
    });
    world.run(WEB).await.settled();
    let conflict = || Fault::operation("createFirewallRule");
    // Beside the old rule, in its place, and at each further try; that the old one comes back is taken.
    world.sim.faults().add(saying(conflict().times(2), 537));
    world.sim.faults().add(saying(conflict().nth(4).always(), 537));
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["172.16.0.0/12"])
    });
    let first = world.run(WEB).await;
    let mut pause = PAUSE;
    for _ in 0..4 {
        tokio::time::sleep(pause).await;
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, ["createFirewallRule"]);
        assert_eq!(run.complaint(), first.complaint());
        assert_eq!(world.openings(), ["tcp 443 192.0.2.0/24"]);
        pause *= 2;
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_another_rule_has_is_asked_for_by_the_schedule_and_not_at_each_change_of_the_nodes() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
    let create = || Fault::operation("createLoadBalancerRule");
    world.sim.faults().add(saying(create().nth(2).always(), 537));
    assert!(!world.run(WEB).await.complaint().is_empty());
    let mut pause = PAUSE;
    for round in 0..10 {
        for node in ["node-a", "node-b"] {
            match round % 2 {
                0 => joins(&world, node),
                _ => world.remove_node(node),
            }
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(run.complaint().contains("537"), "{}", run.complaint());
            assert_eq!(writes.len(), 1, "a member alone: {writes:?}");
            assert!(!writes[0].starts_with("create"), "{writes:?}");
        }
        // Who has the port may be gone without a word.
        tokio::time::sleep(pause).await;
        let (_, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, ["createLoadBalancerRule"], "after {pause:?}");
        pause = (2 * pause).min(Duration::from_secs(300));
    }
    world.sim.faults().clear();
    tokio::time::sleep(pause).await;
    world.run(WEB).await.settled();
}

#[tokio::test(start_paused = true)]
async fn a_port_at_which_the_server_fails_costs_the_other_port_nothing() {
    for is_vpc in [false, true] {
        let opening = if is_vpc {
            "createNetworkACL"
        } else {
            "createFirewallRule"
        };
        for command in ["assignToLoadBalancerRule", opening] {
            for is_job in [false, true] {
                let what = format!("VPC {is_vpc}, {command}, job {is_job}");
                let world = World::of(crate::site::Site::new(), is_vpc).await;
                world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
                match is_job {
                    true => world.sim.fail_jobs(JobFault::of(command).nth(2).always()),
                    false => drop(
                        world
                            .sim
                            .faults()
                            .add(saying(Fault::operation(command).nth(2).always(), 530)),
                    ),
                }
                let mut all = Vec::new();
                for _ in 0..5 {
                    let (run, writes) = world.writes_of(world.run(WEB)).await;
                    assert!(
                        matches!(run.outcome, Outcome::Refused(_))
                            && run.published_although_refused.is_some(),
                        "{what}: {run:#?}"
                    );
                    assert_eq!(world.served().len(), 1, "{what}");
                    all.extend(writes);
                    tokio::time::sleep(PAUSE).await;
                }
                let of = |command: &str| all.iter().filter(|write| *write == command).count();
                assert_eq!(of("associateIpAddress"), 1, "{what}: {all:?}");
                assert!(all.iter().all(|write| !write.starts_with("d")), "{what}: {all:?}");
                assert_eq!(of(command), 6, "one try each time, {what}: {all:?}");
                world.sim.faults().clear();
                world.sim.clear_job_faults();
                world.run(WEB).await.settled();
                assert_eq!(world.served().len(), 2, "{what}");
                world.check(&what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_moves_shows_where_it_is_before_it_leaves() {
    for is_vpc in [false, true] {
        let world = World::of(crate::site::Site::new(), is_vpc).await;
        world.add(WEB, UID, &[("TCP", 443, 31443)]);
        world.run(WEB).await.settled();
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        let run = world.run(WEB).await.settled();
        let steps = run.steps();
        let place = |start: &str| steps.iter().position(|step| step.starts_with(start)).unwrap();
        let order = [
            "create-rule(",
            "assign(",
            "publish-address(203.0.113.77)",
            "release-ip(",
        ]
        .map(place);
        assert!(order.is_sorted(), "VPC {is_vpc}: {steps:#?}");
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_job_hangs_that_takes_something_away_nobody_is_balanced_over_who_left() {
    type Change = fn(&World);
    let cases: [(&str, Change); 3] = [
        ("deleteLoadBalancerRule", |world| {
            world.spec(WEB, |spec| drop(spec["ports"].as_array_mut().unwrap().pop()));
        }),
        ("deleteFirewallRule", |world| {
            world.spec(WEB, |spec| {
                spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
            });
        }),
        ("disassociateIpAddress", |world| {
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        }),
    ];
    for (command, change) in cases {
        let world = World::new().await;
        world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
        world.run(WEB).await.settled();
        world.sim.fail_jobs(JobFault::of(command).stuck());
        change(&world);
        // Another change of the Service, or of its Nodes, ends the sync that waits for the job.
        let first = tokio::time::timeout(PAUSE, world.run(WEB)).await;
        assert!(first.is_err(), "{command}: {first:?}");
        world.remove_node("pool-a-8");
        let then = tokio::time::timeout(4 * PAUSE, world.run(WEB)).await;
        assert!(then.is_err(), "{command}: {then:?}");
        let serves = |ip: &str| {
            let mut rules = world.sim.rules();
            let at: Vec<_> = world
                .sim
                .addresses()
                .into_iter()
                .filter(|it| it.address.to_string() == ip)
                .collect();
            rules.retain(|rule| at.iter().any(|it| it.id == rule.address));
            rules
        };
        let home = world
            .services
            .find(WEB)
            .and_then(|service| bowline_cloud_provider::facts::published_addresses(&service).pop());
        let rules = serves(&home.unwrap());
        assert!(!rules.is_empty(), "{command}");
        let stays = |port: u16| command != "deleteLoadBalancerRule" || port != 80;
        for rule in rules.iter().filter(|rule| stays(rule.public_port)) {
            assert_eq!(rule.members.len(), 2, "{command}: {rule:?}");
        }
        // The job ends, as it does after a restart of the server.
        world.sim.clear_job_faults();
        tokio::time::sleep(Duration::from_secs(400)).await;
        let mut tries = 0;
        while !matches!(world.run(WEB).await.outcome, Outcome::Settled(_)) {
            tries += 1;
            assert!(tries < 4, "{command}");
            tokio::time::sleep(4 * PAUSE).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_always_fails_costs_an_address_that_was_there_before_and_the_other_port_nothing() {
    for is_requested in [false, true] {
        let world = World::new().await;
        world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
        if is_requested {
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        } else {
            world.run_steps(WEB, 3).await; // up to the note of its ID
        }
        world
            .sim
            .fail_jobs(JobFault::of("createLoadBalancerRule").nth(2).always());
        for _ in 0..3 {
            let run = world.run(WEB).await;
            assert!(
                run.published_although_refused.is_some(),
                "requested {is_requested}: {run:#?}"
            );
            assert_eq!(world.served(), [443]);
            tokio::time::sleep(6 * PAUSE).await;
        }
        assert_eq!(world.sim.journal().count_operation("associateIpAddress"), 1);
        world.sim.clear_job_faults();
        world.run(WEB).await.settled();
    }
}
