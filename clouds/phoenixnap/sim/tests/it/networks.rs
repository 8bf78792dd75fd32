//! The Network API: attaching and detaching blocks.

use std::time::Duration;

use bowline_phoenixnap_sim::{BlockSpec, BlockStatus, NetworkStatus, ServerSpec, Spelling};
use serde_json::json;

use crate::support::{Caller, NETWORK, account, attachments, pass, text};

#[tokio::test(start_paused = true)]
async fn network_is_busy_while_a_block_is_assigning() {
    let sim = account();
    sim.set_behaviour(|it| it.attach_time = Duration::from_secs(20));
    let caller = Caller::new(&sim).await;
    let (one, two) = (caller.buy().await, caller.buy().await);
    let (status, answer) = caller.attach(&one).await;
    assert_eq!(status, 202);
    assert_eq!(
        answer,
        json!({ "id": one, "cidr": "198.19.96.0/29", "usedIpsCount": "0" })
    );
    let (status, answer) = caller.attach(&two).await;
    assert_eq!(status, 409);
    assert!(text(&answer["message"]).contains("not READY"), "{answer}");
    let path = format!("/networks/v1/public-networks/{NETWORK}");
    assert_eq!(caller.get(&path).await.1["status"], "BUSY");
    pass(20).await;
    let (_, network) = caller.get(&path).await;
    assert_eq!(
        (&network["status"], &network["vlanId"]),
        (&json!("READY"), &json!(1000))
    );
    assert_eq!(network["ipBlocks"][0]["id"], one);
    assert_eq!(caller.attach(&two).await.0, 202);
    sim.set_network_status(NETWORK, Some(NetworkStatus::Error));
    assert_eq!(sim.network_status(NETWORK), Some(NetworkStatus::Error));
}

#[tokio::test(start_paused = true)]
async fn attachment_is_refused_with_its_reason() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let far = sim.add_block(BlockSpec {
        location: Some("PHX".into()),
        ..BlockSpec::default()
    });
    assert_eq!(caller.attach(&far).await.0, 400);
    assert_eq!(caller.attach("none").await.0, 403);
    let block = caller.buy().await;
    let elsewhere = "/networks/v1/public-networks/none/ip-blocks";
    assert_eq!(caller.post(elsewhere, json!({ "id": block })).await.0, 403);
    assert_eq!(caller.post(&attachments(), json!({})).await.0, 400);
    assert_eq!(caller.detach(&block).await.0, 409);
    assert_eq!(caller.detach("none").await.0, 403);
    assert_eq!(caller.get("/networks/v1/public-networks/none").await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn network_takes_ten_blocks() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    for _ in 0..10 {
        let block = caller.buy().await;
        assert_eq!(caller.attach(&block).await.0, 202);
    }
    let block = caller.buy().await;
    let (status, answer) = caller.attach(&block).await;
    assert_eq!(status, 409);
    assert!(text(&answer["message"]).contains("more than 10"), "{answer}");
    sim.set_behaviour(|it| it.quota.blocks_per_network = 11);
    assert_eq!(caller.attach(&block).await.0, 202);
}

#[tokio::test(start_paused = true)]
async fn failed_attachment_can_be_tried_again() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    for stays in [false, true] {
        sim.set_behaviour(|it| (it.failing_attachments, it.failed_attachment_stays) = (1, stays));
        let block = caller.buy().await;
        assert_eq!(caller.attach(&block).await.0, 202);
        assert_eq!(caller.status(&block).await, "error assigning");
        assert_eq!(sim.block(&block).unwrap().assignment.is_some(), stays);
        assert_eq!(caller.attach(&block).await.0, 202);
        assert_eq!(caller.status(&block).await, "assigned");
        sim.set_behaviour(|it| it.failing_detachments = 1);
        assert_eq!(caller.detach(&block).await.0, 202);
        assert_eq!(caller.status(&block).await, "error unassigning");
        assert_eq!(caller.detach(&block).await.0, 202);
        assert_eq!(caller.status(&block).await, "unassigned");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_attachment_may_be_final() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    for stays in [false, true] {
        sim.set_behaviour(|it| {
            (it.failing_attachments, it.failed_attachment_stays) = (1, stays);
            it.failed_attachment_is_final = true;
        });
        let block = caller.buy().await;
        assert_eq!(caller.attach(&block).await.0, 202);
        assert_eq!(caller.attach(&block).await.0, 409);
        let path = format!("/ips/v1/ip-blocks/{block}");
        assert_eq!(caller.delete(&path).await.0, 409);
        let detached = if stays { 202 } else { 409 };
        assert_eq!(caller.detach(&block).await.0, detached);
    }
}

