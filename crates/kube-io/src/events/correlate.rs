//! Which events are one and the same, and which are too many: the rules of the Go clients' event correlator.
//!
//! 1. Events that differ only in their message and of which there are more than ten within ten minutes are folded into
//!    one, whose message begins with `(combined from similar events): `.
//! 2. An event that is the same as an earlier one, or is folded into it, is counted up instead of being created.
//! 3. About one object, one component may say 25 things at once and one more each five minutes; the rest is dropped.
//!
//! One thing is otherwise: a warning that was not given lately has a bucket of its own, so that no repetition of others and no
//! chatter keeps a person from hearing what has to be done.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bowline_plan::NoteKind;
use jiff::{SignedDuration, Timestamp};

use super::Occurrence;

/// Different messages within [`FOLD_WINDOW`] that stay events of their own.
const FOLD_AFTER: usize = 10;
const FOLD_WINDOW: SignedDuration = SignedDuration::from_mins(10);
const FOLD_PREFIX: &str = "(combined from similar events): ";

/// A token bucket per component and object, and another one for its news.
const BURST: f64 = 25.0;
const SECONDS_PER_TOKEN: f64 = 300.0;

/// Characters in the name of an object, at most.
const MAX_NAME: usize = 253;

/// Entries that are remembered per table.
const REMEMBERED: usize = 4096;
/// Entries that make room at once when a table is full: to look for the oldest of 4096 for each event of a large cluster
/// would cost more than to write the event.
const FORGOTTEN: usize = REMEMBERED / 8;

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name of the event object.
    pub(super) name: String,
    pub(super) message: String,
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    /// What tells its name from those of other events of the object.
    made: i128,
    series: u64,
    exists: bool,
}

impl Entry {
    /// Whether the event object exists and is counted up.
    pub(super) fn is_repetition(&self) -> bool {
        self.exists
    }
}

/// Remembers what was said. Keys are hashes of what they stand for, by a function that is the same in every process.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    /// The messages of a group, at most one more than [`FOLD_AFTER`]: mostly a single one.
    groups: Table<Vec<u64>>,
    series: Table<Series>,
    tokens: Table<f64>,
    last_name: i128,
}

/// Thousands of these are held: the name is made of the object's again.
#[derive(Debug)]
struct Series {
    made: i128,
    count: u32,
    first: Timestamp,
}

impl Correlator {
    /// What is to be written for an occurrence; `None` if it is one too many.
    pub(super) fn correlate(&mut self, occurrence: &Occurrence) -> Option<Entry> {
        let Occurrence {
            component,
            object,
            kind,
            reason,
            message,
            at,
            ..
        } = occurrence;
        let source = key(&(component, object));
        let group = key(&(source, *kind, reason));
        let exact = key(&(group, message));

        let mut messages = self.groups.take(group, *at, FOLD_WINDOW).unwrap_or_default();
        let is_new = !messages.contains(&exact);
        if is_new {
            messages.reserve_exact(1);
            messages.push(exact);
        }
        let is_folded = messages.len() > FOLD_AFTER;
        if is_folded {
            messages.remove(0); // remembering how many is enough
        }
        self.groups.put(group, *at, messages);

        let (id, message) = if is_folded {
            (group, format!("{FOLD_PREFIX}{message}"))
        } else {
            (exact, message.clone())
        };
        let entry = match self.series.take(id, *at, SignedDuration::MAX) {
            Some(Series { made, count, first }) => Entry {
                name: name(occurrence, made),
                made,
                message,
                count: count.saturating_add(1),
                first,
                last: *at,
                series: id,
                exists: true,
            },
            None => {
                let made = self.made(occurrence);
                Entry {
                    name: name(occurrence, made),
                    made,
                    message,
                    count: 1,
                    first: *at,
                    last: *at,
                    series: id,
                    exists: false,
                }
            }
        };
        // Only what exists can be counted up, so a new event that is dropped leaves no trace.
        let is_news = is_new && *kind == NoteKind::Warning;
        let may_pass = self.has_token(key(&(source, is_news)), *at);
        if may_pass || entry.exists {
            self.remember(&entry);
        }
        may_pass.then_some(entry)
    }

    /// The same entry as a new object, for when the one that was to be counted up is gone.
    pub(super) fn renamed(&mut self, entry: Entry, occurrence: &Occurrence) -> Entry {
        let made = self.made(occurrence);
        let entry = Entry {
            name: name(occurrence, made),
            made,
            exists: false,
            ..entry
        };
        self.remember(&entry);
        entry
    }

    fn remember(&mut self, entry: &Entry) {
        let series = Series {
            made: entry.made,
            count: entry.count,
            first: entry.first,
        };
        self.series.put(entry.series, entry.last, series);
    }

    fn has_token(&mut self, source: u64, now: Timestamp) -> bool {
        let mut tokens = BURST;
        if let Some((then, left)) = self.tokens.0.get(&source) {
            let gained = now.duration_since(*then).as_secs_f64().max(0.0) / SECONDS_PER_TOKEN;
            tokens = (left + gained).min(BURST);
        }
        let has_token = tokens >= 1.0;
        self.tokens
            .put(source, now, if has_token { tokens - 1.0 } else { tokens });
        has_token
    }

    /// A time in nanoseconds that was not used before.
    fn made(&mut self, occurrence: &Occurrence) -> i128 {
        self.last_name = occurrence.at.as_nanosecond().max(self.last_name + 1);
        self.last_name
    }
}

/// The name of an event: the object's name, as far as there is room, and a time in nanoseconds.
fn name(occurrence: &Occurrence, made: i128) -> String {
    let time = format!(".{made:x}");
    let name = &occurrence.object.name;
    // The names of objects are ASCII.
    let name = name.get(..MAX_NAME - time.len()).unwrap_or(name);
    let is_edge = |c: char| !c.is_ascii_alphanumeric();
    name.trim_end_matches(is_edge).to_owned() + &time
}

fn key(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A bounded table with the time of the last use.
#[derive(Debug)]
struct Table<V>(BTreeMap<u64, (Timestamp, V)>);

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> Table<V> {
    /// Takes out what was used within this time.
    fn take(&mut self, key: u64, now: Timestamp, within: SignedDuration) -> Option<V> {
        let (used, value) = self.0.remove(&key)?;
        (now.duration_since(used) <= within).then_some(value)
    }

    fn put(&mut self, key: u64, now: Timestamp, value: V) {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&key) {
            self.forget_oldest();
        }
        self.0.insert(key, (now, value));
    }

    /// Forgets the entries that were used longest ago; of those that were used at the same time, the ones with the lower key.
    fn forget_oldest(&mut self) {
        let mut uses: Vec<(Timestamp, u64)> = self.0.iter().map(|(key, (used, _))| (*used, *key)).collect();
        if uses.len() > FORGOTTEN {
            let (_, oldest_kept, _) = uses.select_nth_unstable(FORGOTTEN);
            let oldest_kept = *oldest_kept;
            self.0.retain(|key, (used, _)| (*used, *key) >= oldest_kept);
        }
    }
}

#[cfg(test)]
mod tests;
