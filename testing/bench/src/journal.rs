//! The simulator's record of the calls it got.

use serde::Deserialize;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) write: bool,
}

/// The calls since some moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    /// All of them.
    pub(crate) all: u64,
    /// Those that change nothing; unknown if there were so many that the simulator has forgotten some.
    pub(crate) reads: Option<u64>,
    /// Those that add a member to a pool, or write all members of one.
    pub(crate) members_written: u64,
}

/// The number of the next call.
pub(crate) fn next(entries: &[Entry]) -> u64 {
    entries.last().map_or(0, |entry| entry.seq + 1)
}

/// Counts the calls from this number on.
pub(crate) fn since(entries: &[Entry], first: u64) -> Calls {
    let recent = || entries.iter().filter(|entry| entry.seq >= first);
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let is_complete = entries.first().is_none_or(|entry| entry.seq <= first);
    Calls {
        all: next(entries).saturating_sub(first),
        reads: is_complete.then(|| count(recent().filter(|entry| !entry.write).count())),
        members_written: count(
            recent()
                .filter(|entry| {
                    matches!(entry.method.as_str(), "POST" | "PUT") && entry.path.ends_with("/members")
                })
                .count(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64, method: &str, path: &str) -> Entry {
        Entry {
            seq,
            method: method.to_owned(),
            path: path.to_owned(),
            write: method != "GET",
        }
    }

    #[test]
    fn calls_are_counted_from_a_moment_on() {
        let entries = [
            entry(0, "GET", "/v1/servers"),
            entry(1, "POST", "/v1/load-balancers/pools/7/members"),
            entry(2, "GET", "/v1/servers"),
        ];
        assert_eq!(next(&entries), 3);
        let calls = since(&entries, 1);
        assert_eq!((calls.all, calls.reads, calls.members_written), (2, Some(1), 1));
        assert_eq!(
            since(&entries, 3),
            Calls {
                reads: Some(0),
                ..Calls::default()
            }
        );
        assert_eq!(since(&[], 0).all, 0);
    }

    #[test]
    fn reads_are_unknown_when_calls_were_forgotten() {
        let entries = [entry(100, "GET", "/v1/servers"), entry(101, "GET", "/v1/servers")];
        let calls = since(&entries, 50);
        assert_eq!((calls.all, calls.reads), (52, None));
    }
}
