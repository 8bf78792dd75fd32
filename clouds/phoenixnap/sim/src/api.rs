//! The HTTP APIs: tokens, routing, and what is common to all calls.

use std::sync::MutexGuard;

use bowline_cloud_kit::service::{bearer, json};
use bowline_cloud_kit::{Arrival, Cloud, Reply, Shared};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, header};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;
use crate::model::Tag;
use crate::operation::Operation;
use crate::state::State;

mod admin;
mod ip_blocks;
mod networks;
mod servers;
mod tags;
mod token;

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

    fn call(&self, request: &Request<Bytes>) -> Option<(Operation, Vec<String>)> {
        let segments = segments(&self.lock().options.prefix, request.uri().path())?;
        let operation = Operation::of(request.method(), &segments)?;
        Some((operation, segments))
    }

    fn answer(&self, request: &Request<Bytes>) -> Reply {
        let Some((operation, segments)) = self.call(request) else {
            return ApiError::new(StatusCode::NOT_FOUND, "No such resource.").reply();
        };
        let mut state = self.lock();
        if operation == Operation::Token {
            return token::answer(&mut state, request);
        }
        let id = |position: usize| segments.get(position).map_or("", String::as_str);
        let answer = admit(&state, request, operation).and_then(|()| {
            let mut call = Call {
                state: &mut state,
                request,
            };
            match operation {
                Operation::Token => Err(ApiError::bad("Not an API call.")),
                Operation::ListServers => call.list_servers(),
                Operation::ReadServer => call.read_server(id(3)),
                Operation::ListBlocks => call.list_blocks(),
                Operation::CreateBlock => call.create_block(),
                Operation::ReadBlock => call.read_block(id(3)),
                Operation::TagBlock => call.tag_block(id(3)),
                Operation::DeleteBlock => call.delete_block(id(3)),
                Operation::ReadNetwork => call.read_network(id(3)),
                Operation::AttachBlock => call.attach_block(id(3)),
                Operation::DetachBlock => call.detach_block(id(3), id(5)),
                Operation::ListTags => call.list_tags(),
                Operation::CreateTag => call.create_tag(),
            }
        });
        match answer {
            Ok(reply) => reply,
            Err(error) if is_denial(&error) && state.behaviour.plain_denials => plain(&error),
            Err(error) => error.reply(),
        }
    }
}

impl Cloud for Api {
    fn operation(&self, request: &Request<Bytes>) -> String {
        match self.call(request) {
            Some((operation, _)) => operation.name().to_owned(),
            None => request.uri().path().to_owned(),
        }
    }

    fn is_write(&self, request: &Request<Bytes>) -> bool {
        let is_token = matches!(self.call(request), Some((Operation::Token, _)));
        !is_token && *request.method() != Method::GET
    }

    fn lanes(&self, request: &Request<Bytes>) -> Vec<String> {
        let Some((operation, segments)) = self.call(request) else {
            return Vec::new();
        };
        let body: Value = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
        let segment = |position: usize| segments.get(position).map_or("", String::as_str);
        let block = |id: &str| format!("block {id}");
        match operation {
            Operation::TagBlock | Operation::DeleteBlock => vec![block(segment(3))],
            Operation::DetachBlock => vec![block(segment(5))],
            // Two at once for one network are what makes one of them fail.
            Operation::AttachBlock => {
                let id = body["id"].as_str().unwrap_or_default();
                vec![block(id), format!("network {}", segment(3))]
            }
            // Two purchases with the same tags are two blocks for one Service.
            Operation::CreateBlock if body["tags"].is_array() => vec![format!("purchase {}", body["tags"])],
            _ => Vec::new(),
        }
    }

    fn handle(&self, request: Request<Bytes>, _arrival: Arrival) -> BoxFuture<'static, Reply> {
        let api = self.clone();
        Box::pin(async move {
            let reply = api.answer(&request);
            api.shared.ring();
            reply
        })
    }

    fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
        let own = |state: &mut State, segments: &[&str]| admin::answer(state, method, segments, body);
        bowline_cloud_kit::admin::paths(&self.shared, method, path, body, own)
    }
}

/// The decoded segments of a path below the prefix.
fn segments(prefix: &str, path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix(prefix)?.strip_prefix('/')?;
    rest.split('/')
        .map(|segment| {
            let text = percent_decode_str(segment).decode_utf8().ok()?;
            Some(text.into_owned())
        })
        .collect()
}

/// An answer with this body.
fn reply(status: StatusCode, body: impl Into<Value>) -> Answer {
    Ok(json(status, &body.into()))
}

/// Whether the caller's token is good for the operation.
fn admit(state: &State, request: &Request<Bytes>, operation: Operation) -> Result<(), ApiError> {
    if state.behaviour.maintenance {
        let text = "Maintenance is under way.";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text));
    }
    let grant = bearer(request).and_then(|token| state.tokens.get(token));
    let Some(grant) = grant.filter(|grant| grant.until > tokio::time::Instant::now()) else {
        let text = "The token is missing, unknown or expired.";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, text));
    };
    match operation.scope() {
        Some(scope) if !grant.scopes.contains(&scope) => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            format!("The token lacks the scope {}.", scope.name()),
        )),
        _ => Ok(()),
    }
}

fn is_denial(error: &ApiError) -> bool {
    matches!(error.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn plain(error: &ApiError) -> Reply {
    let mut reply = Reply::new(Bytes::from(error.message().to_owned()));
    *reply.status_mut() = error.status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    reply
}

/// One admitted request and the state it works on.
struct Call<'a> {
    state: &'a mut State,
    request: &'a Request<Bytes>,
}

impl Call<'_> {
    /// The body, which must be JSON of the right shape.
    fn body<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let content_type = self.request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
        if !content_type.starts_with("application/json") {
            let text = format!("Content type {content_type:?} is not supported.");
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        serde_json::from_slice(self.request.body())
            .map_err(|error| ApiError::bad(format!("The request body cannot be read: {error}.")))
    }

    /// The values of a query parameter in order.
    fn query(&self, name: &str) -> Vec<String> {
        let query = self.request.uri().query().unwrap_or_default();
        url::form_urlencoded::parse(query.as_bytes())
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
            .collect()
    }

    /// Whether something with these tags is in the account and passes the `tag` conditions of the query.
    fn passes(&self, conditions: &[String], tags: &[Tag]) -> bool {
        !self.state.behaviour.shows_other_account
            && tags::pass(self.state.behaviour.tag_filter, conditions, tags)
    }
}
