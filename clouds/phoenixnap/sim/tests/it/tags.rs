//! The Tag API.

use bowline_phoenixnap_sim::BlockSpec;
use serde_json::json;

use crate::support::{CLUSTER, Caller, account};

const TAGS: &str = "/tag-manager/v1/tags";

#[tokio::test(start_paused = true)]
async fn tag_names_are_unique_words() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    assert_eq!(caller.get(TAGS).await, (200, json!([])));
    let wish = json!({ "name": "serviceName", "isBillingTag": false, "description": "whose" });
    let (status, tag) = caller.post(TAGS, wish.clone()).await;
    assert_eq!(status, 201);
    assert_eq!(
        tag,
        json!({
            "id": sim.tags()[0].id, "name": "serviceName", "values": [], "isBillingTag": false, "createdBy": "USER",
            "resourceAssignments": [], "description": "whose",
        })
    );
    assert_eq!(caller.post(TAGS, wish).await.0, 409);
    for bad in [
        json!({ "name": "a.b", "isBillingTag": false }),
        json!({ "name": "", "isBillingTag": false }),
        json!({ "name": "x" }),
        json!({ "isBillingTag": true }),
        json!({ "name": "x", "isBillingTag": "no" }),
        json!({ "name": "x", "isBillingTag": false, "description": "x".repeat(251) }),
    ] {
        assert_eq!(caller.post(TAGS, bad.clone()).await.0, 400, "{bad}");
    }
    assert_eq!(sim.tags().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn tag_shows_what_has_it() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let ids: Vec<String> = ["checkout", "search"]
        .iter()
        .map(|name| sim.add_block(BlockSpec::of_service(CLUSTER, "shop", name)))
        .collect();
    let (_, list) = caller.get(&format!("{TAGS}?name=serviceName")).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["values"], json!(["checkout", "search"]));
    assert_eq!(
        list[0]["resourceAssignments"][1],
        json!({ "resourceName": format!("/ips/ip-blocks/{}", ids[1]), "value": "search" })
    );
    assert!(sim.remove_tag("serviceName"));
    assert_eq!(sim.block(&ids[0]).unwrap().tag("serviceName"), None);
    assert_eq!(caller.get(TAGS).await.1.as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn body_must_be_announced_as_json() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let request = http::Request::post(TAGS)
        .header("authorization", format!("Bearer {}", caller.token()))
        .body(r#"{"name":"x","isBillingTag":false}"#.to_owned())
        .unwrap();
    let (status, text) = crate::support::send(&sim, request).await.unwrap();
    assert_eq!(status, 415, "{text}");
}
