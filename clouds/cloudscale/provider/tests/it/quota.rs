//! Quotas, and members that cannot be made.

use bowline_base::log::Log;
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::kit::journal::Entry;
use tracing::Level;

use crate::change::{set_ports, settled};
use crate::world::{Outcome, World, in_short, service_port};

/// The members of a pool, by the last digit of their addresses.
fn members(world: &World, pool: &str) -> Vec<String> {
    let pools = world.sim.pools();
    let pool = pools.iter().find(|it| it.name == pool).unwrap();
    let members = world.sim.members_of(pool.uuid).into_iter();
    let mut members: Vec<String> = members.map(|it| it.name).collect();
    members.sort();
    members
}

fn refused(writes: &[Entry]) -> usize {
    let is_refused = |entry: &&Entry| entry.status().is_some_and(|status| status >= 400);
    writes.iter().filter(is_refused).count()
}

#[tokio::test(start_paused = true)]
async fn members_that_go_make_room_for_those_that_come() {
    let mut world = settled(3).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members_per_pool = Some(3));
    world.remove_node("n1");
    world.add_node("n4");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    // Of each pool beside the old one first, in case that there is room; then in its place.
    let of_pool = ["POST members", "DELETE members", "POST members"];
    assert_eq!(in_short(&writes), of_pool.repeat(2));
    assert_eq!(refused(&writes), 2);
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_a_full_pool_one_member_after_the_other_makes_room() {
    let world = settled(3).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members_per_pool = Some(4));
    set_ports(
        &world,
        &[("web", "TCP", 8080, 32200), ("admin", "TCP", 9000, 31201)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    // One has room beside the old ones. No more is tried where the first one is refused.
    assert_eq!(
        in_short(&writes),
        [
            "POST members",
            "POST members",
            "DELETE members",
            "POST members",
            "DELETE members",
            "POST members",
            "DELETE members",
        ]
    );
    assert_eq!(refused(&writes), 1);
    assert!(members(&world, "tcp/web").iter().all(|it| it.ends_with(":32200")));
}

#[tokio::test(start_paused = true)]
async fn at_the_quota_the_log_has_one_action_for_each_write_that_was_sent() {
    let mut world = settled(3).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members_per_pool = Some(4));
    for node in ["n4", "n5", "n6", "n7"] {
        world.add_node(node);
    }
    let (log, _guards) = Log::listen(Level::INFO);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    let lines = log.take();
    let actions = lines.iter().filter(|line| line.contains("executing action"));
    assert_eq!(actions.count(), writes.len(), "{lines:#?}");
    // Of each of the two pools one creation is refused, and no more is tried.
    assert_eq!(
        (writes.len(), refused(&writes)),
        (4, 2),
        "{:?}",
        in_short(&writes)
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_holds_up_no_other_pool_and_no_listener() {
    let mut world = settled(2).await;
    let quota = Fault::on(
        http::Method::POST,
        format!("/v1/load-balancers/pools/{}/members", world.sim.pools()[0].uuid).as_str(),
    );
    let body = r#"{"detail":"The quota for members is exceeded."}"#;
    world
        .sim
        .faults()
        .add(quota.always().answer(Canned::json(400, body)));
    world.remove_node("n1");
    world.add_node("n3");
    world.add_node("n4");
    world.annotate("web", "timeout-client-data-ms", "7");
    let run = world.run("web").await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    assert!(
        run.complaint().starts_with("error during create-pool-member(")
            && run.complaint().contains("The quota for members is exceeded."),
        "{run:?}"
    );
    assert!(run.published_although_refused.is_some());
    // The member of the node that is gone made room, which another load balancer took.
    let pools = world.sim.pools();
    let count = |name: &str| members(&world, name).len();
    assert_eq!((count(&pools[0].name), count(&pools[1].name)), (1, 3), "{run:#?}");
    assert!(
        world
            .sim
            .listeners()
            .iter()
            .all(|it| it.timeout_client_data_ms == 7)
    );
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert_eq!(count(&pools[0].name), 3);
}

#[tokio::test(start_paused = true)]
async fn at_the_quota_a_pool_that_goes_makes_room_and_that_is_told() {
    let mut world = settled(2).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools_per_load_balancer = Some(2));
    set_ports(
        &world,
        &[("www", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)],
    );
    world.remove_node("n1");
    world.add_node("n3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), ["LoadBalancerQuotaMet"]);
    assert_eq!(refused(&writes), 1);
    let pools = writes
        .iter()
        .filter(|it| it.path.contains("/pools") && !it.path.contains("/members"));
    let pools: Vec<Entry> = pools.cloned().collect();
    assert_eq!(in_short(&pools), ["POST pools", "DELETE pools", "POST pools"]);
    assert_eq!(pools[1].seq + 1, pools[2].seq);
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    let names: Vec<String> = world.sim.pools().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["tcp/admin", "tcp/www"]);
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pools_that_are_replaced_at_the_quota_take_the_places_of_their_own() {
    let world = settled(1).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools_per_load_balancer = Some(2));
    world.annotate("web", "pool-algorithm", "source_ip");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), ["LoadBalancerQuotaMet"]);
    assert_eq!(refused(&writes), 1);
    assert_eq!(world.sim.pools().len(), 2);
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_room_holds_up_no_other_port() {
    let mut world = settled(1).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools_per_load_balancer = Some(2));
    set_ports(
        &world,
        &[
            ("new", "TCP", 443, 31443),
            ("web", "TCP", 8081, 31200),
            ("admin", "TCP", 9000, 31201),
        ],
    );
    world.add_node("n2");
    let run = world.run("web").await;
    assert!(
        run.complaint().starts_with("error during create-pool(")
            && run.complaint().contains("The quota for pools is exceeded."),
        "{run:?}"
    );
    let listeners: Vec<u16> = world.sim.listeners().iter().map(|it| it.protocol_port).collect();
    assert_eq!((world.sim.members().len(), listeners), (4, vec![9000, 8081]));
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools_per_load_balancer = None);
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 6);
}

