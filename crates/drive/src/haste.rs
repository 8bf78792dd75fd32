//! The patience of work that is for many objects, of which each waits for the others.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use bowline_cloud_provider::lock;
use bowline_transport::patience::SILENT;

use crate::LOOK;

/// The steps of which a call was given up, by their labels.
///
/// A call without an answer is given up for the sake of the other objects. The next one of the same step has all its time, unless something
/// newer waits: the plan lets it come after the others.
#[derive(Debug, Default)]
pub struct Haste(Mutex<BTreeSet<String>>);

impl Haste {
    /// For [`Hooks::newer_waits`](crate::Hooks::newer_waits). `newer` ends when something waits that came after the run began. Without a look
    /// nothing goes on.
    pub async fn newer_waits(&self, label: &str, newer: impl Future<Output = ()>) -> Duration {
        if label == LOOK {
            std::future::pending::<()>().await;
        }
        let is_again = lock(&self.0).contains(label);
        if is_again {
            newer.await;
        }
        SILENT
    }

    /// For [`Hooks::made`](crate::Hooks::made).
    pub fn made(&self, label: &str, gave_up: bool) {
        let mut given_up = lock(&self.0);
        match gave_up {
            true => given_up.insert(label.to_owned()),
            false => given_up.remove(label),
        };
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_call_is_given_up_at_once_the_first_time_and_then_only_for_something_newer() {
        let haste = Haste::default();
        let waits = |label: &str, is_newer: bool| {
            let newer = async move {
                if !is_newer {
                    std::future::pending::<()>().await;
                }
            };
            haste.newer_waits(label, newer).now_or_never()
        };
        assert_eq!(waits("a", false), Some(SILENT));
        haste.made("a", true);
        assert_eq!([waits("a", false), waits("a", true)], [None, Some(SILENT)]);
        assert_eq!(waits("b", false), Some(SILENT));
        haste.made("a", false);
        assert_eq!(waits("a", false), Some(SILENT));
        assert_eq!(waits(LOOK, true), None);
    }
}
