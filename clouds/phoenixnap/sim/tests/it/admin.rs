//! The admin path, as whoever runs the program from outside uses it.

use bowline_phoenixnap_sim::{BlockStatus, NetworkStatus, ServerStatus};
use serde_json::{Value, json};

use crate::support::{CLUSTER, Caller, account, text};

#[tokio::test(start_paused = true)]
async fn objects_are_added_changed_and_removed() {
    let sim = account();
    let caller = Caller::with_token(&sim, "none");
    let (status, made) = caller
        .post(
            "/_sim/servers",
            json!({ "hostname": "db", "status": "frozen", "public_addresses": [] }),
        )
        .await;
    assert_eq!(status, 201, "{made}");
    let server = text(&made["id"]);
    assert!(sim.server(&server).unwrap().public_addresses.is_empty());
    let path = format!("/_sim/servers/{server}");
    assert_eq!(caller.put(&path, json!({ "status": "powered-off" })).await.0, 204);
    assert_eq!(sim.server(&server).unwrap().status, ServerStatus::PoweredOff);

    let made = caller
        .post("/_sim/networks", json!({ "name": "n", "location": "PHX" }))
        .await
        .1;
    let network = text(&made["id"]);
    let path_of_network = format!("/_sim/networks/{network}");
    assert_eq!(
        caller.put(&path_of_network, json!({ "status": "BUSY" })).await.0,
        204
    );
    assert_eq!(sim.network_status(&network), Some(NetworkStatus::Busy));

    let tags = json!([{ "name": "cluster", "value": CLUSTER }]);
    let assignment = json!({ "resource_id": network, "resource_type": "public network" });
    let wish =
        json!({ "location": "PHX", "cidr": "198.51.100.8/29", "tags": tags, "assignment": assignment });
    let made = caller.post("/_sim/ip-blocks", wish).await.1;
    let block = text(&made["id"]);
    assert_eq!(sim.block(&block).unwrap().status, BlockStatus::Assigned);
    let path_of_block = format!("/_sim/ip-blocks/{block}");
    assert_eq!(
        caller
            .put(&path_of_block, json!({ "status": "error unassigning" }))
            .await
            .0,
        204
    );
    assert_eq!(sim.block(&block).unwrap().status, BlockStatus::ErrorUnassigning);

    for path in [
        path,
        path_of_block,
        path_of_network,
        "/_sim/tags/cluster".to_owned(),
    ] {
        assert_eq!(caller.delete(&path).await.0, 204, "{path}");
        assert_eq!(caller.delete(&path).await.0, 404, "{path}");
    }
    assert_eq!(caller.put("/_sim/tags/usage", Value::Null).await.0, 204);
    assert_eq!(sim.tags()[0].name, "usage");
    assert!(sim.journal().is_empty(), "none of it is a call of the APIs");
}

#[tokio::test(start_paused = true)]
async fn switches_are_changed_in_part_and_checked() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let path = "/_sim/behaviour";
    let change = json!({ "attach_time_ms": 90_000, "tag_filter": "ignored" });
    assert_eq!(caller.put(path, change).await.0, 204);
    assert_eq!(sim.behaviour().attach_time.as_secs(), 90);
    assert_eq!(caller.get(path).await.1["token_lifetime_ms"], 900_000);
    let (status, answer) = caller.put(path, json!({ "attach_tyme": 1 })).await;
    assert_eq!(status, 400);
    assert!(text(&answer["detail"]).contains("attach_tyme"), "{answer}");

    assert_eq!(
        caller.get("/_sim/tokens").await.1[0]["client_id"],
        "id",
        "requests for tokens are told"
    );
    assert_eq!(caller.delete("/_sim/tokens").await.0, 204);
    assert_eq!(caller.get("/bmc/v1/servers").await.0, 401);
    assert_eq!(caller.get("/_sim/invariants").await.1, json!([]));
    assert_eq!(caller.get("/_sim/snapshot").await.1["blocks"], json!([]));
    assert_eq!(caller.get("/_sim/nonsense").await.0, 404);
    assert_eq!(caller.post("/_sim/servers", json!({ "name": "x" })).await.0, 400);
}
