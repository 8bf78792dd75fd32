//! How many Nodes may be deleted in a window of time. Pure.
//!
//! What was deleted is noted on the lease before it is, and the next leader begins with that. A leader that finds no note, or one
//! that may lack deletions, takes its first window for spent but for three, whatever the share is: without a lease, each restart
//! lets three Nodes more go, not the share anew.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::Node;
use bowline_kube_io::{DeletionNote, FoundNote};
use jiff::Timestamp;
use tokio::time::Instant;

/// A time by the clock for distances and by the one on the wall.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) wall: Timestamp,
}

/// So many Nodes may go in a window however small the cluster is.
const AT_LEAST: usize = 3;

/// In so many parts of a window deletions are noted: a note stays short, and a deletion counts for at most this part longer.
const PARTS: u32 = 20;

/// The deletions of the last window.
#[derive(Debug)]
pub(super) struct Throttle {
    share: f64,
    window: Duration,
    /// Until then not all deletions of the last window are known.
    first_until: Instant,
    /// By their last try, oldest first.
    recent: VecDeque<Turn>,
    /// Those of the leaders before this one: until when they count, and how many.
    earlier: Vec<(Instant, usize)>,
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
            first_until: begun + window,
            recent: VecDeque::new(),
            earlier: Vec::new(),
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
        self.earlier.retain(|(ends, _)| now < *ends);
        if self.share <= 0.0 {
            return usize::MAX;
        }
        // The share is one of the cluster as it was before these deletions, or each would shrink the next. Of those that an
        // earlier leader deleted no names are known: what still goes may be one of them.
        let turns: BTreeSet<&str> = self.recent.iter().map(|turn| &*turn.uid).collect();
        let others = all
            .iter()
            .filter(|node| !node.deleting && !turns.contains(&*node.uid))
            .count();
        let total = u32::try_from(others.saturating_add(self.recent())).unwrap_or(u32::MAX);
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
        let limit = if self.is_first_window(now) {
            AT_LEAST
        } else {
            limit.max(AT_LEAST)
        };
        limit.saturating_sub(self.recent())
    }

    /// All may go in any window if the share is one, so it does not matter what went before.
    fn is_first_window(&self, now: Instant) -> bool {
        now < self.first_until && self.share < 1.0
    }

    /// From now on this process leads, and knows of those before it what it found.
    pub(super) fn begin(&mut self, now: Instant, found: Option<&FoundNote>) {
        self.first_until = now + self.window;
        self.earlier.clear();
        let Some(FoundNote {
            note,
            is_complete,
            at,
            wall,
        }) = found
        else {
            return;
        };
        // When what happened then is a window ago; what is said to come yet happens now.
        let ends = |then: i64| {
            let age = wall.as_second().saturating_sub(then);
            let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
            *at + self.window.saturating_sub(age)
        };
        if *is_complete {
            self.first_until = ends(note.since);
        }
        let earlier = note
            .deleted
            .iter()
            .map(|(then, count)| (ends(*then), *count as usize));
        self.earlier = earlier.filter(|(ends, _)| now < *ends).collect();
    }

    /// What the next leader has to know; `None` where it does not matter what went before.
    pub(super) fn note(&self, now: Moment) -> Option<DeletionNote> {
        if self.share <= 0.0 || self.share >= 1.0 {
            return None;
        }
        let wall = now.wall.as_second();
        let ago = |then: Duration| wall.saturating_sub(i64::try_from(then.as_secs()).unwrap_or(i64::MAX));
        let part = i64::try_from((self.window / PARTS).as_secs())
            .unwrap_or(i64::MAX)
            .max(1);
        let rounded_up = |at: i64| at.saturating_add(part - 1).div_euclid(part).saturating_mul(part);
        let age = |ends: Instant| {
            self.window
                .saturating_sub(ends.saturating_duration_since(now.instant))
        };
        let own = self.recent.iter().map(|turn| (turn.last_try + self.window, 1));
        let mut deleted = BTreeMap::<i64, u32>::new();
        for (ends, count) in own.chain(self.earlier.iter().copied()) {
            let sum = deleted.entry(rounded_up(ago(age(ends)))).or_default();
            *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        Some(DeletionNote::new(ago(age(self.first_until)), deleted))
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
        let earlier = self.earlier.iter().map(|(_, count)| *count);
        earlier.fold(self.recent.len(), usize::saturating_add)
    }

    /// Whether it is not known yet of a deletion whether it comes about.
    pub(super) fn is_open(&self) -> bool {
        self.recent.iter().any(|turn| !turn.is_spent)
    }

    /// When the next one may go, if none may now.
    pub(super) fn frees_at(&self, now: Instant) -> Option<Instant> {
        let first = self.is_first_window(now).then_some(self.first_until);
        let own = self.recent.front().map(|turn| turn.last_try + self.window);
        let earlier = self.earlier.iter().map(|(ends, _)| *ends);
        earlier.chain(first).chain(own).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_lifecycle::NodeLifecycleSettings;

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
            throttle.begin(now, None);
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
    fn whoever_reads_the_note_knows_that_the_share_is_used_up_and_until_when() {
        let wall: Timestamp = "2026-01-01T00:30:00Z".parse().unwrap();
        let now = Moment {
            instant: Instant::now(),
            wall,
        };
        let at = wall.as_second() - 60;
        let settings = NodeLifecycleSettings::default();
        let node = Node::named("n9");
        let told = |count: u32| {
            let note = DeletionNote::new(wall.as_second() - 3600, [(at, count)].into());
            settings.throttled(&node, &found(note, true, now), &nodes(10))
        };
        let (text, left) = told(3).unwrap();
        assert!(text.starts_with("Not deleting node n9 yet: 3 nodes"), "{text}");
        assert_eq!(left, Duration::from_secs(9 * 60));
        assert_eq!(told(2), None, "one more may go");
    }

    fn found(note: DeletionNote, is_complete: bool, now: Moment) -> FoundNote {
        FoundNote {
            note,
            is_complete,
            at: now.instant,
            wall: now.wall,
        }
    }

    #[test]
    fn a_new_leader_goes_on_where_the_one_before_it_stopped() {
        let begun = Instant::now();
        let moment = |after: Duration| Moment {
            instant: begun + after,
            wall: Timestamp::from_second(1_700_000_000).unwrap() + after,
        };
        let all = nodes(50);
        let mut first = Throttle::new(0.2, WINDOW, begun);
        let then = moment(WINDOW);
        assert_eq!(first.free(&all, then.instant), 9);
        for node in &all[..7] {
            first.take(node, then.instant);
        }
        let note = first.note(then).unwrap();
        assert_eq!(note.deleted.values().sum::<u32>(), 7);
        let now = moment(WINDOW + Duration::from_secs(20));
        let left = &all[7..];
        for (is_complete, free) in [(true, 2), (false, 0)] {
            let mut second = Throttle::new(0.2, WINDOW, begun);
            second.begin(now.instant, Some(&found(note.clone(), is_complete, now)));
            assert_eq!(second.free(left, now.instant), free, "{is_complete}");
            assert_eq!(second.recent(), 7);
        }
        // The third knows of both.
        let mut second = Throttle::new(0.2, WINDOW, begun);
        second.begin(now.instant, Some(&found(note, true, now)));
        second.take(&left[0], now.instant);
        let note = second.note(now).unwrap();
        assert_eq!(note.deleted.values().sum::<u32>(), 8);
        let mut third = Throttle::new(0.2, WINDOW, begun);
        third.begin(now.instant, Some(&found(note, true, now)));
        assert_eq!(third.free(&left[1..], now.instant), 1);
        let over = then.instant + WINDOW + WINDOW / PARTS;
        assert_eq!(
            third.frees_at(now.instant),
            Some(over - WINDOW / PARTS + Duration::from_secs(10))
        );
        assert_eq!(third.free(&left[1..], over), 8, "all are a window ago");
    }

    #[test]
    fn what_a_note_says_of_the_future_or_of_millions_frees_nobody_and_ends_nothing() {
        let begun = Instant::now();
        let wall = Timestamp::from_second(1_700_000_000).unwrap();
        let now = Moment { instant: begun, wall };
        let all = nodes(50);
        for (then, count, free) in [
            (1_700_000_000, u32::MAX, 0),
            (i64::MAX, 3, 0),
            (1_700_009_999, 1, 2),
            (i64::MIN, u32::MAX, 3),
            (0, 9, 3),
        ] {
            let note = DeletionNote::new(then, BTreeMap::from([(then, count)]));
            let mut throttle = Throttle::new(0.2, WINDOW, begun);
            throttle.begin(begun, Some(&found(note, false, now)));
            assert_eq!(throttle.free(&all, begun), free, "{then} {count}");
            throttle.note(now).unwrap();
            assert!(throttle.free(&all, begun + WINDOW) >= 9, "{then} {count}");
        }
    }

    #[test]
    fn a_note_stays_short_however_many_go() {
        let begun = Instant::now();
        let mut throttle = Throttle::new(0.2, WINDOW, begun);
        let wall = Timestamp::from_second(1_700_000_000).unwrap();
        for (node, second) in nodes(3000).iter().zip(0..) {
            let after = Duration::from_secs(second);
            throttle.free(&[], begun + after);
            throttle.take(node, begun + after);
            let note = throttle
                .note(Moment {
                    instant: begun + after,
                    wall: wall + after,
                })
                .unwrap();
            assert!(note.deleted.len() <= 21, "{note:?}");
        }
        for share in [0.0, 1.0] {
            let throttle = Throttle::new(share, WINDOW, begun);
            assert_eq!(throttle.note(Moment { instant: begun, wall }), None);
        }
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
