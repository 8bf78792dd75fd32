//! The HTTP APIs: which service, whose token, and what is common to all requests.

use std::sync::MutexGuard;

use bowline_cloud_kit::service::{base_url, json, no_content};
use bowline_cloud_kit::{Arrival, Cloud, Reply, Shared};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, header};
use serde_json::Value;

use crate::error::ApiError;
use crate::model::Id;
use crate::model::identity::Scope;
use crate::options::Service;
use crate::place::Place;
use crate::query::Query;
use crate::state::State;
use crate::wire::Wire;

mod admin;
mod identity;
mod keys;
mod network;
mod nova;
mod octavia;

/// What one request gets.
type Answer = Result<Reply, ApiError>;

/// The APIs over a shared state.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) shared: Shared<State>,
}

impl Api {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.read()
    }

    fn answer(&self, request: &Request<Bytes>, arrival: &Arrival) -> Reply {
        let mut reply = {
            let mut state = self.lock();
            let base = base(&state, request);
            match serve(&mut state, request, &base) {
                Ok(reply) => reply,
                Err(error) => error.reply(&format!("{base}/{}", Service::Identity.folder())),
            }
        };
        if self.is_write(request) {
            self.shared.ring();
        }
        // Random in a real cloud; here it says which entry of the journal the request is.
        let request_id = format!("req-{}", Id::from_u128(u128::from(arrival.seq)));
        if let Ok(request_id) = HeaderValue::from_str(&request_id) {
            reply.headers_mut().insert("x-openstack-request-id", request_id);
        }
        reply
    }
}

impl Cloud for Api {
    fn operation(&self, request: &Request<Bytes>) -> String {
        let path = request.uri().path();
        let named = Place::of(path).and_then(|it| it.operation(request.method()));
        named.unwrap_or_else(|| path.to_owned())
    }

    /// A login changes nothing that anybody sees.
    fn is_write(&self, request: &Request<Bytes>) -> bool {
        let is_login = Place::of(request.uri().path()).is_some_and(|it| it.service == Service::Identity);
        !is_login && *request.method() != Method::GET
    }

    fn lanes(&self, request: &Request<Bytes>) -> Vec<String> {
        let state = self.lock();
        let balancer =
            Place::of(request.uri().path()).and_then(|it| octavia::lane(&state, &it, request.body()));
        balancer.map(|id| id.to_string()).into_iter().collect()
    }

    fn handle(&self, request: Request<Bytes>, arrival: Arrival) -> BoxFuture<'static, Reply> {
        Box::pin(std::future::ready(self.answer(&request, &arrival)))
    }

    fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
        let own = |state: &mut State, segments: &[&str]| admin::answer(state, method, segments, body);
        bowline_cloud_kit::admin::paths(&self.shared, method, path, body, own)
    }
}

/// Scheme and host for links: set, or as the caller named them.
fn base(state: &State, request: &Request<Bytes>) -> String {
    let set = state.options.base_url.clone();
    set.unwrap_or_else(|| base_url(request, "http://openstack.test"))
}

fn serve(state: &mut State, request: &Request<Bytes>, base: &str) -> Answer {
    if state.behaviour.maintenance {
        return Err(ApiError::maintenance());
    }
    let place = Place::of(request.uri().path()).ok_or_else(ApiError::no_such_service)?;
    if let Some(versions) = versions(state, request.method(), &place, base) {
        return Ok(versions);
    }
    let rest = place.below_version();
    let rest = rest.ok_or_else(|| ApiError::no_such_path(place.service))?;
    let mut call = Call {
        base,
        query: Query::parse(request.uri().query()),
        service: place.service,
        caller: Caller::default(),
        state,
        request,
    };
    if place.service == Service::Identity {
        return call.identity(rest);
    }
    call.caller = call.authenticate()?;
    match place.service {
        Service::Compute => call.compute(rest),
        Service::Network => call.network(rest),
        Service::LoadBalancer => call.load_balancing(rest),
        Service::Identity | Service::KeyManager => call.keys(rest),
    }
}

