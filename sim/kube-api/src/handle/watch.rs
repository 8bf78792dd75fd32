//! Watches: a place in the history and a filter, read by whoever polls the body of the response. No task runs for
//! them, so none can be left behind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rand::RngExt;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use super::read::{check_not_ahead, number};
use super::{Answer, namespace_of};
use crate::core::Core;
use crate::field::FieldError;
use crate::kind::Kind;
use crate::request::{Form, Request};
use crate::selector::Selector;
use crate::status::Status;
use crate::store::{Change, Cursor};
use crate::table::Include;
use crate::{meta, table};

/// Without `timeoutSeconds` a watch lasts one to two times this long (`--min-request-timeout`).
const MIN_TIMEOUT: Duration = Duration::from_secs(1800);

/// How often a watch that wants bookmarks gets one.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One running watch.
pub(crate) struct Watch {
    core: Arc<Core>,
    kind: &'static Kind,
    namespace: String,
    selector: Selector,
    form: Form,
    include: Include,
    cursor: Cursor,
    committed: Receiver<u64>,
    closed: Receiver<u64>,
    silenced: Receiver<u64>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    /// Whether a table with column names has been sent.
    headed: bool,
    pending: VecDeque<Bytes>,
    ended: bool,
    /// Whether nothing is shown any more, not even the end.
    is_silent: bool,
}

pub(super) fn answer(core: &Arc<Core>, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let selector = Selector::of(kind, request)?;
    let form = request.form()?;
    check_options(request)?;
    let bookmarks = request.flag("allowWatchBookmarks");
    let send_initial = request.query("sendInitialEvents");
    let from = request.query("resourceVersion");
    let timeout: u64 = number(request.query("timeoutSeconds"), "timeoutSeconds")?;

    let mut state = core.lock();
    let timeout = match timeout {
        0 => MIN_TIMEOUT.mul_f64(1.0 + state.random.random::<f64>()),
        seconds => Duration::from_secs(seconds),
    };
    let current = state.store.revision();
    let asked: u64 = number(from, "resourceVersion")?;
    let with_initial = match send_initial {
        "" => asked == 0,
        _ => request.flag("sendInitialEvents"),
    };
    if with_initial {
        check_not_ahead(&state.store, from)?;
    }
    let expired = !with_initial && asked > 0 && asked < state.store.compacted();
    let start = if with_initial || asked == 0 || expired {
        current
    } else {
        asked
    };
    let now = Instant::now();
    let mut watch = Watch {
        core: Arc::clone(core),
        kind,
        namespace: namespace_of(kind, request).to_owned(),
        selector,
        form,
        include: request.include(),
        cursor: state.store.cursor(start),
        committed: state.store.subscribe(),
        closed: core.closed.subscribe(),
        silenced: core.silenced.subscribe(),
        deadline: now + timeout,
        next_bookmark: if bookmarks {
            bookmark_after(now, now + timeout)
        } else {
            None
        },
        headed: false,
        pending: VecDeque::new(),
        ended: false,
        is_silent: false,
    };
    if expired {
        watch.fail(&Status::expired(format!(
            "too old resource version: {asked} ({})",
            state.store.compacted()
        )));
    } else if with_initial {
        let objects: Vec<Arc<Value>> = state
            .store
            .all(kind)
            .map(|(_, object)| Arc::clone(object))
            .collect();
        for object in objects {
            if watch.wants(&object) {
                watch.push("ADDED", &object);
            }
        }
        if !send_initial.is_empty() && bookmarks {
            watch.bookmark(true);
        }
    }
    drop(state);
    Ok(Answer::Watch(Box::new(watch)))
}

