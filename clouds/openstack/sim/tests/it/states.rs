//! Octavia's states, and what a load balancer does to the objects around it.

use std::time::Duration;

use bowline_openstack_sim::{OpenstackSim, Provisioning};
use serde_json::json;

use crate::support::{Caller, LB, balancer, id};

#[tokio::test(start_paused = true)]
async fn whole_load_balancer_comes_with_one_request() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| it.lb_create_time = Duration::from_secs(3));
    let caller = Caller::new(&sim).await;
    let made = balancer(&caller, "web").await;
    assert_eq!(made["provisioning_status"], "PENDING_CREATE");
    let path = format!("{LB}/loadbalancers/{}", id(&made));
    let status = async || caller.get(&path).await.1["loadbalancer"]["provisioning_status"].clone();
    tokio::time::advance(Duration::from_millis(2_999)).await;
    assert_eq!(status().await, "PENDING_CREATE");
    assert_eq!(sim.listeners()[0].part.status, Provisioning::PendingCreate);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(status().await, "ACTIVE");
    assert_eq!(sim.members().len(), 2);
    assert!(
        sim.members()
            .iter()
            .all(|it| it.part.status == Provisioning::Active)
    );
    let (_, pools) = caller
        .get(&format!("{LB}/pools?loadbalancer_id={}", id(&made)))
        .await;
    let pool = &pools["pools"][0];
    assert_eq!(pool["members"].as_array().unwrap().len(), 2);
    assert_eq!(pool["listeners"][0]["id"], made["listeners"][0]["id"]);
    assert!(pool["healthmonitor_id"].is_string());
    assert_eq!(pools["pools_links"], json!([]));
    assert_eq!(sim.journal().count_operation("octavia.loadbalancers.create"), 1);
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn load_balancer_that_changes_refuses_every_write() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let made = balancer(&caller, "web").await;
    let lb = id(&made);
    sim.set_behaviour(|it| it.lb_change_time = Duration::from_secs(5));
    let (pool, listener) = (sim.pools()[0].part.id, sim.listeners()[0].part.id);
    let monitor = sim.health_monitors()[0].part.id;
    let member = sim.members()[0].part.id;
    let rename = json!({ "listener": { "name": "other" } });
    let (status, changed) = caller
        .put(&format!("{LB}/listeners/{listener}"), rename.clone())
        .await;
    assert_eq!((status, &changed["listener"]["name"]), (200, &json!("other")));
    assert_eq!(changed["listener"]["provisioning_status"], "PENDING_UPDATE");
    assert_eq!(sim.load_balancers()[0].part.status, Provisioning::PendingUpdate);
    assert_eq!(sim.pools()[0].part.status, Provisioning::Active);

    let balancer_busy = format!("Load Balancer {lb} is immutable and cannot be updated.");
    let state_bad = format!("Invalid state PENDING_UPDATE of loadbalancer resource {lb}");
    let members = json!({ "members": [] });
    let new_monitor = json!({ "healthmonitor": { "name": "m" } });
    for (method, path, body, text) in [
        ("PUT", format!("listeners/{listener}"), rename, &balancer_busy),
        (
            "DELETE",
            format!("listeners/{listener}"),
            json!(null),
            &balancer_busy,
        ),
        (
            "PUT",
            format!("pools/{pool}"),
            json!({ "pool": { "name": "p" } }),
            &balancer_busy,
        ),
        ("DELETE", format!("pools/{pool}"), json!(null), &balancer_busy),
        ("PUT", format!("pools/{pool}/members"), members, &balancer_busy),
        (
            "DELETE",
            format!("pools/{pool}/members/{member}"),
            json!(null),
            &balancer_busy,
        ),
        (
            "PUT",
            format!("healthmonitors/{monitor}"),
            new_monitor,
            &balancer_busy,
        ),
        (
            "DELETE",
            format!("healthmonitors/{monitor}"),
            json!(null),
            &balancer_busy,
        ),
        (
            "PUT",
            format!("loadbalancers/{lb}"),
            json!({ "loadbalancer": { "name": "x" } }),
            &state_bad,
        ),
        (
            "DELETE",
            format!("loadbalancers/{lb}?cascade=true"),
            json!(null),
            &state_bad,
        ),
    ] {
        let (status, refused) = caller
            .call(method.parse().unwrap(), &format!("{LB}/{path}"), body)
            .await;
        assert_eq!(
            (status, &refused["faultstring"]),
            (409, &json!(text)),
            "{method} {path}"
        );
    }
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(sim.listeners()[0].part.status, Provisioning::Active);

    // What is below a pool changes the pool and the listeners that use it, and the pool is looked at first.
    let path = format!("{LB}/healthmonitors/{monitor}");
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(sim.pools()[0].part.status, Provisioning::PendingUpdate);
    assert_eq!(sim.listeners()[0].part.status, Provisioning::PendingUpdate);
    let (status, refused) = caller
        .put(&format!("{LB}/pools/{pool}/members"), json!({ "members": [] }))
        .await;
    let text = format!("Pool {pool} is immutable and cannot be updated.");
    assert_eq!((status, &refused["faultstring"]), (409, &json!(text)));
}

