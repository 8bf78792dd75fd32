//! The traffic policy says on which port members are probed, and what is expected there.

use std::collections::BTreeMap;

use bowline_cloud_provider::CloudProvider as _;
use bowline_cloud_provider::plan::{Answer, Impact};
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::kit::journal::Entry;

use crate::change::set_ports;
use crate::world::{World, in_short, service_port};

const POLICIES: [(&str, Option<i32>); 2] = [("Local", Some(32500)), ("Cluster", None)];

fn switch(world: &World, policy: &str, port: Option<i32>) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some(policy.into()), port);
    });
}

/// A world whose Service `web` of one port or two is settled under the other policy than this.
async fn before(policy: &str, ports: usize) -> World {
    let world = World::with_nodes(2);
    let all = [("web", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)];
    set_ports(&world, &all[..ports]);
    let (other, port) = POLICIES.into_iter().find(|(other, _)| *other != policy).unwrap();
    switch(&world, other, port);
    world.run("web").await.settled();
    world
}

/// Where the members of each pool are probed, and with what.
fn checks(world: &World) -> BTreeMap<String, (Vec<u16>, String)> {
    let monitors = world.sim.health_monitors();
    let pools = world.sim.pools().into_iter().map(|pool| {
        let members = world.sim.members_of(pool.uuid).into_iter();
        let mut ports: Vec<u16> = members.map(|it| it.monitor_port.unwrap()).collect();
        ports.dedup();
        let kinds = monitors.iter().filter(|it| it.pool == pool.uuid);
        let kinds = kinds.map(|it| format!("{:?}", it.kind)).collect::<Vec<_>>();
        (pool.name, (ports, kinds.join(" ")))
    });
    pools.collect()
}

/// The checks of the pools `tcp` or `tcp/web` and `tcp/admin` under a policy.
fn wanted(world: &World, policy: &str) -> BTreeMap<String, (Vec<u16>, String)> {
    let check = |name: String| {
        let node_port = if name == "tcp/admin" { 31201 } else { 31200 };
        let check = match policy {
            "Local" => (vec![32500], "Http".to_owned()),
            _ => (vec![node_port], "Tcp".to_owned()),
        };
        (name, check)
    };
    checks(world).into_keys().map(check).collect()
}

/// What was created: in which pool, and where a member is probed or what a monitor is; each once for all that came in a row.
fn created(world: &World, writes: &[Entry]) -> Vec<String> {
    let pools = world.sim.pools();
    let created = writes.iter().filter_map(|write| {
        let body = write.body.as_ref()?;
        let is_done = write.method == http::Method::POST && write.status() == Some(201);
        let what = match &body["monitor_port"] {
            port if port.is_u64() => format!("members {port}"),
            _ => format!("monitor {}", body["type"].as_str()?),
        };
        let uuid = body["pool"].as_str().or_else(|| write.path.split('/').nth(4))?;
        let pool = pools.iter().find(|pool| pool.uuid.to_string() == uuid)?;
        is_done.then(|| format!("{}: {what}", pool.name))
    });
    let mut created: Vec<String> = created.collect();
    created.dedup();
    created
}

/// What is created when the policy changes: no pool waits for another one.
fn switched(policy: &str) -> [&str; 4] {
    match policy {
        "Local" => [
            "tcp/web: monitor http",
            "tcp/web: members 32500",
            "tcp/admin: monitor http",
            "tcp/admin: members 32500",
        ],
        _ => [
            "tcp/web: monitor tcp",
            "tcp/web: members 31200",
            "tcp/admin: monitor tcp",
            "tcp/admin: members 31201",
        ],
    }
}

