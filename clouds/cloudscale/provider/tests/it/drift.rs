//! What others do behind the provider's back, and what it says about it.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloudscale_sim::ManualPool;

use crate::change::{member_ids, set_ports, settled};
use crate::world::{in_short, service};

#[tokio::test(start_paused = true)]
async fn what_was_done_by_hand_is_undone() {
    let world = settled(2).await;
    let state = world.sim.snapshot();
    world.sim.set_member_enabled(member_ids(&world.sim)[0], false);
    world
        .sim
        .add_pool(ManualPool::new(world.sim.load_balancers()[0].uuid, "manual"));
    world.sim.delete_listener(world.sim.listeners()[0].uuid);
    world.sim.duplicate_member(member_ids(&world.sim)[1]);
    world.run("web").await.settled();
    assert_eq!(world.sim.snapshot(), state);
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn of_equal_members_the_oldest_stays() {
    let world = settled(2).await;
    let before = member_ids(&world.sim);
    tokio::time::advance(Duration::from_secs(5)).await;
    let twin = world.sim.duplicate_member(before[0]).unwrap();
    world
        .sim
        .edit_member(twin, |member| member.created_at.replace_range(..4, "2999"));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        (in_short(&writes), member_ids(&world.sim)),
        (vec!["DELETE members".to_owned()], before)
    );
}

#[tokio::test(start_paused = true)]
async fn a_selector_chooses_members_down_to_none() {
    let mut world = settled(4).await;
    world.label_node("n2", &[("tier", "edge")]);
    world.label_node("n3", &[("tier", "edge"), ("gpu", "")]);
    world.annotate("web", "node-selector", "tier in (edge),!gpu");
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 2);
    world.annotate("web", "node-selector", "tier=core");
    let run = world.run("web").await.settled();
    assert!(world.sim.members().is_empty());
    assert!(run.notes.iter().any(|note| note.reason == "NoValidNodes"
        && note.text
            == "No valid nodes for service found, double-check node-selector annotation: k8s.cloudscale.ch/loadbalancer-node-selector: tier=core"));
}

#[tokio::test(start_paused = true)]
async fn members_are_changed_although_the_balancer_is_in_error() {
    let mut world = settled(2).await;
    world
        .sim
        .set_load_balancer_status(world.sim.load_balancers()[0].uuid, Some("error"));
    world.remove_node("n1");
    world.add_node("n3");
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nodes_without_a_server_are_left_out_and_told_of() {
    let mut world = settled(3).await;
    let gone = world.sim.servers()[0].uuid;
    world.sim.remove_server(gone);
    for node in &mut world.nodes {
        if node.name.as_str() == "n2" {
            Arc::make_mut(node).provider_id = Some("aws:///eu/i-1".into());
        }
    }
    let run = world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 2);
    let text = &run
        .notes
        .iter()
        .find(|note| note.reason == "NodesLeftOut")
        .unwrap()
        .text;
    assert!(
        text.contains(&format!("n1 (server {gone} is gone)"))
            && text.contains("n2 (not a cloudscale providerID"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_project_without_any_of_the_servers_is_not_believed() {
    let world = settled(2).await;
    for server in world.sim.servers() {
        world.sim.remove_server(server.uuid);
    }
    world.put(service("new", &[("http", "TCP", 80, 30090)]));
    for name in ["web", "new"] {
        let (run, writes) = world.writes_of(world.run(name)).await;
        assert!(
            run.complaint()
                .contains("the project has no server of any of the 2 nodes"),
            "{}",
            run.complaint()
        );
        assert!(writes.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_only_the_name_of_a_node_does_not_speak_for_a_project_without_the_others() {
    let mut world = settled(2).await;
    for server in world.sim.servers() {
        world.sim.remove_server(server.uuid);
    }
    world.add_node("n9");
    let joined = world.nodes.last_mut().map(Arc::make_mut).unwrap();
    let provider_id = joined.provider_id.take();
    let (run, writes) = world.writes_of(world.run("web")).await;
    let complaint = run.complaint();
    assert!(
        complaint.contains("no server of any of the 2 nodes") && complaint.contains("the names of others"),
        "{complaint}"
    );
    assert!(writes.is_empty());
    // It names its server itself: the project is the right one.
    let joined = world.nodes.last_mut().map(Arc::make_mut).unwrap();
    joined.provider_id = provider_id;
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 2, "one in each of two pools");
}

#[tokio::test(start_paused = true)]
async fn fields_without_effect_are_told_of() {
    let world = settled(1).await;
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".into()]);
        spec.session_affinity = Some("ClientIP".into());
    });
    world.annotate("web", "flavour", "lb-large");
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_ips = Some(vec!["192.0.2.7".into()]);
        spec.ip_families = Some(vec!["IPv6".into(), "IPv4".into()]);
    });
    world.annotate_key("web", "k8s.cloudscale.ch/pool-protocol", "proxy");
    world.annotate_key("web", "k8s.cloudscale.ch/volume", "x");
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert_eq!(run.reasons(), ["IgnoredServiceFields", "IgnoredAnnotations"]);
    let text = &run.notes[0].text;
    for field in [
        "loadBalancerSourceRanges",
        "sessionAffinity",
        "externalIPs",
        "ipFamilies",
    ] {
        assert!(text.contains(field), "{text}");
    }
    let text = &run.notes[1].text;
    assert!(
        text.contains("loadbalancer-flavour") && text.contains("k8s.cloudscale.ch/pool-protocol"),
        "{text}"
    );
    assert!(!text.contains("volume"), "{text}");
    assert!(writes.is_empty());
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_source_ranges = None;
    });
    let ranges = "service.beta.kubernetes.io/load-balancer-source-ranges";
    world.annotate_key("web", ranges, "192.0.2.0/24");
    let run = world.run("web").await.settled();
    assert!(run.notes[0].text.contains(ranges), "{}", run.notes[0].text);
}