#[tokio::test(start_paused = true)]
async fn network_may_be_hidden_while_assigning_and_spelled_otherwise() {
    let sim = account();
    sim.set_behaviour(|it| {
        it.attach_time = Duration::from_secs(20);
        it.assigning_names_network = false;
        it.spelling = Spelling::Constants;
    });
    let caller = Caller::new(&sim).await;
    let block = caller.buy().await;
    assert_eq!(caller.attach(&block).await.0, 202);
    let path = format!("/ips/v1/ip-blocks/{block}");
    let (_, shown) = caller.get(&path).await;
    assert_eq!(shown["status"], "ASSIGNING");
    assert_eq!(shown.get("assignedResourceId"), None);
    assert_eq!(shown.get("assignedResourceType"), None);
    pass(20).await;
    let (_, shown) = caller.get(&path).await;
    assert_eq!(shown["assignedResourceType"], "PUBLIC_NETWORK");
    assert_eq!(shown["assignedResourceId"], NETWORK);
}

#[tokio::test(start_paused = true)]
async fn used_address_holds_its_block_unless_forced() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let block = caller.buy().await;
    caller.attach(&block).await;
    let server = sim.add_server(ServerSpec::new("w"));
    sim.join_network(NETWORK, &server, ["198.19.96.4".parse().unwrap()]);
    let (_, network) = caller
        .get(&format!("/networks/v1/public-networks/{NETWORK}"))
        .await;
    assert_eq!(network["ipBlocks"][0]["usedIpsCount"], "1");
    assert_eq!(network["memberships"][0]["ips"], json!(["198.19.96.4"]));
    assert_eq!(caller.detach(&block).await.0, 409);
    let forced = format!("{}/{block}?force=true", attachments());
    let (status, answer) = caller.delete(&forced).await;
    assert_eq!(status, 202);
    assert!(answer.is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn busy_network_gives_a_block_back_unless_told_otherwise() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let (one, two) = (caller.buy().await, caller.buy().await);
    caller.attach(&one).await;
    sim.set_behaviour(|it| {
        it.attach_time = Duration::from_secs(20);
        it.busy_refuses_detachment = true;
    });
    caller.attach(&two).await;
    assert_eq!(caller.detach(&one).await.0, 409);
    sim.set_behaviour(|it| it.busy_refuses_detachment = false);
    assert_eq!(caller.detach(&one).await.0, 202);
}

#[tokio::test(start_paused = true)]
async fn attachments_side_by_side_are_noticed() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let (one, two) = (caller.buy().await, caller.buy().await);
    sim.service().set_latency(Duration::from_millis(20));
    let (first, second) = futures::join!(caller.attach(&one), caller.attach(&two));
    assert_eq!((first.0, second.0), (202, 202));
    let found = sim.check_invariants();
    assert!(
        found.len() == 1 && found[0].ends_with(&format!("network {NETWORK}")),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn block_whose_status_says_nothing_can_be_attached() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    for word in ["", "frozen"] {
        let block = sim.add_block(BlockSpec {
            status: Some(BlockStatus::Other(word.to_owned())),
            ..BlockSpec::default()
        });
        let (_, shown) = caller.get(&format!("/ips/v1/ip-blocks/{block}")).await;
        assert_eq!(shown.get("status").is_some(), !word.is_empty(), "{shown}");
        assert_eq!(caller.attach(&block).await.0, 202);
        assert_eq!(caller.status(&block).await, "assigned");
    }
}

#[tokio::test(start_paused = true)]
async fn block_of_a_server_is_free_only_when_the_server_is_gone() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let server = sim.add_server(ServerSpec::new("w"));
    let block = sim.add_block(BlockSpec::default().attached(&server, "server"));
    let path = format!("/ips/v1/ip-blocks/{block}");
    assert_eq!(caller.get(&path).await.1["assignedResourceType"], "server");
    assert_eq!(caller.attach(&block).await.0, 409);
    assert_eq!(caller.detach(&block).await.0, 409);
    assert_eq!(caller.delete(&path).await.0, 409);
    assert!(sim.remove_server(&server));
    assert_eq!(caller.delete(&path).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn block_whose_attachment_failed_can_be_deleted_once_it_names_no_network() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let block = sim.add_block(BlockSpec {
        status: Some(BlockStatus::ErrorAssigning),
        ..BlockSpec::default().network(NETWORK)
    });
    let path = format!("/ips/v1/ip-blocks/{block}");
    assert_eq!(caller.delete(&path).await.0, 409);
    sim.edit_block(&block, |it| it.assignment = None);
    assert_eq!(caller.delete(&path).await.0, 200);
    assert!(sim.blocks().is_empty());
}
