//! What reached the cloud and the API server.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use bowline_cloud_kit::journal::{Entry, Mark};
use bowline_kube_api::Exchange;
use serde_json::Value;
use uuid::Uuid;

use super::{SECOND, World};
use crate::cloud::under_test::CloudUnderTest;

/// Two points in time, one in each journal.
#[derive(Clone, Copy, Debug)]
pub struct Since {
    cloud: Mark,
    kube: usize,
}

impl<C: CloudUnderTest> World<C> {
    /// Now, in both journals.
    #[must_use]
    pub fn since(&self) -> Since {
        Since {
            cloud: self.cloud.journal().mark(),
            kube: self.kube_len(),
        }
    }

    /// What the cloud was asked for, calls by the clock left aside.
    #[must_use]
    pub fn calls(&self, since: Since) -> Vec<Entry> {
        let mut calls = self.cloud.journal().since(since.cloud);
        calls.retain(|call| !C::is_by_the_clock(call));
        calls
    }

    /// The same with calls by the clock.
    #[must_use]
    pub fn all_calls(&self, since: Since) -> Vec<Entry> {
        self.cloud.journal().since(since.cloud)
    }

    /// What [`calls`](Self::calls) has in short, counted: `GET load-balancers/:id`.
    #[must_use]
    pub fn tally(&self, since: Since) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for call in self.calls(since) {
            *tally.entry(in_short(&call)).or_default() += 1;
        }
        tally
    }

    /// What was changed in the cloud, in short, in order.
    #[must_use]
    pub fn writes(&self, since: Since) -> Vec<String> {
        let calls = self.calls(since);
        calls.iter().filter(|call| call.write).map(in_short).collect()
    }

    /// The beginnings of the tries that were made to write: repeats within a try come quicker than the shortest step of the schedule.
    #[must_use]
    pub fn tries(&self, since: Since) -> Vec<Duration> {
        let (mut tries, mut last) = (Vec::new(), None);
        for call in self.calls(since).iter().filter(|call| call.write) {
            if last.is_none_or(|last| call.at.saturating_sub(last) >= SECOND * 4) {
                tries.push(call.at);
            }
            last = Some(call.at);
        }
        tries
    }

    /// Reads and writes.
    #[must_use]
    pub fn counts(&self, since: Since) -> (usize, usize) {
        let calls = self.calls(since);
        let writes = calls.iter().filter(|call| call.write).count();
        (calls.len() - writes, writes)
    }

    /// How many requests the API server has seen. Counted in place: a long history would take long to copy.
    fn kube_len(&self) -> usize {
        let count = Cell::new(0);
        self.api.journal().matching(|_| {
            count.set(count.get() + 1);
            false
        });
        count.get()
    }

    /// Every request to the API server but those for the lease and watches that are opened again.
    #[must_use]
    pub fn kube_requests(&self, since: Since) -> Vec<Exchange> {
        let index = Cell::new(0);
        self.api.journal().matching(|request| {
            index.set(index.get() + 1);
            index.get() > since.kube && request.resource != "leases" && request.verb != "watch"
        })
    }

    /// What was written to Kubernetes, the lease left aside: `patch services/status web`.
    #[must_use]
    pub fn kube_writes(&self, since: Since) -> Vec<String> {
        self.kube_requests(since)
            .iter()
            .filter(|request| request.is_write())
            .map(|request| {
                let resource = match request.subresource.as_str() {
                    "" => request.resource.clone(),
                    sub => format!("{}/{sub}", request.resource),
                };
                // The name of an event is made up; what it is about is said by the events themselves.
                match resource.as_str() {
                    "events" => format!("{} events", request.verb),
                    _ => format!("{} {resource} {}", request.verb, request.name),
                }
            })
            .collect()
    }

    /// What was to be written to Kubernetes and was refused: the server's answer behind what it was.
    #[must_use]
    pub fn refused_writes(&self, since: Since) -> Vec<String> {
        let refused = self.kube_requests(since);
        refused
            .iter()
            .filter(|request| request.is_write() && request.status >= 400)
            .map(|request| format!("{} {} {}", request.verb, request.path, request.status))
            .collect()
    }

    /// What was written to Kubernetes besides events.
    #[must_use]
    pub fn object_writes(&self, since: Since) -> Vec<String> {
        let mut writes = self.kube_writes(since);
        writes.retain(|write| !write.ends_with(" events"));
        writes
    }

    /// All events as `object reason: message`, oldest first, those of the lease left aside.
    ///
    /// # Panics
    ///
    /// Never: the server numbers what it stores.
    #[must_use]
    pub fn all_events(&self) -> Vec<String> {
        let mut events: Vec<(u64, String)> = self
            .api
            .objects("Event")
            .iter()
            .filter(|event| event["reason"] != "LeaderElection")
            .map(|event| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let version = text(&event["metadata"]["resourceVersion"]);
                let line = format!(
                    "{} {}: {}",
                    text(&event["involvedObject"]["name"]),
                    text(&event["reason"]),
                    text(&event["message"])
                );
                (version.parse().unwrap(), line)
            })
            .collect();
        events.sort();
        events.into_iter().map(|(_, line)| line).collect()
    }

    /// The events on one object as `reason: message`.
    #[must_use]
    pub fn events(&self, object: &str) -> Vec<String> {
        let prefix = format!("{object} ");
        self.all_events()
            .iter()
            .filter_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect()
    }

    /// The reasons of the events on one object.
    #[must_use]
    pub fn reasons(&self, object: &str) -> Vec<String> {
        self.events(object)
            .iter()
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect()
    }
}

/// A call without the names of things: `POST load-balancers/pools/:id/members`.
fn in_short(call: &Entry) -> String {
    if call.operation != call.path {
        return call.operation.clone();
    }
    let path: Vec<&str> = call
        .path
        .trim_matches('/')
        .split('/')
        .filter(|part| !is_version(part))
        .map(|part| match part {
            part if Uuid::parse_str(part).is_ok() => ":id",
            part if part.contains(['.', ':']) => ":address",
            part => part,
        })
        .collect();
    format!("{} {}", call.method, path.join("/"))
}

/// `v1`, `v2`, ...
fn is_version(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}
