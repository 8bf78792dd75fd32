//! The HTTP API.
//!
//! Every refusal is `{"code": "...", "message": "..."}`. Lists come in pages: `{"items": [...], "next": "..."}`, and
//! `?after=<next>` asks for the next one. Writes to a balancer that is being written to or built are refused with 409.

use std::net::IpAddr;

use bowline_cloud_kit::clock::later;
use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::service::{bearer, json, no_content};
use bowline_cloud_kit::{Arrival, Cloud, Reply, Shared, Simulated};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use indexmap::IndexMap;
use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json as value;
use uuid::Uuid;

use crate::model::{Balancer, Port, Route, State};

/// The API over a shared state.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) shared: Shared<State>,
}

type Answer = Result<Reply, Refusal>;

struct Refusal(StatusCode, &'static str, String);

fn not_found(what: &str) -> Refusal {
    Refusal(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is no such {what}"),
    )
}

fn conflict(message: &str) -> Refusal {
    Refusal(StatusCode::CONFLICT, "conflict", message.to_owned())
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBalancer {
    name: String,
    owner: Option<String>,
    cluster: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    node_port: u16,
    check_port: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRoute {
    destination: IpNet,
    machine: Option<Uuid>,
    cluster: Option<String>,
    description: String,
    via: Vec<IpAddr>,
}

// guide: sim
impl Cloud for Api {
    /// The balancer that a write changes: one write at a time.
    fn lanes(&self, request: &Request<Bytes>) -> Vec<String> {
        match segments(request).as_slice() {
            ["balancers", id, ..] => vec![(*id).to_owned()],
            _ => Vec::new(),
        }
    }

    fn handle(&self, request: Request<Bytes>, arrival: Arrival) -> BoxFuture<'static, Reply> {
        let answer = self.answer(&request, &arrival);
        if self.is_write(&request) {
            self.shared.ring();
        }
        let reply = answer.unwrap_or_else(|Refusal(status, code, message)| {
            json(status, &value!({"code": code, "message": message}))
        });
        Box::pin(std::future::ready(reply))
    }
}
// guide: end

impl Api {
    fn answer(&self, request: &Request<Bytes>, arrival: &Arrival) -> Answer {
        let mut state = self.shared.read();
        let given = bearer(request).filter(|token| !token.is_empty());
        if given.is_none_or(|given| state.token.as_deref().is_some_and(|token| token != given)) {
            return Err(Refusal(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "the token is not known".to_owned(),
            ));
        }
        if !arrival.overlaps.is_empty() {
            return Err(conflict("the balancer is being changed by another request"));
        }
        let state = &mut *state;
        if state.shows_nothing {
            return match (request.method().as_str(), segments(request).as_slice()) {
                ("GET", [_]) => page::<()>(&IndexMap::new(), state, request),
                _ => Err(not_found("object")),
            };
        }
        match (request.method().as_str(), segments(request).as_slice()) {
            ("GET", ["machines"]) => page(&state.machines, state, request),
            ("GET", ["machines", id]) => one(&state.machines, id, "machine"),
            ("GET", ["balancers"]) => page(&state.balancers, state, request),
            ("GET", ["balancers", id]) => one(&state.balancers, id, "balancer"),
            ("POST", ["balancers"]) => create_balancer(state, body(request)?),
            ("DELETE", ["balancers", id]) => delete_balancer(state, id),
            (method @ ("PUT" | "DELETE"), ["balancers", id, "ports", port]) => {
                let (protocol, port) = port_of(port)?;
                let target: Option<Target> = (method == "PUT").then(|| body(request)).transpose()?;
                let balancer = writable(state, id)?;
                let at = balancer
                    .ports
                    .iter()
                    .position(|open| (open.protocol, open.port) == (protocol, port));
                match (target, at) {
                    (
                        Some(Target {
                            node_port,
                            check_port,
                        }),
                        at,
                    ) => {
                        let open = Port {
                            protocol,
                            port,
                            node_port,
                            check_port,
                        };
                        match at {
                            Some(at) => balancer.ports[at] = open,
                            None => balancer.ports.push(open),
                        }
                    }
                    (None, Some(at)) => drop(balancer.ports.remove(at)),
                    (None, None) => {}
                }
                one(&state.balancers, id, "balancer")
            }
            (method @ ("PUT" | "DELETE"), ["balancers", id, "members", machine]) => {
                let machine = find(&state.machines, machine).map(|machine| machine.id);
                let balancer = writable(state, id)?;
                match (method, machine) {
                    ("PUT", None) => return Err(invalid("there is no such machine")),
                    ("PUT", Some(machine)) if !balancer.members.contains(&machine) => {
                        balancer.members.push(machine)
                    }
                    ("DELETE", Some(machine)) => balancer.members.retain(|member| *member != machine),
                    _ => {}
                }
                one(&state.balancers, id, "balancer")
            }
            ("GET", ["routes"]) => page(&state.routes, state, request),
            ("POST", ["routes"]) => {
                let route = create_route(state, body(request)?)?;
                Ok(json(StatusCode::CREATED, &value!(route)))
            }
            ("DELETE", ["routes", id]) => {
                let id = find(&state.routes, id).ok_or_else(|| not_found("route"))?.id;
                state.routes.shift_remove(&id);
                Ok(no_content())
            }
            _ => Err(Refusal(
                StatusCode::NOT_FOUND,
                "no_such_path",
                "the API has no such path".to_owned(),
            )),
        }
    }
}

fn segments(request: &Request<Bytes>) -> Vec<&str> {
    let path = request.uri().path().strip_prefix("/v1/").unwrap_or_default();
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

fn body<T: DeserializeOwned>(request: &Request<Bytes>) -> Result<T, Refusal> {
    serde_json::from_slice(request.body()).map_err(|error| invalid(error.to_string()))
}

fn find<'a, T>(all: &'a IndexMap<Uuid, T>, id: &str) -> Option<&'a T> {
    all.get(&Uuid::parse_str(id).ok()?)
}

fn one<T: Serialize>(all: &IndexMap<Uuid, T>, id: &str, what: &str) -> Answer {
    let found = find(all, id).ok_or_else(|| not_found(what))?;
    Ok(json(StatusCode::OK, &value!(found)))
}

fn page<T: Serialize>(all: &IndexMap<Uuid, T>, state: &State, request: &Request<Bytes>) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let after = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "after");
    let start = match after {
        None => 0,
        Some((_, id)) => {
            let last = Uuid::parse_str(&id).ok().and_then(|id| all.get_index_of(&id));
            // What the page ended with is gone: the caller has to begin anew, or would miss something.
            last.ok_or_else(|| invalid("`after` is not known any more"))? + 1
        }
    };
    let items: Vec<(&Uuid, &T)> = all.iter().skip(start).take(state.behaviour.page_size).collect();
    let next = items
        .last()
        .filter(|_| start + items.len() < all.len())
        .map(|(id, _)| id);
    let items: Vec<&T> = items.iter().map(|(_, item)| *item).collect();
    Ok(json(StatusCode::OK, &value!({"items": items, "next": next})))
}

