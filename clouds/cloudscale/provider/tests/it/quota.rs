//! Quotas, and members that cannot be made.

use bowline_base::log::Log;
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::kit::journal::Entry;
use tracing::Level;

use crate::change::{set_ports, settled};
use bowline_kit::Outcome;

use crate::world::{World, in_short, service_port};

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
