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