#[tokio::test(start_paused = true)]
async fn another_traffic_policy_goes_pool_by_pool() {
    let world = World::with_nodes(3);
    world.speaks_plainly();
    world.run("web").await.settled();
    for (policy, port) in POLICIES {
        switch(&world, policy, port);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(created(&world, &writes), switched(policy));
        // A monitor is tried beside the old one first, and goes back to back with it; each member is created and then one deleted.
        let monitor = [
            "POST health-monitors",
            "DELETE health-monitors",
            "POST health-monitors",
        ];
        let members = ["POST members", "DELETE members"].repeat(3);
        let pool = [monitor.as_slice(), &members].concat();
        assert_eq!(in_short(&writes), pool.repeat(2), "{policy}");
        assert_eq!(checks(&world), wanted(&world, policy));
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

/// Whoever comes is probed as all are at that time, and whoever left is gone before a monitor is written, which the API may refuse.
#[tokio::test(start_paused = true)]
async fn members_of_all_pools_follow_the_nodes_before_their_check_moves() {
    for (policy, port) in POLICIES {
        let mut world = before(policy, 2).await;
        switch(&world, policy, port);
        world.remove_node("n1");
        world.add_node("n3");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let comes = match policy {
            "Local" => ["tcp/web: members 31200", "tcp/admin: members 31201"],
            _ => ["tcp/web: members 32500", "tcp/admin: members 32500"],
        };
        assert_eq!(
            created(&world, &writes),
            [comes.as_slice(), &switched(policy)].concat()
        );
        let follows = [["POST members"; 2], ["DELETE members"; 2]].concat();
        assert_eq!(in_short(&writes)[..4], follows, "{policy}");
        assert_eq!(checks(&world), wanted(&world, policy));
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

/// A member that is replaced for another reason does not wait for the check, and keeps it.
#[tokio::test(start_paused = true)]
async fn a_member_that_somebody_disabled_holds_up_no_check() {
    for (policy, port) in POLICIES {
        let world = before(policy, 2).await;
        switch(&world, policy, port);
        let member = world.sim.members()[0].uuid;
        world.sim.set_member_enabled(member, false);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let again = match policy {
            "Local" => "tcp/web: members 31200",
            _ => "tcp/web: members 32500",
        };
        let switched = switched(policy);
        assert_eq!(created(&world, &writes), [&[again], switched.as_slice()].concat());
        assert!(world.sim.members().iter().all(|it| it.enabled));
        assert_eq!(checks(&world), wanted(&world, policy));
    }
}

/// What is changed before a sync. Says whether all pools are replaced.
type Change = fn(&World) -> bool;

/// What comes before most other changes: the label of its step, the call, and what leads to it.
fn first_of_all() -> [(&'static str, http::Method, &'static str, Change); 4] {
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

/// What may fail for a reason of its own comes before a pool's check moves, or after.
#[tokio::test(start_paused = true)]
async fn whatever_else_fails_no_check_moves_by_half() {
    for (policy, port) in POLICIES {
        for (ports, has_new_node) in [(1, false), (2, false), (1, true), (2, true)] {
            for (label, method, path, change) in first_of_all() {
                for status in [400, 403, 500] {
                    let case = format!("{policy} {ports} {has_new_node} {label} {status}");
                    let mut world = before(policy, ports).await;
                    let is_replaced = change(&world);
                    // The pools that are to be replaced stay as they are, with who comes and goes.
                    let expected = match is_replaced {
                        true => checks(&world),
                        false => wanted(&world, policy),
                    };
                    switch(&world, policy, port);
                    if has_new_node {
                        world.remove_node("n1");
                        world.add_node("n3");
                    }
                    let fault = Fault::on(method.clone(), path).always();
                    let body = r#"{"detail":"Not like this."}"#;
                    world.sim.faults().add(fault.answer(Canned::json(status, body)));
                    for _ in 0..2 {
                        let run = world.run("web").await;
                        let told = format!("error during {label}(");
                        assert!(run.complaint().starts_with(&told), "{case}: {run:?}");
                        assert_eq!(checks(&world), expected, "{case}");
                        assert_eq!(world.sim.members().len(), 2 * ports, "{case}");
                    }
                    world.sim.faults().clear();
                    world.run("web").await.settled();
                    let pools = checks(&world).into_iter();
                    let served: BTreeMap<_, _> = pools.filter(|(name, _)| name != "tcp/more").collect();
                    let all = wanted(&world, policy).into_iter();
                    let all: BTreeMap<_, _> = all.filter(|(name, _)| name != "tcp/more").collect();
                    assert_eq!(served, all, "{case}");
                    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
                }
            }
        }
    }
}

/// A monitor is what the API may refuse.
#[tokio::test(start_paused = true)]
async fn where_a_monitor_is_refused_all_pools_are_checked_as_before() {
    for (policy, port) in POLICIES {
        for status in [400, 403, 500] {
            let world = before(policy, 2).await;
            let there = world.sim.snapshot();
            switch(&world, policy, port);
            let fault = Fault::on(http::Method::POST, "/v1/load-balancers/health-monitors").always();
            let body = r#"{"detail":"Not like this."}"#;
            world.sim.faults().add(fault.answer(Canned::json(status, body)));
            for _ in 0..2 {
                let run = world.run("web").await;
                assert!(run.complaint().contains("-monitor("), "{run:?}");
                assert_eq!(world.sim.snapshot(), there, "{policy} {status}");
            }
        }
    }
}

/// While somebody who came cannot become a member, the others are not replaced; so nothing may be asked of them that they do not
/// answer.
#[tokio::test(start_paused = true)]
async fn where_a_new_member_is_refused_all_pools_are_checked_as_before() {
    for (policy, port) in POLICIES {
        let mut world = before(policy, 2).await;
        let there = checks(&world);
        switch(&world, policy, port);
        world.add_node("n3");
        for pool in world.sim.pools() {
            let path = format!("/v1/load-balancers/pools/{}/members", pool.uuid);
            let fault = Fault::on(http::Method::POST, path.as_str()).always();
            let body = r#"{"subnet":"The subnet is not in the zone of the load balancer."}"#;
            world.sim.faults().add(fault.answer(Canned::json(400, body)));
        }
        for _ in 0..2 {
            let run = world.run("web").await;
            assert!(run.complaint().contains("not in the zone"), "{run:?}");
            assert_eq!(checks(&world), there, "{policy}");
        }
        world.sim.faults().clear();
        world.run("web").await.settled();
        assert_eq!(checks(&world), wanted(&world, policy));
    }
}

/// Whoever stops a process also makes the API refuse the rest, or writes what cannot be read.
#[tokio::test(start_paused = true)]
async fn a_check_that_moved_by_half_is_moved_before_all_else() {
    for (policy, port) in POLICIES {
        for is_readable in [true, false] {
            for step in 1..6 {
                let mut world = before(policy, 2).await;
                switch(&world, policy, port);
                world.run_steps("web", step).await;
                world.restart();
                match is_readable {
                    true => world.annotate("web", "name", "edge"),
                    false => world.annotate("web", "health-monitor-delay-s", "soon"),
                }
                let fault = Fault::on(http::Method::PATCH, "/v1/load-balancers/*").always();
                world.sim.faults().add(fault.status(403));
                let run = world.run("web").await;
                assert!(!run.complaint().is_empty());
                let now = checks(&world);
                if is_readable {
                    assert_eq!(now, wanted(&world, policy), "{policy} {step}");
                    continue;
                }
                // Its monitor is not replaced: each pool is checked in one way or the other.
                let before = if policy == "Local" { "Cluster" } else { "Local" };
                for (pool, check) in now {
                    let ways = [policy, before].map(|policy| wanted(&world, policy)[&pool].clone());
                    assert!(ways.contains(&check), "{policy} {step}: {check:?}");
                }
            }
        }
    }
}

/// As other managers leave it, which replace the members first.
#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_left_behind_follows_before_all_else() {
    for (policy, port) in POLICIES {
        let world = before(policy, 2).await;
        switch(&world, policy, port);
        for member in world.sim.members() {
            let wanted = port.map_or(member.protocol_port, |_| 32500);
            world
                .sim
                .edit_member(member.uuid, |it| it.monitor_port = Some(wanted));
        }
        let more = ("more", "TCP", 443, 31443);
        set_ports(
            &world,
            &[more, ("web", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)],
        );
        let fault = Fault::on(http::Method::POST, "/v1/load-balancers/pools").always();
        world.sim.faults().add(fault.status(403));
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(
            run.complaint().starts_with("error during create-pool("),
            "{run:?}"
        );
        let monitors = switched(policy).into_iter().step_by(2).collect::<Vec<_>>();
        assert_eq!(created(&world, &writes), monitors);
        assert_eq!(checks(&world), wanted(&world, policy));
    }
}

/// One write at a time, with a look at the balancer after each.
#[tokio::test(start_paused = true)]
async fn a_busy_balancer_takes_another_traffic_policy_too() {
    for (policy, port) in POLICIES {
        let mut world = before(policy, 2).await;
        world.sim.set_behaviour(|behaviour| {
            behaviour.lb_change_time = std::time::Duration::from_secs(2);
            behaviour.refuse_writes_while_changing = Some(409);
        });
        switch(&world, policy, port);
        world.add_node("n3");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let created = created(&world, &writes);
        assert_eq!(created[created.len() - 4..], switched(policy));
        assert_eq!(checks(&world), wanted(&world, policy));
    }
}

/// The same check under both policies: an annotation asks for it, and only the port is another one.
#[tokio::test(start_paused = true)]
async fn where_the_monitor_is_the_same_members_follow_at_once() {
    let world = before("Local", 2).await;
    world.annotate("web", "health-monitor-type", "http");
    world.annotate("web", "health-monitor-http", r#"{"url_path":"/up"}"#);
    world.run("web").await.settled();
    switch(&world, "Local", Some(32500));
    world.annotate("web", "name", "edge");
    let fault = Fault::on(http::Method::PATCH, "/v1/load-balancers/*").always();
    world.sim.faults().add(fault.status(403));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().starts_with("error during rename-lb("), "{run:?}");
    let members = ["tcp/web: members 32500", "tcp/admin: members 32500"];
    assert_eq!(created(&world, &writes), members);
    let monitors = world.sim.health_monitors().into_iter();
    assert!(monitors.filter_map(|it| it.http).all(|it| it.url_path == "/up"));
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_says_of_another_traffic_policy_is_what_it_costs() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    let impacts = async || {
        let balancers = world.cloud.load_balancer().unwrap();
        let mut session = balancers.begin(world.facts("web")).unwrap();
        session.observe().await.unwrap();
        let Answer::Apply(wave) = session.plan().unwrap().answer else {
            panic!("nothing to do")
        };
        let impacts = wave.steps().iter().map(|step| step.view().impact);
        impacts.collect::<Vec<_>>()
    };
    let member = world.sim.members()[0].uuid;
    world.sim.set_member_enabled(member, false);
    assert_eq!(impacts().await, [Impact::Minimal]);
    world.sim.set_member_enabled(member, true);
    switch(&world, "Local", Some(32500));
    assert_eq!(impacts().await, [Impact::Considerable]);
    world.run_steps("web", 1).await;
    assert_eq!(impacts().await, [Impact::Considerable; 2]);
}
