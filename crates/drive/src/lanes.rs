//! Lanes: what may not be written side by side, across all Services of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_plan::Lane;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Lanes that are in no use are forgotten when there are this many, and from then on whenever their number has doubled.
const FIRST_SWEEP: usize = 64;

/// Something that lasts as long as a step waits for a lane.
pub type Wait<'a> = Option<Box<dyn Send + 'a>>;

/// Lanes that are held.
pub(crate) type Held = Vec<(Lane, OwnedMutexGuard<()>)>;

/// All lanes that are in use. A lane lets one holder in at a time, in the order of asking.
#[derive(Default)]
pub struct Lanes {
    open: std::sync::Mutex<Open>,
}

#[derive(Default)]
struct Open {
    lanes: BTreeMap<Lane, Arc<Mutex<()>>>,
    sweep_at: usize,
}

impl Lanes {
    /// Waits until all of these lanes are free, and takes each until its part of what is returned is dropped.
    ///
    /// Always taken in name order: two steps that want the same two lanes cannot each hold one and wait for the other.
    /// `waiting` is told of a lane that is not free, and what it answers is dropped when the wait is over.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives back what was taken.
    pub(crate) async fn hold<'a>(&self, lanes: &[Lane], waiting: impl Fn(&Lane) -> Wait<'a>) -> Held {
        let mut held = Vec::with_capacity(lanes.len());
        for lane in lanes.iter().collect::<BTreeSet<_>>() {
            let lock = self.lane(lane);
            let guard = match Arc::clone(&lock).try_lock_owned() {
                Ok(free) => free,
                Err(_) => {
                    let _waiting = waiting(lane);
                    lock.lock_owned().await
                }
            };
            held.push((lane.clone(), guard));
        }
        held
    }

    fn lane(&self, lane: &Lane) -> Arc<Mutex<()>> {
        let mut open = self
            .open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if open.lanes.len() >= open.sweep_at.max(FIRST_SWEEP) {
            open.lanes.retain(|_, lock| Arc::strong_count(lock) > 1);
            open.sweep_at = open.lanes.len() * 2;
        }
        Arc::clone(open.lanes.entry(lane.clone()).or_default())
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
                let _held = lanes.hold(wanted, |_| None).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let (first, second) = ([a.clone(), b.clone()], [b, a]);
        let both = async { tokio::join!(work(&first), work(&second)) };
        tokio::time::timeout(Duration::from_secs(1), both).await.unwrap();
    }

    #[tokio::test]
    async fn lanes_in_no_use_are_forgotten_and_those_in_use_are_not() {
        let lanes = Lanes::default();
        let _held = lanes.hold(&[Lane::new("held")], |_| None).await;
        for number in 0..10 * FIRST_SWEEP {
            lanes.hold(&[Lane::new(number.to_string())], |_| None).await;
        }
        let open = lanes.open.lock().unwrap();
        assert!(open.lanes.len() <= FIRST_SWEEP);
        assert!(open.lanes.contains_key(&Lane::new("held")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_has_one_holder_at_a_time() {
        let lanes = Lanes::default();
        let lane = [Lane::new("lb-1")];
        let held = lanes.hold(&lane, |_| None).await;
        assert!(
            tokio::time::timeout(Duration::from_secs(1), lanes.hold(&lane, |_| None))
                .await
                .is_err()
        );
        drop(held);
        assert!(
            tokio::time::timeout(Duration::from_secs(1), lanes.hold(&lane, |_| None))
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn only_a_wait_is_told_and_it_ends_when_the_lane_is_free() {
        let lanes = Lanes::default();
        let lane = [Lane::new("lb-1")];
        let waits = std::sync::Mutex::new(Vec::new());
        let ended = Arc::new(());
        let tell = |lane: &Lane| -> Wait<'static> {
            waits.lock().unwrap().push(lane.as_str().to_owned());
            Some(Box::new(Arc::clone(&ended)))
        };
        let held = lanes.hold(&lane, tell).await;
        assert!(waits.lock().unwrap().is_empty());
        let next = lanes.hold(&lane, tell);
        let release = async {
            assert_eq!(Arc::strong_count(&ended), 2, "it waits");
            drop(held);
        };
        tokio::join!(biased; next, release);
        assert_eq!(*waits.lock().unwrap(), ["lb-1"]);
        assert_eq!(Arc::strong_count(&ended), 1);
    }
}
