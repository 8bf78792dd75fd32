//! A cloud's route table that fails on demand and keeps record of its calls.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, NodeName, Route, RouteChange, Routes};
use futures::future::{BoxFuture, FutureExt as _};
use tokio::time::Instant;

/// The route table. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct RouteTable(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    routes: Vec<Route>,
    calls: Vec<Call>,
    /// What fails: the list (""), or each write whose text holds the key.
    failing: BTreeMap<String, CloudError>,
    latency: Duration,
    compares_addresses: bool,
    in_flight: usize,
    most_in_flight: usize,
    at_once: Option<usize>,
    per_call: Option<usize>,
    /// How many changes each call brought.
    batches: Vec<usize>,
}

/// One call: when it began, and what was asked: `list`, `create hint node destination addresses`, `delete name`.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) what: String,
}

impl RouteTable {
    /// A route that somebody else made. An empty target is none.
    pub(crate) fn put(&self, target: &str, destination: &str, is_blackhole: bool) {
        let compares_addresses = self.lock().compares_addresses;
        self.lock().routes.push(Route {
            name: format!("r-{target}-{destination}"),
            target_node: (!target.is_empty()).then(|| NodeName::new(target)),
            target_provider_id: None,
            next_hop: None,
            target_addresses: Vec::new(),
            compares_addresses,
            destination: destination.parse().unwrap(),
            is_blackhole,
            is_incomplete: false,
        });
    }

    /// A route that is known by the address that it leads to.
    pub(crate) fn put_via(&self, address: &str, destination: &str) {
        self.put("", destination, false);
        if let Some(route) = self.lock().routes.last_mut() {
            route.next_hop = Some(address.parse().unwrap());
        }
    }

    /// Somebody else deletes a route.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().routes.retain(|route| route.name != name);
    }

    /// `node destination` of each route, in order of making.
    pub(crate) fn routes(&self) -> Vec<String> {
        let target = |route: &Route| route.target_node.as_ref().map(ToString::to_string);
        let state = self.lock();
        let routes = state.routes.iter();
        routes
            .map(|route| format!("{} {}", target(route).unwrap_or_default(), route.destination))
            .collect()
    }

    /// The calls whose text begins with this.
    pub(crate) fn calls(&self, begin: &str) -> Vec<Call> {
        let state = self.lock();
        let calls = state.calls.iter().filter(|call| call.what.starts_with(begin));
        calls.cloned().collect()
    }

    pub(crate) fn lists(&self) -> usize {
        self.calls("list").len()
    }

    /// The texts of all writes so far.
    pub(crate) fn writes(&self) -> Vec<String> {
        let state = self.lock();
        let writes = state.calls.iter().filter(|call| call.what != "list");
        writes.map(|call| call.what.clone()).collect()
    }

    /// Calls whose text holds this fail, or do no more.
    pub(crate) fn fail(&self, holding: &str, error: Option<CloudError>) {
        let mut state = self.lock();
        match error {
            Some(error) => drop(state.failing.insert(holding.to_owned(), error)),
            None => drop(state.failing.remove(holding)),
        }
    }

    pub(crate) fn latency(&self, latency: Duration) {
        self.lock().latency = latency;
    }

    /// The cloud says of each route that its addresses count.
    pub(crate) fn compare_addresses(&self) {
        self.lock().compares_addresses = true;
    }

    pub(crate) fn most_in_flight(&self) -> usize {
        self.lock().most_in_flight
    }

    pub(crate) fn allow_at_once(&self, calls: usize) {
        self.lock().at_once = Some(calls);
    }

    /// One call may bring this many changes.
    pub(crate) fn allow_per_call(&self, changes: usize) {
        self.lock().per_call = Some(changes);
    }

    /// How many changes each call brought.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.lock().batches.clone()
    }

    /// One call that asks for all of this; a part of it may fail.
    async fn call(&self, asked: Vec<String>) -> Vec<Result<(), CloudError>> {
        let latency = {
            let mut state = self.lock();
            state.in_flight += 1;
            state.most_in_flight = state.most_in_flight.max(state.in_flight);
            let at = Instant::now();
            let calls = asked.iter().map(|what| Call {
                at,
                what: what.clone(),
            });
            state.calls.extend(calls);
            state.latency
        };
        tokio::time::sleep(latency).await;
        let mut state = self.lock();
        state.in_flight -= 1;
        let failure = |what: &String| state.failing.iter().find(|(key, _)| what.contains(*key));
        let answer = |what| failure(what).map_or(Ok(()), |(_, error)| Err(error.clone()));
        asked.iter().map(answer).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn change(&mut self, change: &RouteChange) {
        match change {
            RouteChange::Create { route, .. } => {
                let target = route.target_node.as_ref().unwrap();
                self.routes.push(Route {
                    name: format!("r-{target}-{}", route.destination),
                    compares_addresses: self.compares_addresses,
                    ..route.clone()
                });
            }
            RouteChange::Delete(route) => self.routes.retain(|listed| listed.name != route.name),
        }
    }
}

/// What a change asks for, as a text.
fn asked(change: &RouteChange) -> String {
    match change {
        RouteChange::Create { name_hint, route } => {
            assert_eq!((route.name.as_str(), route.next_hop), ("", None));
            let target = route.target_node.as_ref().unwrap();
            let addresses = route.target_addresses.iter();
            let addresses: Vec<&str> = addresses.map(|it| it.address.as_str()).collect();
            let addresses = addresses.join(",");
            format!("create {name_hint} {target} {} {addresses}", route.destination)
        }
        RouteChange::Delete(route) => format!("delete {}", route.name),
    }
}

impl Routes for RouteTable {
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        assert_eq!(cluster, "nimbus");
        async {
            let answers = self.call(vec!["list".to_owned()]).await;
            answers.into_iter().collect::<Result<Vec<()>, CloudError>>()?;
            Ok(self.lock().routes.clone())
        }
        .boxed()
    }

    fn change_routes<'a>(
        &'a self,
        cluster: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        assert_eq!(cluster, "nimbus");
        async move {
            self.lock().batches.push(changes.len());
            let answers = self.call(changes.iter().map(asked).collect()).await;
            let mut state = self.lock();
            for (change, answer) in changes.iter().zip(&answers) {
                if answer.is_ok() {
                    state.change(change);
                }
            }
            answers
        }
        .boxed()
    }

    fn calls_at_once(&self) -> usize {
        self.lock().at_once.unwrap_or(10)
    }

    fn changes_per_call(&self) -> usize {
        self.lock().per_call.unwrap_or(1)
    }
}
