//! One simulated API as a service: journal, faults, latency, then the cloud itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};

use crate::clock::Clock;
use crate::faults::{Action, Faults, Seen};
use crate::journal::{self, Call, Journal, Outcome, Overlap, Ticket};
pub use crate::reply::{Reply, json, no_content};

mod admin;

/// The body of an answer on its way to the caller, which a fault may break.
pub type Body = BoxBody<Bytes, TransportError>;

/// What a caller sees instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The connection went away before the answer.
    #[error("connection dropped before the answer")]
    Dropped,
    /// The connection went away within the body.
    #[error("connection dropped within the body")]
    BrokenBody,
    /// The caller's own body could not be read.
    #[error("request body could not be read")]
    RequestBody,
    /// The simulator's task died, which is a bug in it.
    #[error("simulator failed to answer")]
    Crashed,
}

/// The behaviour of one cloud's API.
pub trait Cloud: Send + Sync + 'static {
    /// What the API calls this operation. Default: the path.
    fn operation(&self, request: &Request<Bytes>) -> String {
        request.uri().path().to_owned()
    }

    /// Whether the request changes something. Default: any method but GET, HEAD and OPTIONS.
    fn is_write(&self, request: &Request<Bytes>) -> bool {
        !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// The objects a write changes on which the real cloud forbids writes side by side. Default: none.
    fn lanes(&self, _request: &Request<Bytes>) -> Vec<String> {
        Vec::new()
    }

    /// Carries a request out. Runs to its end even if the caller goes away meanwhile, as in a real cloud.
    fn handle(&self, request: Request<Bytes>, arrival: Arrival) -> BoxFuture<'static, Reply>;

    /// Answers a request below `/_sim/` that the service itself does not know. `None` is a 404.
    fn admin(&self, _method: &Method, _path: &str, _body: &[u8]) -> Option<Reply> {
        None
    }
}

/// What was known about a request when it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its position in the journal.
    pub seq: u64,
    /// The lanes it asked for.
    pub lanes: Vec<String>,
    /// Writes that were under way on one of its lanes.
    pub overlaps: Vec<Overlap>,
}

/// A simulated API that can be called. Clones share everything.
#[derive(Clone)]
pub struct CloudService {
    cloud: Arc<dyn Cloud>,
    clock: Clock,
    journal: Journal,
    faults: Faults,
    latency: Arc<Mutex<Duration>>,
}

impl CloudService {
    /// Puts a cloud behind an empty journal and no faults.
    pub fn new(cloud: impl Cloud, clock: Clock) -> Self {
        Self {
            cloud: Arc::new(cloud),
            clock,
            journal: Journal::default(),
            faults: Faults::default(),
            latency: Arc::default(),
        }
    }

