//! Writes that meet, and what the seed decides.

use std::time::Duration;

use bowline_cloudscale_sim::{CloudscaleSim, OverlapMode};
use serde_json::json;

use crate::support::{Balancer, Caller};

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
