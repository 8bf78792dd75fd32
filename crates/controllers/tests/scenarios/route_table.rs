//! A cloud's route table that fails on demand and keeps record of its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, NodeName, Route, RouteChange, Routes};
use futures::future::{BoxFuture, FutureExt as _};
use tokio::time::Instant;

/// The route table. Clones share it.
#[derive(Clone, Default)]
pub(super) struct RouteTable(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) routes: Vec<Route>,
    pub(super) calls: Vec<Call>,
    /// What fails: each call whose text holds the key.
    pub(super) failing: BTreeMap<String, CloudError>,
    /// How long the cloud takes to answer.
    pub(super) latency: Duration,
    /// The cloud says of each route that its addresses count.
    pub(super) compares_addresses: bool,
    in_flight: usize,
    pub(super) most_in_flight: usize,
    /// How many calls the cloud takes at a time.
    pub(super) at_once: Option<usize>,
    /// How many changes one call may bring.
    pub(super) per_call: Option<usize>,
    /// How many changes each call brought.
    pub(super) batches: Vec<usize>,
}

/// One call: when it began, and what was asked: `list`, `create hint node destination addresses`, `delete name`.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) at: Instant,
    pub(super) what: String,
}

impl Call {
    /// `list`, `create NODE` or `delete NAME`.
    pub(super) fn short(&self) -> String {
        let words: Vec<&str> = self.what.split(' ').collect();
        match words[..] {
            ["create", _, node, ..] => format!("create {node}"),
            _ => self.what.clone(),
        }
    }
}

impl RouteTable {
    /// A route that somebody else made: to a Node, to an address, or to nobody (`-`).
    pub(super) fn put(&self, target: &str, destination: &str, is_blackhole: bool) -> Result<(), String> {
        let mut state = self.lock();
        let next_hop = target.parse().ok();
        let target = Some(target).filter(|it| *it != "-" && next_hop.is_none());
        let route = Route {
            name: format!("r-{}-{destination}", target.unwrap_or_default()),
            target_node: target.map(NodeName::new),
            target_provider_id: None,
            next_hop,
            target_addresses: Vec::new(),
            compares_addresses: state.compares_addresses,
            destination: destination
                .parse()
                .map_err(|_| format!("{destination}: no network"))?,
            is_blackhole,
            is_incomplete: false,
        };
        state.routes.push(route);
        Ok(())
    }

    /// `node destination` of each route, in order of making.
    pub(super) fn routes(&self) -> Vec<String> {
        let target = |route: &Route| route.target_node.as_ref().map(ToString::to_string);
        let state = self.lock();
        let routes = state.routes.iter();
        routes
            .map(|route| {
                format!(
                    "{} {}",
                    target(route).unwrap_or("-".to_owned()),
                    route.destination
                )
            })
            .collect()
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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