#[tokio::test(start_paused = true)]
async fn failed_load_balancer_can_only_be_deleted() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| it.failing_creates = 1);
    let caller = Caller::new(&sim).await;
    let path = format!("{LB}/loadbalancers/{}", id(&balancer(&caller, "web").await));
    let (_, shown) = caller.get(&path).await;
    assert_eq!(shown["loadbalancer"]["provisioning_status"], "ERROR");
    let body = json!({ "loadbalancer": { "tags": [] } });
    assert_eq!(caller.put(&path, body).await.0, 409);
    assert_eq!(caller.delete(&format!("{path}?cascade=true")).await.0, 204);
    assert_eq!(caller.get(&path).await.0, 404);
    balancer(&caller, "web").await;
    assert_eq!(sim.load_balancers()[0].part.status, Provisioning::Active);
}

#[tokio::test(start_paused = true)]
async fn load_balancer_goes_with_its_parts_and_its_port() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let made = balancer(&caller, "web").await;
    let (lb, port) = (id(&made), made["vip_port_id"].as_str().unwrap().to_owned());
    let floating =
        json!({ "floatingip": { "floating_network_id": sim.home().external_network, "port_id": port } });
    assert_eq!(caller.post("/network/v2.0/floatingips", floating).await.0, 201);
    let (_, shown) = caller.get(&format!("/network/v2.0/ports/{port}")).await;
    assert_eq!(shown["port"]["device_owner"], "Octavia");
    assert_eq!(shown["port"]["name"], format!("octavia-lb-{lb}"));
    sim.set_behaviour(|it| it.lb_delete_time = Duration::from_secs(2));
    let path = format!("{LB}/loadbalancers/{lb}");
    let (status, refused) = caller.delete(&path).await;
    let text = format!("Validation failure: Cannot delete Load Balancer {lb} - it has children");
    assert_eq!((status, &refused["faultstring"]), (400, &json!(text)));
    let cascade = format!("{path}?cascade=true");
    assert_eq!(caller.delete(&cascade).await.0, 204);
    let (status, again) = caller.delete(&cascade).await;
    let text = format!("Invalid state PENDING_DELETE of loadbalancer resource {lb}");
    assert_eq!((status, &again["faultstring"]), (409, &json!(text)));
    tokio::time::advance(Duration::from_secs(2)).await;
    let (status, gone) = caller.delete(&cascade).await;
    assert_eq!(
        (status, &gone["faultstring"]),
        (404, &json!(format!("Load Balancer {lb} not found.")))
    );
    assert_eq!(caller.get(&format!("/network/v2.0/ports/{port}")).await.0, 404);
    assert_eq!(sim.floating_ips()[0].target, None);
    assert!(sim.listeners().is_empty() && sim.pools().is_empty() && sim.members().is_empty());
    assert_eq!(
        sim.leftovers(),
        [format!("floating IP {}", sim.floating_ips()[0].address.address)]
    );
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_project_are_out_of_reach() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let made = balancer(&caller, "web").await;
    let admin = Caller::admin(&sim).await;
    let path = format!("{LB}/loadbalancers/{}", id(&made));
    assert_eq!(admin.get(&path).await.0, 200);
    sim.edit_load_balancer(sim.load_balancers()[0].part.id, |it| {
        it.part.meta.project = "other".to_owned()
    });
    assert_eq!(caller.get(&path).await.0, 403);
    let (_, list) = caller.get(&format!("{LB}/loadbalancers")).await;
    assert_eq!(list["loadbalancers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_fails_says_nothing_about_the_traffic() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| {
        it.lb_create_time = Duration::from_secs(1);
        it.failing_creates = 1;
    });
    let caller = Caller::new(&sim).await;
    let states = async |lb: &str| {
        let (_, shown) = caller.get(&format!("{LB}/loadbalancers/{lb}")).await;
        let word = |field: &str| shown["loadbalancer"][field].as_str().unwrap().to_owned();
        (word("provisioning_status"), word("operating_status"))
    };
    let both = |provisioning: &str, operating: &str| (provisioning.to_owned(), operating.to_owned());
    let failed = id(&balancer(&caller, "failed").await);
    let made = id(&balancer(&caller, "made").await);
    assert_eq!(states(&made).await, both("PENDING_CREATE", "OFFLINE"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(states(&failed).await, both("ERROR", "OFFLINE"));
    assert_eq!(states(&made).await, both("ACTIVE", "ONLINE"));
    sim.set_behaviour(|it| it.failing_changes = 1);
    let path = format!("{LB}/loadbalancers/{made}");
    let rename = json!({ "loadbalancer": { "name": "other" } });
    assert_eq!(caller.put(&path, rename.clone()).await.0, 200);
    assert_eq!(states(&made).await, both("ERROR", "ONLINE"));
    assert_eq!(caller.put(&path, rename.clone()).await.0, 409);
    let made_id = sim.load_balancers().last().unwrap().part.id;
    // Nor does an amphora that died: what it reported last stands.
    sim.lose_load_balancer(made_id);
    assert_eq!(states(&made).await, both("ERROR", "ONLINE"));
    sim.break_load_balancer(made_id);
    assert_eq!(states(&made).await, both("ERROR", "ERROR"));
    sim.fail_over_load_balancer(made_id);
    assert_eq!(states(&made).await, both("ACTIVE", "ONLINE"));
    assert_eq!(caller.put(&path, rename).await.0, 200);
}
