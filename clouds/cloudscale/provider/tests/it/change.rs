use std::collections::BTreeMap;
use std::time::Duration;

use bowline_cloudscale_sim::{Behaviour, CloudscaleSim, OverlapMode, PoolDelete};
use uuid::Uuid;

use crate::world::{World, in_short, service_port};

/// A world whose Service `web` is settled on some nodes.
pub(crate) async fn settled(nodes: usize) -> World {
    let world = World::with_nodes(nodes);
    world.run("web").await.settled();
    world
}

/// The ids of everything but members, by kind and name.
fn ids(sim: &CloudscaleSim) -> BTreeMap<String, Uuid> {
    let names: BTreeMap<Uuid, String> = sim
        .pools()
        .into_iter()
        .map(|pool| (pool.uuid, pool.name))
        .collect();
    let pools = sim
        .pools()
        .into_iter()
        .map(|pool| (format!("pool {}", pool.name), pool.uuid));
    let listeners = sim
        .listeners()
        .into_iter()
        .map(|it| (format!("listener {}", it.name), it.uuid));
    let monitors = sim
        .health_monitors()
        .into_iter()
        .map(|it| (format!("monitor {}", names[&it.pool]), it.uuid));
    pools.chain(listeners).chain(monitors).collect()
}

pub(crate) fn member_ids(sim: &CloudscaleSim) -> Vec<Uuid> {
    sim.members().into_iter().map(|member| member.uuid).collect()
}

