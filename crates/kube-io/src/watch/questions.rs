//! Questions by name about objects that are said to be gone, or to have changed.

use futures::stream::{self, StreamExt as _};

use super::begin::goes_on;
use crate::cache::{Cache, Settled};
use crate::client::Kube;
use crate::reads::Listed;
use crate::waits::{FIRST_WAIT, LONGEST_WAIT, Waits};

/// Questions under way at once. After an outage a thousand Nodes may be missing from a list: they are asked for in a
/// second or two, and other requests still find their turn.
const AT_ONCE: usize = 8;

/// Asks about whatever is in doubt, until it is settled. Never returns; drop it to stop.
pub(super) async fn ask_about_doubts<T: Listed>(kube: &Kube, cache: &Cache<T>) {
    let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
    loop {
        let (raised, doubts) = cache.doubted().await;
        let mut wait = None;
        let mut answers = stream::iter(doubts)
            .map(|(key, since)| async move {
                let found = kube.find::<T>(&key).await;
                (key, since, found)
            })
            .buffer_unordered(AT_ONCE);
        while let Some((key, since, found)) = answers.next().await {
            let again = match found {
                Ok(found) => match cache.settle(&key, since, found) {
                    Settled::Over => continue,
                    Settled::Disproved => {
                        tracing::warn!(kind = T::PLURAL, object = ?key, "The API server still has an object that it reported as deleted, or has it in a version that its watch did not show; listing again");
                        break;
                    }
                },
                Err(error) => {
                    // A thousand may be in doubt when the API server is ill: one of them is told.
                    if wait.is_none() {
                        tracing::warn!(kind = T::PLURAL, object = ?key, err = %error, "An object was reported as deleted or changed, and the API server has not confirmed it yet; the object counts as it is known");
                    }
                    let stated = error.retry_after().unwrap_or_default();
                    if goes_on(&error) {
                        wait = Some(stated.max(wait.unwrap_or_default()));
                        break; // no answer: the others would find none either
                    }
                    stated
                }
            };
            wait = Some(again.max(wait.unwrap_or_default()));
        }
        drop(answers);
        match wait {
            None => waits.reset(),
            // What is new need not wait for what failed.
            Some(stated) if stated.is_zero() => {
                let _ = tokio::time::timeout(waits.next(), cache.next_doubt(raised)).await;
            }
            Some(stated) => tokio::time::sleep(waits.next().max(stated)).await,
        }
    }
}
