//! A state that a Go manager made is taken over without a write.

use bowline_cloudscale_sim::ServerSpec;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::world::{World, service};

/// Calls the API as somebody else's client.
async fn call(world: &World, method: Method, path: &str, body: Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://api.cloudscale.ch/v1/{path}"))
        .header("Authorization", "Bearer somebody-else")
        .header("Content-Type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let answer = world.sim.service().send(request).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// What upstream's requests make of the Service `web` of the world.
async fn as_upstream(world: &World) {
    let balancer = call(
        world,
        Method::POST,
        "load-balancers",
        json!({"name": "k8s-service-uid-web", "flavor": "lb-standard", "vip_addresses": [], "zone": "rma1"}),
    )
    .await;
    let balancer = balancer["uuid"].as_str().unwrap().to_owned();
    for (name, port, node_port) in [("web", 8080, 31200), ("admin", 9000, 31201)] {
        let pool = call(
            world,
            Method::POST,
            "load-balancers/pools",
            json!({"name": format!("tcp/{name}"), "load_balancer": balancer, "algorithm": "round_robin", "protocol": "tcp"}),
        )
        .await;
        let pool = pool["uuid"].as_str().unwrap();
        for server in world.sim.servers() {
            for address in server
                .interfaces
                .iter()
                .filter(|it| !it.public)
                .flat_map(|it| &it.addresses)
            {
                let member = json!({
                    "name": format!("{}:{node_port}", address.address), "protocol_port": node_port,
                    "monitor_port": node_port, "address": address.address, "subnet": address.subnet,
                });
                call(
                    world,
                    Method::POST,
                    &format!("load-balancers/pools/{pool}/members"),
                    member,
                )
                .await;
            }
        }
        let listener = json!({
            "name": format!("tcp/{port}"), "pool": pool, "protocol": "tcp", "protocol_port": port, "allowed_cidrs": [],
            "timeout_client_data_ms": 50000, "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50000,
        });
        call(world, Method::POST, "load-balancers/listeners", listener).await;
        let monitor = json!({
            "pool": pool, "delay_s": 2, "timeout_s": 1, "up_threshold": 2, "down_threshold": 3, "type": "tcp", "http": {},
        });
        call(world, Method::POST, "load-balancers/health-monitors", monitor).await;
    }
    world.annotate("web", "uuid", &balancer);
    world.annotate("web", "config-version", "1");
    world.annotate("web", "zone", "rma1");
}

#[tokio::test(start_paused = true)]
async fn the_first_sync_after_a_go_manager_writes_nothing_and_says_nothing() {
    let mut world = World::with_nodes(3);
    world.add_server_node(ServerSpec::new("stopped"));
    as_upstream(&world).await;
    let state = world.sim.snapshot();
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert!(
        writes.is_empty() && run.waves.is_empty() && run.notes.is_empty(),
        "{run:#?}"
    );
    assert_eq!(world.sim.snapshot(), state);
    // The other way round: what this provider makes is what upstream's requests make, tags aside.
    let ours = World::with_nodes(3);
    ours.run("web").await.settled();
    let mut made = ours.sim.snapshot();
    made["load_balancers"][0]["tags"] = json!({});
    let theirs = World::with_nodes(3);
    as_upstream(&theirs).await;
    assert_eq!(theirs.sim.snapshot(), made);
}

#[tokio::test(start_paused = true)]
async fn an_untagged_balancer_stays_untagged_when_it_changes_and_goes_when_its_service_goes() {
    let mut world = World::with_nodes(1);
    as_upstream(&world).await;
    world.add_node("n2");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers()[0].tags.is_empty());
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

/// The annotations of a Service come along when its manifest is exported and applied under another name.
#[tokio::test(start_paused = true)]
async fn a_copied_manifest_takes_no_balancer_that_a_go_manager_made() {
    for name in ["k8s-service-uid-web", "edge"] {
        // A Go manager let the copy have it too: then both show its addresses. Somebody may have cleared both.
        for shown in [&["web"][..], &["web", "copy"], &[]] {
            let world = World::with_nodes(2);
            as_upstream(&world).await;
            let there = world.sim.load_balancers()[0].uuid;
            world
                .sim
                .edit_load_balancer(there, |it| it.name = name.to_owned());
            let ports = [("web", "TCP", 8080, 31300), ("admin", "TCP", 9000, 31301)];
            world.put(service("copy", &ports));
            for service in ["web", "copy"] {
                world.annotate(service, "name", name);
                let uuid = world.annotation("web", "uuid").unwrap();
                world.annotate(service, "uuid", &uuid);
            }
            for (service, minute) in [("web", 15), ("copy", 16)] {
                let created = format!("2026-02-03T08:{minute}:00Z").parse().unwrap();
                world.edit(service, |it| it.metadata.creation_timestamp = Some(created));
            }
            world.run("web").await.settled();
            let status = world.facts("web").service.status.clone();
            for service in ["web", "copy"] {
                let status = status.clone().filter(|_| shown.contains(&service));
                world.edit(service, |it| it.status = status);
            }
            let (run, writes) = world.writes_of(world.run("copy")).await;
            let text = run.complaint();
            assert!(text.contains("it serves default/web"), "{text}");
            assert!(
                text.contains("remove k8s.cloudscale.ch/loadbalancer-uuid"),
                "{text}"
            );
            assert_eq!(writes.len(), 0, "{name} {shown:?}");
            let (run, writes) = world.writes_of(world.run("web")).await;
            run.settled();
            assert_eq!(writes.len(), 0, "{name} {shown:?}");
            assert!(text.contains("choose another name"), "{text}");
            // What leads there has to go, and nothing else is named.
            world.remove_annotation("copy", "name");
            let run = world.run("copy").await;
            assert!(!run.complaint().contains("choose another name"), "{run:?}");
            world.remove_annotation("copy", "uuid");
            world.run("copy").await.settled();
            assert_eq!(world.sim.load_balancers().len(), 2);
        }
    }
}
