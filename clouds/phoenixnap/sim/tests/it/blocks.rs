//! The IP API, where an account has a pool of its own.

use bowline_phoenixnap_sim::PhoenixnapSim;

use crate::support::{Caller, text, wish};

const BLOCKS: &str = "/ips/v1/ip-blocks";

#[tokio::test(start_paused = true)]
async fn empty_pool_and_full_account_are_not_acceptable() {
    let sim = PhoenixnapSim::builder()
        .pool("NLD", ["203.0.113.0/28".parse().unwrap()])
        .build();
    let caller = Caller::new(&sim).await;
    let first = caller.buy().await;
    caller.buy().await;
    let (status, answer) = caller.post(BLOCKS, wish()).await;
    assert_eq!(status, 406);
    assert!(
        text(&answer["message"]).contains("/29 is available in NLD"),
        "{answer}"
    );
    assert_eq!(caller.delete(&format!("{BLOCKS}/{first}")).await.0, 200);
    sim.set_behaviour(|it| it.quota.blocks = Some(1));
    assert_eq!(caller.post(BLOCKS, wish()).await.0, 406);
    sim.set_behaviour(|it| it.quota.blocks = Some(2));
    let again = caller.buy().await;
    assert_eq!(sim.block(&again).unwrap().cidr.to_string(), "203.0.113.0/29");
}
