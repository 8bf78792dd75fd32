//! Why a call failed, in terms of what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{Failure, HttpError, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::token;

/// A call that failed.
///
/// The text is `operation: METHOD path: status: message: validation errors`, without query, headers, token, or anything of
/// a body that is not in the API's words.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it.
    pub kind: ErrorKind,
    /// What the API said.
    pub message: Option<Box<str>>,
    /// The failure below.
    pub http: HttpError,
    /// What to do about it, where it is known.
    pub(crate) remedy: Option<&'static str>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 404: there is no such object, says the API itself.
    NotFound,
    /// 401, twice: the token is refused; or there is none to be had.
    Unauthorized,
    /// 403: the credentials may not do this, or there is no such object. The APIs do not tell these apart.
    Forbidden,
    /// 400 or another refusal: the request itself is wrong.
    Invalid,
    /// 406: nothing of the kind is left to be bought.
    SoldOut,
    /// 409: the object is in another state than this call needs.
    Conflict,
    /// 429: too many calls.
    Throttled {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// 5xx: the API is in trouble.
    Server {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer, or none that arrived whole.
    Transport,
    /// The answer was good but could not be read. A write had its effect.
    Decode,
    /// The write was not sent, because this process may not write now.
    GateClosed,
    /// The process is shutting down; nothing was sent.
    Cancelled,
}

impl ApiError {
    /// Whether a write may have had its effect: look before trying again. One that failed for want of a token was never
    /// sent, or was refused, whatever became of the request for the token.
    pub fn maybe_applied(&self) -> bool {
        !self.is_of_token() && self.http.maybe_applied()
    }

    /// Whether the API itself answered that it failed: nothing is under way any more, and what was done can be seen. An
    /// answer of a gateway says less: what is behind it may still be at work. Gateways also answer 503, but not in JSON.
    pub fn is_over(&self) -> bool {
        match (&self.http.failure, self.status()) {
            (_, Some(500 | 501)) => true,
            (Failure::Status(failure), Some(503)) => {
                serde_json::from_slice::<serde_json::Map<String, Value>>(&failure.body).is_ok()
            }
            _ => false,
        }
    }

    /// Whether the object that was asked for may be gone: the APIs answer 403 for an id that was deleted, as they do for
    /// lost rights, and a 404 that is not in their words may come from something in between. A listing tells.
    pub fn may_be_gone(&self) -> bool {
        matches!(self.status(), Some(403 | 404))
    }

    /// The HTTP status, if there was an answer. What the token endpoint answered is none: it knows no objects.
    pub fn status(&self) -> Option<u16> {
        let status = self.http.status().filter(|_| !self.is_of_token())?;
        Some(status.as_u16())
    }

    /// Whether the call was never made, for want of a token.
    fn is_of_token(&self) -> bool {
        self.http.call.operation == token::OPERATION
    }
}

/// An error body of the APIs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    message: String,
    /// For people: whatever is odd here must not cost the message.
    #[serde(default)]
    validation_errors: Value,
}

impl From<HttpError> for ApiError {
    fn from(http: HttpError) -> Self {
        let (kind, message) = match &http.failure {
            Failure::Status(failure) => {
                let said: Option<Said> = serde_json::from_slice(&failure.body).ok();
                let retry_after = failure.retry_after;
                let kind = match failure.status {
                    // A page of HTML comes from something in between, or from a wrong base URL, and proves nothing.
                    StatusCode::NOT_FOUND if said.is_some() => ErrorKind::NotFound,
                    StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
                    StatusCode::FORBIDDEN => ErrorKind::Forbidden,
                    StatusCode::NOT_ACCEPTABLE => ErrorKind::SoldOut,
                    StatusCode::CONFLICT => ErrorKind::Conflict,
                    StatusCode::TOO_MANY_REQUESTS => ErrorKind::Throttled { retry_after },
                    status if status.is_client_error() => ErrorKind::Invalid,
                    _ => ErrorKind::Server { retry_after },
                };
                (kind, said.map(|said| http.call.redact(&said.text()).into()))
            }
            Failure::Decode { .. } | Failure::TooLarge { .. } => (ErrorKind::Decode, None),
            Failure::GateClosed(_) => (ErrorKind::GateClosed, None),
            Failure::Cancelled => (ErrorKind::Cancelled, None),
            Failure::Unsendable(_) => (ErrorKind::Invalid, None),
            _ => (ErrorKind::Transport, None),
        };
        Self {
            kind,
            message,
            http,
            remedy: None,
        }
    }
}

impl Said {
    fn text(self) -> String {
        let errors = self.validation_errors.as_array();
        let texts = errors.into_iter().flatten().filter_map(Value::as_str);
        std::iter::once(self.message.as_str())
            .chain(texts)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(": ")
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = &self.http.call;
        let of_call = format_args!("{}: {} {}", call.operation, call.method, call.path);
        match (&self.http.failure, &self.message) {
            (Failure::Status(failure), Some(message)) => {
                write!(f, "{of_call}: {}: {message}", failure.status)?;
            }
            (Failure::Status(failure), None) => write!(f, "{of_call}: {}", failure.status)?,
            (Failure::Decode { status, reason, .. }, _) => {
                write!(f, "{of_call}: cannot read the answer ({status}): {reason}")?;
            }
            _ => self.http.fmt(f)?,
        }
        match self.remedy {
            Some(remedy) => write!(f, " ({remedy})"),
            None => Ok(()),
        }
    }
}

impl StdError for ApiError {}
