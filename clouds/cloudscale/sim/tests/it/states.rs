//! The API in memory: shapes, states and switches.

use std::time::Duration;

use crate::support::{Balancer, Caller};
use bowline_cloudscale_sim::kit::{Fault, TransportError};
use bowline_cloudscale_sim::{
    Access, CloudscaleSim, FloatingSpec, InterfaceSpec, MonitorStatus, OverlapMode, PoolDelete, Scope,
    ServerSpec, ServerStatus, VipOrder,
};
use http::Method;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn tokens_decide_what_a_caller_may_do() {
    let sim = CloudscaleSim::builder()
        .token("rw", Access::ReadWrite)
        .token("ro", Access::ReadOnly)
        .token("other", Access::EmptyProject)
        .build();
    let uuid = sim.add_server(ServerSpec::new("n1"));
    for (token, read, one, write) in [
        ("rw", 200, 200, 201),
        ("ro", 200, 200, 403),
        ("other", 200, 404, 400),
        ("bad", 401, 401, 401),
    ] {
        let caller = Caller::new(&sim, token);
        let network = json!({ "name": "n", "auto_create_ipv4_subnet": false });
        assert_eq!(caller.get("/v1/servers").await.0, read, "{token}");
        assert_eq!(caller.get(&format!("/v1/servers/{uuid}")).await.0, one, "{token}");
        assert_eq!(caller.post("/v1/networks", network).await.0, write, "{token}");
    }
    assert_eq!(Caller::new(&sim, "other").get("/v1/servers").await.1, json!([]));
    assert_eq!(
        Caller::new(&sim, "bad").get("/v1/servers").await.1,
        json!({ "detail": "Invalid token." })
    );
}