    /// The record of every request.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The fault rules.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The clock that times the journal.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time that passes before each request is carried out.
    pub fn latency(&self) -> Duration {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time that passes before each request is carried out.
    pub fn set_latency(&self, latency: Duration) {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = latency;
    }

    /// Whether the cloud takes a request for a change, told by everything but its body.
    pub fn is_write<B>(&self, request: &Request<B>) -> bool {
        let mut head = Request::new(Bytes::new());
        *head.method_mut() = request.method().clone();
        *head.uri_mut() = request.uri().clone();
        *head.headers_mut() = request.headers().clone();
        self.cloud.is_write(&head)
    }

    /// Sends one request and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`TransportError`] where a fault breaks the connection.
    ///
    /// # Cancellation
    ///
    /// The request is carried out all the same; only its answer is lost. A request whose future was never polled did
    /// not arrive.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Body>, TransportError>
    where
        B: http_body::Body + Send,
        B::Data: Send,
    {
        let (parts, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|_| TransportError::RequestBody)?
            .to_bytes();
        let request = Request::from_parts(parts, body);
        if let Some(path) = request.uri().path().strip_prefix("/_sim/") {
            return Ok(whole(self.admin(request.method(), path, request.body())));
        }
        let (ticket, operation) = self.arrive(&request);
        // A task of its own, so that a caller who gives up does not stop the cloud in the middle.
        let exchange = tokio::spawn(self.clone().exchange(request, ticket.clone(), operation));
        let end = exchange.await.map_err(|_| TransportError::Crashed)?;
        match end {
            End::Answer(reply) => {
                ticket.ended(Outcome::Answered(reply.status().as_u16()));
                Ok(whole(reply))
            }
            End::Broken(reply, bytes) => {
                ticket.ended(Outcome::Dropped);
                Ok(broken(reply, bytes))
            }
            End::Dropped => {
                ticket.ended(Outcome::Dropped);
                Err(TransportError::Dropped)
            }
            End::Hung => {
                ticket.ended(Outcome::Hung);
                std::future::pending().await
            }
        }
    }

    fn arrive(&self, request: &Request<Bytes>) -> (Ticket, String) {
        let operation = self.cloud.operation(request);
        let write = self.cloud.is_write(request);
        let content_type = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let call = Call {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            operation: operation.clone(),
            query: journal::recorded_query(request),
            body: journal::recorded_body(content_type.unwrap_or_default(), request.body()),
            write,
            lanes: if write {
                self.cloud.lanes(request)
            } else {
                Vec::new()
            },
        };
        (self.journal.arrive(self.clock.elapsed(), call), operation)
    }

    async fn exchange(self, request: Request<Bytes>, ticket: Ticket, operation: String) -> End {
        let arrival = Arrival {
            seq: ticket.seq(),
            lanes: ticket.lanes.clone(),
            overlaps: ticket.met.clone(),
        };
        let verdict = self.faults.decide(&Seen {
            method: request.method(),
            path: request.uri().path(),
            operation: &operation,
            write: self.cloud.is_write(&request),
        });
        let wait = self.latency() + verdict.delay;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        match &verdict.action {
            Some(Action::Answer(canned)) => return End::Answer(canned.response()),
            Some(Action::DropBefore) => return End::Dropped,
            Some(Action::HangBefore) => return End::Hung,
            Some(Action::DropThen { delay_ms }) => {
                let delay = *delay_ms;
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    let reply = self.cloud.handle(request, arrival).await;
                    ticket.handled(reply.status().as_u16());
                });
                return End::Dropped;
            }
            _ => {}
        }
        let reply = self.cloud.handle(request, arrival).await;
        ticket.handled(reply.status().as_u16());
        match verdict.action {
            Some(Action::AnswerAfter(canned)) => End::Answer(canned.response()),
            Some(Action::Truncate { bytes }) => {
                End::Answer(reply.map(|body| body.slice(..bytes.min(body.len()))))
            }
            Some(Action::BreakBody { bytes }) => End::Broken(reply, bytes),
            Some(Action::DropAfter) => End::Dropped,
            Some(Action::HangAfter) => End::Hung,
            _ => End::Answer(reply),
        }
    }
}

impl<B> tower::Service<Request<B>> for CloudService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.send(request).await })
    }
}

/// How an exchange ends for the caller.
enum End {
    Answer(Reply),
    Broken(Reply, usize),
    Dropped,
    Hung,
}

fn whole(reply: Reply) -> Response<Body> {
    reply.map(|bytes| Full::new(bytes).map_err(|never| match never {}).boxed())
}

fn broken(reply: Reply, bytes: usize) -> Response<Body> {
    let (mut parts, body) = reply.into_parts();
    // The full length is announced, so that a client on a socket can tell that something is missing.
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    let first = body.slice(..bytes.min(body.len()));
    let sent = futures::stream::once(async { Ok(Frame::data(first)) });
    let end = futures::stream::once(async {
        // Lets a server on a socket send what it has before it hears of the end.
        tokio::task::yield_now().await;
        Err(TransportError::BrokenBody)
    });
    Response::from_parts(
        parts,
        BoxBody::new(StreamBody::new(futures::StreamExt::chain(sent, end))),
    )
}

/// A header's value, if it is text.
fn header_text<B>(request: &Request<B>, name: header::HeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok()
}

/// The token that a request shows as its bearer.
pub fn bearer<B>(request: &Request<B>) -> Option<&str> {
    header_text(request, header::AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// Scheme and host for links: as the caller named them, else `unnamed`.
pub fn base_url<B>(request: &Request<B>, unnamed: &str) -> String {
    let uri = request.uri();
    match header_text(request, header::HOST).or_else(|| uri.authority().map(http::uri::Authority::as_str)) {
        Some(host) => format!("{}://{host}", uri.scheme_str().unwrap_or("http")),
        None => unnamed.to_owned(),
    }
}
