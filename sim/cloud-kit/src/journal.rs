//! The ordered record of every request that reached a simulator.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::pattern::PathPattern;

/// Names of body and query fields whose value is never recorded, compared without case.
const SECRET_FIELDS: [&str; 9] = [
    "password",
    "secret",
    "signature",
    "apikey",
    "secretkey",
    "client_secret",
    "access_token",
    "token",
    "user_data",
];

/// What is recorded instead.
const STARS: &str = "***";

/// One request and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Position in the journal, from 0, in order of arrival.
    pub seq: u64,
    /// Time of arrival since the simulator's start.
    pub at: Duration,
    /// HTTP method.
    #[serde(serialize_with = "method_text")]
    pub method: Method,
    /// Path without query.
    pub path: String,
    /// What the API calls the operation; the path where the API has no name for it.
    pub operation: String,
    /// Query pairs in the order given, decoded.
    pub query: Vec<(String, String)>,
    /// The body: JSON as it came, a form as an object, anything else as text; `None` if empty. Secrets are starred.
    pub body: Option<Value>,
    /// Whether the API counts it as a change.
    pub write: bool,
    /// Objects that a write changes, see [`crate::Cloud::lanes`].
    pub lanes: Vec<String>,
    /// Requests that had arrived earlier and were not finished when this one arrived.
    pub in_flight_with: Vec<u64>,
    /// What the caller got; `None` while the request is under way.
    pub outcome: Option<Outcome>,
    /// Whether the simulated cloud carried the request out, which a fault may have hidden from the caller.
    pub handled: Option<u16>,
}

fn method_text<S: serde::Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

impl Entry {
    /// The status the caller got, if one was answered.
    pub fn status(&self) -> Option<u16> {
        match self.outcome {
            Some(Outcome::Answered(status)) => Some(status),
            _ => None,
        }
    }
}

/// How a request ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer with this status.
    Answered(u16),
    /// The connection was dropped instead of an answer.
    Dropped,
    /// No answer at all; the caller had to give up.
    Hung,
    /// The caller went away before the answer.
    Abandoned,
}

/// Two writes that were in flight on one object at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// The object.
    pub lane: String,
    /// The request that was there.
    pub earlier: u64,
    /// The request that came on top.
    pub later: u64,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, earlier, later } = self;
        write!(f, "requests {earlier} and {later} were at work at once on {lane}")
    }
}

/// A point in the journal, to look at what came after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// The record itself. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    /// The most entries that are kept, if there is a limit.
    limit: Option<usize>,
    /// The sequence number of the next arrival.
    next: u64,
    in_flight: BTreeMap<u64, Vec<String>>,
    overlaps: Vec<Overlap>,
}

