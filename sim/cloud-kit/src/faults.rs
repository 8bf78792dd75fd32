//! Faults on demand: which request goes wrong, and how.
//!
//! A [`Fault`] says which requests it watches, at which of them it strikes, and what happens then. The rules are tried
//! in the order in which they were added; delays add up, and the first other action wins. Every rule counts all requests
//! it watches, whether or not another rule struck first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::millis;
use crate::pattern::PathPattern;

mod action;

pub use action::{Action, Canned};

/// Names one rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FaultId(u64);

/// One rule.
///
/// Made by naming the requests it watches, then the moment, then the action:
///
/// ```
/// use bowline_cloud_kit::Fault;
/// use http::Method;
///
/// let lost = Fault::write().nth(3).lose_answer();
/// let sick = Fault::on(Method::GET, "/v1/servers/*").always().status(503);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Only this method; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Only paths that fit; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
    /// Only this operation, for APIs that name them elsewhere than in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Only requests that change something.
    #[serde(default)]
    pub writes_only: bool,
    /// The first of the watched requests that it strikes, counted from 1 since it was added.
    #[serde(default = "one")]
    pub nth: u64,
    /// How many requests in a row it strikes; for ever if `null`.
    #[serde(default = "once")]
    pub times: Option<u64>,
    /// What happens.
    pub action: Action,
}

