//! How every controller works: it takes what is due, works on it beside what is under way, and comes to its end when told to.

use std::pin::pin;

use futures::stream::{FuturesUnordered, StreamExt as _};

/// What a controller does, piece by piece.
pub(crate) trait Work: Sync {
    /// What is taken at a time: a key, or all keys that are due.
    type Piece: Send;

    /// Waits for the next piece and takes it.
    ///
    /// # Cancellation
    ///
    /// Dropped while it waits, and called anew, whenever a piece ends: it must not have taken anything by then.
    fn take(&self) -> impl Future<Output = Self::Piece> + Send;

    /// Works on a piece, and does what follows: its keys go back to their queue, for later or for good.
    fn work(&self, piece: Self::Piece) -> impl Future<Output = ()> + Send;
}

/// Takes one piece after the other and works on them side by side, at most `at_once`, in the caller's own task.
///
/// When `stop` has come, no piece is taken any more, and it returns when those under way have ended.
///
/// # Cancellation
///
/// Dropping it abandons the pieces under way.
pub(crate) async fn run(controller: &impl Work, at_once: usize, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let mut is_stopping = false;
    let mut under_way = FuturesUnordered::new();
    while !(is_stopping && under_way.is_empty()) {
        tokio::select! {
            biased;
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
            () = &mut stop, if !is_stopping => is_stopping = true,
            piece = controller.take(), if !is_stopping && under_way.len() < at_once => {
                under_way.push(controller.work(piece));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::queue::{QueueMetrics, WorkQueue, of_services};

    /// Each key takes as many seconds as it says, but for those that wait for the stop.
    struct Sleeper {
        queue: Arc<WorkQueue<u64>>,
        stop: CancellationToken,
        /// Keys under way, the most of them at a time, and those that ended.
        seen: Mutex<(usize, usize, Vec<u64>)>,
    }

    const UNTIL_STOPPED: u64 = 99;

    impl Sleeper {
        fn with(keys: &[u64]) -> Self {
            let queue = WorkQueue::new("test", of_services(), &QueueMetrics::default());
            keys.iter().for_each(|key| queue.add(*key));
            Self {
                queue,
                stop: CancellationToken::new(),
                seen: Mutex::default(),
            }
        }

        async fn run(&self, at_once: usize) {
            run(self, at_once, self.stop.cancelled()).await;
        }

        fn seen<T>(&self, look: impl FnOnce(&mut (usize, usize, Vec<u64>)) -> T) -> T {
            look(&mut self.seen.lock().unwrap())
        }
    }

    impl Work for Sleeper {
        type Piece = u64;

        async fn take(&self) -> u64 {
            self.queue.next().await
        }

        async fn work(&self, key: u64) {
            self.seen(|(now, most, _)| {
                *now += 1;
                *most = (*most).max(*now);
            });
            if key == UNTIL_STOPPED {
                self.stop.cancelled().await;
            }
            sleep(Duration::from_secs(key)).await;
            self.seen(|(now, _, ended)| {
                *now -= 1;
                ended.push(key);
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_worked_on_side_by_side_up_to_the_bound() {
        let sleeper = Sleeper::with(&[4, 1, 2, 3, 5]);
        let until_done = async {
            sleep(Duration::from_secs(60)).await;
            sleeper.stop.cancel();
        };
        futures::future::join(sleeper.run(3), until_done).await;
        assert_eq!(sleeper.seen(|(_, most, _)| *most), 3);
        assert_eq!(sleeper.seen(|(.., ended)| ended.clone()), [1, 2, 4, 3, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_stop_no_piece_begins_and_those_under_way_end() {
        let sleeper = Sleeper::with(&[10, UNTIL_STOPPED]);
        let begun = Instant::now();
        let stopping = async {
            sleep(Duration::from_secs(1)).await;
            sleeper.stop.cancel();
            sleeper.queue.add(0);
        };
        futures::future::join(sleeper.run(usize::MAX), stopping).await;
        assert_eq!(sleeper.seen(|(.., ended)| ended.clone()), [10, UNTIL_STOPPED]);
        assert_eq!(begun.elapsed(), Duration::from_secs(1 + UNTIL_STOPPED));
    }
}
