use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudProvider as _, ServiceFacts};
use bowline_cloudscale_sim::{FloatingSpec, Tags};

use bowline_kit::Outcome;

use crate::world::{World, in_short, service};

fn marked(uid: &str) -> Tags {
    Tags::from([("k8s-service-uid".to_owned(), uid.to_owned())])
}

/// Nodes that name their cluster, as Cluster API has it.
fn name_cluster(world: &mut World, names: &[&str]) {
    let names = names.iter().cycle();
    for (node, name) in world.nodes.iter_mut().zip(names) {
        let annotations = [("cluster.x-k8s.io/cluster-name", *name)];
        Arc::make_mut(node).annotations = annotations.into_iter().collect();
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_knows_its_cluster_by_the_nodes() {
    let mut world = World::with_nodes(2);
    name_cluster(&mut world, &["blue"]);
    world.annotate("web", "name", "edge");
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers()[0].tags["k8s-cluster-name"], "blue");
    // As a Go manager that tags would have left it.
    let theirs = Tags::from([("k8s-cluster-name".into(), "blue".into())]);
    let unmarked = world.sim.add_load_balancer("core", theirs);
    world.put(service("core", &[("", "TCP", 80, 30080)]));
    world.annotate("core", "name", "core");
    world.annotate("core", "uuid", &unmarked.to_string());
    for name in ["web", "core"] {
        world.delete(name);
        world.run(name).await.settled();
    }
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_balancer_of_another_cluster_stays_whatever_the_service_names() {
    // Which cluster this is: said by the flag, by the nodes, not known, by nobody left.
    for case in ["flag", "nodes", "disagree", "silent", "none"] {
        let mut world = World::with_nodes(2);
        match case {
            "flag" => world.cluster_name = "blue".into(),
            "nodes" => name_cluster(&mut world, &["blue"]),
            "disagree" => name_cluster(&mut world, &["blue", "green"]),
            "none" => world.nodes.clear(),
            _ => {}
        }
        let mut theirs = marked("uid-elsewhere");
        theirs.insert("k8s-cluster-name".into(), "green".into());
        let foreign = world.sim.add_load_balancer("k8s-service-uid-elsewhere", theirs);
        let state = world.sim.snapshot();
        // A manifest of the other cluster, with all that its manager wrote into it.
        world.annotate("web", "uuid", &foreign.to_string());
        world.annotate("web", "zone", "rma1");
        let (run, writes) = world.writes_of(world.run("web")).await;
        let text = run.complaint();
        assert!(
            text.contains("belongs to another service or cluster"),
            "{case}: {text}"
        );
        let remedy = match case {
            "flag" | "nodes" => "change its tag k8s-cluster-name to blue by hand",
            _ => "say so with --cluster-name",
        };
        assert!(text.contains(remedy), "{case}: {text}");
        assert!(run.reasons().contains(&"ForeignLoadBalancerKept"), "{case}");
        assert!(writes.is_empty(), "{case}");
        world.delete("web");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(writes.is_empty(), "{case}");
        assert_eq!(run.settled().reasons(), ["ForeignLoadBalancerKept"], "{case}");
        assert_eq!(world.sim.snapshot(), state, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_without_nodes_still_owns_what_bears_its_uid() {
    let mut world = World::with_nodes(1);
    name_cluster(&mut world, &["blue"]);
    world.run("web").await.settled();
    world.nodes.clear();
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deletion_takes_everything_but_floating_ips_and_waits_until_it_is_gone() {
    let world = World::with_nodes(2);
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("web", "floating-ips", &format!("[\"{address}/32\"]"));
    world.run("web").await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_delete_time = Duration::from_secs(20));
    world.annotate("web", "timeout-client-data-ms", "what a typo"); // must not block the way out
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(in_short(&writes), ["DELETE load-balancers"]);
    assert!((20..30).contains(&run.waited.as_secs()));
    assert_eq!(run.outcome, Outcome::Settled(Default::default()));
    assert!(
        world.sim.load_balancers().is_empty()
            && world.sim.pools().is_empty()
            && world.sim.members().is_empty()
    );
    assert_eq!(world.sim.floating_ips()[0].target, None);
    let (again, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(
        (again.outcome, writes.len()),
        (Outcome::Settled(Default::default()), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_class_costs_no_call_and_its_names_delete_nothing() {
    let world = World::with_nodes(1);
    world.sim.add_load_balancer("edge", Tags::new());
    world.annotate("web", "name", "edge");
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_class = Some("other".into())
    });
    let asked = ServiceFacts {
        is_wanted: true,
        ..world.facts("web")
    };
    let refused = world.cloud.load_balancer().unwrap().begin(asked).err();
    assert_eq!(
        refused.unwrap().to_string(),
        "not supported LoadBalancerClass: other"
    );
    assert!(world.sim.journal().is_empty());
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers().len(), 1);
}