/// What the services say about their versions to everybody.
fn versions(state: &State, method: &Method, place: &Place<'_>, base: &str) -> Option<Reply> {
    if *method != Method::GET {
        return None;
    }
    let wire = Wire { state, base };
    let one = |version: Value| serde_json::json!({ "version": version });
    let all = |version: Value| serde_json::json!({ "versions": [version] });
    let (status, body) = match (place.service, place.segments.as_slice()) {
        (Service::Identity, []) => {
            let values = serde_json::json!({ "values": [wire.identity_version()] });
            (
                StatusCode::MULTIPLE_CHOICES,
                serde_json::json!({ "versions": values }),
            )
        }
        (Service::Identity, ["v3"]) => (StatusCode::OK, one(wire.identity_version())),
        (Service::Compute, []) => (StatusCode::OK, all(wire.compute_version())),
        (Service::Compute, ["v2.1"]) => (StatusCode::OK, one(wire.compute_version())),
        (Service::Network, []) => (StatusCode::OK, wire.network_versions()),
        (Service::LoadBalancer, []) => (StatusCode::OK, wire.load_balancer_versions()),
        (Service::KeyManager, []) => (StatusCode::MULTIPLE_CHOICES, wire.key_manager_versions()),
        _ => return None,
    };
    let mut reply = json(status, &body);
    let v3 = format!("{}/v3/", wire.root(Service::Identity));
    if let (Service::Identity, [], Ok(v3)) = (
        place.service,
        place.segments.as_slice(),
        HeaderValue::from_str(&v3),
    ) {
        reply.headers_mut().insert(header::LOCATION, v3);
    }
    Some(reply)
}

/// Who asks.
#[derive(Clone, Debug, Default)]
struct Caller {
    /// The project's id; empty before the login.
    project: String,
    is_admin: bool,
}

/// One request and the state it works on.
struct Call<'a> {
    state: &'a mut State,
    request: &'a Request<Bytes>,
    base: &'a str,
    query: Query,
    service: Service,
    caller: Caller,
}

impl Call<'_> {
    fn method(&self) -> &str {
        self.request.method().as_str()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.request.headers().get(name)?.to_str().ok()
    }

    /// Every service refuses a token that Keystone does not know, in Keystone's words.
    fn authenticate(&self) -> Result<Caller, ApiError> {
        let token = self.header("x-auth-token");
        let token = token.and_then(|text| self.state.identity.token(text));
        let token = token.ok_or_else(ApiError::unauthorized)?;
        match &token.scope {
            Scope::Project(project) => Ok(Caller {
                project: project.clone(),
                is_admin: token.is_admin,
            }),
            Scope::Domain(_) | Scope::Unscoped => {
                let text = "The token has no project.";
                Err(ApiError::keystone(StatusCode::FORBIDDEN, text))
            }
        }
    }

    /// Whether an object of a project may be seen.
    fn sees(&self, project: &str) -> bool {
        self.caller.is_admin || self.caller.project == project
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            state: self.state,
            base: self.base,
        }
    }

    fn no_such_path(&self) -> Answer {
        Err(ApiError::no_such_path(self.service))
    }

    /// `{"<root>": {...}}`.
    fn answer(&self, status: StatusCode, root: &str, object: Value) -> Answer {
        Ok(json(status, &serde_json::json!({ root: object })))
    }

    fn one(&self, root: &str, object: Value) -> Answer {
        self.answer(StatusCode::OK, root, self.query.trim(object))
    }

    fn created(&self, root: &str, object: Value) -> Answer {
        self.answer(StatusCode::CREATED, root, object)
    }

    fn done(&self) -> Answer {
        Ok(no_content())
    }

    /// The URL of this list with another query.
    fn href(&self, query: &str) -> String {
        format!("{}{}?{query}", self.base, self.request.uri().path())
    }
}

/// An id out of a path: what is no UUID is nobody's.
fn path_id(text: &str) -> Option<Id> {
    Id::parse_str(text).ok()
}
