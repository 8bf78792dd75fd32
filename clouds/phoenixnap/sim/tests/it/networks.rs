//! The Network API, called at the same time.

use std::time::Duration;

use crate::support::{Caller, NETWORK, account};

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
