use bowline_cloudscale_sim::{FloatingSpec, Scope, Target};

use crate::world::{World, in_short, service};

#[tokio::test(start_paused = true)]
async fn a_floating_ip_moves_last_and_only_once_however_it_is_written() {
    for spelling in ["198.51.100.9/32", "198.51.100.9"] {
        let world = World::with_nodes(1);
        let server = world.sim.servers()[0].uuid;
        world.sim.add_floating_ip(FloatingSpec {
            address: Some("198.51.100.9".parse().unwrap()),
            target: Some(Target::Server(server)),
            ..FloatingSpec::default()
        });
        world.annotate("web", "floating-ips", &format!("[\"{spelling}\"]"));
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.settled().reasons().contains(&"FloatingIPMoved"));
        assert_eq!(in_short(&writes).last().unwrap(), "PATCH floating-ips");
        assert_eq!(writes.last().unwrap().path, "/v1/floating-ips/198.51.100.9");
        let balancer = world.sim.load_balancers()[0].uuid;
        assert_eq!(
            world.sim.floating_ips()[0].target,
            Some(Target::LoadBalancer(balancer))
        );
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
        // Taken off the list it stays: the API knows no way to take it off the balancer.
        world.remove_annotation("web", "floating-ips");
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
        assert_eq!(
            world.sim.floating_ips()[0].target,
            Some(Target::LoadBalancer(balancer))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_services_with_one_floating_ip_are_refused_and_either_can_be_deleted() {
    let world = World::with_nodes(1);
    world.put(service("a", &[("", "TCP", 80, 30080)]));
    world.put(service("b", &[("", "TCP", 80, 30081)]));
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("a", "floating-ips", &format!("[\"{address}/32\"]"));
    world.run("a").await.settled();
    world.annotate("b", "floating-ips", &format!("[\"{address}\"]"));
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(
        run.complaint().contains("assigned to another service") && run.complaint().contains("->a"),
        "{run:?}"
    );
    assert!(writes.is_empty());
    world.delete("b");
    world.run("b").await.settled();
    world.run("a").await.settled();
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_of_another_region_fails_with_the_apis_words_and_the_rest_works() {
    let world = World::with_nodes(1);
    let address = world.sim.add_floating_ip(FloatingSpec {
        scope: Scope::Region("lpg".into()),
        ..FloatingSpec::default()
    });
    world.annotate("web", "floating-ips", &format!("[\"{address}/32\"]"));
    let run = world.run("web").await;
    assert!(
        run.complaint().starts_with("error during assign-floating-ip(") && run.complaint().contains("400"),
        "{run:?}"
    );
    assert_eq!(
        (
            world.sim.members().len(),
            world.sim.listeners().len(),
            world.sim.health_monitors().len()
        ),
        (2, 2, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_does_not_exist_is_refused_before_the_first_write() {
    let world = World::with_nodes(1);
    world.annotate("web", "floating-ips", r#"["198.51.100.200/32"]"#);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint()
            .starts_with("floating IPs do not exist in this project: 198.51.100.200/32")
    );
    assert!(writes.is_empty());
}
