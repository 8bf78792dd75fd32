//! Events: what a person should be told, written beside the objects that it is about.
//!
//! These are core/v1 Events, written and counted up by ourselves, because that is what the roles of the Go managers
//! allow. Recording never waits: events go into a bounded queue, and one writer sends them behind everything else.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, Service, ServiceKey};
use bowline_plan::NoteKind;
use http::Method;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::client::Kube;
use crate::clock::Clock;
use crate::error::KubeError;
use crate::exchange::{Call, JSON, MERGE, segment};
use crate::rank::Rank;

mod correlate;
mod wire;

use correlate::{Correlator, Entry};

/// Events that may wait for the writer, of some 300 bytes each. A thousand Nodes are initialised faster than their
/// events are written, and events of Services come on top.
const QUEUE: usize = 4096;

/// Tries per event when the API server cannot be reached, and the time between them, as the Go clients do.
const TRIES: u32 = 12;
const BETWEEN_TRIES: Duration = Duration::from_secs(10);

/// Events of one namespace that wait at most.
const MOST_WAITING: usize = 256;

/// Longer messages are cut: this is what the newer events API allows.
const LONGEST_MESSAGE: usize = 1024;

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The kind, such as `Node`.
    pub kind: &'static str,
    /// The API group and version, such as `v1`.
    pub api_version: &'static str,
    /// The namespace; empty for objects of the cluster, whose events are kept in `default`.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The UID; may be empty if it is not known.
    pub uid: Arc<str>,
}

impl ObjectRef {
    /// A lease.
    pub fn lease(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            kind: "Lease",
            api_version: "coordination.k8s.io/v1",
            namespace: Arc::from(namespace),
            name: Arc::from(name),
            uid: Arc::from(uid),
        }
    }
}

impl From<&Node> for ObjectRef {
    fn from(node: &Node) -> Self {
        Self {
            kind: "Node",
            api_version: "v1",
            namespace: Arc::from(""),
            name: Arc::from(node.name.as_str()),
            uid: Arc::clone(&node.uid),
        }
    }
}