/// As where somebody else takes each place that gets free, or the quota was lowered below what is in use.
#[tokio::test(start_paused = true)]
async fn what_makes_no_room_for_others_is_taken_once_and_not_again() {
    let quota_of = |what: &str| {
        let body = format!(r#"{{"detail":"The quota for {what} is exceeded."}}"#);
        Canned::json(400, &body)
    };
    let mut world = settled(3).await;
    for pool in world.sim.pools() {
        let path = format!("/v1/load-balancers/pools/{}/members", pool.uuid);
        let refuse = Fault::on(http::Method::POST, path.as_str()).always();
        world.sim.faults().add(refuse.answer(quota_of("members")));
    }
    for (old, new) in [("n1", "n4"), ("n2", "n5"), ("n3", "n6")] {
        world.remove_node(old);
        world.add_node(new);
    }
    for _ in 0..3 {
        let run = world.run("web").await;
        assert!(
            run.complaint().contains("The quota for members is exceeded."),
            "{run:?}"
        );
    }
    let left: Vec<usize> = ["tcp/web", "tcp/admin"]
        .map(|pool| members(&world, pool).len())
        .into();
    assert_eq!(left, [2, 3], "one was taken to make room");
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert_eq!(members(&world, "tcp/web").len(), 3);

    let refuse = Fault::on(http::Method::POST, "/v1/load-balancers/pools").always();
    world.sim.faults().add(refuse.answer(quota_of("pools")));
    set_ports(
        &world,
        &[("www", "TCP", 8080, 31200), ("root", "TCP", 9000, 31201)],
    );
    let mut told = Vec::new();
    for _ in 0..3 {
        let run = world.run("web").await;
        assert!(
            run.complaint().contains("The quota for pools is exceeded."),
            "{run:?}"
        );
        told.extend(run.notes.iter().map(|note| note.text.clone()));
    }
    let left = (world.sim.pools().len(), world.sim.listeners().len());
    assert_eq!(left, (1, 1), "one was taken to make room");
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    assert!(
        matches!(told.as_slice(), [text] if text.contains("the next one only when") && !text.contains("a moment")),
        "{told:?}"
    );
    world.sim.faults().clear();
    world.run("web").await.settled();
    let names: Vec<String> = world.sim.pools().into_iter().map(|it| it.name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
}

/// The API says that a member is in the way, and when that is gone something else.
#[tokio::test(start_paused = true)]
async fn a_replacement_that_fails_takes_one_member_of_a_pool_and_no_further_one() {
    let world = settled(3).await;
    for pool in world.sim.pools() {
        let path = format!("/v1/load-balancers/pools/{}/members", pool.uuid);
        let body = r#"{"detail":"A member with this address already exists, or the subnet is locked."}"#;
        let refuse = Fault::on(http::Method::POST, path.as_str()).always();
        world.sim.faults().add(refuse.answer(Canned::json(400, body)));
    }
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(32500);
    });
    for _ in 0..6 {
        let run = world.run("web").await;
        assert!(run.complaint().contains("the subnet is locked"), "{run:?}");
    }
    for pool in ["tcp/web", "tcp/admin"] {
        assert!(members(&world, pool).len() >= 2, "{pool}");
    }
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 6);
}