impl Watch {
    /// The next line of the body; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_silent {
                return std::future::pending().await;
            }
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            // Marked as seen before reading, so that a commit in between wakes the wait below.
            self.committed.mark_unchanged();
            self.read();
            if !self.pending.is_empty() || self.ended {
                continue;
            }
            let wake = self
                .next_bookmark
                .map_or(self.deadline, |next| next.min(self.deadline));
            tokio::select! {
                biased;
                _ = self.silenced.changed() => self.fall_silent(),
                _ = self.closed.changed() => {
                    // What was committed before is still delivered.
                    self.read();
                    self.ended = true;
                }
                _ = self.committed.changed() => {}
                () = sleep_until(wake) => {
                    if Instant::now() >= self.deadline {
                        self.ended = true;
                    } else {
                        self.bookmark(false);
                    }
                }
            }
        }
    }

    /// Shows nothing any more, and does not end either: what a client sees of a server that has died without a word.
    pub(crate) fn fall_silent(&mut self) {
        self.is_silent = true;
    }

    fn read(&mut self) {
        let core = Arc::clone(&self.core);
        let state = core.lock();
        let Some(changes) = state.store.changes_after(&self.cursor) else {
            let seen = self.cursor.revision();
            self.fail(&Status::expired(format!(
                "too old resource version: {seen} ({})",
                state.store.compacted()
            )));
            return;
        };
        let changes: Vec<Arc<Change>> = changes.cloned().collect();
        for change in changes {
            self.cursor.advance(change.revision);
            if change.kind == self.kind {
                self.translate(&change);
            }
        }
    }

    /// What a change means to somebody who sees only what the selector matches.
    fn translate(&mut self, change: &Change) {
        let was = change.before.as_ref().is_some_and(|before| self.wants(before));
        let is = !change.deletion && self.wants(&change.object);
        match (was, is) {
            (false, true) => self.push("ADDED", &change.object),
            (true, true) => self.push("MODIFIED", &change.object),
            (true, false) if change.deletion => self.push("DELETED", &change.object),
            (true, false) => {
                // The object as it was last seen, under the revision at which it went out of sight.
                let mut last = change.before.as_deref().cloned().unwrap_or_default();
                crate::path::set(&mut last, "metadata.resourceVersion", change.revision.to_string());
                self.push("DELETED", &last);
            }
            (false, false) => {}
        }
    }

    fn wants(&self, object: &Value) -> bool {
        let here =
            self.namespace.is_empty() || crate::path::text(object, "metadata.namespace") == self.namespace;
        here && self.selector.matches(self.kind, object)
    }

    fn push(&mut self, event: &str, object: &Value) {
        let shaped = match self.form {
            Form::Plain => object.clone(),
            Form::Partial => meta::partial(object),
            Form::Table => {
                let version = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let headed = !std::mem::replace(&mut self.headed, true);
                table::table(
                    self.kind,
                    &[object],
                    version,
                    self.include,
                    headed,
                    self.core.now(),
                )
            }
        };
        self.line(&json!({"type": event, "object": shaped}));
    }

    fn bookmark(&mut self, initial: bool) {
        let mut metadata = json!({"resourceVersion": self.cursor.revision().to_string()});
        if initial {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = match self.form {
            Form::Plain => {
                let api_version = self.kind.api_version();
                let mut object =
                    json!({"kind": self.kind.kind, "apiVersion": api_version, "metadata": metadata});
                self.kind.strategy().finish(&mut object);
                object
            }
            Form::Partial => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => table::table(self.kind, &[], metadata, self.include, false, self.core.now()),
        };
        self.line(&json!({"type": "BOOKMARK", "object": object}));
        if !initial {
            self.next_bookmark = bookmark_after(Instant::now(), self.deadline);
        }
    }

    fn fail(&mut self, status: &Status) {
        self.line(&json!({"type": "ERROR", "object": status.to_value()}));
        self.ended = true;
    }

    fn line(&mut self, event: &Value) {
        self.pending.push_back(Bytes::from(format!("{event}\n")));
    }
}

fn bookmark_after(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARK_PERIOD))
}

fn check_options(request: &Request) -> Result<(), Status> {
    const FIELD: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    let (matching, initial) = (request.query(FIELD), request.query("sendInitialEvents"));
    if !initial.is_empty() && matching != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(FIELD, detail));
    }
    if !matching.is_empty() {
        if initial.is_empty() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(FIELD, detail));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(FIELD, matching, &["NotOlderThan"]));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors))
    }
}
