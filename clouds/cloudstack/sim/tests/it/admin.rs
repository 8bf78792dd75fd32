//! The admin path, as whoever runs the program from outside uses it.

use bowline_cloudstack_sim::{CloudstackSim, VmState};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::{Caller, cloud, send, text};

async fn admin(sim: &CloudstackSim, method: Method, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = Request::builder().method(method).uri(format!("/_sim/{path}"));
    send(sim, request.body(body).unwrap()).await.unwrap()
}

async fn add(sim: &CloudstackSim, kind: &str, body: Value) -> String {
    let (status, made) = admin(sim, Method::POST, kind, body).await;
    assert_eq!(status, 201, "{kind}: {made}");
    text(&made["id"])
}

#[tokio::test(start_paused = true)]
async fn objects_are_added_changed_and_removed() {
    let (sim, _) = cloud();
    let vm = add(
        &sim,
        "virtual-machines",
        json!({ "name": "w", "offering": "Small", "nics": [{}] }),
    )
    .await;
    let path = format!("virtual-machines/{vm}");
    assert_eq!(
        admin(&sim, Method::PUT, &path, json!({ "state": "Stopped" }))
            .await
            .0,
        204
    );
    assert_eq!(sim.vm(&vm).unwrap().state, VmState::Stopped);
    let project = add(&sim, "projects", json!({ "name": "prod", "accounts": ["team"] })).await;
    let vpc = add(
        &sim,
        "vpcs",
        json!({ "name": "vpc", "owner": { "project": project } }),
    )
    .await;
    let tier = add(&sim, "networks", json!({ "name": "web", "vpc": vpc })).await;
    assert_eq!(sim.networks().last().unwrap().id, tier);
    let address = add(&sim, "addresses", json!({ "address": "203.0.113.77" })).await;
    let rule =
        json!({ "name": "a", "address": address, "public_port": 80, "private_port": 30080, "members": [vm] });
    let rule = add(&sim, "rules", rule).await;
    let opening = json!({ "address": address, "ports": [80, 80], "cidrs": ["0.0.0.0/0"] });
    let opening = add(&sim, "firewall-rules", opening).await;
    let list = sim.acl_list("default_deny").unwrap();
    let item = add(
        &sim,
        "acl-items",
        json!({ "list": list, "cidrs": ["10.0.0.0/8"] }),
    )
    .await;
    add(
        &sim,
        "users",
        json!({ "api_key": "k", "secret_key": "s", "role": "admin" }),
    )
    .await;
    Caller::with_keys(&sim, "k", "s")
        .get("listManagementServersMetrics", &[])
        .await;
    let calls = sim.journal().len();
    let snapshot = admin(&sim, Method::GET, "snapshot", Value::Null).await.1;
    assert_eq!(snapshot["addresses"][0]["rules"][0]["members"], json!(["w"]));
    assert_eq!(snapshot, json!(sim.snapshot()));
    for path in [
        format!("firewall-rules/{opening}"),
        format!("rules/{rule}"),
        format!("acl-items/{item}"),
        format!("addresses/{address}"),
        "users/k".to_owned(),
        path,
    ] {
        assert_eq!(
            admin(&sim, Method::DELETE, &path, Value::Null).await.0,
            204,
            "{path}"
        );
        assert_eq!(
            admin(&sim, Method::DELETE, &path, Value::Null).await.0,
            404,
            "{path}"
        );
    }
    assert_eq!(sim.journal().len(), calls, "none of it is a call of the API");
    assert_eq!(
        admin(&sim, Method::GET, "invariants", Value::Null).await.1,
        json!([])
    );
    let home = admin(&sim, Method::GET, "home", Value::Null).await.1;
    assert_eq!(home, json!({ "zone": sim.zone(), "network": sim.network() }));
}

#[tokio::test(start_paused = true)]
async fn switches_are_changed_in_part_and_checked() {
    let (sim, _) = cloud();
    let change = json!({ "job_time_ms": 20_000, "version": "4.18.0.0", "rate_limit": { "requests": 5, "per_ms": 10 } });
    assert_eq!(admin(&sim, Method::PUT, "behaviour", change).await.0, 204);
    assert_eq!(sim.behaviour().job_time.as_secs(), 20);
    let shown = admin(&sim, Method::GET, "behaviour", Value::Null).await.1;
    assert_eq!(
        (&shown["version"], &shown["page_size"]),
        (&json!("4.18.0.0"), &json!(500))
    );
    let (status, answer) = admin(&sim, Method::PUT, "behaviour", json!({ "job_tyme": 1 })).await;
    assert_eq!(status, 400);
    assert!(text(&answer["detail"]).contains("job_tyme"), "{answer}");
    assert_eq!(
        admin(&sim, Method::POST, "virtual-machines", json!({ "nome": "x" }))
            .await
            .0,
        400
    );
    assert_eq!(admin(&sim, Method::GET, "nonsense", Value::Null).await.0, 404);
    assert_eq!(admin(&sim, Method::GET, "bound", Value::Null).await.1, json!([]));
}

#[tokio::test(start_paused = true)]
async fn jobs_are_made_to_fail_from_outside() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let fault =
        json!({ "command": "associateIpAddress", "kind": "undone", "code": 534, "text": "router down" });
    assert_eq!(
        admin(&sim, Method::POST, "job-faults", fault.clone()).await.0,
        204
    );
    let network = sim.network();
    let wish = [("networkid", network.as_str())];
    assert_eq!(
        caller.run("associateIpAddress", &wish).await,
        Err((534, "router down".to_owned()))
    );
    caller.associate().await;
    assert_eq!(admin(&sim, Method::POST, "job-faults", fault).await.0, 204);
    assert_eq!(
        admin(&sim, Method::DELETE, "job-faults", Value::Null).await.0,
        204
    );
    caller.associate().await;
    let jobs = admin(&sim, Method::GET, "jobs", Value::Null).await.1;
    assert_eq!(jobs[0]["status"], "failed");
    assert_eq!(
        (&jobs[1]["status"], &jobs[1]["command"]),
        (&json!("done"), &json!("associateIpAddress"))
    );
}