/// The retry asks first for the member that is missing. What its pool does not get, the next one would not get either.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_lost_is_asked_for_once_in_a_pass_and_draws_in_no_other_pool() {
    for text in ["The subnet is locked.", "The quota for members is exceeded."] {
        let world = settled(3).await;
        world.speaks_plainly();
        for pool in world.sim.pools() {
            let path = format!("/v1/load-balancers/pools/{}/members", pool.uuid);
            let refuse = |text: &str| Canned::json(400, &format!(r#"{{"detail":"{text}"}}"#));
            let on = || Fault::on(http::Method::POST, path.as_str());
            let twin = on()
                .times(1)
                .answer(refuse("A member with this address already exists."));
            world.sim.faults().add(twin);
            world.sim.faults().add(on().always().answer(refuse(text)));
        }
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.external_traffic_policy = Some("Local".into());
            spec.health_check_node_port = Some(32500);
        });
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(text), "{run:?}");
        let members: Vec<&str> = ["POST members", "DELETE members", "POST members"].into();
        assert_eq!(in_short(&writes)[3..], members, "{text}");
        for _ in 0..3 {
            let (run, writes) = world.writes_of(world.run("web")).await;
            assert!(run.complaint().contains(text), "{run:?}");
            assert_eq!(in_short(&writes), ["POST members"], "{text}");
        }
        assert_eq!(world.sim.members().len(), 5, "{text}");
        world.sim.faults().clear();
        world.run("web").await.settled();
        assert_eq!(world.sim.members().len(), 6);
    }
}

/// The API refuses no more than what takes the place of a member that serves.
#[tokio::test(start_paused = true)]
async fn members_of_nodes_that_left_go_while_a_replacement_is_refused() {
    for nodes in [1, 3] {
        let mut world = settled(nodes).await;
        world.speaks_plainly();
        let mut faults = Vec::new();
        for pool in world.sim.pools() {
            let path = format!("/v1/load-balancers/pools/{}/members", pool.uuid);
            let refuse = Fault::on(http::Method::POST, path.as_str()).always();
            let body = r#"{"detail":"The subnet is locked at the moment."}"#;
            faults.push(world.sim.faults().add(refuse.answer(Canned::json(400, body))));
        }
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.external_traffic_policy = Some("Local".into());
            spec.health_check_node_port = Some(32500);
        });
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains("-pool-member("), "{run:?}");
        assert_eq!(
            refused(&writes),
            2,
            "one monitor beside the old one, and one member"
        );
        world.remove_node("n1");
        for _ in 0..2 {
            let run = world.run("web").await;
            if nodes > 1 {
                assert!(run.complaint().contains("The subnet is locked"), "{run:?}");
            }
            for pool in ["tcp/web", "tcp/admin"] {
                assert_eq!(members(&world, pool).len(), nodes - 1, "{pool}");
            }
        }
        // Nothing was taken for what cannot come, and no other pool was drawn into it.
        let monitors = world.sim.health_monitors().into_iter();
        let kinds: Vec<String> = monitors.map(|it| format!("{:?}", it.kind)).collect();
        if nodes > 1 {
            assert_eq!(kinds, ["Tcp", "Http"]);
        }
        world.sim.faults().clear();
        world.run("web").await.settled();
        assert_eq!(world.sim.members().len(), 2 * (nodes - 1));
    }
}