#[tokio::test(start_paused = true)]
async fn server_shows_its_interfaces_in_order() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let layer2 = sim.add_network("l2");
    let spec = ServerSpec {
        zone: Some("lpg1".into()),
        interfaces: vec![
            InterfaceSpec::Private,
            InterfaceSpec::Layer2(layer2),
            InterfaceSpec::Public { v6: true },
        ],
        ..ServerSpec::new("db-1")
    };
    let uuid = sim.add_server(spec);
    let (status, server) = caller.get(&format!("/v1/servers/{uuid}")).await;
    assert_eq!(status, 200);
    assert_eq!(server["zone"]["slug"], "lpg1");
    assert_eq!(server["flavor"]["memory_gb"], 16);
    assert_eq!(server["created_at"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(server["href"], format!("http://cloud.test/v1/servers/{uuid}"));
    let interfaces = server["interfaces"].as_array().unwrap();
    assert_eq!(interfaces[0]["type"], "private");
    assert_eq!(interfaces[0]["addresses"][0]["address"], "10.20.0.10");
    assert_eq!(
        interfaces[0]["addresses"][0]["subnet"]["uuid"],
        sim.private_subnet().to_string()
    );
    assert_eq!(interfaces[1]["addresses"], json!([]));
    assert_eq!(interfaces[2]["addresses"][1]["version"], 6);
}

#[tokio::test(start_paused = true)]
async fn server_changes_state_over_time() {
    let sim = CloudscaleSim::builder().build();
    sim.set_behaviour(|it| it.server_change_time = Duration::from_secs(10));
    let caller = Caller::new(&sim, "t");
    let uuid = sim.add_server(ServerSpec::new("n1"));
    let path = format!("/v1/servers/{uuid}");
    for (action, end) in [("stop", "stopped"), ("start", "running"), ("reboot", "running")] {
        assert_eq!(
            caller.post(&format!("{path}/{action}"), json!({})).await.0,
            204,
            "{action}"
        );
        assert_eq!(caller.get(&path).await.1["status"], "changing");
        assert_eq!(caller.post(&format!("{path}/stop"), json!({})).await.0, 400);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(caller.get(&path).await.1["status"], end);
    }
    let (status, error) = caller.patch(&path, json!({ "name": "a", "tags": {} })).await;
    assert_eq!(status, 400);
    assert!(error["detail"].as_str().unwrap().contains("Only one attribute"));
    assert_eq!(
        caller.patch(&path, json!({ "flavor": "plus-16-4" })).await.0,
        400,
        "not stopped"
    );
    sim.set_server_status(uuid, ServerStatus::Stopped);
    assert_eq!(caller.patch(&path, json!({ "flavor": "plus-16-4" })).await.0, 204);
    let created = caller
        .post(
            "/v1/servers",
            json!({ "name": "n2", "flavor": "flex-16-4", "image": "debian-12" }),
        )
        .await;
    assert_eq!((created.0, &created.1["status"]), (201, &json!("changing")));
    let created = format!("/v1/servers/{}", created.1["uuid"].as_str().unwrap());
    assert_eq!(caller.delete(&created).await.0, 400, "still being created");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(caller.delete(&created).await.0, 204);
    assert_eq!(caller.get(&created).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn regions_and_flavors_are_listed() {
    let sim = CloudscaleSim::builder().zones(["rma1", "lpg1", "lpg2"]).build();
    let caller = Caller::new(&sim, "t");
    let regions = caller.get("/v1/regions").await.1;
    let lpg = json!({ "slug": "lpg", "zones": [{ "slug": "lpg1" }, { "slug": "lpg2" }] });
    assert_eq!(
        regions,
        json!([{ "slug": "rma", "zones": [{ "slug": "rma1" }] }, lpg])
    );
    let flavors = caller.get("/v1/flavors").await.1;
    let known = flavors
        .as_array()
        .unwrap()
        .iter()
        .find(|flavor| flavor["slug"] == "plus-16-4")
        .unwrap();
    assert_eq!(
        (&known["vcpu_count"], &known["zones"][2]["slug"]),
        (&json!(4), &json!("lpg2"))
    );
}

#[tokio::test(start_paused = true)]
async fn load_balancer_is_changing_until_it_is_created() {
    let sim = CloudscaleSim::builder().build();
    sim.set_behaviour(|it| it.lb_create_time = Duration::from_secs(90));
    let caller = Caller::new(&sim, "t");
    let (status, made) = caller
        .post("/v1/load-balancers", json!({ "name": "lb", "vip_addresses": [] }))
        .await;
    assert_eq!(
        (status, &made["status"], &made["flavor"]["name"]),
        (201, &json!("changing"), &json!("LB-Standard"))
    );
    assert_eq!(
        (
            &made["vip_addresses"][0]["version"],
            &made["vip_addresses"][1]["version"]
        ),
        (&json!(4), &json!(6))
    );
    let path = format!("/v1/load-balancers/{}", made["uuid"].as_str().unwrap());
    assert_eq!(caller.delete(&path).await.0, 400);
    tokio::time::advance(Duration::from_secs(89)).await;
    assert_eq!(caller.get(&path).await.1["status"], "changing");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(caller.get(&path).await.1["status"], "running");
    sim.set_behaviour(|it| {
        it.lb_change_time = Duration::from_secs(3);
        it.lb_delete_time = Duration::from_secs(5);
        it.refuse_writes_while_changing = Some(409);
        it.vip_order = VipOrder::V6First;
    });
    assert_eq!(caller.patch(&path, json!({ "name": "other" })).await.0, 204);
    assert_eq!(caller.get(&path).await.1["status"], "changing");
    assert_eq!(caller.patch(&path, json!({ "name": "third" })).await.0, 409);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(caller.get(&path).await.0, 200, "still there");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(caller.get(&path).await.0, 404);
    let (_, second) = caller.post("/v1/load-balancers", json!({ "name": "lb" })).await;
    assert_eq!(second["vip_addresses"][0]["version"], 6);
}

#[tokio::test(start_paused = true)]
async fn tag_filter_matches_key_and_value() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    for (name, tags) in [
        ("a", json!({ "k": "1" })),
        ("b", json!({ "k": "2", "x": "y" })),
        ("c", json!({})),
    ] {
        caller
            .post("/v1/load-balancers", json!({ "name": name, "tags": tags }))
            .await;
    }
    for (query, names) in [
        ("", vec!["a", "b", "c"]),
        ("?tag%3Ak=1", vec!["a"]),
        ("?tag:k=", vec!["a", "b"]),
        ("?tag:k=2&tag:x=y", vec!["b"]),
        ("?tag:k=1&tag:x=y", vec![]),
    ] {
        let list = caller.get(&format!("/v1/load-balancers{query}")).await.1;
        let found: Vec<_> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{query}");
    }
    sim.set_behaviour(|it| it.lists_newest_first = true);
    assert_eq!(caller.get("/v1/load-balancers").await.1[0]["name"], "c");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_load_balancer_takes_its_parts_along() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let floating = sim.add_floating_ip(FloatingSpec::default());
    let path = format!("/v1/floating-ips/{floating}");
    assert_eq!(
        caller.patch(&path, json!({ "load_balancer": lb.uuid })).await.0,
        204
    );
    let shown = caller.get(&path).await.1;
    assert_eq!(
        shown["next_hop"],
        caller.get(&lb.path()).await.1["vip_addresses"][0]["address"]
    );
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
    assert_eq!(caller.delete(&lb.path()).await.0, 204);
    assert_eq!(caller.delete(&lb.path()).await.0, 404);
    assert!(sim.pools().is_empty() && sim.members().is_empty());
    assert!(sim.listeners().is_empty() && sim.health_monitors().is_empty());
    assert_eq!(caller.get(&path).await.1["load_balancer"], json!(null));
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn pool_delete_follows_its_switch() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    sim.set_behaviour(|it| it.pool_delete = PoolDelete::RefuseIfUsed);
    assert_eq!(caller.delete(&lb.pool_path()).await.0, 400);
    sim.set_behaviour(|it| it.pool_delete = PoolDelete::DetachListeners);
    assert_eq!(caller.delete(&lb.pool_path()).await.0, 204);
    let listeners = caller.get("/v1/load-balancers/listeners").await.1;
    assert_eq!(listeners[0]["pool"], json!(null));
    assert_eq!(listeners[0]["load_balancer"]["uuid"], lb.uuid);
    assert!(sim.members().is_empty() && sim.health_monitors().is_empty());
    assert_eq!(sim.check_invariants().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn member_health_moves_the_load_balancer() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let (one, two) = (sim.members()[0].uuid, sim.members()[1].uuid);
    assert_eq!(caller.get(&lb.path()).await.1["status"], "running");
    sim.set_monitor_status(one, Some(MonitorStatus::Down));
    assert_eq!(caller.get(&lb.path()).await.1["status"], "degraded");
    sim.set_monitor_status(two, Some(MonitorStatus::Down));
    assert_eq!(caller.get(&lb.path()).await.1["status"], "error");
    let member = format!("{}/members/{one}", lb.pool_path());
    assert_eq!(caller.get(&member).await.1["monitor_status"], "down");
    assert_eq!(
        caller.delete(&member).await.0,
        204,
        "members change in every status"
    );
    sim.set_load_balancer_status(lb.uuid.parse().unwrap(), Some("stopped"));
    assert_eq!(caller.get(&lb.path()).await.1["status"], "stopped");
    sim.set_load_balancer_status(lb.uuid.parse().unwrap(), None);
    sim.delete_health_monitor(sim.health_monitors()[0].uuid);
    sim.set_monitor_status(two, None);
    assert_eq!(caller.get(&lb.path()).await.1["status"], "running");
    let members = caller.get(&format!("{}/members", lb.pool_path())).await.1;
    assert_eq!(members[0]["monitor_status"], "no_monitor");
}

#[tokio::test(start_paused = true)]
async fn http_part_of_a_monitor_is_merged() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    sim.delete_health_monitor(sim.health_monitors()[0].uuid);
    let body = json!({ "pool": lb.pool, "type": "http", "http": { "url_path": "/livez", "version": "1.0" } });
    let (status, made) = caller.post("/v1/load-balancers/health-monitors", body).await;
    assert_eq!(status, 201);
    let full = json!({ "expected_codes": ["200"], "method": "GET", "url_path": "/livez", "version": "1.0", "host": null });
    assert_eq!(made["http"], full);
    let path = format!(
        "/v1/load-balancers/health-monitors/{}",
        made["uuid"].as_str().unwrap()
    );
    assert_eq!(
        caller
            .patch(&path, json!({ "http": { "method": "HEAD" } }))
            .await
            .0,
        204
    );
    let changed = caller.get(&path).await.1;
    assert_eq!(
        (&changed["http"]["method"], &changed["http"]["url_path"]),
        (&json!("HEAD"), &json!("/livez"))
    );
    assert_eq!(
        caller
            .patch(&path, json!({ "http": { "version": "1.1" } }))
            .await
            .0,
        400
    );
    assert_eq!(caller.patch(&path, json!({ "type": "tcp" })).await.0, 400);
    assert_eq!(caller.patch(&path, json!({ "delay_s": 5 })).await.0, 204);
    assert_eq!(caller.get(&path).await.1["delay_s"], 5);
}

#[tokio::test(start_paused = true)]
async fn overlapping_writes_are_applied_held_or_refused() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    sim.set_behaviour(|it| it.lb_write_time = Duration::from_secs(4));
    let rename = |name: &'static str| caller.patch_owned(lb.path(), json!({ "name": name }));
    for (mode, statuses, seconds) in [
        (OverlapMode::ApplyAtOnce, [204, 204], 4),
        (OverlapMode::Hold, [204, 204], 8),
        (OverlapMode::Refuse(409), [204, 409], 4),
    ] {
        sim.set_behaviour(|it| it.overlap = mode);
        let before = sim.journal().overlaps().len();
        let begin = tokio::time::Instant::now();
        let (first, second) = futures::future::join(rename("a"), rename("b")).await;
        assert_eq!([first.0, second.0], statuses, "{mode:?}");
        assert_eq!(begin.elapsed().as_secs(), seconds, "{mode:?}");
        assert_eq!(sim.journal().overlaps().len(), before + 1);
    }
    assert_eq!(sim.check_invariants().len(), 3);
    let other = Balancer::create(&caller, "lb2").await;
    futures::future::join(
        rename("c"),
        caller.patch_owned(other.path(), json!({ "name": "d" })),
    )
    .await;
    assert_eq!(
        sim.journal().overlaps().len(),
        3,
        "different load balancers do not overlap"
    );
}

#[tokio::test(start_paused = true)]
async fn lost_answer_leaves_the_load_balancer() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    sim.faults()
        .add(Fault::on(Method::POST, "/v1/load-balancers").lose_answer());
    sim.faults()
        .add(Fault::on(Method::DELETE, "/v1/load-balancers/*").drop_before());
    let lost = caller
        .try_send(Method::POST, "/v1/load-balancers", json!({ "name": "lb" }))
        .await;
    assert_eq!(lost, Err(TransportError::Dropped));
    let path = format!("/v1/load-balancers/{}", sim.load_balancers()[0].uuid);
    assert_eq!(
        caller.try_send(Method::DELETE, &path, json!({})).await,
        Err(TransportError::Dropped)
    );
    assert_eq!(caller.get(&path).await.0, 200);
    assert_eq!(
        (
            sim.journal().writes().len(),
            sim.journal().count(Method::GET, "/v1/**")
        ),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_history() {
    let mut histories = Vec::new();
    for seed in [3, 3, 4] {
        let sim = CloudscaleSim::builder().seed(seed).build();
        let caller = Caller::new(&sim, "t");
        Balancer::create(&caller, "lb").await;
        let list = caller.get("/v1/load-balancers/pools").await.1;
        histories.push((list.to_string(), sim.snapshot()));
    }
    assert_eq!(histories[0], histories[1]);
    assert_ne!(histories[0].0, histories[2].0, "ids differ");
    assert_eq!(histories[0].1, histories[2].1, "the snapshot has no ids");
}

#[tokio::test(start_paused = true)]
async fn floating_ip_rules_hold() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let far = sim.add_server(ServerSpec {
        zone: Some("lpg1".into()),
        ..ServerSpec::new("far")
    });
    let regional = sim.add_floating_ip(FloatingSpec {
        scope: Scope::Region("rma".to_owned()),
        ..Default::default()
    });
    let global = sim.add_floating_ip(FloatingSpec {
        scope: Scope::Global,
        v6: true,
        ..Default::default()
    });
    let network = sim.add_floating_ip(FloatingSpec {
        network: true,
        v6: true,
        ..Default::default()
    });
    let to_lb = json!({ "load_balancer": lb.uuid });
    let to_far = json!({ "server": far });
    for (address, target, status) in [
        (regional, &to_lb, 204),
        (regional, &to_far, 400),
        (global, &to_far, 204),
        (global, &to_lb, 204),
        (network, &to_lb, 400),
        (regional, &json!({ "server": far, "load_balancer": lb.uuid }), 400),
        (regional, &json!({ "load_balancer": far }), 400),
    ] {
        let path = format!("/v1/floating-ips/{address}");
        assert_eq!(
            caller.patch(&path, target.clone()).await.0,
            status,
            "{address} {target}"
        );
    }
    let shown = caller.get(&format!("/v1/floating-ips/{global}")).await.1;
    assert_eq!(
        (&shown["type"], &shown["region"]),
        (&json!("global"), &json!(null))
    );
    assert_eq!(shown["network"], format!("{global}/128"));
    assert_eq!(caller.get("/v1/floating-ips/192.0.2.1").await.0, 404);
    let made = caller
        .post(
            "/v1/floating-ips",
            json!({ "ip_version": 6, "prefix_length": 56 }),
        )
        .await;
    assert_eq!(made.0, 201);
    assert!(made.1["network"].as_str().unwrap().ends_with("/56"));
    let moved = &sim.snapshot()["floating_ips"];
    assert_eq!(moved[format!("{global}/128")], "load_balancer lb");
}

#[tokio::test(start_paused = true)]
async fn manual_edits_show_in_snapshot_and_invariants() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    Balancer::create(&caller, "lb").await;
    let before = sim.snapshot();
    let member = sim.members()[0].uuid;
    sim.set_member_enabled(member, false);
    assert_ne!(sim.snapshot(), before);
    sim.set_member_enabled(member, true);
    assert_eq!(sim.snapshot(), before);
    let twin = sim.duplicate_member(member).unwrap();
    assert_eq!(sim.check_invariants().len(), 1);
    assert!(sim.delete_member(twin));
    assert_eq!(sim.snapshot(), before);
    assert_eq!(sim.journal().since(sim.journal().mark()).len(), 0);
}
