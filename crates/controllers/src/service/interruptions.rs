//! When a sync is tried again that something moved under: somebody else wrote the Service, or it is gone.
//!
//! Nearly always the watch shows in a moment what moved. If it does not, it is late, and tries would only meet the same
//! refusal: then the Service is asked for by its name, and the sync goes on as soon as there is a newer version.

/// Syncs in a row that something moved under.
#[derive(Default)]
pub(super) struct Interruptions {
    count: u32,
    /// Those of them in a row that brought nothing new.
    outdated: u32,
    /// The version of the Service that the cache showed after the last of them.
    version: Option<String>,
}

/// What an interruption tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The watch will show in a moment what moved.
    Passing,
    /// The watch has had that moment, and shows nothing new.
    Outdated,
    /// There is always something new. It counts as a failure.
    Endless,
}

impl Interruptions {
    /// In a row, after which they have no end.
    const MOST: u32 = 10;
    /// In a row, after which a sync is brought to its end all the same.
    const SOME: u32 = 3;

    /// There was another one; `version` is what the cache shows now.
    pub(super) fn add(&mut self, version: Option<&str>) -> Interruption {
        let is_known = self.count > 0 && version.is_some() && self.version.as_deref() == version;
        self.count = self.count.saturating_add(1);
        self.outdated = if is_known { self.outdated + 1 } else { 0 };
        self.version = version.map(str::to_owned);
        if self.count > Self::MOST {
            Interruption::Endless
        } else if is_known {
            Interruption::Outdated
        } else {
            Interruption::Passing
        }
    }

    /// Whether somebody is to be told: a question brought nothing new either, or it has no end.
    pub(super) fn are_told(&self) -> bool {
        self.outdated >= 2 || self.count > Self::MOST
    }

    /// Whether the next sync gives way to changes no more. A Service that changes faster than its cloud can be looked at
    /// would never be served, nor let go: its newest change comes after the one that is being worked on, as in upstream.
    pub(super) fn are_to_end(&self) -> bool {
        self.count >= Self::SOME
    }

    /// Whether a newer version of the Service ends the wait. Whoever writes without end is not followed at each step.
    pub(super) fn are_over_with_news(&self) -> bool {
        (1..=Self::MOST).contains(&self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_was_refused_before_is_outdated() {
        let mut interruptions = Interruptions::default();
        assert!(!interruptions.are_over_with_news());
        let told = [Some("5"), Some("6"), Some("6"), None, None].map(|version| interruptions.add(version));
        use Interruption::{Outdated, Passing};
        assert_eq!(told, [Passing, Passing, Outdated, Passing, Passing]);
        assert!(interruptions.are_over_with_news());
    }

    #[test]
    fn who_writes_without_end_is_not_followed() {
        let mut interruptions = Interruptions::default();
        let told: Vec<Interruption> = (0..12)
            .map(|version| interruptions.add(Some(&version.to_string())))
            .collect();
        assert!(told[..10].iter().all(|told| *told == Interruption::Passing));
        assert_eq!(told[10..], [Interruption::Endless; 2]);
        assert!(!interruptions.are_over_with_news());
    }
}
