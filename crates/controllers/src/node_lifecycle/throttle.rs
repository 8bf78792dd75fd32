//! How many Nodes may be deleted in a window of time. Pure.
//!
//! What an earlier leader deleted is written nowhere. So a new one takes its first window for spent but for three, whatever
//! the share is: each restart and each change of leader lets three Nodes more go, not the share anew.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::Node;
use tokio::time::Instant;

/// So many Nodes may go in a window however small the cluster is.
const AT_LEAST: usize = 3;

/// The deletions of the last window.
#[derive(Debug)]
pub(super) struct Throttle {
    share: f64,
    window: Duration,
    /// When this process began to lead.
    begun: Instant,
    /// By their last try, oldest first.
    recent: VecDeque<Turn>,
}

/// What one Node has of the share.
#[derive(Debug)]
struct Turn {
    uid: Arc<str>,
    first_try: Instant,
    last_try: Instant,
    /// Whether a try may have deleted the Node. That no answer came, or one that does not tell, is no proof of the contrary.
    is_spent: bool,
}

impl Throttle {
    /// Less than this share of the Nodes in any window, but three; all if it is one, and no limit if it is zero.
    pub(super) fn new(share: f64, window: Duration, begun: Instant) -> Self {
        Self {
            share,
            window,
            begun,
            recent: VecDeque::new(),
        }
    }

    /// How many more may go now.
    pub(super) fn free(&mut self, all: &[Arc<Node>], now: Instant) -> usize {
        while self
            .recent
            .front()
            .is_some_and(|turn| turn.last_try + self.window <= now)
        {
            self.recent.pop_front();
        }
        if self.share <= 0.0 {
            return usize::MAX;
        }
        // The share is one of the cluster as it was before these deletions, or each would shrink the next.
        let recent: BTreeSet<&str> = self.recent.iter().map(|turn| &*turn.uid).collect();
        let others = all.iter().filter(|node| !recent.contains(&*node.uid)).count();
        let total = u32::try_from(others + self.recent.len()).unwrap_or(u32::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count, rounded down, is a count"
        )]
        let limit = if self.share < 1.0 {
            // Fewer than the share, not just no more; what is below a millionth of a Node is an error of rounding.
            (f64::from(total) * self.share - 1e-6) as usize
        } else {
            total as usize
        };
        // All may go in any window if the share is one, so it does not matter what went before.
        let is_first = self.is_first_window(now) && self.share < 1.0;
        let limit = if is_first { AT_LEAST } else { limit.max(AT_LEAST) };
        limit.saturating_sub(self.recent.len())
    }

    fn is_first_window(&self, now: Instant) -> bool {
        now < self.begun + self.window
    }

    /// From now on this process leads.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun = now;
    }

    /// Whether a deletion of this Node counts already, so that it may be tried again whoever else waits. Not for longer than a
    /// window, or Nodes whose deletion always fails would keep the others for ever.
    pub(super) fn has_turn(&self, node: &Node, now: Instant) -> bool {
        let mut turns = self.recent.iter();
        turns.any(|turn| turn.uid == node.uid && now < turn.first_try + self.window)
    }

    /// Counts a deletion before it is tried, and a Node once.
    pub(super) fn take(&mut self, node: &Node, now: Instant) {
        let earlier = self.recent.iter().position(|turn| turn.uid == node.uid);
        let earlier = earlier.and_then(|at| self.recent.remove(at));
        let is_again = |turn: &Turn| now < turn.first_try + self.window;
        self.recent.push_back(Turn {
            uid: Arc::clone(&node.uid),
            first_try: earlier
                .as_ref()
                .filter(|turn| is_again(turn))
                .map_or(now, |turn| turn.first_try),
            last_try: now,
            is_spent: earlier.is_some_and(|turn| turn.is_spent),
        });
    }

    /// The deletion was made, or may have been.
    pub(super) fn spend(&mut self, node: &Node) {
        let turn = self.recent.iter_mut().find(|turn| turn.uid == node.uid);
        if let Some(turn) = turn {
            turn.is_spent = true;
        }
    }

    /// Takes back a deletion that certainly did not come about, nor did an earlier one of this Node.
    pub(super) fn give_back(&mut self, node: &Node) {
        self.recent.retain(|turn| turn.is_spent || turn.uid != node.uid);
    }

    /// How many went in the last window, or may have gone.
    pub(super) fn recent(&self) -> usize {
        self.recent.len()
    }

    /// When the next one may go, if none may now.
    pub(super) fn frees_at(&self, now: Instant) -> Option<Instant> {
        if self.is_first_window(now) && self.share < 1.0 {
            return Some(self.begun + self.window);
        }
        self.recent.front().map(|turn| turn.last_try + self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10 * 60);

    fn nodes(count: usize) -> Vec<Arc<Node>> {
        (0..count)
            .map(|n| {
                Arc::new(Node {
                    uid: format!("uid-{n}").into(),
                    ..Node::named("n")
                })
            })
            .collect()
    }

    #[test]
    fn a_share_goes_in_a_window_but_three_at_least() {
        let now = Instant::now();
        for (count, share, free) in [
            (50, 0.2, 9),
            (51, 0.2, 10),
            (14, 0.2, 3),
            (3, 0.2, 3),
            (20, 0.2, 3),
            (21, 0.2, 4),
            (1000, 0.2, 199),
            (5, 0.0, usize::MAX),
            (5, 1.0, 5),
        ] {
            let mut throttle = Throttle::new(share, WINDOW, now);
            let later = now + WINDOW;
            assert_eq!(
                throttle.free(&nodes(count), later),
                free,
                "{count} nodes, {share}"
            );
        }
    }

    #[test]
    fn three_go_in_the_first_window_of_a_leader_unless_all_may() {
        let now = Instant::now();
        let all = nodes(100);
        for (share, free) in [(0.2, 3), (0.9, 3), (0.01, 3), (0.0, usize::MAX), (1.0, 100)] {
            let mut throttle = Throttle::new(share, WINDOW, now);
            let now = now + WINDOW * 9;
            throttle.begin(now);
            assert_eq!(throttle.free(&all, now), free, "{share}");
            assert_eq!(
                throttle.free(&all, now + WINDOW - Duration::from_millis(1)),
                free,
                "{share}"
            );
        }
        let mut throttle = Throttle::new(0.2, WINDOW, now);
        let then = now + Duration::from_secs(60);
        for node in &all[..3] {
            throttle.take(node, then);
        }
        assert_eq!(throttle.free(&all, then), 0);
        assert_eq!(throttle.frees_at(then), Some(now + WINDOW));
        assert_eq!(
            throttle.free(&all, now + WINDOW),
            16,
            "19 in a window, of which 3 went"
        );
        assert_eq!(throttle.frees_at(now + WINDOW), Some(then + WINDOW));
    }

    #[test]
    fn deleted_nodes_still_count_as_part_of_the_cluster_until_their_window_is_over() {
        let now = Instant::now();
        let window = WINDOW;
        let mut throttle = Throttle::new(0.2, window, now);
        let now = now + window;
        let all = nodes(50);
        for node in &all[..10] {
            throttle.take(node, now);
        }
        assert_eq!(throttle.free(&all, now), 0, "still in the cache");
        assert_eq!(throttle.free(&all[10..], now), 0, "gone from the cache");
        assert_eq!(throttle.frees_at(now), Some(now + window));
        throttle.give_back(&all[0]);
        assert_eq!(throttle.free(&all[10..], now), 0, "9 of 49 went, and 9 may");
        assert_eq!(throttle.free(&all[10..], now + window), 7);
    }
}