fn one() -> u64 {
    1
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn once() -> Option<u64> {
    Some(1)
}

impl Fault {
    /// Watches every request.
    pub fn any() -> FaultBuilder {
        FaultBuilder(Self {
            method: None,
            path: None,
            operation: None,
            writes_only: false,
            nth: 1,
            times: Some(1),
            action: Action::DropBefore,
        })
    }

    /// Watches requests with this method and a path that fits.
    pub fn on(method: Method, path: impl Into<PathPattern>) -> FaultBuilder {
        let mut watch = Self::path(path);
        watch.0.method = Some(method.as_str().to_owned());
        watch
    }

    /// Watches requests with a path that fits.
    pub fn path(path: impl Into<PathPattern>) -> FaultBuilder {
        let mut watch = Self::any();
        watch.0.path = Some(path.into());
        watch
    }

    /// Watches requests that change something.
    pub fn write() -> FaultBuilder {
        let mut watch = Self::any();
        watch.0.writes_only = true;
        watch
    }

    /// Watches requests for one operation.
    pub fn operation(name: &str) -> FaultBuilder {
        let mut watch = Self::any();
        watch.0.operation = Some(name.to_owned());
        watch
    }

    fn watches(&self, seen: &Seen<'_>) -> bool {
        let (method, operation) = (self.method.as_ref(), self.operation.as_ref());
        (!self.writes_only || seen.write)
            && method.is_none_or(|method| method.eq_ignore_ascii_case(seen.method.as_str()))
            && self.path.as_ref().is_none_or(|path| path.matches(seen.path))
            && operation.is_none_or(|operation| operation == seen.operation)
    }

    fn strikes(&self, count: u64) -> bool {
        count >= self.nth && self.times.is_none_or(|times| count - self.nth < times)
    }
}

/// A [`Fault`] that still needs its action. Strikes once, at the first watched request, unless told otherwise.
#[derive(Clone, Debug)]
pub struct FaultBuilder(Fault);

impl FaultBuilder {
    /// Strikes first at the `nth` watched request, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        self.0.nth = nth.max(1);
        self
    }

    /// Strikes this many requests in a row.
    pub fn times(mut self, times: u64) -> Self {
        self.0.times = Some(times);
        self
    }

    /// Strikes until it is removed.
    pub fn always(mut self) -> Self {
        self.0.times = None;
        self
    }

    /// Does `action`.
    pub fn act(mut self, action: Action) -> Fault {
        self.0.action = action;
        self.0
    }

    /// Answers this status with a small JSON body instead of carrying the request out.
    pub fn status(self, status: u16) -> Fault {
        self.answer(injected(status))
    }

    /// Answers `canned` instead of carrying the request out.
    pub fn answer(self, canned: Canned) -> Fault {
        self.act(Action::Answer(canned))
    }

    /// Answers 429 with `Retry-After` in whole seconds.
    pub fn too_many_requests(self, retry_after: Duration) -> Fault {
        let canned = Canned::json(429, r#"{"detail":"request was throttled"}"#);
        self.answer(canned.header("retry-after", &retry_after.as_secs().to_string()))
    }

    /// Answers a page of HTML, as a proxy in front of an API does.
    pub fn html(self, status: u16) -> Fault {
        let page = "<html><body><h1>injected fault</h1></body></html>";
        self.answer(Canned::html(status, page))
    }

    /// Answers without a body.
    pub fn empty(self, status: u16) -> Fault {
        self.answer(Canned::empty(status))
    }

    /// Carries the request out, then answers this status all the same.
    pub fn status_after(self, status: u16) -> Fault {
        self.act(Action::AnswerAfter(injected(status)))
    }

    /// Carries the request out, then answers only the first bytes of the body, as a complete answer.
    pub fn truncate(self, bytes: usize) -> Fault {
        self.act(Action::Truncate { bytes })
    }

    /// Carries the request out, then breaks the connection within the body.
    pub fn break_body(self, bytes: usize) -> Fault {
        self.act(Action::BreakBody { bytes })
    }

    /// Carries the request out only after `delay`.
    pub fn delay(self, delay: Duration) -> Fault {
        self.act(Action::Delay { delay_ms: delay })
    }

    /// Drops the connection; the request is not carried out.
    pub fn drop_before(self) -> Fault {
        self.act(Action::DropBefore)
    }

    /// Carries the request out, then drops the connection: the lost answer.
    pub fn lose_answer(self) -> Fault {
        self.act(Action::DropAfter)
    }

    /// Drops the connection at once and carries the request out after `delay`: the answer is lost, and the effect comes later.
    pub fn take_effect_late(self, delay: Duration) -> Fault {
        self.act(Action::DropThen { delay_ms: delay })
    }

    /// Never answers; the request is not carried out.
    pub fn hang_before(self) -> Fault {
        self.act(Action::HangBefore)
    }

    /// Carries the request out and never answers.
    pub fn hang_after(self) -> Fault {
        self.act(Action::HangAfter)
    }
}

fn injected(status: u16) -> Canned {
    Canned::json(status, r#"{"detail":"injected fault"}"#)
}

/// The set of rules. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    id: FaultId,
    fault: Fault,
    seen: u64,
    struck: u64,
}

/// How often a rule was used.
#[derive(Clone, Debug, Serialize)]
pub struct FaultState {
    /// The rule's id.
    pub id: FaultId,
    /// The rule.
    pub fault: Fault,
    /// Requests it watched.
    pub seen: u64,
    /// Requests it struck.
    pub struck: u64,
}

impl Faults {
    /// Adds a rule behind those that exist.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut inner = self.lock();
        inner.next += 1;
        let id = FaultId(inner.next);
        inner.rules.push(Rule {
            id,
            fault,
            seen: 0,
            struck: 0,
        });
        id
    }

    /// Removes one rule; whether there was one.
    pub fn remove(&self, id: FaultId) -> bool {
        let mut inner = self.lock();
        let before = inner.rules.len();
        inner.rules.retain(|rule| rule.id != id);
        inner.rules.len() < before
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// How many requests a rule struck; 0 if there is no such rule.
    pub fn struck(&self, id: FaultId) -> u64 {
        self.lock()
            .rules
            .iter()
            .find(|rule| rule.id == id)
            .map_or(0, |rule| rule.struck)
    }

    /// All rules and how often they were used.
    pub fn list(&self) -> Vec<FaultState> {
        let inner = self.lock();
        let state = |rule: &Rule| FaultState {
            id: rule.id,
            fault: rule.fault.clone(),
            seen: rule.seen,
            struck: rule.struck,
        };
        inner.rules.iter().map(state).collect()
    }

    pub(crate) fn decide(&self, seen: &Seen<'_>) -> Verdict {
        let mut verdict = Verdict {
            delay: Duration::ZERO,
            action: None,
        };
        for rule in &mut self.lock().rules {
            if !rule.fault.watches(seen) {
                continue;
            }
            rule.seen += 1;
            if !rule.fault.strikes(rule.seen) {
                continue;
            }
            match &rule.fault.action {
                Action::Delay { delay_ms } => verdict.delay += *delay_ms,
                action if verdict.action.is_none() => verdict.action = Some(action.clone()),
                _ => continue,
            }
            rule.struck += 1;
        }
        verdict
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a rule can look at.
pub(crate) struct Seen<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) write: bool,
}

/// What the rules make of one request.
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) action: Option<Action>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strikes(faults: &Faults, method: &Method, path: &str) -> bool {
        let write = *method != Method::GET;
        faults
            .decide(&Seen {
                method,
                path,
                operation: path,
                write,
            })
            .action
            .is_some()
    }

    #[test]
    fn kth_write_is_struck_once() {
        let faults = Faults::default();
        let id = faults.add(Fault::write().nth(2).drop_before());
        let hits: Vec<_> = [Method::POST, Method::GET, Method::PATCH, Method::DELETE]
            .iter()
            .map(|method| strikes(&faults, method, "/x"))
            .collect();
        assert_eq!(hits, [false, false, true, false]);
        assert_eq!(faults.struck(id), 1);
        assert_eq!(faults.list()[0].seen, 3);
    }

    #[test]
    fn persistent_rule_strikes_until_removed() {
        let faults = Faults::default();
        let id = faults.add(Fault::on(Method::GET, "/v1/*").always().status(503));
        assert!((0..3).all(|_| strikes(&faults, &Method::GET, "/v1/servers")));
        assert!(!strikes(&faults, &Method::POST, "/v1/servers"));
        assert!(faults.remove(id));
        assert!(!strikes(&faults, &Method::GET, "/v1/servers"));
    }

    #[test]
    fn rule_reads_from_json() {
        let json = r#"{"method":"POST","path":"/v1/**","nth":2,"times":null,
                       "action":{"kind":"answer","status":429,"headers":[["retry-after","7"]]}}"#;
        let fault: Fault = serde_json::from_str(json).unwrap();
        assert_eq!((fault.nth, fault.times), (2, None));
        let expected = Canned::empty(429).header("retry-after", "7");
        assert_eq!(fault.action, Action::Answer(expected));
        let written = serde_json::to_string(&fault).unwrap();
        assert_eq!(serde_json::from_str::<Fault>(&written).unwrap(), fault);
    }
}
