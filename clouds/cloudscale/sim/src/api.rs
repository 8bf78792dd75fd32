//! The HTTP API: authentication, routing, and what is common to all writes.

use std::hash::Hash;
use std::sync::{Arc, MutexGuard};

use bowline_cloud_kit::clock::{later, pending};
use bowline_cloud_kit::service::{base_url, bearer, json, no_content};
use bowline_cloud_kit::{Arrival, Cloud, Reply, Shared, admin};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use indexmap::IndexMap;
use serde_json::Value;
use uuid::Uuid;

use crate::behaviour::OverlapMode;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::{Tags, Target};
use crate::options::Access;
use crate::state::State;
use crate::wire::Wire;

mod floating_ips;
mod health_monitors;
mod listeners;
mod load_balancers;
mod members;
mod networks;
mod pools;
mod servers;

pub(crate) use floating_ips::FloatingIpSpec;

/// What one request gets.
type Answer = Result<Reply, ApiError>;

/// The API over a shared state.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) shared: Shared<State>,
}

impl Api {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.read()
    }

    async fn answer(self, request: Request<Bytes>, arrival: Arrival) -> Reply {
        match self.try_answer(&request, &arrival).await {
            Ok(reply) => reply,
            Err(error) => error.reply(),
        }
    }

    async fn try_answer(&self, request: &Request<Bytes>, arrival: &Arrival) -> Answer {
        let write = self.is_write(request);
        let access = self.admit(request, write)?;
        let (overlap, write_time) = {
            let state = self.lock();
            (state.behaviour.overlap, state.behaviour.lb_write_time)
        };
        let balanced = write && !arrival.lanes.is_empty();
        let mut held = Vec::new();
        if balanced {
            match overlap {
                OverlapMode::ApplyAtOnce => {}
                OverlapMode::Refuse(status) if !arrival.overlaps.is_empty() => {
                    return Err(ApiError::busy(
                        status,
                        "The load balancer is being changed by another request.",
                    ));
                }
                OverlapMode::Refuse(_) => {}
                OverlapMode::Hold => {
                    // Lanes are sorted, so two requests cannot wait for each other.
                    for lane in &arrival.lanes {
                        let lock = Arc::clone(self.lock().lane_locks.entry(lane.clone()).or_default());
                        held.push(lock.lock_owned().await);
                    }
                }
            }
            if !write_time.is_zero() {
                tokio::time::sleep(write_time).await;
            }
        }
        let mut state = self.lock();
        if balanced {
            refuse_while_changing(&state, &arrival.lanes)?;
        }
        let result = route(&mut state, request, access);
        drop(state);
        if write {
            self.shared.ring();
        }
        result
    }

    fn admit(&self, request: &Request<Bytes>, write: bool) -> Result<Access, ApiError> {
        let state = self.lock();
        if state.behaviour.maintenance {
            return Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "detail",
                "Maintenance is under way.",
            ));
        }
        match state.options.tokens.access(bearer(request).unwrap_or_default()) {
            None => Err(ApiError::bad_token()),
            Some(Access::ReadOnly) if write => Err(ApiError::read_only()),
            Some(access) => Ok(access),
        }
    }
}

impl Cloud for Api {
    fn lanes(&self, request: &Request<Bytes>) -> Vec<String> {
        let state = self.lock();
        let mut lanes: Vec<String> = lanes(&state, request).iter().map(Uuid::to_string).collect();
        lanes.sort();
        lanes.dedup();
        lanes
    }

    fn handle(&self, request: Request<Bytes>, arrival: Arrival) -> BoxFuture<'static, Reply> {
        Box::pin(self.clone().answer(request, arrival))
    }

    fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
        admin::paths(&self.shared, method, path, body, |_, _| Ok(None))
    }
}

fn refuse_while_changing(state: &State, lanes: &[String]) -> Result<(), ApiError> {
    let Some(status) = state.behaviour.refuse_writes_while_changing else {
        return Ok(());
    };
    let changing = state
        .load_balancers
        .values()
        .any(|balancer| state.is_changing(balancer) && lanes.contains(&balancer.uuid.to_string()));
    if changing {
        Err(ApiError::busy(status, "The load balancer is changing."))
    } else {
        Ok(())
    }
}