pub(crate) fn set_ports(world: &World, ports: &[(&str, &str, i32, i32)]) {
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ports = Some(ports.iter().map(|port| service_port(*port)).collect());
    });
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_one_patch_per_listener() {
    let world = settled(2).await;
    let before = ids(&world.sim);
    world.annotate("web", "timeout-member-data-ms", "120000");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["PATCH listeners"; 2]);
    assert_eq!(
        writes[0].body.as_ref().unwrap().to_string(),
        r#"{"timeout_member_data_ms":120000}"#
    );
    assert_eq!(ids(&world.sim), before);
    // Zero is a number like others, and is sent.
    world.annotate("web", "timeout-member-data-ms", "0");
    world.writes_of(world.run("web")).await.0.settled();
    let (_, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn allowed_networks_come_and_go_by_patches() {
    let world = settled(1).await;
    for (value, body) in [
        (
            r#"["192.0.2.0/24","2001:DB8::/32"]"#,
            r#"{"allowed_cidrs":["192.0.2.0/24","2001:db8::/32"]}"#,
        ),
        ("[]", r#"{"allowed_cidrs":[]}"#),
    ] {
        world.annotate("web", "listener-allowed-cidrs", value);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["PATCH listeners"; 2]);
        assert_eq!(writes[0].body.as_ref().unwrap().to_string(), body);
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_moves_takes_only_its_listener_along() {
    let world = settled(2).await;
    let (before, members) = (ids(&world.sim), member_ids(&world.sim));
    set_ports(
        &world,
        &[("web", "TCP", 8081, 31200), ("admin", "TCP", 9000, 31201)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    // The new one stands beside the old one first: they do not share a port.
    assert_eq!(in_short(&writes), ["POST listeners", "DELETE listeners"]);
    let mut after = ids(&world.sim);
    assert!(after.remove("listener tcp/8081").is_some());
    let mut kept = before;
    kept.remove("listener tcp/8080");
    assert_eq!((after, member_ids(&world.sim)), (kept, members));
}

#[tokio::test(start_paused = true)]
async fn ports_that_change_places_are_replaced_back_to_back() {
    let world = settled(1).await;
    world.speaks_plainly();
    set_ports(
        &world,
        &[("web", "TCP", 9000, 31200), ("admin", "TCP", 8080, 31201)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().waves[0].len(), 2);
    let half = ["POST listeners", "DELETE listeners", "POST listeners"];
    assert_eq!(in_short(&writes), [half, half].concat());
    // No call at all between the two halves.
    for gap in [(1, 2), (4, 5)] {
        assert_eq!(writes[gap.0].seq + 1, writes[gap.1].seq);
    }
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_renamed_port_gets_a_new_pool_before_the_old_one_goes() {
    let world = settled(2).await;
    world.speaks_plainly();
    let before = ids(&world.sim);
    set_ports(
        &world,
        &[("www", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let expected = [
        "POST pools",
        "POST members",
        "POST members",
        "POST listeners",
        "DELETE listeners",
        "POST listeners",
        "POST health-monitors",
        "DELETE pools",
    ];
    assert_eq!(in_short(&writes), expected);
    let after = ids(&world.sim);
    assert!(after.contains_key("pool tcp/www") && !after.contains_key("pool tcp/web"));
    for part in ["pool tcp/admin", "listener tcp/9000", "monitor tcp/admin"] {
        assert_eq!(after[part], before[part]);
    }
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn another_algorithm_makes_all_pools_anew_and_keeps_the_balancer() {
    let world = settled(2).await;
    let (balancer, before) = (world.sim.load_balancers()[0].clone(), ids(&world.sim));
    world.annotate("web", "pool-algorithm", "least_connections");
    world.run("web").await.settled();
    let after = ids(&world.sim);
    assert!(before.iter().all(|(name, id)| after[name] != *id));
    assert_eq!(world.sim.load_balancers()[0].vips, balancer.vips);
    assert_eq!((world.sim.pools().len(), world.sim.members().len()), (2, 4));
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
}

/// Whether the API takes them along is not known.
#[tokio::test(start_paused = true)]
async fn no_listener_is_left_without_its_pool_whatever_a_deleted_pool_takes_along() {
    for pool_delete in [
        PoolDelete::Cascade,
        PoolDelete::DetachListeners,
        PoolDelete::RefuseIfUsed,
    ] {
        let world = settled(1).await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.pool_delete = pool_delete);
        set_ports(&world, &[("admin", "TCP", 9000, 31201)]);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let (listener, pool) = ("DELETE listeners", "DELETE pools");
        match pool_delete {
            PoolDelete::RefuseIfUsed => assert_eq!(in_short(&writes)[..2], [listener, pool]),
            _ => assert_eq!(in_short(&writes), [listener, pool]),
        }
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        set_ports(
            &world,
            &[("new", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)],
        );
        world.run("web").await.settled();
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    }
}

/// As a process leaves it that ends between the two, and somebody who deletes a pool by hand.
#[tokio::test(start_paused = true)]
async fn a_listener_without_a_pool_makes_room_for_the_one_of_its_port_or_goes() {
    for port in [8080, 8081] {
        let world = settled(1).await;
        let there = world.sim.listeners()[0].clone();
        world.sim.detach_listener(there.uuid);
        let pools = world.sim.pools();
        let pool = pools.iter().find(|pool| Some(pool.uuid) == there.pool).unwrap();
        world.sim.delete_pool(pool.uuid);
        set_ports(
            &world,
            &[("web", "TCP", port, 31200), ("admin", "TCP", 9000, 31201)],
        );
        world.run("web").await.settled();
        assert_eq!(world.sim.listeners().len(), 2);
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_come_and_go_move_their_members_only() {
    let mut world = settled(2).await;
    let before = ids(&world.sim);
    world.add_node("n3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["POST members"; 2]);
    world.remove_node("n1");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["DELETE members"; 2]);
    assert_eq!(ids(&world.sim), before);
}

/// The fewest members that any pool that ever had some had after a write.
fn fewest_members(world: &World, since: usize) -> usize {
    let mut members: BTreeMap<String, i64> = BTreeMap::new();
    let mut fewest = i64::MAX;
    for (index, entry) in world.sim.journal().writes().into_iter().enumerate() {
        let Some((pool, rest)) = entry
            .path
            .strip_prefix("/v1/load-balancers/pools/")
            .and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        assert!(rest.starts_with("members"));
        if entry.handled.is_some_and(|status| status < 300) {
            let count = members.entry(pool.to_owned()).or_default();
            *count += if entry.method == http::Method::POST { 1 } else { -1 };
            if index >= since {
                fewest = fewest.min(*count);
            }
        }
    }
    assert_ne!(fewest, i64::MAX, "no member was written");
    fewest.try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn other_node_ports_never_leave_a_pool_without_members() {
    let world = settled(3).await;
    let (before, writes) = (ids(&world.sim), world.sim.journal().writes().len());
    set_ports(
        &world,
        &[("web", "TCP", 8080, 32200), ("admin", "TCP", 9000, 32201)],
    );
    world.run("web").await.settled();
    assert_eq!(ids(&world.sim), before);
    assert!(
        world
            .sim
            .members()
            .iter()
            .all(|member| member.protocol_port >= 32200)
    );
    assert_eq!(fewest_members(&world, writes), 3);
}

#[tokio::test(start_paused = true)]
async fn the_policy_goes_there_and_back_and_pools_and_listeners_stay() {
    for (twins, fewest) in [(true, 3), (false, 2)] {
        let world = settled(3).await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.duplicate_members = twins);
        let (before, state) = (ids(&world.sim), world.sim.snapshot());
        for (policy, port) in [("Local", Some(32500)), ("Cluster", None)] {
            let (members, writes) = (member_ids(&world.sim), world.sim.journal().writes().len());
            world.edit("web", |service| {
                let spec = service.spec.as_mut().unwrap();
                (spec.external_traffic_policy, spec.health_check_node_port) = (Some(policy.into()), port);
            });
            let run = world.run("web").await.settled();
            let after = ids(&world.sim);
            for (name, id) in &before {
                assert_eq!(
                    after[name] == *id,
                    !name.starts_with("monitor") || after == before,
                    "{name}"
                );
            }
            assert!(member_ids(&world.sim).iter().all(|id| !members.contains(id)));
            assert_eq!(fewest_members(&world, writes), fewest, "{run:?}");
        }
        assert_eq!(world.sim.snapshot(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn monitors_are_patched_or_made_anew_alone() {
    let world = settled(1).await;
    world.speaks_plainly();
    let members = member_ids(&world.sim);
    world.annotate("web", "health-monitor-delay-s", "5");
    assert_eq!(
        in_short(&world.writes_of(world.run("web")).await.1),
        ["PATCH health-monitors"; 2]
    );
    world.annotate("web", "health-monitor-type", "ping");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let half = [
        "POST health-monitors",
        "DELETE health-monitors",
        "POST health-monitors",
    ];
    assert_eq!(in_short(&writes), [half, half].concat());
    assert_eq!(writes[1].seq + 1, writes[2].seq);
    assert_eq!(member_ids(&world.sim), members);
}

#[tokio::test(start_paused = true)]
async fn a_host_is_set_compared_and_taken_away() {
    let world = settled(1).await;
    world.annotate("web", "health-monitor-type", "http");
    world.annotate(
        "web",
        "health-monitor-http",
        r#"{"host":"x.test","method":"HEAD"}"#,
    );
    world.run("web").await.settled();
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
    world.remove_annotation("web", "health-monitor-http");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let bodies: Vec<String> = writes
        .iter()
        .take(2)
        .map(|it| it.body.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(
        bodies,
        [r#"{"http":{"host":null}}"#, r#"{"http":{"method":"GET"}}"#]
    );
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_name_is_one_patch_and_the_uuid_keeps_finding_it() {
    let world = settled(1).await;
    world.annotate("web", "name", "edge-lb");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["PATCH load-balancers"]);
    assert_eq!(world.sim.load_balancers()[0].name, "edge-lb");
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_refused_while_members_follow_the_nodes() {
    let mut world = settled(2).await;
    let balancer = world.sim.load_balancers()[0].uuid;
    let href = format!("https://api.cloudscale.ch/v1/load-balancers/{balancer}");
    let table = [
        (
            "flavor",
            "lb-large",
            format!("flavor for {href} changed, please configure the previous flavor or contact support"),
        ),
        (
            "zone",
            "lpg1",
            format!("zone for {href} changed, please configure the previous zone or contact support"),
        ),
        (
            "vip-addresses",
            r#"[{"subnet":"00000000-0000-4000-8000-000000000000"}]"#,
            format!("VIP addresses for {href} changed, please re-create the service"),
        ),
    ];
    for (index, (suffix, value, text)) in table.into_iter().enumerate() {
        let before = world.annotation("web", suffix);
        world.annotate("web", suffix, value);
        world.annotate("web", "timeout-client-data-ms", "777");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().starts_with(&text), "{}", run.complaint());
        let key = format!("k8s.cloudscale.ch/loadbalancer-{suffix}");
        assert!(run.complaint().contains(&key), "{}", run.complaint());
        assert!(writes.is_empty());
        world.add_node(&format!("late{index}"));
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().starts_with(&text));
        assert_eq!(in_short(&writes), ["POST members"; 2]);
        match before {
            Some(value) => world.annotate("web", suffix, &value),
            None => world.remove_annotation("web", suffix),
        }
        world.annotate("web", "timeout-client-data-ms", "50000");
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn every_way_the_api_may_treat_writes_ends_in_the_same_state() {
    let busy = |refuse: Option<u16>| Behaviour {
        lb_create_time: Duration::from_secs(4),
        lb_change_time: Duration::from_secs(2),
        refuse_writes_while_changing: refuse,
        overlap: OverlapMode::Refuse(409),
        ..Behaviour::default()
    };
    let behaviours = [
        Behaviour::default(),
        Behaviour {
            overlap: OverlapMode::Hold,
            lb_write_time: Duration::from_secs(3),
            ..Behaviour::default()
        },
        busy(None),
        busy(Some(409)),
        busy(Some(400)),
        Behaviour {
            pool_delete: PoolDelete::RefuseIfUsed,
            ..Behaviour::default()
        },
        Behaviour {
            duplicate_members: false,
            one_attribute_per_patch: true,
            ..Behaviour::default()
        },
        Behaviour {
            one_monitor_per_pool: false,
            unique_listener_ports: false,
            ..Behaviour::default()
        },
    ];
    let mut first = None;
    for behaviour in behaviours {
        let world = World::with_nodes(2);
        world.sim.set_behaviour(|it| *it = behaviour.clone());
        world.run("web").await.settled();
        set_ports(
            &world,
            &[
                ("web", "TCP", 9000, 31200),
                ("www", "TCP", 8080, 31299),
                ("dns", "UDP", 53, 31300),
            ],
        );
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            (spec.external_traffic_policy, spec.health_check_node_port) = (Some("Local".into()), Some(32500));
        });
        world.annotate("web", "pool-protocol", "proxyv2");
        world.annotate("web", "timeout-client-data-ms", "9");
        world.run("web").await.settled();
        let state = world.sim.snapshot();
        assert_eq!(
            world.sim.check_invariants(),
            Vec::<String>::new(),
            "{behaviour:?}"
        );
        assert_eq!(
            *first.get_or_insert_with(|| state.clone()),
            state,
            "{behaviour:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn members_are_replaced_once_by_an_api_that_takes_no_write_while_a_balancer_is_changing() {
    for (refusal, takes_twins) in [(409, true), (400, true), (409, false)] {
        let world = World::with_nodes(3);
        world.speaks_plainly();
        world.run("web").await.settled();
        world.sim.set_behaviour(|behaviour| {
            behaviour.lb_change_time = Duration::from_secs(1);
            behaviour.refuse_writes_while_changing = Some(refusal);
            behaviour.duplicate_members = takes_twins;
        });
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            (spec.external_traffic_policy, spec.health_check_node_port) = (Some("Local".into()), Some(32500));
        });
        let (run, writes) = world.writes_of(world.run("web")).await;
        let run = run.settled();
        let done = |what: &str| {
            writes
                .iter()
                .filter(|entry| entry.status().is_some_and(|status| status < 300))
                .filter(|entry| in_short(std::slice::from_ref(*entry)) == [what])
                .count()
        };
        let members = world.sim.members().len();
        assert_eq!(
            done("POST members"),
            members,
            "{refusal} {takes_twins}: {writes:#?}"
        );
        assert_eq!(done("DELETE members"), members, "{refusal} {takes_twins}");
        // Once refused, the writes come one by one, each when the one before it is done.
        let refused = writes.iter().filter(|entry| entry.status() == Some(refusal));
        let most = if takes_twins { members + 1 } else { 3 * members };
        assert!(refused.count() <= most, "{refusal} {takes_twins}: {writes:#?}");
        assert!(run.waited <= Duration::from_secs(20), "{:?}", run.waited);
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn writes_to_one_balancer_never_overlap() {
    let mut world = World::with_nodes(2);
    world.sim.set_behaviour(|behaviour| {
        behaviour.overlap = OverlapMode::Refuse(409);
        behaviour.lb_write_time = Duration::from_secs(1);
    });
    world.run("web").await.settled();
    world.add_node("n3");
    world.add_node("n4");
    world.annotate("web", "pool-algorithm", "source_ip");
    world.run("web").await.settled();
    assert!(world.sim.journal().overlaps().is_empty());
    assert!(
        world
            .sim
            .journal()
            .filter(|entry| entry.status() == Some(409))
            .is_empty()
    );
}