/// The place that a member makes is in its own pool, and what another pool has room for says nothing about that.
#[tokio::test(start_paused = true)]
async fn room_in_another_pool_takes_no_second_member_of_a_full_one() {
    let mut world = settled(3).await;
    let full = world.sim.pools()[0].clone();
    let path = format!("/v1/load-balancers/pools/{}/members", full.uuid);
    let refuse = Fault::on(http::Method::POST, path.as_str()).always();
    let body = r#"{"detail":"The quota for members is exceeded."}"#;
    world.sim.faults().add(refuse.answer(Canned::json(400, body)));
    for node in ["n1", "n2", "n3"] {
        world.remove_node(node);
    }
    for node in ["n4", "n5", "n6"] {
        world.add_node(node);
        let run = world.run("web").await;
        assert!(run.complaint().contains("The quota for members"), "{run:?}");
    }
    assert_eq!(world.sim.members().len(), 3 + 2, "one was taken to make room");
}

#[tokio::test(start_paused = true)]
async fn at_the_quota_a_listener_makes_room_for_the_new_number_of_its_port() {
    let world = settled(1).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.listeners_per_load_balancer = Some(2));
    set_ports(
        &world,
        &[("web", "TCP", 8081, 31200), ("admin", "TCP", 9001, 31201)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let of_port = ["DELETE listeners", "POST listeners"];
    assert_eq!(
        in_short(&writes),
        [&["POST listeners"], of_port.repeat(2).as_slice()].concat()
    );
    assert_eq!(refused(&writes), 1);
    let ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.protocol_port).collect();
    assert_eq!(ports, [8081, 9001]);
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

/// As where the quota was lowered below what is in use. What is refused for another reason takes nobody's place.
#[tokio::test(start_paused = true)]
async fn a_listener_that_makes_no_room_is_put_back_and_not_taken_again() {
    for (text, taken) in [
        ("The quota for listeners is exceeded.", 1),
        ("The load balancer takes no listener now.", 0),
    ] {
        let mut world = settled(1).await;
        let refuse = Fault::on(http::Method::POST, "/v1/load-balancers/listeners");
        let body = format!(r#"{{"detail":"{text}"}}"#);
        let refuse = refuse.times(if taken == 1 { 2 } else { 100 });
        let fault = world.sim.faults().add(refuse.answer(Canned::json(400, &body)));
        set_ports(
            &world,
            &[("web", "TCP", 8081, 31200), ("admin", "TCP", 9001, 31201)],
        );
        let ports = |world: &World| {
            let listeners = world.sim.listeners().into_iter();
            listeners.map(|it| it.protocol_port).collect::<Vec<_>>()
        };
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(text), "{run:?}");
        let deleted = writes
            .iter()
            .filter(|it| it.method == http::Method::DELETE)
            .count();
        assert_eq!((deleted, ports(&world).len()), (taken, 2), "{text}");
        world.sim.faults().remove(fault);
        let refuse = Fault::on(http::Method::POST, "/v1/load-balancers/listeners").always();
        world.sim.faults().add(refuse.answer(Canned::json(400, &body)));
        world.add_node("n2");
        for _ in 0..3 {
            let (run, writes) = world.writes_of(world.run("web")).await;
            assert!(run.complaint().contains(text), "{run:?}");
            assert!(
                writes.iter().all(|it| it.method == http::Method::POST),
                "{writes:?}"
            );
        }
        let mut there = ports(&world);
        there.sort_unstable();
        assert_eq!(
            (there, world.sim.members().len()),
            (vec![8080, 9000], 4),
            "{text}"
        );
        world.sim.faults().clear();
        world.run("web").await.settled();
        assert_eq!(ports(&world), [8081, 9001]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_leaves_of_a_new_service_is_served_and_published() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools_per_load_balancer = Some(1));
    let run = world.run("web").await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    assert!(run.published_although_refused.is_some());
    assert_eq!(world.sim.listeners().len(), 1);
}

/// As an address of a subnet in another zone may be.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_refused_holds_up_no_other_one_and_empties_no_pool() {
    for (has_other, expected) in [(true, 2), (false, 1)] {
        let mut world = settled(1).await;
        let admin = world.sim.pools()[1].uuid;
        if has_other {
            world.add_node("n2");
        }
        world.run("web").await.settled();
        let refuse = Fault::on(
            http::Method::POST,
            format!("/v1/load-balancers/pools/{admin}/members").as_str(),
        );
        let body = r#"{"subnet":"The subnet is not in the zone of the load balancer."}"#;
        world
            .sim
            .faults()
            .add(refuse.always().answer(Canned::json(400, body)));
        world.remove_node("n1");
        world.add_node("n3");
        world.add_node("n4");
        for _ in 0..2 {
            let run = world.run("web").await;
            assert!(run.complaint().contains("not in the zone"), "{run:?}");
            assert!(run.published_although_refused.is_some());
        }
        let web = members(&world, "tcp/web").len();
        // Where another one serves, nobody keeps who left.
        let left = world.sim.members_of(admin).len();
        assert_eq!((web, left), (expected + 1, 1), "{has_other}");
        world.sim.faults().clear();
        world.run("web").await.settled();
        assert_eq!(world.sim.members_of(admin).len(), expected + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn where_only_members_follow_it_is_told_too_that_one_has_no_room() {
    let mut world = settled(2).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members_per_pool = Some(2));
    world.annotate("web", "flavor", "lb-large");
    world.remove_node("n1");
    world.add_node("n3");
    world.add_node("n4");
    let run = world.run("web").await;
    let complaint = run.complaint();
    assert!(
        complaint.starts_with("flavor for ") && complaint.contains("The quota for members is exceeded."),
        "{complaint}"
    );
    let served = ["10.20.0.11:31200", "10.20.0.12:31200"];
    assert_eq!(members(&world, "tcp/web"), served);
}

/// What is changed before a sync. Says whether all pools are replaced.
type Change = fn(&World) -> bool;

/// What comes before most other changes: the label of its step, the call, and what leads to it.
pub(crate) fn first_of_all() -> [(&'static str, http::Method, &'static str, Change); 4] {
    let pools = "/v1/load-balancers/pools";
    let balancers = "/v1/load-balancers/*";
    [
        ("rename-lb", http::Method::PATCH, balancers, |world| {
            world.annotate("web", "name", "edge");
            false
        }),
        ("create-pool", http::Method::POST, pools, |world| {
            world.edit("web", |service| {
                let ports = service.spec.as_mut().unwrap().ports.as_mut().unwrap();
                ports.insert(0, service_port(("more", "TCP", 443, 31443)));
            });
            false
        }),
        ("create-pool", http::Method::POST, pools, |world| {
            world.annotate("web", "pool-algorithm", "source_ip");
            true
        }),
        ("delete-resource", http::Method::DELETE, balancers, |world| {
            let own = world.sim.load_balancers()[0].clone();
            world.sim.add_load_balancer(&own.name, own.tags);
            false
        }),
    ]
}

/// What comes first of all other changes, and is refused.
#[tokio::test(start_paused = true)]
async fn members_follow_whatever_the_api_makes_of_the_rest() {
    for (label, method, path, change) in first_of_all() {
        for status in [400, 403, 500] {
            let mut world = settled(2).await;
            change(&world);
            let body = r#"{"detail":"Not like this."}"#;
            let fault = Fault::on(method.clone(), path);
            world
                .sim
                .faults()
                .add(fault.always().answer(Canned::json(status, body)));
            world.remove_node("n1");
            world.add_node("n3");
            let (run, writes) = world.writes_of(world.run("web")).await;
            let told = format!("error during {label}(");
            assert!(run.complaint().starts_with(&told), "{run:?}");
            let expected = [["POST members"; 2], ["DELETE members"; 2]].concat();
            assert_eq!(in_short(&writes)[..4], expected, "{label} {status}");
            world.sim.faults().clear();
            world.run("web").await.settled();
            assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        }
    }
}

/// As where UDP is not for this account: whatever comes first, the other port is served and its address shown.
#[tokio::test(start_paused = true)]
async fn a_port_that_is_refused_keeps_no_other_port_from_being_served() {
    for path in ["/v1/load-balancers/listeners", "/v1/load-balancers/pools"] {
        for (nth, status) in [(1, 400), (2, 400), (1, 403), (2, 403)] {
            let mut world = World::with_nodes(2);
            // Else Bowline writes it, which counts as another wish.
            world.annotate("web", "zone", "rma1");
            let body = r#"{"detail":"Not for this account."}"#;
            let fault = Fault::on(http::Method::POST, path).nth(nth);
            let fault = world
                .sim
                .faults()
                .add(fault.times(1).answer(Canned::json(status, body)));
            let run = world.run("web").await;
            assert!(run.complaint().contains("Not for this account."), "{run:?}");
            assert_eq!(run.published_although_refused.unwrap().ingress.len(), 2);
            let served = world.sim.listeners().len();
            assert_eq!(served, 1, "{path} {nth} {status}");
            assert!(world.annotation("web", "uuid").is_some());
            world.sim.faults().remove(fault);
            // For a while it is not asked for again, and the rest follows the nodes.
            world.add_node("n3");
            let (run, writes) = world.writes_of(world.run_after(0, "web")).await;
            assert!(run.complaint().contains("Not for this account."), "{run:?}");
            assert!(
                in_short(&writes).iter().all(|it| it == "POST members"),
                "{writes:?}"
            );
            world.run_after(5, "web").await.settled();
            assert_eq!((world.sim.listeners().len(), world.sim.members().len()), (2, 6));
            assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        }
    }
}

/// Octavia answers so to a second member with one address and port.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_a_conflict_for_the_api_costs_no_other_member_and_no_port() {
    let world = World::with_nodes(2);
    let address = world.sim.servers()[1]
        .interfaces
        .iter()
        .find(|it| !it.public)
        .unwrap()
        .addresses[0]
        .address;
    let is_other = format!(r#"{{"detail":"Another member on this pool is already using ip {address}"}}"#);
    let members = Fault::on(http::Method::POST, "/v1/load-balancers/pools/*/members").nth(2);
    world
        .sim
        .faults()
        .add(members.times(50).answer(Canned::json(409, &is_other)));
    let run = world.run("web").await;
    assert!(run.complaint().contains("is already using ip"), "{run:?}");
    assert_eq!(run.published_although_refused.unwrap().ingress.len(), 2);
    assert_eq!(
        (world.sim.listeners().len(), world.sim.health_monitors().len()),
        (2, 2)
    );
}

/// `POST members` answers 409 for good while the balancer reads `running`.
#[tokio::test(start_paused = true)]
async fn a_lasting_conflict_of_members_holds_up_nothing_and_is_waited_for_once() {
    let world = World::with_nodes(2);
    let members = Fault::on(http::Method::POST, "/v1/load-balancers/pools/*/members");
    let body = r#"{"detail":"Conflict."}"#;
    world
        .sim
        .faults()
        .add(members.always().answer(Canned::json(409, body)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("create-pool-member("), "{run:?}");
    assert_eq!(run.published_although_refused.unwrap().ingress.len(), 2);
    assert_eq!(world.sim.listeners().len(), 2);
    let posts = |writes: &[Entry]| in_short(writes).iter().filter(|it| *it == "POST members").count();
    assert_eq!(posts(&writes), 5 + 4, "{:?}", in_short(&writes));
    let (run, writes) = world.writes_of(world.run_after(6, "web")).await;
    assert_eq!((run.waited.as_secs(), posts(&writes)), (0, 4), "{run:?}");
    set_ports(
        &world,
        &[
            ("web", "TCP", 8080, 31200),
            ("admin", "TCP", 9000, 31201),
            ("more", "TCP", 9001, 31202),
        ],
    );
    let run = world.run_after(1, "web").await;
    assert_eq!(world.sim.listeners().len(), 3, "{run:?}");
    assert!(run.waited.as_secs() < 10, "{run:?}");
    world.sim.faults().clear();
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn of_several_parts_that_are_refused_all_are_told() {
    let world = World::with_nodes(1);
    let refuse = |path: &str, nth: u64, status: u16| {
        let fault = Fault::on(http::Method::POST, path).nth(nth).times(50);
        let body = format!(r#"{{"detail":"No {status}."}}"#);
        world.sim.faults().add(fault.answer(Canned::json(status, &body)));
    };
    refuse("/v1/load-balancers/listeners", 1, 400);
    for _ in 0..2 {
        let run = world.run("web").await;
        for port in ["8080", "9000"] {
            assert!(run.complaint().contains(port), "{port}: {run:?}");
        }
    }
    world.sim.faults().clear();
    world.run("web").await.settled();
    refuse("/v1/load-balancers/pools", 1, 403);
    refuse("/v1/load-balancers/pools/*/members", 1, 400);
    set_ports(
        &world,
        &[
            ("web", "TCP", 8080, 31200),
            ("admin", "TCP", 9000, 31201),
            ("more", "TCP", 9001, 31202),
        ],
    );
    let mut world = world;
    world.add_node("n2");
    for _ in 0..2 {
        let run = world.run("web").await;
        for part in ["/tcp/more)", "create-pool-member("] {
            assert!(run.complaint().contains(part), "{part}: {run:?}");
        }
    }
}
