//! Which path gets which answer.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

use super::Site;
use super::access::Denial;
use crate::health::{Endpoint, Verdict};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Site {
    /// Answers one request: who asks, whether they may, and then what is there.
    pub async fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let admitted = self.access.admit(request.method(), path, request.headers()).await;
        let response = match admitted {
            Ok(()) => self.route(request.method(), path, request.uri().query().unwrap_or_default()),
            Err(denial) => denied(path, request.method(), &denial),
        };
        if endpoint(path).is_none() {
            // Probes are too many to be worth a line.
            tracing::debug!(
                target: crate::HTTP_LOG,
                verb = %request.method(),
                path,
                code = response.status().as_u16(),
                "HTTP"
            );
        }
        response
    }

    fn route(&self, method: &Method, path: &str, query: &str) -> Response<Full<Bytes>> {
        if *method != Method::GET && *method != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
        }
        if let Some((endpoint, check)) = endpoint(path) {
            let verdict = match check {
                None => Some(self.health.probe(endpoint, asks_verbose(query), &excluded(query))),
                Some(name) => self.health.probe_one(endpoint, name),
            };
            return verdict.map_or_else(not_found, health);
        }
        match path {
            "/metrics" => match self.metrics.render() {
                Ok(text) => answer(StatusCode::OK, crate::metrics::CONTENT_TYPE, text),
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "encoding the series failed\n"),
            },
            _ => not_found(),
        }
    }
}

/// Reads `/healthz` and `/healthz/name`.
fn endpoint(path: &str) -> Option<(Endpoint, Option<&str>)> {
    let (word, check) = match path.strip_prefix('/')?.split_once('/') {
        Some((word, check)) => (word, Some(check).filter(|check| !check.is_empty())),
        None => (&path[1..], None),
    };
    let endpoint = [Endpoint::Health, Endpoint::Live, Endpoint::Ready]
        .into_iter()
        .find(|endpoint| endpoint.name() == word)?;
    Some((endpoint, check))
}

fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text)
            .decode_utf8_lossy()
            .into_owned()
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
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

fn not_found() -> Response<Full<Bytes>> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn plain(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    answer(code, TEXT, text.to_owned())
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
    answer(code, JSON, format!("{status}\n"))
}

fn answer(code: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
