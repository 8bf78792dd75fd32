//! Services that leave a load balancer which several use.

use bowline_kit::Interruption;

use crate::shared::two;
use crate::world::{Run, in_short, lb_name};

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_sent_home_gets_its_own_and_leaves_nothing_behind() {
    let world = two(81).await;
    let alone = world.sim.snapshot();
    let address = world.run("b").await.settled().published();
    world.remove_annotation("b", "load-balancer-id");
    let (run, writes) = world.writes_of(world.run("b")).await;
    let run = run.settled();
    assert_ne!(run.published(), address);
    assert_eq!(run.reasons(), ["LoadBalancerLeft"]);
    // The other one works before anything of the first one goes.
    assert_eq!(
        in_short(&writes),
        [
            "octavia.loadbalancers.create",
            "neutron.floatingips.create",
            "octavia.pools.delete",
            "octavia.listeners.delete",
            "octavia.loadbalancers.update"
        ]
    );
    world.assert_settled("b").await;
    world.assert_settled("web").await;
    world.delete("b");
    world.run("b").await.settled();
    assert_eq!(world.sim.snapshot(), alone);
}

/// The same with a process that stops after each of its writes; and where the Service goes before that is tidied up.
#[tokio::test(start_paused = true)]
async fn what_a_guest_leaves_is_removed_by_whoever_comes_next() {
    for stop in 1..9 {
        for goes in [false, true] {
            let world = two(81).await;
            let alone = world.sim.snapshot();
            world.run("b").await.settled();
            world.remove_annotation("b", "load-balancer-id");
            world.run_with("b", Interruption::AfterStep(stop)).await;
            if !goes {
                world.run("b").await.settled();
                world.assert_settled("b").await;
                assert_eq!(world.sim.load_balancers().len(), 2);
            }
            world.delete("b");
            world.run("b").await.settled();
            assert_eq!(world.sim.snapshot(), alone, "after {stop}");
        }
    }
}

/// Its owner went before: nobody else would remove it.
#[tokio::test(start_paused = true)]
async fn the_last_guest_that_is_sent_home_takes_the_load_balancer_with_it() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.delete("web");
    world.run("web").await.settled();
    world.services.forget("web");
    world.remove_annotation("b", "load-balancer-id");
    world.run("b").await.settled();
    let names: Vec<String> = world
        .sim
        .load_balancers()
        .into_iter()
        .map(|it| it.part.name)
        .collect();
    assert_eq!(names, [lb_name("b")]);
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_sent_to_another_load_balancer_leaves_the_first_one() {
    let world = two(81).await;
    world.run("b").await.settled();
    let other = world.sim.add_load_balancer("by-hand", Vec::new());
    let port = world.sim.load_balancer(other).unwrap().vip.port;
    world.sim.add_floating_ip(bowline_openstack_sim::FloatingIpSpec {
        port: Some(port),
        ..Default::default()
    });
    world.annotate("b", "load-balancer-id", &other.to_string());
    let run = world.run("b").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerLeft"]);
    let state = world.sim.snapshot();
    let tags = |name: &str| {
        let there = state.load_balancers.iter().find(|there| there.name == name);
        there.unwrap().tags.clone()
    };
    assert_eq!(tags(&lb_name("web")), [lb_name("web")]);
    assert_eq!(tags("by-hand"), [lb_name("b")]);
    world.assert_settled("web").await;
    world.assert_settled("b").await;
}

/// One that failed takes no change, so neither could take its part off.
#[tokio::test(start_paused = true)]
async fn two_that_go_leave_nothing_of_one_that_failed() {
    for (first, second) in [("web", "b"), ("b", "web")] {
        let world = two(81).await;
        world.run("b").await.settled();
        world
            .sim
            .break_load_balancer(world.sim.load_balancers()[0].part.id);
        world.delete(first);
        // The other one stays so far, and is repaired only if it owns the load balancer.
        world.delete(second);
        world.run(first).await.settled();
        world.services.forget(first);
        world.run(second).await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new(), "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_stays_repairs_what_the_other_one_that_goes_waits_for() {
    for (stays, goes) in [("web", "b"), ("b", "web")] {
        let world = two(81).await;
        let address = world.run("b").await.settled().published();
        world
            .sim
            .break_load_balancer(world.sim.load_balancers()[0].part.id);
        world.delete(goes);
        let run = world.run(goes).await;
        assert!(run.complaint().contains("or another one uses it"), "{run:#?}");
        assert_eq!(world.run(stays).await.settled().published(), address, "{stays}");
        world.run(goes).await.settled();
        world.services.forget(goes);
        world.run(stays).await.settled();
        world.assert_settled(stays).await;
        let names: Vec<String> = world
            .sim
            .load_balancers()
            .into_iter()
            .map(|it| it.part.name)
            .collect();
        assert_eq!(names, [lb_name(stays)]);
        assert_eq!(world.sim.floating_ips().len(), 1);
    }
}

/// However often the process is restarted meanwhile.
#[tokio::test(start_paused = true)]
async fn that_a_guest_has_left_is_told_once_with_the_write_that_ends_it() {
    for stop in 1..9 {
        let mut world = two(81).await;
        world.run("b").await.settled();
        world.remove_annotation("b", "load-balancer-id");
        let stopped = world.run_with("b", Interruption::BeforeStep(stop)).await;
        world.restart();
        let run = world.run("b").await.settled();
        let told = |run: &Run| {
            run.notes
                .iter()
                .filter(|note| note.reason == "LoadBalancerLeft")
                .count()
        };
        // Stopped right before the write that ends it, the first process has told it, too.
        let expected = match run.waves.len() {
            0 => (1, 0),
            1 => (1, 1),
            _ => (0, 1),
        };
        assert_eq!(
            (told(&stopped), told(&run)),
            expected,
            "{stop}: {stopped:#?} {run:#?}"
        );
    }
}
