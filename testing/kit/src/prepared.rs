//! An API in memory that gives prepared answers and remembers what it was asked, for the tests of clients.
//!
//! What a client makes of an answer, and how it asks, is told by this; what a cloud makes of a request is told by its
//! simulator.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_http::{BoxError, Bytes, HeaderMap, Transport, TransportError};
use http_body_util::{BodyExt as _, Full};

/// One prepared answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A status and a body.
    Body(u16, String),
    /// A status, a header and a body.
    Header(u16, (&'static str, &'static str), String),
    /// A status with `Retry-After`.
    RetryAfter(u16, &'static str),
    /// A status, and a body that repeats the request: line and body.
    Echo(u16),
    /// No connection.
    NoConnection,
    /// No answer, ever.
    Silence,
}

impl Answer {
    /// Status 200 and a body.
    pub fn ok(body: &str) -> Self {
        Self::Body(200, body.to_owned())
    }
}

/// A request as the API saw it.
#[derive(Debug)]
pub struct Seen {
    /// Method and URI.
    pub line: String,
    /// Headers.
    pub headers: HeaderMap,
    /// The body, which is text in all of these APIs.
    pub body: String,
}

/// The API. Clones share it.
#[derive(Debug, Clone)]
pub struct PreparedApi {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl PreparedApi {
    /// Gives these answers, one to each request. A request more than that finds no connection.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            seen: Arc::default(),
        }
    }

    /// The way to it.
    pub fn transport(&self) -> Transport {
        let api = self.clone();
        Transport::memory(tower::service_fn(move |request| api.clone().answer(request)))
    }

    /// The requests since the last call of this.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.seen))
    }

    async fn answer(
        self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Full<Bytes>>, BoxError> {
        let (head, body) = request.into_parts();
        let body = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
        let line = format!("{} {}", head.method, head.uri);
        lock(&self.seen).push(Seen {
            line: line.clone(),
            headers: head.headers,
            body: body.clone(),
        });
        let answer = lock(&self.answers).pop_front();
        let response = http::Response::builder();
        let response = match answer.ok_or("a request more than was prepared for")? {
            Answer::Body(status, body) => response.status(status).body(Full::from(body)),
            Answer::Header(status, (name, value), body) => {
                response.status(status).header(name, value).body(Full::from(body))
            }
            Answer::RetryAfter(status, delay) => response
                .status(status)
                .header("retry-after", delay)
                .body(Full::default()),
            Answer::Echo(status) => response
                .status(status)
                .body(Full::from(format!("you sent {line} {body}"))),
            Answer::NoConnection => return Err(TransportError::Connect("refused".into()).into()),
            Answer::Silence => std::future::pending().await,
        };
        Ok(response?)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
