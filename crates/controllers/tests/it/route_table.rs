//! A cloud's route table that fails on demand and keeps record of its calls.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, NodeName, Route, Routes};
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
            target_addresses: Vec::new(),
            compares_addresses,
            destination: destination.parse().unwrap(),
            is_blackhole,
        });
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

    async fn call<T>(&self, what: String, answer: impl FnOnce(&mut State) -> T) -> Result<T, CloudError> {
        let latency = {
            let mut state = self.lock();
            state.in_flight += 1;
            state.most_in_flight = state.most_in_flight.max(state.in_flight);
            state.calls.push(Call {
                at: Instant::now(),
                what: what.clone(),
            });
            state.latency
        };
        tokio::time::sleep(latency).await;
        let mut state = self.lock();
        state.in_flight -= 1;
        let failing = state.failing.iter().find(|(key, _)| what.contains(*key));
        match failing.map(|(_, error)| error.clone()) {
            Some(error) => Err(error),
            None => Ok(answer(&mut state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl Routes for RouteTable {
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        assert_eq!(cluster, "nimbus");
        self.call("list".to_owned(), |state| state.routes.clone()).boxed()
    }

    fn create_route<'a>(
        &'a self,
        cluster: &'a str,
        name_hint: &'a str,
        route: &'a Route,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        assert_eq!(cluster, "nimbus");
        assert_eq!(route.name, "");
        let target = route.target_node.as_ref().unwrap();
        let addresses: Vec<&str> = route
            .target_addresses
            .iter()
            .map(|a| a.address.as_str())
            .collect();
        let what = format!(
            "create {name_hint} {target} {} {}",
            route.destination,
            addresses.join(",")
        );
        self.call(what, move |state| {
            state.routes.push(Route {
                name: format!("r-{target}-{}", route.destination),
                compares_addresses: state.compares_addresses,
                ..route.clone()
            });
        })
        .boxed()
    }

    fn delete_route<'a>(
        &'a self,
        cluster: &'a str,
        route: &'a Route,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        assert_eq!(cluster, "nimbus");
        self.call(format!("delete {}", route.name), move |state| {
            state.routes.retain(|listed| listed != route);
        })
        .boxed()
    }

    fn calls_at_once(&self) -> usize {
        self.lock().at_once.unwrap_or(10)
    }
}
