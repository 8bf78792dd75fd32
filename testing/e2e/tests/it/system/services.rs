//! Services on cloudscale.ch whose point takes a whole manager: several Services or a node at once, the version of the API
//! server, rights. What one Service leads to is tested beside the provider.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloudscale_sim::{Access, CloudscaleSim, FloatingSpec, OverlapMode, Target};
use bowline_kube_api::KubeApi;
use serde_json::json;

use super::objects::{OnCloudscale, key, service, web};
use super::world::{Cloudscale, SECOND, TOKEN, World};

#[tokio::test(start_paused = true)]
async fn the_ip_mode_is_told_to_servers_that_know_it() {
    for (minor, expected) in [(36, Some("VIP")), (31, Some("VIP")), (28, None)] {
        let sim = CloudscaleSim::builder().seed(7).build();
        let mut world = World::of(Cloudscale(sim), KubeApi::builder().version(minor), 7);
        world.add_nodes(1);
        world.apply(web());
        world.annotate("web", "ip-mode", "VIP");
        world.start();
        world.settled("web").await;
        // What was sent: what is stored has the defaults of the server's own version.
        let sent = world.api.journal().of("patch", "services");
        let mut sent = sent
            .iter()
            .filter_map(|it| it.body.as_ref()?.pointer("/status/loadBalancer/ingress"));
        let ingress = sent.next_back().unwrap().as_array().unwrap();
        for entry in ingress {
            assert_eq!(entry["ipMode"].as_str(), expected, "1.{minor}: {entry}");
        }
        assert_eq!(ingress.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_that_a_selector_reads_is_followed_without_an_edit_of_the_service() {
    let mut world = World::new();
    world.add_nodes(3);
    world.apply(web());
    world.annotate("web", "node-selector", "tier=edge");
    world.edit_node("n1", |node| node["metadata"]["labels"]["tier"] = json!("edge"));
    world.start();
    world.settled("web").await;
    assert_eq!(world.sim.members().len(), 2);
    world.edit_node("n2", |node| node["metadata"]["labels"]["tier"] = json!("edge"));
    world.until("two nodes", |w| w.sim.members().len() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn no_write_ever_meets_another_one_on_its_balancer() {
    let mut world = World::new();
    world.add_nodes(4);
    world.sim.set_behaviour(|it| {
        it.overlap = OverlapMode::Refuse(409);
        it.lb_write_time = Duration::from_millis(700);
    });
    world.start();
    world.rest().await;
    world.apply(web());
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    world.join("late1");
    world.pass(Duration::from_millis(900)).await;
    world.join("late2");
    world.edit_service("web", |it| {
        it["spec"]["ports"] =
            service("web", &[("web", 8080, 31200), ("extra", 9001, 31205)])["spec"]["ports"].clone();
    });
    world
        .until("all of it", |w| {
            w.sim.pools().len() == 2 && w.sim.members().len() == 12 && w.sim.health_monitors().len() == 2
        })
        .await;
    world.rest().await;
    let refused: Vec<_> = world.sim.journal().filter(|call| call.status() == Some(409));
    assert!(refused.is_empty(), "{refused:?}");
    let names: BTreeSet<String> = world.sim.pools().iter().map(|pool| pool.name.clone()).collect();
    assert_eq!(names, ["tcp/extra", "tcp/web"].map(str::to_owned).into());
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn an_address_that_moves_is_a_write_to_both_balancers_and_meets_no_other() {
    let mut world = World::new();
    world.add_nodes(2);
    let ip = world.sim.add_floating_ip(FloatingSpec::default()).to_string();
    world.start();
    world.rest().await;
    let ports = [("a", 80, 30080), ("b", 81, 30081), ("c", 82, 30082)];
    world.apply(service("old", &ports));
    world.annotate("old", "floating-ips", &json!([ip]).to_string());
    world.settled("old").await;
    world.apply(service("new", &[("a", 80, 30090)]));
    world.settled("new").await;
    world.sim.set_behaviour(|it| {
        it.overlap = OverlapMode::Refuse(409);
        it.lb_write_time = Duration::from_millis(700);
    });
    // The one balancer has much to do while the other one takes its address.
    world.edit_service("old", |it| {
        let changed = service("old", &[("a", 80, 31080), ("b", 81, 31081), ("c", 82, 31082)]);
        it["spec"]["ports"] = changed["spec"]["ports"].clone();
        it["metadata"]["annotations"][key("floating-ips")] = json!("[]");
    });
    world.annotate("new", "floating-ips", &json!([ip]).to_string());
    let target = world.annotation("new", "uuid").unwrap().parse().unwrap();
    world
        .until("it has moved", |w| {
            w.sim.floating_ips()[0].target == Some(Target::LoadBalancer(target))
        })
        .await;
    world
        .until("the other one is done", |w| {
            w.sim
                .members()
                .iter()
                .filter(|it| it.protocol_port > 31_000)
                .count()
                == 6
                && w.sim.members().len() == 8
        })
        .await;
    world.rest().await;
    let refused = world.sim.journal().filter(|call| call.status() == Some(409));
    assert!(refused.is_empty(), "{refused:?}");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_token_that_may_only_read_writes_nothing_and_says_why() {
    let mut world = World::new();
    world.sim.set_token(TOKEN, Access::ReadOnly);
    world.add_nodes(2);
    world.apply(web());
    world.start();
    world.pass(SECOND * 300).await;
    let events = world.events("web");
    assert!(events.iter().any(|line| line.contains("403")), "{events:?}");
    assert!(world.sim.load_balancers().is_empty());
    world.sim.set_token(TOKEN, Access::ReadWrite);
    world.settled("web").await;
    world.assert_sound();
}