impl From<&Service> for ObjectRef {
    fn from(service: &Service) -> Self {
        let ServiceKey { namespace, name } = ServiceKey::of(service);
        let uid = Arc::from(service.metadata.uid.as_deref().unwrap_or_default());
        Self {
            kind: "Service",
            api_version: "v1",
            namespace,
            name,
            uid,
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
struct Occurrence {
    component: &'static str,
    object: ObjectRef,
    kind: NoteKind,
    reason: &'static str,
    message: String,
    at: Timestamp,
    /// Who writes it, if not the sink's own client.
    writer: Option<Kube>,
}

/// Where events go in. Clones share the queue.
#[derive(Clone)]
pub struct EventSink {
    sender: mpsc::Sender<Occurrence>,
    /// Recorded and not yet written or given up.
    pending: Arc<watch::Sender<usize>>,
    clock: Arc<dyn Clock>,
}

impl EventSink {
    /// A queue and its writer. `host` names the computer in the events; may be empty.
    pub fn channel(kube: Kube, host: impl Into<String>) -> (Self, EventWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let pending = Arc::new(watch::Sender::new(0));
        let sink = Self {
            sender,
            pending: Arc::clone(&pending),
            clock: Arc::clone(kube.clock()),
        };
        let writer = EventWriter {
            kube,
            host: host.into(),
            process: None,
            receiver,
            pending,
            correlator: Correlator::default(),
        };
        (sink, writer)
    }

    /// The events of one part of the program, such as `service-controller`.
    pub fn recorder(&self, component: &'static str) -> Recorder {
        Recorder {
            sink: self.clone(),
            component,
            writer: None,
        }
    }

    /// Waits until everything recorded so far is written, but no longer than this; gives how many events are left.
    pub async fn drain(&self, deadline: Duration) -> usize {
        let mut pending = self.pending.subscribe();
        let drained = tokio::time::timeout(deadline, pending.wait_for(|pending| *pending == 0))
            .await
            .is_ok();
        if drained { 0 } else { *self.pending.borrow() }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink")
            .field("pending", &*self.pending.borrow())
            .finish_non_exhaustive()
    }
}

/// Records the events of one part of the program.
#[derive(Debug, Clone)]
pub struct Recorder {
    sink: EventSink,
    component: &'static str,
    writer: Option<Kube>,
}

impl Recorder {
    /// The same in the name of another part.
    pub fn named(self, component: &'static str) -> Self {
        Self { component, ..self }
    }

    /// The same, written by this client instead of the sink's own.
    pub fn written_by(self, kube: Kube) -> Self {
        Self {
            writer: Some(kube),
            ..self
        }
    }

    /// Logs an event and queues it for the API server. Never waits; when the queue is full the event is only logged.
    pub fn record(
        &self,
        object: &ObjectRef,
        kind: NoteKind,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let message = shortened(message.into(), LONGEST_MESSAGE);
        tracing::info!(
            controller = self.component,
            object = %object,
            fieldPath = "",
            kind = object.kind,
            apiVersion = object.api_version,
            "type" = type_name(kind),
            reason,
            note = message,
            "Event occurred"
        );
        let EventSink {
            sender,
            pending,
            clock,
        } = &self.sink;
        let at = clock.now();
        let occurrence = Occurrence {
            component: self.component,
            object: object.clone(),
            kind,
            reason,
            message,
            at,
            writer: self.writer.clone(),
        };
        pending.send_modify(|pending| *pending += 1);
        if sender.try_send(occurrence).is_err() {
            pending.send_modify(|pending| *pending = pending.saturating_sub(1));
            tracing::debug!(reason, "Event dropped, the queue is full or closed");
        }
    }
}

/// Writes the events of a sink.
pub struct EventWriter {
    kube: Kube,
    host: String,
    /// Which process it is, if that is told besides.
    process: Option<String>,
    receiver: mpsc::Receiver<Occurrence>,
    pending: Arc<watch::Sender<usize>>,
    correlator: Correlator,
}

impl EventWriter {
    /// The same, with the name that this process has in leases: `reportingInstance` of its events, by which those of two processes on one
    /// computer are told apart.
    pub fn of_process(mut self, holder: impl Into<String>) -> Self {
        self.process = Some(holder.into());
        self
    }

    /// Writes events, one after the other, until all sinks and recorders are gone and nothing is left. Where the API server asks to
    /// wait, the events of that namespace do, for it may be the bound of that namespace alone.
    ///
    /// # Cancellation
    ///
    /// Dropping it loses what is queued; use [`EventSink::drain`] before.
    pub async fn run(mut self) {
        let mut waiting: BTreeMap<Arc<str>, Waiting> = BTreeMap::new();
        let mut is_open = true;
        while is_open || !waiting.is_empty() {
            let due = waiting.values().map(|waiting| waiting.until).min();
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = due => self.go_on(&mut waiting).await,
                occurrence = self.receiver.recv(), if is_open => match occurrence {
                    Some(occurrence) => self.take(occurrence, &mut waiting).await,
                    None => is_open = false,
                },
            }
        }
    }

    /// Writes what was recorded, or puts it behind what waits in its namespace.
    async fn take(&mut self, occurrence: Occurrence, waiting: &mut BTreeMap<Arc<str>, Waiting>) {
        let Some(entry) = self.correlator.correlate(&occurrence) else {
            return self.done();
        };
        let namespace: Arc<str> = Arc::from(wire::namespace(&occurrence.object));
        if let Some(waiting) = waiting.get_mut(&namespace) {
            if waiting.events.len() < MOST_WAITING {
                return waiting.events.push_back((occurrence, entry));
            }
            tracing::debug!(
                reason = occurrence.reason,
                "Event dropped, too many of its namespace wait"
            );
            return self.done();
        }
        match self.write(&occurrence, entry).await {
            None => self.done(),
            Some((entry, after)) => {
                let until = Instant::now() + after;
                let (tries, events) = (1, VecDeque::from([(occurrence, entry)]));
                waiting.insert(namespace, Waiting { until, tries, events });
            }
        }
    }

    /// Writes the event that has waited, of the namespace whose time has come.
    async fn go_on(&mut self, waiting: &mut BTreeMap<Arc<str>, Waiting>) {
        let next = waiting.iter().min_by_key(|(_, waiting)| waiting.until);
        let Some((namespace, mut lane)) = next
            .map(|(namespace, _)| Arc::clone(namespace))
            .and_then(|namespace| waiting.remove_entry(&namespace))
        else {
            return;
        };
        if let Some((occurrence, entry)) = lane.events.pop_front() {
            let left = self.write(&occurrence, entry).await;
            lane.tries += 1;
            match left {
                Some((entry, after)) if lane.tries < TRIES => {
                    lane.until = Instant::now() + after;
                    lane.events.push_front((occurrence, entry));
                }
                left => {
                    if let Some((_, after)) = left {
                        gave_up(&occurrence);
                        lane.until = Instant::now() + after;
                    }
                    lane.tries = 0;
                    self.done();
                }
            }
        }
        if !lane.events.is_empty() {
            waiting.insert(namespace, lane);
        }
    }

    /// One event less is to be written.
    fn done(&self) {
        self.pending
            .send_modify(|pending| *pending = pending.saturating_sub(1));
    }

    /// Writes one event, unless it has to wait: then it is given back, with for how long.
    async fn write(&mut self, occurrence: &Occurrence, mut entry: Entry) -> Option<(Entry, Duration)> {
        for attempt in 1..=TRIES {
            let error = match self.send(occurrence, &entry).await {
                Ok(()) => return None,
                // It has outlived its time in the API server, or its creation was lost: begin again.
                Err(KubeError::NotFound(_)) if entry.is_repetition() => {
                    entry = self.correlator.renamed(entry, occurrence);
                    match self.send(occurrence, &entry).await {
                        Ok(()) => return None,
                        Err(error) => error,
                    }
                }
                // Created by an earlier try whose answer was lost.
                Err(KubeError::Conflict(_)) => return None,
                Err(error) => error,
            };
            tracing::debug!(attempt, err = %error, "Event could not be sent");
            match &error {
                KubeError::Transport(_) | KubeError::Timeout => {}
                KubeError::Throttled { after, .. } => return Some((entry, *after)),
                // That the lease is lost was told; what happened under it is in the log.
                KubeError::GateClosed => {
                    tracing::debug!(reason = occurrence.reason, object = %occurrence.object, "Event not sent, another process may lead");
                    return None;
                }
                refusal => {
                    tracing::warn!(reason = occurrence.reason, object = %occurrence.object, err = %refusal, "Event refused");
                    return None;
                }
            }
            if attempt < TRIES {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
        }
        gave_up(occurrence);
        None
    }

    async fn send(&self, occurrence: &Occurrence, entry: &Entry) -> Result<(), KubeError> {
        let namespace = wire::namespace(&occurrence.object);
        let folder = format!("/api/v1/namespaces/{}/events", segment(namespace));
        let call = if entry.is_repetition() {
            let path = format!("{folder}/{}", segment(&entry.name));
            Call::send(Method::PATCH, path, MERGE, &wire::repetition(entry))
        } else {
            Call::send(
                Method::POST,
                folder,
                JSON,
                &wire::event(occurrence, entry, &self.host, self.process.as_deref()),
            )
        };
        let kube = occurrence.writer.as_ref().unwrap_or(&self.kube);
        kube.exchange(call.ranked(Rank::Event)).await.map(drop)
    }
}

/// Events of one namespace that wait, because the API server refused the first of them for now.
struct Waiting {
    until: Instant,
    /// How often the first of them was tried.
    tries: u32,
    events: VecDeque<(Occurrence, Entry)>,
}

fn gave_up(occurrence: &Occurrence) {
    tracing::warn!(reason = occurrence.reason, object = %occurrence.object, "Event could not be written, gave up");
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // Nobody is to wait for what will never be written.
        self.pending.send_replace(0);
    }
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWriter")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

fn type_name(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Normal => "Normal",
        NoteKind::Warning => "Warning",
    }
}

/// A text of at most so many bytes. What is left out is in its middle: the cause stands at its beginning, and what to do at its end.
#[must_use]
pub fn shortened(mut text: String, longest: usize) -> String {
    const MARK: &str = "...";
    if text.len() > longest {
        let kept = longest.saturating_sub(MARK.len());
        let fits = |at: &usize| text.is_char_boundary(*at);
        let start = (0..=kept / 2).rev().find(fits).unwrap_or(0);
        let end = (text.len() - (kept - start)..).find(fits).unwrap_or(text.len());
        text.replace_range(start..end, MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_keep_cause_and_remedy() {
        let text = format!("quota reached: {}; raise it", "ü".repeat(1000));
        for longest in [100, 101, 1024] {
            let cut = shortened(text.clone(), longest);
            assert!((longest - 2..=longest).contains(&cut.len()), "{}", cut.len());
            assert!(
                cut.starts_with("quota reached: ü") && cut.ends_with("ü; raise it"),
                "{cut}"
            );
            assert!(cut.contains("ü...ü"), "{cut}");
        }
        assert_eq!(shortened("short".into(), 5), "short");
    }
}
