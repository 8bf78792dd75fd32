//! Why a call failed, in terms of what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{Class, Classified, Failure, HttpError, speaks_of_limit};
use serde::Deserialize;
use serde_json::Value;

/// The call that asks for a token.
pub(crate) const TOKEN: &str = "token.create";

/// A call that failed.
///
/// The text is `operation: METHOD path: status: message: validation errors`, without query, headers, token, or anything of
/// a body that is not in the API's words.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it. [`Class::NotFound`] is said by the API itself. [`Class::Denied`] may also mean that there is no such
    /// object: the APIs do not tell these apart.
    pub class: Class,
    /// What the API said.
    pub message: Option<Box<str>>,
    /// The failure below.
    pub http: HttpError,
    /// What to do about it, where it is known.
    pub(crate) remedy: Option<Box<str>>,
}

/// The longest that an API is left alone because it says so, between two tries of a Service or a Node as within one call.
const LONGEST: Duration = Duration::from_secs(30);

impl ApiError {
    /// Whether a write may have had its effect: look before trying again. One that failed for want of a token was never
    /// sent, or was refused, whatever became of the request for the token.
    pub fn maybe_applied(&self) -> bool {
        !self.is_of_token() && self.http.maybe_applied()
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
        self.http.call.operation == TOKEN
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
        let said: Option<Said> = match &http.failure {
            Failure::Status(failure) => serde_json::from_slice(&failure.body).ok(),
            _ => None,
        };
        let mut error = Self {
            class: http.class(),
            message: said.map(|said| http.call.redact(&said.text()).into()),
            http,
            remedy: None,
        };
        let at_most = |after: Option<Duration>| after.map(|after| after.min(LONGEST));
        error.class = match (error.class, error.status()) {
            // A page of HTML comes from something in between, or from a wrong base URL, and proves nothing.
            (Class::NotFound, _) if error.message.is_none() => Class::Invalid,
            // Nothing of the kind is left to be bought.
            (_, Some(406)) => Class::Exhausted,
            // The account may have no more, which has no code of its own.
            (Class::Invalid | Class::Denied | Class::Conflict, Some(_))
                if error.message.as_deref().is_some_and(speaks_of_limit) =>
            {
                Class::Exhausted
            }
            // The API itself failed at this very call; others may be fine.
            (Class::Unavailable { after: None }, Some(500)) => Class::Unusable,
            (Class::Unavailable { after }, _) => Class::Unavailable {
                after: at_most(after),
            },
            (Class::Throttled { after }, _) => Class::Throttled {
                after: at_most(after),
            },
            (class, _) => class,
        };
        error
    }
}

impl Classified for ApiError {
    fn class(&self) -> Class {
        self.class
    }

    fn maybe_applied(&self) -> bool {
        self.maybe_applied()
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
        match &self.remedy {
            Some(remedy) => write!(f, " ({remedy})"),
            None => Ok(()),
        }
    }
}

impl StdError for ApiError {}