impl Journal {
    /// All entries in order of arrival.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().entries.iter().cloned().collect()
    }

    /// Forgets the oldest entries beyond this number, so that a program can run for ever. Default: none is forgotten.
    pub fn keep_at_most(&self, limit: usize) {
        let mut inner = self.lock();
        inner.limit = Some(limit);
        inner.trim();
    }

    /// The end of the journal now.
    pub fn mark(&self) -> Mark {
        Mark(self.lock().next)
    }

    /// Entries that arrived after `mark`.
    pub fn since(&self, mark: Mark) -> Vec<Entry> {
        self.filter(|entry| entry.seq >= mark.0)
    }

    /// Number of requests so far.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether no request has arrived yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that are writes.
    pub fn writes(&self) -> Vec<Entry> {
        self.filter(|entry| entry.write)
    }

    /// Entries that are reads.
    pub fn reads(&self) -> Vec<Entry> {
        self.filter(|entry| !entry.write)
    }

    /// How many requests had this method and a path that fits the pattern (see [`PathPattern`]).
    pub fn count(&self, method: Method, path: impl Into<PathPattern>) -> usize {
        let path = path.into();
        self.having(|entry| entry.method == method && path.matches(&entry.path))
    }

    /// How many requests asked for this operation.
    pub fn count_operation(&self, operation: &str) -> usize {
        self.having(|entry| entry.operation == operation)
    }

    fn having(&self, test: impl Fn(&&Entry) -> bool) -> usize {
        self.lock().entries.iter().filter(test).count()
    }

    /// Entries that fit a test of the caller's, in order.
    pub fn filter(&self, mut keep: impl FnMut(&Entry) -> bool) -> Vec<Entry> {
        self.lock()
            .entries
            .iter()
            .filter(|entry| keep(entry))
            .cloned()
            .collect()
    }

    /// Pairs of writes that were ever in flight on one object at once.
    pub fn overlaps(&self) -> Vec<Overlap> {
        self.lock().overlaps.clone()
    }

    /// The most requests that were ever in flight at once.
    pub fn most_in_flight(&self) -> usize {
        self.lock()
            .entries
            .iter()
            .map(|entry| entry.in_flight_with.len() + 1)
            .max()
            .unwrap_or(0)
    }

    /// Records an arrival and says what it met. The ticket ends the flight when its last clone is dropped.
    pub(crate) fn arrive(&self, at: Duration, call: Call) -> Ticket {
        let mut inner = self.lock();
        let seq = inner.next;
        inner.next += 1;
        let mut met = Vec::new();
        for (&earlier, lanes) in &inner.in_flight {
            let shared = lanes.iter().filter(|lane| call.lanes.contains(lane)).cloned();
            met.extend(shared.map(|lane| Overlap {
                lane,
                earlier,
                later: seq,
            }));
        }
        let in_flight_with = inner.in_flight.keys().copied().collect();
        inner.overlaps.extend(met.iter().cloned());
        inner.in_flight.insert(seq, call.lanes.clone());
        let own_lanes = call.lanes.clone();
        let Call {
            method,
            path,
            operation,
            query,
            body,
            write,
            lanes,
        } = call;
        inner.entries.push_back(Entry {
            seq,
            at,
            method,
            path,
            operation,
            query,
            body,
            write,
            lanes,
            in_flight_with,
            outcome: None,
            handled: None,
        });
        inner.trim();
        drop(inner);
        Ticket {
            flight: Arc::new(Flight {
                journal: self.clone(),
                seq,
            }),
            lanes: own_lanes,
            met,
        }
    }

    fn entry(&self, seq: u64, change: impl FnOnce(&mut Entry)) {
        let mut inner = self.lock();
        // They are in order without gaps.
        let first = inner.entries.front().map_or(0, |entry| entry.seq);
        let index = seq
            .checked_sub(first)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| inner.entries.get_mut(index)) {
            change(entry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn trim(&mut self) {
        let Some(limit) = self.limit else { return };
        self.entries.drain(..self.entries.len().saturating_sub(limit));
        // As many overlaps as requests at most: a program that causes more has shown its point.
        self.overlaps.drain(..self.overlaps.len().saturating_sub(limit));
    }
}

/// What a request says, as far as the journal keeps it.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) operation: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) write: bool,
    pub(crate) lanes: Vec<String>,
}

/// A request under way.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    flight: Arc<Flight>,
    pub(crate) lanes: Vec<String>,
    pub(crate) met: Vec<Overlap>,
}

#[derive(Debug)]
struct Flight {
    journal: Journal,
    seq: u64,
}

impl Ticket {
    pub(crate) fn seq(&self) -> u64 {
        self.flight.seq
    }

    pub(crate) fn handled(&self, status: u16) {
        self.change(|entry| entry.handled = Some(status));
    }

    pub(crate) fn ended(&self, outcome: Outcome) {
        self.change(|entry| entry.outcome = Some(outcome));
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) {
        self.flight.journal.entry(self.flight.seq, change);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.journal.lock().in_flight.remove(&self.seq);
        self.journal.entry(self.seq, |entry| {
            entry.outcome.get_or_insert(Outcome::Abandoned);
        });
    }
}

/// The query of a request, decoded, secrets starred.
pub(crate) fn recorded_query<B>(request: &Request<B>) -> Vec<(String, String)> {
    url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
        .map(|(key, value)| {
            let value = if is_secret(&key) {
                STARS.to_owned()
            } else {
                value.into_owned()
            };
            (key.into_owned(), value)
        })
        .collect()
}

/// The body of a request as the journal keeps it.
pub(crate) fn recorded_body(content_type: &str, body: &[u8]) -> Option<Value> {
    if body.is_empty() {
        return None;
    }
    if content_type.starts_with("application/x-www-form-urlencoded") {
        let pairs = url::form_urlencoded::parse(body);
        let fields = pairs.map(|(key, value)| (key.into_owned(), Value::String(value.into_owned())));
        let mut form = Value::Object(fields.collect());
        star_secrets(&mut form);
        return Some(form);
    }
    let mut value = serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
    star_secrets(&mut value);
    Some(value)
}

