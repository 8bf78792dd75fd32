use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudProvider as _, ServiceFacts};
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::{FloatingSpec, Tags};
use uuid::Uuid;

use crate::world::{Outcome, World, in_short, service};

fn marked(uid: &str) -> Tags {
    Tags::from([("k8s-service-uid".to_owned(), uid.to_owned())])
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_gone_is_made_anew_and_the_annotation_replaced() {
    let world = World::with_nodes(1);
    world.annotate("web", "uuid", "11111111-1111-4111-8111-111111111111");
    world.run("web").await.settled();
    assert_eq!(
        world.annotation("web", "uuid"),
        Some(world.sim.load_balancers()[0].uuid.to_string())
    );
}

#[tokio::test(start_paused = true)]
async fn that_a_served_one_was_deleted_by_hand_is_told() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].uuid;
    world.sim.delete_load_balancer(id);
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerGone"]);
    assert!(run.notes[0].text.contains(&id.to_string()), "{:?}", run.notes);
    world.delete("web");
    assert_eq!(world.run("web").await.settled().reasons(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn where_no_other_one_can_be_made_none_is_announced() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.sim.delete_load_balancer(world.sim.load_balancers()[0].uuid);
    world.put(service("other", &[("", "TCP", 80, 30080)]));
    for name in ["web", "other"] {
        world.annotate(name, "floating-ips", r#"["198.51.100.9"]"#);
    }
    let run = world.run("web").await;
    assert!(run.complaint().contains("assigned to another service"), "{run:?}");
    assert_eq!(run.reasons(), ["LoadBalancerGone"]);
    let text = &run.notes[0].text;
    assert!(!text.contains("gets another one"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_uuid_and_a_name_that_disagree_are_refused() {
    let world = World::with_nodes(1);
    let a = world.sim.add_load_balancer("a", Tags::new());
    world.sim.add_load_balancer("b", Tags::new());
    world.annotate("web", "uuid", &a.to_string());
    world.annotate("web", "name", "b");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint()
            .starts_with("unable to get load balancer for web: found more than one")
    );
    assert!(writes.is_empty());
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("found more than one") && writes.is_empty());
}

/// The annotation names the right one already, so that is no remedy.
#[tokio::test(start_paused = true)]
async fn beside_a_namesake_members_follow_and_the_event_says_which_one_has_to_go() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    let own = world.sim.load_balancers()[0].clone();
    let namesake = world.sim.add_load_balancer(&own.name, Tags::new());
    let remedy = format!(
        "load balancer {} is recorded for the service: delete or rename {namesake}",
        own.uuid
    );
    world.remove_node("n1");
    world.add_node("n3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("found more than one"), "{run:?}");
    assert!(run.complaint().contains(&remedy), "{run:?}");
    assert_eq!(
        in_short(&writes),
        [["POST members"; 2], ["DELETE members"; 2]].concat()
    );
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains(&remedy) && writes.is_empty(), "{run:?}");
    world.sim.delete_load_balancer(namesake);
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unmarked_balancer_is_adopted_by_name_and_never_tagged() {
    let world = World::with_nodes(1);
    let there = world.sim.add_load_balancer("edge", Tags::new());
    world.annotate("web", "name", "edge");
    world.run("web").await.settled();
    let balancers = world.sim.load_balancers();
    assert_eq!((balancers.len(), balancers[0].uuid), (1, there));
    assert!(balancers[0].tags.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_balancer_of_somebody_else_is_neither_changed_nor_deleted() {
    let world = World::with_nodes(1);
    world.put(service("owner", &[("", "TCP", 80, 30080)]));
    let foreign = world.sim.add_load_balancer("edge", marked("uid-owner"));
    let state = world.sim.snapshot();
    for by_uuid in [false, true] {
        world.annotate("web", "name", "edge");
        if by_uuid {
            world.annotate("web", "uuid", &foreign.to_string());
        }
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(
            run.complaint().contains("belongs to another service or cluster"),
            "{run:?}"
        );
        assert!(writes.is_empty());
    }
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(
        (run.outcome, writes.len()),
        (Outcome::Settled(Default::default()), 0)
    );
    assert_eq!(run.notes[0].reason, "ForeignLoadBalancerKept");
    assert_eq!(world.sim.snapshot(), state);
}

#[tokio::test(start_paused = true)]
async fn the_tag_of_another_cluster_forbids_adoption() {
    let mut world = World::with_nodes(1);
    world.cluster_name = "blue".into();
    world
        .sim
        .add_load_balancer("edge", Tags::from([("k8s-cluster-name".into(), "green".into())]));
    world.annotate("web", "name", "edge");
    assert!(world.run("web").await.complaint().contains("belongs to another"));
    world.cluster_name = "green".into();
    world.run("web").await.settled();
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
async fn a_restored_service_finds_its_balancer_by_uuid() {
    let world = World::with_nodes(1);
    let there = world
        .sim
        .add_load_balancer("k8s-service-uid-before", marked("uid-before"));
    world.annotate("web", "uuid", &there.to_string());
    world.run("web").await.settled();
    let balancers = world.sim.load_balancers();
    assert_eq!(
        (balancers.len(), balancers[0].uuid, balancers[0].name.as_str()),
        (1, there, "k8s-service-uid-web")
    );
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_two_marked_balancers_the_annotated_one_stays_else_the_oldest() {
    for annotated in [false, true] {
        let world = World::with_nodes(1);
        let old = world
            .sim
            .add_load_balancer("k8s-service-uid-web", marked("uid-web"));
        tokio::time::advance(Duration::from_secs(3)).await;
        let new = world
            .sim
            .add_load_balancer("k8s-service-uid-web", marked("uid-web"));
        if annotated {
            world.annotate("web", "uuid", &new.to_string());
        }
        world
            .sim
            .set_behaviour(|behaviour| behaviour.lb_delete_time = Duration::from_secs(30));
        let run = world.run("web").await.settled();
        assert!(run.reasons().contains(&"LoadBalancerDuplicateRemoved"));
        tokio::time::advance(Duration::from_secs(31)).await;
        let left: Vec<Uuid> = world.sim.load_balancers().iter().map(|it| it.uuid).collect();
        assert_eq!(left, [if annotated { new } else { old }]);
        assert_eq!(
            world
                .sim
                .journal()
                .writes()
                .iter()
                .filter(|it| it.method == http::Method::DELETE)
                .count(),
            1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_in_trouble_never_reads_as_nothing_there() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.delete("web");
    let trouble = world.sim.faults().add(Fault::any().always().status(503));
    assert!(matches!(world.run("web").await.outcome, Outcome::Failed(_)));
    world.sim.faults().remove(trouble);
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_page_of_html_proves_nothing() {
    let world = World::with_nodes(1);
    world.annotate("web", "uuid", "11111111-1111-4111-8111-111111111111");
    world.sim.faults().add(
        Fault::on(http::Method::GET, "/v1/load-balancers/*")
            .always()
            .html(404),
    );
    assert!(matches!(world.run("web").await.outcome, Outcome::Failed(_)));
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
async fn a_deletion_that_never_shows_ends_in_an_error() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_delete_time = Duration::from_secs(3600));
    world.delete("web");
    let run = world.run("web").await;
    assert!(run.complaint().contains("is still there"), "{run:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_still_being_created_is_deleted_when_it_is_ready() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = Duration::from_secs(60));
    world.run_steps("web", 1).await;
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.settled().waited.as_secs() >= 60);
    assert_eq!(in_short(&writes), ["DELETE load-balancers"]);
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_balancer_deleted_by_hand_is_success() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.sim.delete_load_balancer(world.sim.load_balancers()[0].uuid);
    world.delete("web");
    world.run("web").await.settled();
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