/// The load balancers that a write changes.
fn lanes(state: &State, request: &Request<Bytes>) -> Vec<Uuid> {
    let body: Value = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
    let named = |field: &str| body[field].as_str().and_then(|text| Uuid::parse_str(text).ok());
    let of_pool = |pool: Option<Uuid>| pool.and_then(|pool| state.balancer_of_pool(pool));
    let segments = segments(request.uri().path());
    let id = |text: &str| Uuid::parse_str(text).ok();
    let balancers: Vec<Option<Uuid>> = match segments.as_slice() {
        ["load-balancers", "pools"] => vec![named("load_balancer")],
        ["load-balancers", "pools", pool, ..] => vec![of_pool(id(pool))],
        ["load-balancers", "listeners"] | ["load-balancers", "health-monitors"] => {
            vec![of_pool(named("pool"))]
        }
        ["load-balancers", "listeners", listener] => {
            vec![
                id(listener)
                    .and_then(|id| state.listeners.get(&id))
                    .map(|listener| listener.load_balancer),
            ]
        }
        ["load-balancers", "health-monitors", monitor] => {
            vec![of_pool(
                id(monitor)
                    .and_then(|id| state.monitors.get(&id))
                    .map(|monitor| monitor.pool),
            )]
        }
        ["load-balancers", balancer] => vec![id(balancer)],
        ["floating-ips", rest @ ..] => {
            let floating = rest.first().and_then(|ip| ip.parse::<std::net::IpAddr>().ok());
            let floating = floating.and_then(|ip| state.floating_ips.get(&ip));
            let before = floating.and_then(|floating| match floating.target {
                Some(Target::LoadBalancer(uuid)) => Some(uuid),
                _ => None,
            });
            vec![before, named("load_balancer")]
        }
        _ => Vec::new(),
    };
    balancers
        .into_iter()
        .flatten()
        .filter(|uuid| state.load_balancers.contains_key(uuid))
        .collect()
}

fn segments(path: &str) -> Vec<&str> {
    let rest = path.strip_prefix("/v1/").unwrap_or_default();
    rest.split('/').filter(|segment| !segment.is_empty()).collect()
}

fn route(state: &mut State, request: &Request<Bytes>, access: Access) -> Answer {
    let segments = segments(request.uri().path());
    if access == Access::EmptyProject {
        return empty_project(request.method(), &segments);
    }
    let mut call = Call {
        base: base(state, request),
        state,
        request,
    };
    match segments.as_slice() {
        ["regions"] => call.read_only(|wire| wire.regions()),
        ["flavors"] => call.read_only(|wire| wire.flavors()),
        ["servers", rest @ ..] => call.servers(rest),
        ["networks", rest @ ..] => call.networks(rest),
        ["subnets", rest @ ..] => call.subnets(rest),
        ["load-balancers", "pools", pool, "members", rest @ ..] => call.members(pool, rest),
        ["load-balancers", "pools", rest @ ..] => call.pools(rest),
        ["load-balancers", "listeners", rest @ ..] => call.listeners(rest),
        ["load-balancers", "health-monitors", rest @ ..] => call.health_monitors(rest),
        ["load-balancers", rest @ ..] => call.load_balancers(rest),
        ["floating-ips", rest @ ..] => call.floating_ips(rest),
        _ => Err(ApiError::not_found()),
    }
}

/// A project without objects: lists are empty and nothing is found.
fn empty_project(method: &Method, segments: &[&str]) -> Answer {
    let list = matches!(
        segments,
        ["servers" | "networks" | "subnets" | "load-balancers" | "floating-ips"]
            | ["load-balancers", "pools" | "listeners" | "health-monitors"]
    );
    match *method {
        Method::GET if list => Ok(json(StatusCode::OK, &Value::Array(Vec::new()))),
        Method::GET => Err(ApiError::not_found()),
        _ => Err(ApiError::detail(
            "The simulated second project cannot be written.",
        )),
    }
}

/// Scheme and host for links: set, or as the caller named them.
fn base(state: &State, request: &Request<Bytes>) -> String {
    let set = state.options.base_url.clone();
    set.unwrap_or_else(|| base_url(request, "https://api.cloudscale.ch"))
}

/// One admitted request and the state it works on.
struct Call<'a> {
    state: &'a mut State,
    request: &'a Request<Bytes>,
    base: String,
}