fn star_secrets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    // OpenStack names the way to log in as it names the secret: who logs in is worth a look.
                    Value::Object(parts) if is_secret(key) => star_part(parts),
                    _ if is_secret(key) => *field = Value::String(STARS.to_owned()),
                    _ => star_secrets(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(star_secrets),
        _ => {}
    }
}

/// An object whose name is that of a secret: what it holds itself is secret, but not all that lies deeper.
fn star_part(parts: &mut Map<String, Value>) {
    for part in parts.values_mut() {
        match part {
            Value::Object(_) => star_secrets(part),
            _ => *part = Value::String(STARS.to_owned()),
        }
    }
}

fn is_secret(name: &str) -> bool {
    SECRET_FIELDS
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, path: &str, lanes: &[&str]) -> Call {
        Call {
            write: method != Method::GET,
            method,
            path: path.to_owned(),
            operation: path.to_owned(),
            query: Vec::new(),
            body: None,
            lanes: lanes.iter().map(|&lane| lane.to_owned()).collect(),
        }
    }

    #[test]
    fn writes_in_flight_on_one_lane_are_an_overlap() {
        let journal = Journal::default();
        let one = journal.arrive(Duration::ZERO, call(Method::POST, "/a", &["lb1"]));
        let two = journal.arrive(Duration::ZERO, call(Method::POST, "/b", &["lb2"]));
        assert!(journal.overlaps().is_empty());
        drop(two);
        let three = journal.arrive(Duration::ZERO, call(Method::POST, "/c", &["lb2", "lb1"]));
        assert_eq!(
            three.met,
            [Overlap {
                lane: "lb1".to_owned(),
                earlier: 0,
                later: 2
            }]
        );
        assert_eq!(journal.overlaps(), three.met);
        assert_eq!(journal.entries()[2].in_flight_with, [0]);
        assert_eq!(journal.most_in_flight(), 2);
        one.ended(Outcome::Answered(201));
        drop((one, three));
        assert_eq!(journal.entries()[0].status(), Some(201));
        assert_eq!(journal.entries()[2].outcome, Some(Outcome::Abandoned));
    }

    #[test]
    fn counting_goes_by_method_and_pattern() {
        let journal = Journal::default();
        drop(journal.arrive(Duration::ZERO, call(Method::GET, "/v1/pools/1/members", &[])));
        let mark = journal.mark();
        drop(journal.arrive(Duration::ZERO, call(Method::POST, "/v1/pools/1/members", &[])));
        assert_eq!(journal.count(Method::GET, "/v1/pools/*/members"), 1);
        assert_eq!(journal.count(Method::DELETE, "/v1/**"), 0);
        assert_eq!((journal.reads().len(), journal.writes().len()), (1, 1));
        assert_eq!(journal.since(mark).len(), 1);
    }

    #[test]
    fn oldest_entries_are_forgotten_beyond_the_limit() {
        let journal = Journal::default();
        journal.keep_at_most(2);
        let tickets: Vec<_> = (0..4)
            .map(|_| journal.arrive(Duration::ZERO, call(Method::GET, "/a", &[])))
            .collect();
        for ticket in &tickets {
            ticket.ended(Outcome::Answered(200 + u16::try_from(ticket.seq()).unwrap()));
        }
        let kept: Vec<_> = journal
            .entries()
            .iter()
            .map(|entry| (entry.seq, entry.status()))
            .collect();
        assert_eq!(kept, [(2, Some(202)), (3, Some(203))]);
        assert_eq!(journal.since(journal.mark()).len(), 0);
    }

    #[test]
    fn secrets_are_not_recorded() {
        let body = recorded_body("application/json", br#"{"name":"a","deep":[{"Password":"x"}]}"#);
        assert_eq!(
            body,
            Some(serde_json::json!({"name": "a", "deep": [{"Password": "***"}]}))
        );
        let form = recorded_body(
            "application/x-www-form-urlencoded",
            b"client_id=a&client_secret=b",
        );
        assert_eq!(
            form,
            Some(serde_json::json!({"client_id": "a", "client_secret": "***"}))
        );
        let request = Request::get("/client/api?command=listZones&apiKey=k&signature=s")
            .body(())
            .unwrap();
        let query = recorded_query(&request);
        assert_eq!(query[0], ("command".to_owned(), "listZones".to_owned()));
        assert!(query[1..].iter().all(|(_, value)| value == "***"));
    }
}