/// What the API server writes into every Service.
#[tokio::test(start_paused = true)]
async fn families_that_are_a_clusters_default_are_not_told_of() {
    for family in ["IPv4", "IPv6"] {
        let world = settled(1).await;
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.ip_families = Some(vec![family.into()]);
            spec.ip_family_policy = Some("SingleStack".into());
            spec.external_ips = Some(Vec::new());
        });
        let run = world.run("web").await.settled();
        assert!(run.reasons().is_empty(), "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_of_annotations_are_told_of_and_fail_nothing() {
    let world = settled(1).await;
    world.annotate("web", "flavour", "lb-large");
    world.annotate(
        "web",
        "health-monitor-http",
        r#"{"URL_Path": "/", "urlPath": "/up", "host": "a"}"#,
    );
    let run = world.run("web").await.settled();
    let notes = run
        .notes
        .iter()
        .filter(|note| note.reason == "IgnoredAnnotations");
    let texts: Vec<&str> = notes.map(|note| note.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "unknown annotations have no effect: k8s.cloudscale.ch/loadbalancer-flavour; unknown fields have no effect: urlPath \
             (k8s.cloudscale.ch/loadbalancer-health-monitor-http)"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_service_with_nonsense_fails_alone() {
    let world = settled(1).await;
    world.put(service("bad", &[("", "TCP", 80, 30080)]));
    world.annotate("bad", "health-monitor-http", "null");
    assert!(
        world
            .run("bad")
            .await
            .complaint()
            .starts_with("invalid json in k8s.cloudscale.ch/loadbalancer-health-monitor-http")
    );
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn members_of_a_refused_service_follow_the_nodes_although_its_pools_should_be_others() {
    let mut world = settled(2).await;
    world.annotate("web", "flavor", "lb-large");
    world.annotate("web", "pool-algorithm", "source_ip");
    world.remove_node("n1");
    world.add_node("n3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().starts_with("flavor for "));
    assert_eq!(
        in_short(&writes),
        [["POST members"; 2], ["DELETE members"; 2]].concat()
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_is_replaced_after_those_that_can_stand_in_for_it() {
    let mut world = settled(1).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.duplicate_members = false);
    set_ports(&world, &[("web", "TCP", 8080, 31200)]);
    world.run("web").await.settled();
    world.sim.set_member_enabled(member_ids(&world.sim)[0], false);
    world.add_node("n0");
    world.nodes.sort_by_key(|node| node.name.as_str() == "n0");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let expected = ["POST members", "POST members", "DELETE members", "POST members"];
    assert_eq!(in_short(&writes), expected);
    assert_eq!(writes[0].status(), Some(201));
    assert_eq!(writes[1].status(), Some(400));
    assert_eq!(writes[2].seq + 1, writes[3].seq);
}
