//! Floating IPs.

use std::time::Duration;

use bowline_cloudscale_sim::{FloatingSpec, OverlapMode, Scope, Target};
use serde_json::json;

use super::objects::{OnCloudscale, service, web};
use super::world::{SECOND, World};

fn list(addresses: &[&str]) -> String {
    json!(addresses).to_string()
}

async fn with_floating_ip() -> (World, String) {
    let mut world = World::new();
    world.add_node("n1");
    let server = world.server("n1");
    world.add_node("n2");
    let spec = FloatingSpec {
        address: Some("198.51.100.9".parse().unwrap()),
        target: Some(Target::Server(server)),
        ..FloatingSpec::default()
    };
    world.sim.add_floating_ip(spec);
    world.start();
    world.rest().await;
    (world, "198.51.100.9/32".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_moves_last_and_once() {
    let (world, ip) = with_floating_ip().await;
    let begun = world.since();
    world.apply(web());
    world.annotate("web", "floating-ips", &list(&[&ip]));
    world.settled("web").await;
    let writes = world.writes(begun);
    assert_eq!(writes.last().unwrap(), "PATCH floating-ips/:address");
    assert_eq!(
        writes
            .iter()
            .filter(|write| write.contains("floating-ips"))
            .count(),
        1
    );
    let balancer = world.sim.load_balancers()[0].uuid;
    assert_eq!(
        world.sim.floating_ips()[0].target,
        Some(Target::LoadBalancer(balancer))
    );
    assert!(world.reasons("web").contains(&"FloatingIPMoved".to_owned()));

    let begun = world.since();
    world.annotate("web", "timeout-member-data-ms", "60000");
    world.rest().await;
    assert_eq!(world.writes(begun), ["PATCH load-balancers/listeners/:id"; 2]);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn the_length_may_be_left_out_and_a_dropped_one_stays() {
    let (world, _) = with_floating_ip().await;
    world.apply(web());
    world.annotate("web", "floating-ips", &list(&["198.51.100.9"]));
    world.settled("web").await;
    let balancer = world.sim.load_balancers()[0].uuid;
    assert_eq!(
        world.sim.floating_ips()[0].target,
        Some(Target::LoadBalancer(balancer))
    );
    let begun = world.since();
    world.annotate("web", "unrelated", "x");
    world.rest().await;
    world.unannotate("web", "floating-ips");
    world.rest().await;
    assert!(world.writes(begun).is_empty(), "{:?}", world.writes(begun));
    assert_eq!(
        world.sim.floating_ips()[0].target,
        Some(Target::LoadBalancer(balancer))
    );
}

#[tokio::test(start_paused = true)]
async fn one_address_for_two_services_is_refused_and_deletion_works() {
    let (world, ip) = with_floating_ip().await;
    let mut a = service("a", &[("", 80, 30080)]);
    a["metadata"]["annotations"] = json!({ super::objects::key("floating-ips"): list(&[&ip]) });
    world.apply(a.clone());
    world.settled("a").await;
    let begun = world.since();
    a["metadata"]["name"] = json!("b");
    a["spec"]["ports"][0]["nodePort"] = json!(30081);
    world.apply(a);
    world
        .until("the event", |w| {
            w.reasons("b").contains(&"SyncLoadBalancerFailed".to_owned())
        })
        .await;
    world.pass(SECOND * 60).await;
    let events = world.events("b");
    assert!(
        events
            .iter()
            .any(|line| line.contains("assigned to another service") && line.contains("198.51.100.9/32->a")),
        "{events:?}"
    );
    assert!(world.writes(begun).is_empty(), "{:?}", world.writes(begun));
    assert_eq!(world.sim.load_balancers().len(), 1);

    world.delete_service("b");
    world.until("gone", |w| w.service("b").is_none()).await;
    assert_eq!(world.sim.load_balancers().len(), 1);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_floating_ip_holds_up_nothing_else() {
    let (world, ip) = with_floating_ip().await;
    let elsewhere = world.sim.add_floating_ip(FloatingSpec {
        scope: Scope::Region("lpg".into()),
        ..FloatingSpec::default()
    });
    world.apply(web());
    let asked = [ip.as_str(), &format!("{elsewhere}/32"), "198.51.100.200/32"];
    world.annotate("web", "floating-ips", &list(&asked));
    world
        .until("the event", |w| {
            w.reasons("web").contains(&"SyncLoadBalancerFailed".to_owned())
        })
        .await;
    let told = world.events("web").join("\n");
    for part in [
        "floating IPs do not exist in this project: 198.51.100.200/32",
        &format!("assign-floating-ip({elsewhere}/32 -> "),
        "400",
        "correct k8s.cloudscale.ch/loadbalancer-floating-ips",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    // The address that is fine leads here, the Service has its own, and the load balancer follows.
    let balancer = world.sim.load_balancers()[0].uuid;
    let fine = world
        .sim
        .floating_ips()
        .into_iter()
        .find(|it| it.network.to_string() == ip);
    assert_eq!(fine.unwrap().target, Some(Target::LoadBalancer(balancer)));
    assert_eq!(world.addresses("web").len(), 2);
    world.pass(SECOND * 400).await;
    let members = world.sim.members().len();
    world.add_node("n3");
    world.pass(SECOND * 20).await;
    assert!(world.sim.members().len() > members);
    world.unannotate("web", "floating-ips");
    world.rest().await;
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn an_address_that_moves_is_a_write_to_both_balancers_and_meets_no_other() {
    let (world, ip) = with_floating_ip().await;
    let ports = [("a", 80, 30080), ("b", 81, 30081), ("c", 82, 30082)];
    world.apply(service("old", &ports));
    world.annotate("old", "floating-ips", &list(&[&ip]));
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
        it["metadata"]["annotations"][super::objects::key("floating-ips")] = json!("[]");
    });
    world.annotate("new", "floating-ips", &list(&[&ip]));
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
