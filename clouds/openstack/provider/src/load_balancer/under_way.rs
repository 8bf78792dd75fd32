//! The changes of load balancers that Octavia is at work on, as far as this process made them.
//!
//! Octavia refuses a change while another one is under way. Within one reconcile the plan waits for that; what two Services do to
//! one load balancer is kept apart here: whoever changed it has it until a look shows it at rest. The same looks tell how long
//! Octavia takes, so that the next change is not looked at before.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_openstack_client::{LoadBalancer, LoadBalancerId};
use tokio::time::Instant;

use crate::load_balancer::observed::is_pending;

/// How long it is believed how long Octavia takes. A cloud that became faster is found out then: whoever waits for so long does not
/// see that it was done sooner.
const LIFE: Duration = Duration::from_secs(120);

/// How long several changes at once are given before it is known how long Octavia takes: one list for all of them after
/// that, rather than one each second.
const SEVERAL: Duration = Duration::from_secs(2);

/// No change of a part is given more than this before it is looked at: one that took long does not hold up all that follow.
const LONGEST: Duration = Duration::from_secs(3);

/// A change that nobody saw the end of for so long holds up nobody: its reconcile ended, and so did the looks.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The changes under way, and how long the last ones took.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    changes: BTreeMap<LoadBalancerId, Change>,
    /// How long a change of a part took to show, and when that was found out.
    took: Option<(Instant, Duration)>,
}

#[derive(Debug)]
struct Change {
    /// The UID of the Service that made it.
    by: String,
    begun: Instant,
    /// When Octavia answered that it takes it; `None` while it is asked.
    answered: Option<Instant>,
    /// Whether it changes a part, and not the load balancer as a whole.
    is_of_part: bool,
}

impl UnderWay {
    /// A Service is about to write to a load balancer. Whether it may: not while another Service's change is under way.
    pub(crate) fn begin(&self, balancer: &LoadBalancerId, by: &str, is_of_part: bool) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        let is_held = state
            .changes
            .get(balancer)
            .is_some_and(|change| change.by != by && now.duration_since(change.begun) < FORGOTTEN);
        if !is_held {
            let change = Change {
                by: by.to_owned(),
                begun: now,
                answered: None,
                is_of_part,
            };
            state.changes.insert(balancer.clone(), change);
        }
        !is_held
    }

    /// Whether this process made a change of it that no look has shown the end of.
    pub(crate) fn is_ours(&self, balancer: &LoadBalancerId) -> bool {
        self.lock().changes.contains_key(balancer)
    }

    /// Octavia takes the change.
    pub(crate) fn answered(&self, balancer: &LoadBalancerId) {
        if let Some(change) = self.lock().changes.get_mut(balancer) {
            change.answered = Some(Instant::now());
        }
    }

    /// Octavia does not take it, or it is not known whether it does.
    pub(crate) fn withdrawn(&self, balancer: &LoadBalancerId) {
        self.lock().changes.remove(balancer);
    }

    /// A list of all load balancers was read that was asked for at this moment.
    pub(crate) fn listed(&self, all: &[LoadBalancer], asked: Instant) {
        let mut state = self.lock();
        let State { changes, took } = &mut *state;
        changes.retain(|id, change| {
            let Some(answered) = change.answered.filter(|answered| *answered <= asked) else {
                return true;
            };
            match all.iter().find(|there| there.id == *id) {
                Some(there) if is_pending(there) => true,
                Some(_) => {
                    let long = asked.duration_since(answered).min(LONGEST);
                    let is_longer = took.is_none_or(|(_, known)| long > known);
                    if change.is_of_part && (is_longer || is_old(*took)) {
                        *took = Some((asked, long));
                    }
                    false
                }
                None => false,
            }
        });
    }

    /// How long to wait before a change of a part is looked at: as long as the slowest one of the last minutes took. Where
    /// none is known, a change that is alone is looked at at once.
    pub(crate) fn pause(&self) -> Duration {
        let state = self.lock();
        if let Some((_, took)) = state.took.filter(|_| !is_old(state.took)) {
            return took;
        }
        let of_parts = state.changes.values().filter(|change| change.is_of_part);
        if of_parts.count() > 1 {
            SEVERAL
        } else {
            Duration::ZERO
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_old(took: Option<(Instant, Duration)>) -> bool {
    took.is_some_and(|(found, _)| found.elapsed() >= LIFE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn balancer(status: &str) -> LoadBalancer {
        serde_json::from_value(json!({ "id": "lb", "provisioning_status": status })).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_changed_a_load_balancer_has_it_until_a_later_look_shows_it_at_rest() {
        let under_way = UnderWay::default();
        let id = LoadBalancerId::from("lb");
        assert!(under_way.begin(&id, "a", true));
        assert!(!under_way.begin(&id, "b", true), "it is being asked");
        let before = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        under_way.answered(&id);
        // A list that was asked for before shows it as it was.
        under_way.listed(&[balancer("ACTIVE")], before);
        assert!(!under_way.begin(&id, "b", true));
        under_way.listed(&[balancer("PENDING_UPDATE")], Instant::now());
        assert!(!under_way.begin(&id, "b", true));
        under_way.listed(&[balancer("ACTIVE")], Instant::now());
        assert!(under_way.begin(&id, "b", true));
        // What was refused is not under way, nor is what nobody looked at for long.
        under_way.withdrawn(&id);
        assert!(under_way.begin(&id, "a", true));
        tokio::time::advance(FORGOTTEN).await;
        assert!(under_way.begin(&id, "b", true));
        under_way.answered(&id);
        under_way.listed(&[], Instant::now());
        assert!(under_way.begin(&id, "a", true), "it is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_not_looked_at_before_the_slowest_of_the_last_ones_showed() {
        let under_way = UnderWay::default();
        let id = LoadBalancerId::from("lb");
        let change = async |seconds, is_of_part| {
            assert!(under_way.begin(&id, "a", is_of_part));
            under_way.answered(&id);
            tokio::time::advance(Duration::from_secs(seconds)).await;
            under_way.listed(&[balancer("ACTIVE")], Instant::now());
            under_way.pause().as_secs()
        };
        assert_eq!(under_way.pause(), Duration::ZERO);
        for (balancer, pause) in [("one", 0), ("two", 2)] {
            assert!(under_way.begin(&LoadBalancerId::from(balancer), "b", true));
            assert_eq!(under_way.pause(), Duration::from_secs(pause), "{balancer}");
        }
        for balancer in ["one", "two"] {
            under_way.withdrawn(&LoadBalancerId::from(balancer));
        }
        assert_eq!(change(2, true).await, 2);
        assert_eq!(change(1, true).await, 2);
        assert_eq!(change(5, false).await, 2, "a deletion takes its own time");
        assert_eq!(change(60, true).await, 3);
        tokio::time::advance(LIFE).await;
        assert_eq!(under_way.pause(), Duration::ZERO);
        assert_eq!(change(1, true).await, 1);
    }
}
