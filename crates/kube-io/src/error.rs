//! What a request to the API server can fail with.

use std::time::Duration;

use bowline_transport::stated_delay;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Deserializer};

/// A request that did not do what was asked. The text is the API server's where it gave one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KubeError {
    /// There is no such object (404).
    #[error("{0}")]
    NotFound(String),
    /// The object is not the one, or not in the version, that the request was made for (409); also an object that was
    /// created again under the same name, and a create of what exists.
    #[error("{0}")]
    Conflict(String),
    /// The identity may not do this (403). Where a role would help, the text names the rule it lacks and what stops
    /// working without it.
    #[error("{0}")]
    Forbidden(String),
    /// The API server does not know the identity (401).
    #[error("{0}")]
    Unauthorized(String),
    /// The API server refused the contents (400, 422).
    #[error("{0}")]
    Invalid(String),
    /// The list or watch was asked to go on from a version that is no longer kept (410): start again.
    #[error("{0}")]
    Expired(String),
    /// The API server is busy (429, or an answer that states a delay): try again after this time.
    #[error("{}{message}", busy(*code))]
    Throttled {
        /// The HTTP status: 429, or 500 and more.
        code: u16,
        /// The delay that the API server stated, 60 s at most, else 1 s.
        after: Duration,
        /// Its text.
        message: String,
    },
    /// The write was not sent: this process may not write now.
    #[error("the write was not sent: this process does not hold the lease")]
    GateClosed,
    /// No complete answer came in time. A write may have been made all the same.
    #[error("the API server did not answer in time")]
    Timeout,
    /// The API server could not be reached, or the connection broke. A write may have been made all the same.
    #[error("{0}")]
    Transport(String),
    /// Any other refusal.
    #[error("{message}")]
    Server {
        /// The HTTP status.
        code: u16,
        /// The API server's text.
        message: String,
    },
    /// The answer is longer than so many MiB, and was not read to its end.
    #[error(
        "answer of the API server: it is longer than {0} MiB. Look for a proxy that answers for the API server."
    )]
    TooLong(usize),
    /// The answer could not be understood.
    #[error("answer of the API server: {0}")]
    Decode(String),
}

/// The part of `meta/v1 Status` that is looked at.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: u16,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(default)]
    causes: Vec<Cause>,
    #[serde(default, deserialize_with = "seconds")]
    retry_after_seconds: u64,
}

/// The longest that the API server is left alone because it says so. Its own answers state a few seconds, and 30 s while it
/// starts; without a bound a mistaken number would have a watch, a list or a patch wait for ever.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The delay where nothing usable is stated.
const DELAY: Duration = Duration::from_secs(1);

/// A number of seconds. What is none, or less than none, is 0: an error is not lost because of it.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let stated = serde_json::Value::deserialize(deserializer)?;
    let is_large = stated.as_f64().is_some_and(|stated| stated > 1.0);
    Ok(stated
        .as_u64()
        .unwrap_or(if is_large { LONGEST_DELAY.as_secs() } else { 0 }))
}

#[derive(Debug, Default, Deserialize)]
struct Cause {
    #[serde(default)]
    field: String,
    #[serde(default)]
    reason: String,
}

/// Whether a refusal says that the namespace is being deleted: it takes nothing new from anybody, whatever his rights.
pub(crate) fn is_of_leaving_namespace(body: &[u8]) -> bool {
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let causes = status.details.unwrap_or_default().causes;
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// What stands before the text of an answer that states a delay. A 429 often says no more than that there were too many requests; a 5xx
/// tells its own cause.
fn busy(code: u16) -> &'static str {
    match code {
        429 => "the API server is too busy to answer (429): ",
        _ => "",
    }
}

/// How much of a body that is no `Status` is repeated in an error.
const EXCERPT: usize = 200;

impl KubeError {
    /// An object lacks what every API server writes into an object of its kind.
    pub(crate) fn missing(field: &str) -> Self {
        Self::Decode(format!(
            "it has no `{field}` as every API server writes it. Look for a proxy that answers for the API server."
        ))
    }

    /// Names the object that could not be understood.
    pub(crate) fn about(self, kind: &str, name: &str) -> Self {
        match self {
            Self::Decode(why) => Self::Decode(format!("{kind} {name}: {why}")),
            other => other,
        }
    }

