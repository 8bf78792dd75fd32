//! Calls at random: whatever is asked for, the account stays whole.

use std::time::Duration;

use bowline_phoenixnap_sim::kit::Seed;
use bowline_phoenixnap_sim::{BlockStatus, PhoenixnapSim};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Caller, NAMES, NETWORK, account, attachments, pass, wish};

/// Blocks of the network; few, so that the limit is met.
const MOST: usize = 2;

/// One call, or some seconds without one.
async fn step(caller: &Caller, seed: &Seed) -> Option<(Method, u16)> {
    let blocks = caller.sim.blocks();
    let chosen = usize::try_from(seed.below(blocks.len() as u64)).unwrap();
    let block = blocks.get(chosen).map_or("none", |it| it.id.as_str());
    let name = NAMES[usize::try_from(seed.below(5)).unwrap()];
    let (method, path, body) = match seed.below(8) {
        0 => {
            pass(seed.below(30)).await;
            return None;
        }
        1 | 2 => {
            let mut body = wish();
            body["tags"] = json!([{ "name": name, "value": "x" }]);
            (Method::POST, "/ips/v1/ip-blocks".to_owned(), body)
        }
        3 => (Method::POST, attachments(), json!({ "id": block })),
        4 => {
            let path = format!("{}/{block}", attachments());
            (Method::DELETE, path, Value::Null)
        }
        5 => (Method::DELETE, format!("/ips/v1/ip-blocks/{block}"), Value::Null),
        6 => {
            let path = format!("/ips/v1/ip-blocks/{block}/tags");
            (Method::PUT, path, json!([{ "name": name }]))
        }
        _ => {
            let body = json!({ "name": name, "isBillingTag": false });
            (Method::POST, "/tag-manager/v1/tags".to_owned(), body)
        }
    };
    let (status, _) = caller.try_send(method.clone(), &path, body).await.unwrap();
    Some((method, status))
}

/// What is always true of blocks and their assignments.
fn check(sim: &PhoenixnapSim, seed: &Seed) {
    let blocks = sim.blocks();
    for block in &blocks {
        let is_attached = matches!(
            block.status,
            BlockStatus::Assigning
                | BlockStatus::Assigned
                | BlockStatus::Unassigning
                | BlockStatus::ErrorUnassigning
        );
        assert_eq!(
            block.assignment.is_some(),
            is_attached,
            "seed {}: {block:?}",
            seed.value()
        );
    }
    let assigning = blocks.iter().filter(|it| it.status == BlockStatus::Assigning);
    assert!(assigning.count() <= 1, "seed {}", seed.value());
    let attached = blocks.iter().filter(|it| it.assignment.is_some());
    assert!(attached.count() <= MOST, "seed {}", seed.value());
    assert_eq!(
        sim.check_invariants(),
        Vec::<String>::new(),
        "seed {}",
        seed.value()
    );
}

#[tokio::test(start_paused = true)]
async fn account_stays_whole_whatever_is_called() {
    for number in 0..20 {
        let seed = Seed::new(number);
        let sim = account();
        sim.set_behaviour(|it| {
            it.token_lifetime = Duration::from_secs(1_000_000);
            it.block_create_time = Duration::from_secs(2);
            it.attach_time = Duration::from_secs(10);
            it.detach_time = Duration::from_secs(10);
            (it.failing_attachments, it.failing_detachments) = (2, 2);
            it.quota.blocks_per_network = MOST;
        });
        let caller = Caller::new(&sim).await;
        let mark = sim.journal().mark();
        let (mut calls, mut done) = (0, 0);
        for _ in 0..200 {
            if let Some((method, status)) = step(&caller, &seed).await {
                let is_known = matches!(status, 200 | 201 | 202 | 400 | 403 | 409);
                assert!(is_known, "seed {number}: {method} answered {status}");
                calls += 1;
                done += usize::from(status < 300);
            }
            check(&sim, &seed);
        }
        assert_eq!(sim.calls_since(mark).len(), calls);
        assert!(done > 20, "seed {number}: {done} of {calls} calls did something");
        assert!(sim.network_status(NETWORK).is_some());
    }
}