impl Call<'_> {
    fn method(&self) -> &str {
        self.request.method().as_str()
    }

    fn fields(&self) -> Result<Fields, ApiError> {
        let mut fields = Fields::parse(self.request.body())?;
        if let Some(length) = self.state.behaviour.cuts_names_to {
            fields.cut("name", length);
        }
        Ok(fields)
    }

    /// The fields of a POST, which must name these.
    fn new_fields(&self, required: &[&str]) -> Result<Fields, ApiError> {
        let mut fields = self.fields()?;
        required.iter().for_each(|name| fields.require(name));
        Ok(fields)
    }

    /// The fields of a PATCH: something, and where asked only one thing.
    fn patch(&self, only_one: bool) -> Result<Fields, ApiError> {
        let mut fields = self.fields()?;
        if fields.len() > 1 && (only_one || self.state.behaviour.one_attribute_per_patch) {
            return Err(ApiError::detail(
                "Only one attribute can be changed with one request.",
            ));
        }
        for name in &self.state.behaviour.unkept_attributes {
            fields.forget(name);
        }
        Ok(fields)
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            state: self.state,
            base: &self.base,
        }
    }

    fn read_only(&self, render: impl FnOnce(&Wire<'_>) -> Value) -> Answer {
        match *self.request.method() {
            Method::GET => Ok(json(StatusCode::OK, &render(&self.wire()))),
            _ => self.wrong_method(),
        }
    }

    fn wrong_method(&self) -> Answer {
        Err(ApiError::method_not_allowed(self.request.method()))
    }

    fn one(&self, value: &Value) -> Answer {
        Ok(json(StatusCode::OK, value))
    }

    fn created(&self, value: &Value) -> Answer {
        Ok(json(StatusCode::CREATED, value))
    }

    fn done(&self) -> Answer {
        Ok(no_content())
    }

    /// A list of those objects whose tags pass the filters of the query.
    fn list<'o, T: 'o>(
        &'o self,
        objects: impl Iterator<Item = &'o T>,
        tags: impl Fn(&T) -> &Tags,
        render: impl Fn(&Wire<'o>, &T) -> Value,
    ) -> Answer {
        let wire = Wire {
            state: self.state,
            base: &self.base,
        };
        let filters = tag_filters(self.request.uri().query().unwrap_or_default());
        let passes = |object: &&T| {
            filters.iter().all(|(key, wanted)| {
                tags(object)
                    .get(key)
                    .is_some_and(|value| wanted.is_empty() || value == wanted)
            })
        };
        let is_late = |shown: &Value| {
            let id = shown["uuid"].as_str().and_then(|id| id.parse().ok());
            id.is_some_and(|id: Uuid| pending(self.state.listed_from.get(&id).copied()))
        };
        let mut list: Vec<Value> = objects
            .filter(passes)
            .map(|object| render(&wire, object))
            .filter(|shown| !is_late(shown))
            .collect();
        if self.state.behaviour.lists_newest_first {
            list.reverse();
        }
        Ok(json(StatusCode::OK, &Value::Array(list)))
    }

    /// A new object's id and time.
    fn birth(&mut self) -> (Uuid, String) {
        let id = self.state.seed.uuid();
        let listed_from = later(self.state.behaviour.list_lag);
        self.state.listed_from.extend(listed_from.map(|at| (id, at)));
        (id, self.state.clock.rfc3339_micros())
    }

    fn zone(&self, fields: &mut Fields) -> String {
        let zones = &self.state.options.zones;
        let zone = fields
            .text("zone")
            .unwrap_or_else(|| self.state.options.default_zone().to_owned());
        if !zones.contains(&zone) {
            let text = format!(
                "{zone:?} is not a valid choice. Choose one of: {}.",
                zones.join(", ")
            );
            fields.refuse("zone", text);
        }
        zone
    }
}

/// Filters of the form `tag:<key>=<value>`; an empty value fits any.
fn tag_filters(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes())
        .filter_map(|(key, value)| {
            key.strip_prefix("tag:")
                .map(|key| (key.to_owned(), value.into_owned()))
        })
        .collect()
}

/// The object of this key.
fn found<'o, K: Hash + Eq, T>(objects: &'o IndexMap<K, T>, key: &K) -> Result<&'o T, ApiError> {
    objects.get(key).ok_or_else(ApiError::not_found)
}

/// An id out of a path: what is no UUID is not found.
fn path_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::parse_str(text).map_err(|_| ApiError::not_found())
}
