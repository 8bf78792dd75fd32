//! Why a call to the API failed, in terms of what to do next.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{Failure, HttpError, StatusCode};

/// A call that failed.
///
/// The text is `operation: METHOD path: status: key: value; key: value` with everything that the API said, sorted by
/// key, and without query, headers or token.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it.
    pub kind: ErrorKind,
    /// What the API said: the field, or `detail`, and the text.
    pub fields: BTreeMap<String, String>,
    /// The failure below.
    pub http: HttpError,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 404: there is no such object.
    NotFound {
        /// Whether the API itself said so, by its `detail`. Any other `404` comes from something in between, or from a
        /// wrong base URL, and proves nothing.
        proven: bool,
    },
    /// 401: no token, or a bad one.
    Unauthorized,
    /// 403: the token may not do this.
    Forbidden,
    /// 400 or another refusal: the request itself is wrong, or the object is not in the right state. The API tells the
    /// latter by text only.
    Invalid,
    /// 409 or 423: the object is busy.
    Conflict,
    /// 429: too many calls.
    Throttled {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// 5xx: the API is in trouble, or in maintenance.
    Server {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer, or none that arrived whole.
    Transport {
        /// Whether the call may have had its effect all the same.
        maybe_applied: bool,
    },
    /// The answer was good but could not be read. A write had its effect.
    Decode,
    /// The write was not sent, because this process may not write now.
    GateClosed,
    /// The process is shutting down; nothing was sent.
    Cancelled,
}

impl ApiError {
    /// Whether the API itself said that there is no such object.
    pub fn proves_absence(&self) -> bool {
        self.kind == ErrorKind::NotFound { proven: true }
    }

    /// Whether the status was 404, whoever sent it. To conclude anything from it, use [`ApiError::proves_absence`].
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ErrorKind::NotFound { .. })
    }

    pub(crate) fn has_no_body(&self) -> bool {
        matches!(&self.http.failure, Failure::Status(failure) if failure.body.is_empty())
    }

    /// Whether a write may have had its effect: look before trying again.
    pub fn maybe_applied(&self) -> bool {
        self.http.maybe_applied()
    }

    /// How long the API asks to wait, if it does.
    pub fn retry_after(&self) -> Option<Duration> {
        self.http.retry_after()
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.http.status().map(|status| status.as_u16())
    }
}

impl From<HttpError> for ApiError {
    fn from(http: HttpError) -> Self {
        let Failure::Status(failure) = &http.failure else {
            let kind = match &http.failure {
                Failure::Decode { .. } | Failure::TooLarge { .. } => ErrorKind::Decode,
                Failure::GateClosed(_) => ErrorKind::GateClosed,
                Failure::Cancelled => ErrorKind::Cancelled,
                _ => ErrorKind::Transport {
                    maybe_applied: http.maybe_applied(),
                },
            };
            return Self {
                kind,
                fields: BTreeMap::new(),
                http,
            };
        };
        let said = said(&failure.body);
        let retry_after = failure.retry_after;
        let kind = match failure.status {
            StatusCode::NOT_FOUND => ErrorKind::NotFound {
                // The API's own answer has this key; a gateway in between may speak JSON too.
                proven: said.as_ref().is_some_and(|said| said.contains_key("detail")),
            },
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::CONFLICT | StatusCode::LOCKED => ErrorKind::Conflict,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::Throttled { retry_after },
            status if status.is_client_error() => ErrorKind::Invalid,
            _ => ErrorKind::Server { retry_after },
        };
        let fields = said
            .unwrap_or_default()
            .into_iter()
            .map(|(key, text)| (http.call.redact(&key), http.call.redact(&text)))
            .collect();
        Self { kind, fields, http }
    }
}

/// The API's own words: an object of texts. `None` if the body is anything else, as from a proxy.
fn said(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let object: BTreeMap<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    Some(
        object
            .into_iter()
            .map(|(key, value)| (key, text(value)))
            .collect(),
    )
}

fn text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Array(values) => values.into_iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Status(failure), false) = (&self.http.failure, self.fields.is_empty()) else {
            return self.http.fmt(f);
        };
        let call = &self.http.call;
        write!(
            f,
            "{}: {} {}: {}",
            call.operation, call.method, call.path, failure.status
        )?;
        for (index, (key, text)) in self.fields.iter().enumerate() {
            write!(f, "{} {key}: {text}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl StdError for ApiError {}