/// A balancer that takes changes.
fn writable<'a>(state: &'a mut State, id: &str) -> Result<&'a mut Balancer, Refusal> {
    let id = find(&state.balancers, id)
        .ok_or_else(|| not_found("balancer"))?
        .id;
    let balancer = state
        .balancers
        .get_mut(&id)
        .ok_or_else(|| not_found("balancer"))?;
    match balancer.state.as_str() {
        "ready" => Ok(balancer),
        other => Err(conflict(&format!("the balancer is {other}"))),
    }
}

fn create_balancer(state: &mut State, new: NewBalancer) -> Answer {
    if new.name.is_empty() || new.name.len() > 255 {
        return Err(invalid("name must have 1 to 255 characters"));
    }
    let (id, address) = (state.seed.uuid(), state.address(state.public));
    let until = later(state.behaviour.build_time);
    let balancer = Balancer {
        id,
        name: new.name,
        owner: new.owner,
        cluster: new.cluster,
        created_at: state.clock.rfc3339_micros(),
        state: if until.is_some() { "building" } else { "ready" }.to_owned(),
        addresses: vec![address],
        ports: Vec::new(),
        members: Vec::new(),
        until,
    };
    let reply = json(StatusCode::CREATED, &value!(balancer));
    state.balancers.insert(id, balancer);
    Ok(reply)
}

fn delete_balancer(state: &mut State, id: &str) -> Answer {
    let id = find(&state.balancers, id)
        .ok_or_else(|| not_found("balancer"))?
        .id;
    let until = later(state.behaviour.delete_time);
    match state.balancers.get_mut(&id) {
        Some(balancer) if balancer.state == "deleting" => {}
        Some(balancer) => (balancer.state, balancer.until) = ("deleting".to_owned(), until),
        None => {}
    }
    state.settle(); // it is gone at once if nothing was said of a time
    Ok(no_content())
}

/// `tcp-80`.
fn port_of(text: &str) -> Result<(Transport, u16), Refusal> {
    let (protocol, port) = text.split_once('-').unwrap_or_default();
    let protocol = match protocol {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        _ => Err(invalid("a port is written as tcp-80 or udp-53")),
    };
    let port = port.parse().ok().filter(|port| *port != 0);
    Ok((
        protocol?,
        port.ok_or_else(|| invalid("a port is a number from 1 to 65535"))?,
    ))
}

fn create_route(state: &mut State, new: NewRoute) -> Result<Route, Refusal> {
    if new.destination != new.destination.trunc() {
        return Err(invalid(format!("{} is not a network", new.destination)));
    }
    if new.machine.is_some_and(|id| !state.machines.contains_key(&id)) {
        return Err(invalid("there is no such machine"));
    }
    if state
        .routes
        .values()
        .any(|route| route.destination == new.destination)
    {
        return Err(conflict("there is a route to this destination"));
    }
    let route = Route {
        id: state.seed.uuid(),
        destination: new.destination,
        machine: new.machine,
        cluster: new.cluster,
        description: new.description,
        via: new.via,
        blackhole: false,
    };
    state.routes.insert(route.id, route.clone());
    Ok(route)
}
