//! Questions by name about objects that are said to be gone, or to have changed.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::begin::goes_on;
use crate::cache::{Cache, Settled};
use crate::client::Kube;
use crate::reads::Listed;
use crate::waits::{FIRST_WAIT, LONGEST_WAIT, Waits};

/// Questions under way at once. After an outage a thousand Nodes may be missing from a list: they are asked for in a
/// second or two, and other requests still find their turn.
const AT_ONCE: usize = 8;

/// Asks about whatever is in doubt, until it is settled. Never returns; drop it to stop.
///
/// What is new is asked about at once. What stays unresolved waits, longer each time; and where nothing is answered, no
/// more than [`AT_ONCE`] of all are asked about after each wait, so that an outage costs the same however much was deleted in it.
pub(super) async fn ask_about_doubts<T: Listed>(kube: &Kube, cache: &Cache<T>) {
    let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
    // What an answer did not resolve, or none came about, and in which round. The one that waits for the longest time is next.
    let mut unresolved: BTreeMap<T::Key, u64> = BTreeMap::new();
    let mut again = Instant::now();
    for round in (0..).step_by(2) {
        let (raised, doubts) = cache.doubted().await;
        unresolved.retain(|key, _| doubts.contains_key(key));
        let mut due: Vec<_> = doubts.into_iter().collect();
        if Instant::now() < again {
            due.retain(|(key, _)| !unresolved.contains_key(key));
        }
        due.sort_by_key(|(key, _)| unresolved.get(key).copied());
        let keys: Vec<T::Key> = due.iter().map(|(key, _)| key.clone()).collect();
        let mut answers = stream::iter(due)
            .map(|(key, since)| async move {
                let found = kube.find::<T>(&key).await;
                (key, since, found)
            })
            .buffer_unordered(AT_ONCE);
        let mut failure: Option<Duration> = None;
        let (mut failed, mut answered) = (0, 0);
        while let Some((key, since, found)) = answers.next().await {
            let settled = found.map(|found| cache.settle(&key, since, found));
            let error = match settled {
                Ok(Settled::Over) => {
                    unresolved.remove(&key);
                    answered += 1;
                    continue;
                }
                Ok(Settled::Disproved) => {
                    tracing::warn!(kind = T::PLURAL, object = ?key, "The API server still has an object that it reported as deleted; listing again");
                    break;
                }
                Ok(Settled::Open) => None,
                Err(error) => Some(error),
            };
            // A thousand may be in doubt when the API server is ill: one of them is told.
            if failure.is_none() {
                let err = error.as_ref().map(ToString::to_string);
                tracing::warn!(kind = T::PLURAL, object = ?key, err, "An object was reported as deleted or changed, and the API server has not confirmed it yet; the object counts as it is known");
            }
            unresolved.insert(key, round + 1);
            let stated = error.as_ref().and_then(|error| error.retry_after());
            failure = failure.max(Some(stated.unwrap_or_default()));
            match error {
                None => answered += 1,
                Some(_) => failed += 1,
            }
            // No answer: the others would find none either.
            if error.is_some_and(|error| goes_on(&error)) || answered == 0 && failed == AT_ONCE {
                for key in keys {
                    unresolved.entry(key).or_insert(round);
                }
                break;
            }
        }
        drop(answers);
        match failure {
            None if unresolved.is_empty() => waits.reset(),
            None => drop(tokio::time::timeout_at(again, cache.next_doubt(raised)).await),
            // What is new need not wait for what failed.
            Some(stated) if stated.is_zero() => {
                again = Instant::now() + waits.next();
                drop(tokio::time::timeout_at(again, cache.next_doubt(raised)).await);
            }
            Some(stated) => tokio::time::sleep(waits.next().max(stated)).await,
        }
    }
}
