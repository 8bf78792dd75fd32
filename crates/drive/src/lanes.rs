//! Lanes: what may not be written side by side, across all Services of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_plan::Lane;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// All lanes that are in use. A lane lets one holder in at a time, in the order of asking.
#[derive(Default)]
pub struct Lanes {
    open: std::sync::Mutex<BTreeMap<Lane, Arc<Mutex<()>>>>,
}

impl Lanes {
    /// Waits until all of these lanes are free, and takes them, until what is returned is dropped.
    ///
    /// Always taken in name order: two steps that want the same two lanes cannot each hold one and wait for the other.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives back what was taken.
    pub(crate) async fn hold(&self, lanes: &[Lane]) -> Vec<OwnedMutexGuard<()>> {
        let mut held = Vec::with_capacity(lanes.len());
        for lane in lanes.iter().collect::<BTreeSet<_>>() {
            held.push(self.lane(lane).lock_owned().await);
        }
        held
    }

    fn lane(&self, lane: &Lane) -> Arc<Mutex<()>> {
        let mut open = self
            .open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if open.len() > 4096 {
            open.retain(|_, lock| Arc::strong_count(lock) > 1); // lanes of balancers that are long gone
        }
        Arc::clone(open.entry(lane.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_steps_that_want_the_same_lanes_in_other_order_both_get_them() {
        let lanes = Lanes::default();
        let (a, b) = (Lane::new("a"), Lane::new("b"));
        let work = async |wanted: &[Lane]| {
            for _ in 0..10 {
                let _held = lanes.hold(wanted).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let (first, second) = ([a.clone(), b.clone()], [b, a]);
        let both = async { tokio::join!(work(&first), work(&second)) };
        tokio::time::timeout(Duration::from_secs(1), both).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_has_one_holder_at_a_time() {
        let lanes = Lanes::default();
        let lane = [Lane::new("lb-1")];
        let held = lanes.hold(&lane).await;
        assert!(
            tokio::time::timeout(Duration::from_secs(1), lanes.hold(&lane))
                .await
                .is_err()
        );
        drop(held);
        assert!(
            tokio::time::timeout(Duration::from_secs(1), lanes.hold(&lane))
                .await
                .is_ok()
        );
    }
}