    /// Reads a refusal.
    pub(crate) fn from_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        if status.message.is_empty() {
            let text = String::from_utf8_lossy(body);
            let excerpt: String = text.trim().chars().take(EXCERPT).collect();
            status.message = if excerpt.is_empty() {
                code.to_string()
            } else {
                format!("{code}: {excerpt}")
            };
        }
        status.code = code.as_u16();
        Self::from_status(status, stated_delay(headers, LONGEST_DELAY))
    }

    /// Reads a refusal that came as an object, such as in the middle of a watch.
    pub(crate) fn from_status(status: Status, stated_delay: Option<Duration>) -> Self {
        let Status {
            message,
            code,
            details,
        } = status;
        let details = details.unwrap_or_default();
        let stated = stated_delay.or((details.retry_after_seconds > 0)
            .then(|| Duration::from_secs(details.retry_after_seconds).min(LONGEST_DELAY)));
        let other_object = || details.causes.iter().any(|cause| cause.field == "metadata.uid");
        match (code, stated) {
            (404, _) => Self::NotFound(message),
            (409, _) => Self::Conflict(message),
            // A patch for another UID is refused as an attempt to change the field.
            (422, _) if other_object() => Self::Conflict(message),
            (403, _) => Self::Forbidden(message),
            (401, _) => Self::Unauthorized(message),
            (400 | 422, _) => Self::Invalid(message),
            (410, _) => Self::Expired(message),
            (429, stated) => Self::Throttled {
                code,
                after: stated.unwrap_or(DELAY),
                message,
            },
            (500.., Some(after)) => Self::Throttled { code, after, message },
            (code, _) => Self::Server { code, message },
        }
    }

    /// The delay that the API server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { after, .. } => Some(*after),
            _ => None,
        }
    }

    /// Whether a write that met this may have been made all the same: it is no answer that says that nothing was done. A 429 is one:
    /// whoever is busy says so before it looks at what is asked.
    pub fn may_be_made(&self) -> bool {
        !matches!(
            self,
            Self::NotFound(_)
                | Self::Conflict(_)
                | Self::Forbidden(_)
                | Self::Unauthorized(_)
                | Self::Invalid(_)
                | Self::Throttled { code: 429, .. }
                | Self::GateClosed
        )
    }

    /// Whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// Whether the object has moved on: read it again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, headers: &[(&'static str, &str)], body: &str) -> KubeError {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        KubeError::from_answer(StatusCode::from_u16(code).unwrap(), &map, body.as_bytes())
    }

    #[test]
    fn the_servers_words_are_the_text() {
        let body = r#"{"kind":"Status","message":"nodes \"a\" not found","code":404}"#;
        assert_eq!(
            answer(404, &[], body),
            KubeError::NotFound("nodes \"a\" not found".into())
        );
        assert_eq!(
            answer(502, &[], "bad luck").to_string(),
            "502 Bad Gateway: bad luck"
        );
        assert_eq!(answer(500, &[], "").to_string(), "500 Internal Server Error");
        assert_eq!(
            answer(429, &[], r#"{"kind":"Status","message":"injected","code":429}"#).to_string(),
            "the API server is too busy to answer (429): injected"
        );
    }

    #[test]
    fn a_stated_delay_means_throttled() {
        let after = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(answer(429, &[("retry-after", "7")], "{}").retry_after(), after(7));
        assert_eq!(answer(429, &[], "{}").retry_after(), after(1));
        assert_eq!(
            answer(504, &[], r#"{"details":{"retryAfterSeconds":3}}"#).retry_after(),
            after(3)
        );
        assert_eq!(answer(504, &[], "{}").retry_after(), None);
    }

    #[test]
    fn a_stated_delay_has_a_bound_and_garbage_is_no_delay() {
        let now = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        for (stated, expected) in [
            ("60", 60),
            ("61", 60),
            ("3600", 60),
            ("18446744073709551616", 60),
            ("Wed, 21 Oct 2015 07:28:20 GMT", 20),
            ("Wed, 21 Oct 2015 08:28:00 GMT", 60),
            ("Wed, 21 Oct 2015 07:00:00 GMT", 1),
            ("0", 1),
            ("-5", 1),
            ("soon", 1),
        ] {
            let after = answer(429, &[("retry-after", stated), now], "{}").retry_after();
            assert_eq!(after, Some(Duration::from_secs(expected)), "{stated}");
        }
        for (stated, expected) in [
            ("7", Some(7)),
            ("3600", Some(60)),
            ("18446744073709551615", Some(60)),
            ("18446744073709551616", Some(60)),
            ("1e300", Some(60)),
            ("0", None),
            ("-5", None),
            ("0.5", None),
            ("\"7\"", None),
            ("null", None),
            ("[]", None),
        ] {
            let body = format!(r#"{{"message":"busy","details":{{"retryAfterSeconds":{stated}}}}}"#);
            let error = answer(503, &[], &body);
            assert_eq!(error.retry_after(), expected.map(Duration::from_secs), "{stated}");
            assert_eq!(error.to_string(), "busy", "{stated}");
        }
    }

    #[test]
    fn of_the_answers_that_state_a_delay_only_a_429_says_that_nothing_was_done() {
        let stated = [("retry-after", "7")];
        assert!(!answer(429, &stated, "{}").may_be_made());
        assert!(!answer(429, &[], "{}").may_be_made());
        for code in [500, 503, 504] {
            assert!(answer(code, &stated, "{}").may_be_made(), "{code}");
        }
    }

    #[test]
    fn a_patch_for_another_uid_is_a_conflict() {
        let body = r#"{"message":"immutable","details":{"causes":[{"field":"metadata.uid"}]}}"#;
        assert!(answer(422, &[], body).is_conflict());
        assert_eq!(
            answer(422, &[], r#"{"message":"bad"}"#),
            KubeError::Invalid("bad".into())
        );
    }
}
