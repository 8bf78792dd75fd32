//! Removing a balancer: what goes, what stays.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AclItemSpec, AddressSpec, JobFault, ProjectSpec, RuleSpec};
use serde_json::{Value, json};

use crate::site::Site;
use crate::world::{MACHINES, NAME, Outcome, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
const IP: &str = "203.0.113.77";
const MARK: &str = "ip-associated-by-controller";

#[tokio::test(start_paused = true)]
async fn everything_goes_with_one_release() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.delete(WEB);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["disassociateIpAddress"]);
    world.check_nothing_left("deleted");
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.settled().waves.is_empty() && writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_type_keeps_nothing() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
    let run = world.run(WEB).await;
    assert_eq!(run.published(), Vec::<String>::new());
    world.check_nothing_left("of another type");
    assert_eq!(world.annotation(WEB, "ip-ids"), None);
}

#[tokio::test(start_paused = true)]
async fn a_requested_free_address_is_marked_and_released() {
    let world = World::with_service().await;
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    let run = world.run(WEB).await;
    assert_eq!(run.published(), [IP]);
    assert_eq!(
        world.annotation(WEB, "ip-associated-by-controller").as_deref(),
        Some("true")
    );
    let marked = run
        .steps()
        .iter()
        .position(|step| step.contains("ip-associated-by-controller"))
        .unwrap();
    let created = run
        .steps()
        .iter()
        .position(|step| step.starts_with("create-rule"))
        .unwrap();
    assert!(marked < created, "{run:#?}");
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn a_requested_address_whose_mark_a_person_took_off_stays() {
    for is_vpc in [false, true] {
        for mark in [None, Some("false"), Some("True"), Some("")] {
            for runs_meanwhile in [false, true] {
                let what = format!("VPC {is_vpc}, {mark:?}, runs meanwhile {runs_meanwhile}");
                let world = World::of(Site::new(), is_vpc).await;
                world.add_web();
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
                world.run(WEB).await.settled();
                world.annotate(WEB, MARK, mark);
                if runs_meanwhile {
                    assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
                    assert_eq!(world.annotation(WEB, MARK).as_deref(), mark, "{what}");
                }
                world.delete(WEB);
                world.run(WEB).await.settled();
                let mut kept = world.sim.addresses();
                kept.retain(|address| !address.is_source_nat);
                assert_eq!(kept.len(), 1, "{what}");
                assert_eq!(
                    (world.rules(), world.openings()),
                    (Vec::new(), Vec::new()),
                    "{what}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_address_that_was_being_acquired_when_the_process_was_killed_is_given_back() {
    for is_served in [false, true] {
        let mut world = World::with_service().await;
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
        world.run_killed(WEB, 2).await;
        world.restart().await;
        if is_served {
            assert_eq!(world.run(WEB).await.published(), [IP]);
        }
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left(&format!("served {is_served}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_address_that_a_person_was_faster_to_have_is_his() {
    let world = World::with_service().await;
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    // Claimed, and then it is his.
    world.run_steps(WEB, 1).await;
    assert_eq!(world.annotation(WEB, MARK).as_deref(), Some("true"));
    let taking = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.sim.take_address(AddressSpec::at(IP.parse().unwrap()))
    };
    let (run, id) = tokio::join!(world.run_paused(WEB, 0, Duration::from_secs(60)), taking);
    assert!(
        run.complaint().starts_with("error associating new IP address"),
        "{}",
        run.complaint()
    );
    assert_eq!(world.annotation(WEB, MARK), None);
    assert_eq!(world.run(WEB).await.published(), [IP]);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, id);
}

#[tokio::test(start_paused = true)]
async fn a_requested_address_of_the_user_stays() {
    let world = World::with_service().await;
    let id = world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    assert_eq!(world.run(WEB).await.published(), [IP]);
    assert_eq!(world.annotation(WEB, "ip-associated-by-controller"), None);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, id);
    assert_eq!((world.rules(), world.openings()), (Vec::new(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_user_s_address_stays_even_if_the_service_no_longer_asks_for_it() {
    let world = World::with_service().await;
    let id = world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    world.run(WEB).await.settled();
    world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null);
    world.run(WEB).await.settled();
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, id);
}

/// Two Services on one address: the one that acquired it, and another on another port.
async fn shared() -> World {
    let world = World::new().await;
    world.add(WEB, crate::world::UID, &[("TCP", 80, 31080)]);
    world.add(OTHER, OTHER_UID, &[("TCP", 8080, 31880)]);
    for key in [WEB, OTHER] {
        world.spec(key, |spec| spec["loadBalancerIP"] = json!(IP));
        assert_eq!(world.run(key).await.published(), [IP]);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn a_shared_address_goes_with_the_marked_service_if_that_goes_last() {
    let world = shared().await;
    world.delete(OTHER);
    world.run(OTHER).await.settled();
    assert_eq!(world.rules(), ["tcp-80"]);
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("both deleted");

    let world = shared().await;
    world.delete(WEB);
    let run = world.run(WEB).await.settled();
    assert!(run.has_note("PublicIPKept"), "{:#?}", run.notes);
    assert_eq!(
        (world.rules().len(), world.openings()),
        (1, vec!["tcp 8080 0.0.0.0/0".to_owned()])
    );
    assert!(world.run(OTHER).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_service_comes_to_use_meanwhile_is_kept() {
    let world = World::new().await;
    world.add(WEB, crate::world::UID, &[("TCP", 80, 31080)]);
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    world.run(WEB).await.settled();
    world.add(OTHER, OTHER_UID, &[("TCP", 8080, 31880)]);
    world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!(IP));
    world.delete(WEB);
    // The release is decided, then the other Service comes, then the release goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let creation = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, creation);
    let removed = removed.settled();
    assert!(removed.waves[0][0].starts_with("release-ip("), "{removed:#?}");
    assert_eq!(world.address().address.to_string(), IP);
    assert_eq!(
        (world.rules().len(), world.openings()),
        (1, vec!["tcp 8080 0.0.0.0/0".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_tried_until_the_address_is_free() {
    let error = r#"{"disassociateipaddressresponse":{"errorcode":530,"errortext":"router"}}"#;
    type Strike = fn(&World, &str);
    let faults: [(&str, Strike); 3] = [
        ("answer", |world, error| {
            world
                .sim
                .faults()
                .add(Fault::operation("disassociateIpAddress").answer(Canned::json(530, error)));
        }),
        ("job", |world, _| {
            world.sim.fail_jobs(JobFault::of("disassociateIpAddress"))
        }),
        ("lost", |world, _| {
            world
                .sim
                .faults()
                .add(Fault::operation("disassociateIpAddress").drop_before());
        }),
    ];
    for (what, strike) in faults {
        let mut world = World::with_service().await;
        world.run(WEB).await.settled();
        strike(&world, error);
        world.delete(WEB);
        let run = world.run(WEB).await;
        assert!(
            run.complaint().starts_with("error releasing load balancer IP "),
            "{what}: {}",
            run.complaint()
        );
        // Even if the rules are gone by now.
        for rule in world.sim.rules() {
            world.sim.remove_rule(&rule.id);
        }
        world.restart().await;
        world.run(WEB).await.settled();
        world.check_nothing_left(what);
    }
}

#[tokio::test(start_paused = true)]
async fn the_source_nat_address_is_never_released() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let id = world.address().id;
    world
        .sim
        .edit_address(&id, |address| address.is_source_nat = true);
    world.delete(WEB);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert!(
        !writes.contains(&"disassociateIpAddress".to_owned()),
        "{writes:?}"
    );
    assert_eq!((world.rules(), world.openings()), (Vec::new(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn acl_items_that_others_need_stay() {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in [(WEB, crate::world::UID), (OTHER, OTHER_UID)] {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    assert_eq!(world.acl_items().len(), 1);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
    world.delete(OTHER);
    world.run(OTHER).await.settled();
    world.check_nothing_left("both deleted");
}

#[tokio::test(start_paused = true)]
async fn a_port_that_another_service_comes_to_need_meanwhile_stays_open() {
    let world = World::vpc("tier-acl").await;
    world.add(WEB, crate::world::UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    world.add(OTHER, OTHER_UID, &[("TCP", 443, 31443)]);
    world.delete(WEB);
    // The removal is decided, then the other Service finds the port open, then the removal goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let creation = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, creation);
    assert!(removed.settled().waves[0][0].starts_with("close-acl("));
    assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
    world.delete(OTHER);
    world.run(OTHER).await.settled();
    world.check_nothing_left("both deleted");
}

const LAST_UID: &str = "9c9e6679-7425-40de-944b-e07fc1f90ae7";
const ALL: [&str; 3] = [WEB, OTHER, "shop/last"];

/// Three Services with the same port in one tier.
async fn three_on_one_port() -> World {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in ALL.into_iter().zip([crate::world::UID, OTHER_UID, LAST_UID]) {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
    world
}

#[tokio::test(start_paused = true)]
async fn services_that_go_at_the_same_time_leave_no_acl_item() {
    let world = three_on_one_port().await;
    for key in ALL {
        world.delete(key);
    }
    let runs = ALL.map(|key| world.run(key));
    for run in futures::future::join_all(runs).await {
        run.settled();
    }
    world.check_nothing_left("deleted at once");
}

#[tokio::test(start_paused = true)]
async fn services_that_go_at_the_same_time_leave_no_acl_item_whenever_the_process_stops() {
    for (first, second, (third, narrow)) in [0, 1, 2, 3]
        .into_iter()
        .flat_map(|a| [0, 1, 2, 3].map(move |b| (a, b)))
        .flat_map(|(a, b)| [(0, 0), (2, 0), (0, 1)].map(move |c| (a, b, c)))
    {
        let mut world = three_on_one_port().await;
        for key in &ALL[..narrow] {
            world.spec(key, |spec| {
                spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
            });
            world.run(key).await.settled();
        }
        for key in ALL {
            world.delete(key);
        }
        let runs = ALL
            .into_iter()
            .zip([first, second, third])
            .map(|(key, stop)| world.run_steps(key, stop));
        let stopped = futures::future::join_all(runs).await;
        world.restart().await;
        // What was settled is gone, and nobody looks after it any more.
        let left = ALL
            .into_iter()
            .zip(stopped)
            .filter(|(_, run)| run.outcome == Outcome::Stopped);
        for run in futures::future::join_all(left.map(|(key, _)| world.run(key))).await {
            run.settled();
        }
        world.check_nothing_left(&format!(
            "stopped at {first}, {second}, {third}, {narrow} with ranges"
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn ports_that_go_at_the_same_time_leave_no_acl_item() {
    let world = three_on_one_port().await;
    for key in ALL {
        world.spec(key, |spec| {
            spec["ports"] = json!([{ "port": 80, "nodePort": 31080, "protocol": "TCP" }]);
        });
    }
    for run in futures::future::join_all(ALL.map(|key| world.run(key))).await {
        run.settled();
    }
    assert_eq!(world.acl_items(), ["tier-acl tcp 80 0.0.0.0/0"]);
    for key in ALL {
        assert_eq!(world.annotation(key, "replaced-rules"), None);
        assert!(world.run(key).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_acl_item_for_ranges_goes_with_the_only_service_that_is_open_for_them() {
    const RANGED: &str = "tier-acl tcp 443 192.0.2.0/24";
    const ALL_SOURCES: &str = "tier-acl tcp 443 0.0.0.0/0";
    let world = three_on_one_port().await;
    for key in [WEB, OTHER] {
        world.spec(key, |spec| {
            spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
        });
        world.run(key).await.settled();
    }
    let items = || {
        let mut items = world.acl_items();
        items.sort();
        items
    };
    assert_eq!(items(), [ALL_SOURCES, RANGED]);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(items(), [ALL_SOURCES, RANGED]);
    world.delete(OTHER);
    world.run(OTHER).await.settled();
    assert_eq!(items(), [ALL_SOURCES]);
    world.delete(ALL[2]);
    world.run(ALL[2]).await.settled();
    world.check_nothing_left("all deleted");
}

#[tokio::test(start_paused = true)]
async fn services_with_different_ranges_that_go_at_the_same_time_leave_no_acl_item() {
    for narrow in [1, 2, 3] {
        let world = three_on_one_port().await;
        for key in &ALL[..narrow] {
            world.spec(key, |spec| {
                spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
            });
            world.run(key).await.settled();
        }
        for key in ALL {
            world.delete(key);
        }
        for run in futures::future::join_all(ALL.map(|key| world.run(key))).await {
            run.settled();
        }
        world.check_nothing_left(&format!("{narrow} with ranges"));
    }
}

#[tokio::test(start_paused = true)]
async fn acl_items_of_people_stay() {
    let world = World::vpc("tier-acl").await;
    world.add_web();
    let list = world.sim.acl_list("tier-acl").unwrap();
    world
        .sim
        .add_acl_item(AclItemSpec::new(&list, "tcp", 443).cidrs(["10.0.0.0/8"]));
    world.sim.add_acl_item(AclItemSpec {
        is_allow: false,
        ..AclItemSpec::new(&list, "tcp", 443)
    });
    world.sim.add_acl_item(AclItemSpec {
        is_ingress: false,
        ..AclItemSpec::new(&list, "tcp", 443)
    });
    let theirs = world.sim.acl_items().len();
    world.run(WEB).await.settled();
    assert_eq!(world.acl_items().len(), theirs + 2);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.acl_items().len(), theirs);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_and_what_is_gone_blocks_nothing() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let address = world.address();
    world.sim.add_rule(RuleSpec {
        protocol: Some("ssl".into()),
        ..RuleSpec::new(format!("{NAME}-tcp-9"), &address.id, 9, 9)
    });
    world.edit(WEB, |service| service.metadata.annotations = None);
    world.spec(WEB, |spec| {
        spec["loadBalancerIP"] = json!(address.address.to_string());
        spec["loadBalancerSourceRanges"] = json!(["nonsense"]);
        spec["ports"] = json!([]);
    });
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.rules(), Vec::<String>::new());
    assert_eq!(world.address().id, address.id);

    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.sim.release_address(&world.address().id);
    world.delete(WEB);
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_was_claimed_and_never_used_is_given_back() {
    for steps in [1, 2] {
        let mut world = World::with_service().await;
        world.run_steps(WEB, steps).await;
        world.restart().await;
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left("claimed only");
    }
}

#[tokio::test(start_paused = true)]
async fn services_that_go_together_leave_nothing_open_that_they_shared() {
    const KEYS: [&str; 3] = ["shop/one", "shop/two", "shop/three"];
    for restarts in [false, true] {
        let mut world = World::vpc("tier-acl").await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(2));
        for (number, key) in KEYS.into_iter().enumerate() {
            let uid = format!("0000000{number}-0000-4000-8000-000000000000");
            world.add(key, &uid, &[("TCP", 443, 31443)]);
            world.run(key).await.settled();
        }
        assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
        // One that stays needs it.
        world.delete(KEYS[0]);
        world.run(KEYS[0]).await.settled();
        assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
        world.delete(KEYS[1]);
        world.delete(KEYS[2]);
        if restarts {
            world.restart().await;
        }
        for run in futures::future::join_all(KEYS[1..].iter().map(|key| world.run(key))).await {
            run.settled();
        }
        world.check_nothing_left("deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_see_nothing_of_the_cluster_let_no_service_go() {
    for is_inherited in [false, true] {
        let mut world = World::with_service().await;
        world.run(WEB).await.settled();
        world.publish_at(WEB, &world.address().address.to_string());
        if is_inherited {
            for note in ["ip-ids", "ip-networks"] {
                world.annotate(WEB, note, None);
            }
        }
        world.delete(WEB);
        let project = world.sim.add_project(ProjectSpec::new("other"));
        world.site = world.site.with(&format!("project-id = {project}\n"));
        world.restart().await;
        for _ in 0..2 {
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(run.complaint().contains("proves nothing"), "{}", run.complaint());
            assert_eq!((writes, world.rules().len()), (Vec::new(), 2));
        }
        world.site = world.site.with("project-id =\n");
        world.restart().await;
        world.run(WEB).await.settled();
        world.check_nothing_left("deleted");
        // A process that does not know that it did so sees the machines of the Nodes, and then that is proof.
        world.restart().await;
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_nodes_lets_its_services_go() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.publish_at(WEB, &world.address().address.to_string());
    world.sim.release_address(&world.address().id);
    for vm in world.sim.vms() {
        world.sim.expunge_vm(&vm.id);
    }
    world.delete(WEB);
    // As long as Kubernetes takes them for ready, nobody can tell this from keys of another account.
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("proves nothing"), "{}", run.complaint());
    MACHINES.iter().for_each(|name| world.remove_node(name));
    world.run(WEB).await.settled();
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_of_a_service_is_proof_enough() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.publish_at(WEB, &world.address().address.to_string());
    for vm in world.sim.vms() {
        world.sim.expunge_vm(&vm.id);
    }
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}
