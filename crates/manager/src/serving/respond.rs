//! Which path gets which answer.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{ACCEPT, CONTENT_LENGTH, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body;
use rustls::pki_types::CertificateDer;
use serde_json::json;

use super::access::Denial;
use super::answers::{TEXT, answer, not_found, plain};
use super::client::Client;
use super::paths::{PATHS, endpoint, is_of_debug};
use super::{Site, debug};
use crate::health::Verdict;

const JSON: &str = "application/json";

/// How much of a body is read, in bytes, and for how long.
const MAX_READ: usize = 64 * 1024;
const READ_TIME: Duration = Duration::from_secs(1);

/// How much of a body is kept: the longest that means something is a number.
const MAX_BODY: usize = 64;

/// The longest path with its query; an answer may repeat it. Those that are served are much shorter.
const MAX_TARGET: usize = 1024;

impl Site {
    /// Answers one request: who asks, whether they may, and then what is there. `peer` is the certificate that the
    /// client showed, with its chain; empty without one.
    pub async fn respond<B>(&self, request: Request<B>, peer: &[CertificateDer<'_>]) -> Response<Full<Bytes>>
    where
        B: Body + Unpin,
    {
        self.answer(request, &Client::showing(peer)).await
    }

    /// The same for a client with a connection.
    pub(super) async fn answer<B>(&self, request: Request<B>, client: &Client) -> Response<Full<Bytes>>
    where
        B: Body + Unpin,
    {
        let (head, body) = request.into_parts();
        // What is needed of the headers is read here. They are not kept while the request waits for something: made for it,
        // they take ten times the memory that they take on the wire.
        let claim = self.access.claim(&head.headers, client);
        let takes_text = takes_text(&head.headers);
        let http::request::Parts { method, uri, .. } = head;
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        if path.len() + query.len() > MAX_TARGET {
            drop(intake(body).await);
            return plain(StatusCode::URI_TOO_LONG, "the path and its query are too long\n");
        }
        let (admitted, body) = tokio::join!(self.access.admit(claim, &method, path, client), intake(body));
        let response = match admitted {
            Ok(()) => match &self.debug {
                Some(set_verbosity) if is_of_debug(path) => {
                    debug::respond(set_verbosity, &method, path, body.as_deref())
                }
                _ => self.route(&method, path, query, takes_text),
            },
            Err(denial) => denied(path, &method, &denial),
        };
        tracing::debug!(
            target: crate::HTTP_LOG,
            verb = %method,
            path,
            code = response.status().as_u16(),
            "HTTP"
        );
        if method == Method::HEAD {
            without_body(response)
        } else {
            response
        }
    }

    fn route(&self, method: &Method, path: &str, query: &str, takes_text: bool) -> Response<Full<Bytes>> {
        if path == "/metrics/slis" && *method == Method::DELETE {
            self.health.slis().reset();
            return plain(StatusCode::OK, "metrics reset\n");
        }
        if let Some((endpoint, check)) = endpoint(path) {
            if !is_read(method) {
                return not_allowed();
            }
            let verdict = match check {
                None => Some(self.health.probe(endpoint, asks_verbose(query), &excluded(query))),
                Some(name) => self.health.probe_one(endpoint, name),
            };
            return verdict.map_or_else(not_found, health);
        }
        let page: &dyn Fn() -> Response<Full<Bytes>> = match path {
            "/metrics" => &|| series(self.metrics.render()),
            "/metrics/slis" => &|| series(self.health.slis().render()),
            "/configz" => &|| {
                let configz = json!({ "cloudcontrollermanager.config.k8s.io": self.pages.configz });
                answer(StatusCode::OK, JSON, configz.to_string())
            },
            "/statusz" => &|| {
                let has_debug = self.debug.is_some();
                let is_there = |path: &&str| has_debug || !path.starts_with("/debug/");
                let paths: Vec<&str> = PATHS.iter().copied().filter(is_there).collect();
                text_if(takes_text, || self.pages.statusz(self.clock.now(), &paths))
            },
            "/flagz" => &|| text_if(takes_text, || self.pages.flagz()),
            _ => return not_found(),
        };
        if is_read(method) { page() } else { not_allowed() }
    }
}

/// Reads the body of a request; gives its beginning, or nothing if it is not whole. It is read to its end although hardly
/// any request has use for it: given up early, an HTTP/2 stream would be reset, at times before its answer is out.
async fn intake<B: Body + Unpin>(mut body: B) -> Option<Vec<u8>> {
    let all = async {
        let (mut kept, mut read) = (Vec::new(), 0);
        while !body.is_end_stream() {
            let Some(frame) = body.frame().await else {
                break;
            };
            let Ok(mut data) = frame.ok()?.into_data() else {
                continue;
            };
            read += data.remaining();
            if read >= MAX_READ {
                return None;
            }
            let room = data.remaining().min(MAX_BODY.saturating_sub(kept.len()));
            kept.extend_from_slice(&data.copy_to_bytes(room));
        }
        (read <= MAX_BODY).then_some(kept)
    };
    // Whoever takes longer over it may lose the answer.
    tokio::time::timeout(READ_TIME, all).await.ok().flatten()
}

/// The answer to `HEAD`. The HTTP library leaves the body out by itself in HTTP/1 only.
fn without_body(response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Full::default())
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

fn series(text: Result<String, std::fmt::Error>) -> Response<Full<Bytes>> {
    match text {
        Ok(text) => answer(StatusCode::OK, crate::metrics::CONTENT_TYPE, text),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "encoding the series failed\n"),
    }
}

/// Whether the client takes a page that there is as text only.
fn takes_text(headers: &HeaderMap) -> bool {
    let mut accepted = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .filter(|range| !range.is_empty())
        .peekable();
    accepted.peek().is_none() || accepted.any(|range| matches!(range, "*/*" | "text/*" | "text/plain"))
}

fn text_if(takes_text: bool, page: impl FnOnce() -> String) -> Response<Full<Bytes>> {
    if takes_text {
        answer(StatusCode::OK, TEXT, page())
    } else {
        plain(
            StatusCode::NOT_ACCEPTABLE,
            "media type not acceptable, supported media types: [text/plain]\n",
        )
    }
}

fn not_allowed() -> Response<Full<Bytes>> {
    plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n")
}

fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned()
}

fn asks_verbose(query: &str) -> bool {
    parameters(query).any(|(name, _)| name == "verbose")
}

fn excluded(query: &str) -> Vec<String> {
    parameters(query)
        .filter(|(name, _)| name == "exclude")
        .map(|(_, value)| value)
        .collect()
}

fn health(verdict: Verdict) -> Response<Full<Bytes>> {
    let code = if verdict.passed {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    answer(code, TEXT, verdict.body)
}

/// A refusal as the `Status` object that Kubernetes clients expect.
fn denied(path: &str, method: &Method, denial: &Denial) -> Response<Full<Bytes>> {
    let (code, reason, message) = match denial {
        Denial::Unknown => (
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "Unauthorized".to_owned(),
        ),
        Denial::Forbidden { user } => {
            let verb = super::access::verb(method);
            let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
            (StatusCode::FORBIDDEN, "Forbidden", message)
        }
        Denial::Undecided => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "Internal Server Error: the API server did not say whether this is allowed".to_owned(),
        ),
        Denial::Full => (
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "the API server is being asked about too many other requests: try again in a second".to_owned(),
        ),
    };
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": {},
        "code": code.as_u16(),
    });
    let mut response = answer(code, JSON, format!("{status}\n"));
    if *denial == Denial::Full {
        let second = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, second);
    }
    response
}
