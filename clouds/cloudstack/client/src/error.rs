//! Why a call failed, in terms of what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{Failure, HttpError, LONGEST_DELAY, StatusCode, StatusFailure};
use serde::Deserialize;

use crate::sign::Parameters;

/// A call, or the job that it started, that failed.
///
/// The text is `CloudStack API error CODE (CSExceptionErrorCode: N): TEXT` if the API said something, else `command:
/// METHOD path: what failed`; without query, form, keys or signature.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it.
    pub kind: ErrorKind,
    /// What the API itself said. None: no answer, or one of something in between.
    pub said: Option<Box<Said>>,
    /// The failure below.
    pub http: HttpError,
    /// What failed, where the failure below does not say it for people.
    note: Option<Box<str>>,
    /// Set if a job failed, not the call.
    job: Option<JobText>,
}

/// In which form a job told its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobText {
    /// As an object, with a code.
    Object,
    /// As a bare text.
    Bare,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 431 of the form that says that an id of ours names nothing: see [`Missing`].
    NotFound,
    /// 401: the keys or the signature are refused; or the command is unknown.
    Unauthorized,
    /// 531: the account may not use this object.
    Forbidden,
    /// 432: the command is unknown to the server, or not open to the account.
    CommandUnavailable,
    /// 430, 431, 405 or another refusal: the request itself is wrong, or the object is not in the right state; or nothing
    /// that answers is the API, as a redirect says.
    Invalid,
    /// 532 or 535: a limit of the account is reached.
    LimitReached,
    /// 533: the cloud itself has no more of it.
    NoCapacity,
    /// 536: the object is in use.
    InUse,
    /// 537: another rule has this port of this address.
    RuleConflict,
    /// 429: too many calls.
    Throttled {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// 530, 534, 503 or any other 5xx: the API, or a device behind it, is in trouble.
    Server {
        /// How long the API asks to wait.
        retry_after: Option<Duration>,
    },
    /// The project that the settings name does not exist for these keys.
    NoSuchProject,
    /// A list did not come to the count that the server itself gave.
    Truncated,
    /// No answer, or none that arrived whole.
    Transport,
    /// The answer was good but could not be read. A write had its effect.
    Decode,
    /// The write was not sent, because this process may not write now.
    GateClosed,
    /// The process is shutting down; nothing was sent.
    Cancelled,
}

/// What the API said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The code: the HTTP status of refused calls.
    pub code: u16,
    /// The server's own finer code; 0 if it sent none. Nothing is to be concluded from it.
    pub cs_code: i64,
    /// The text, for people.
    pub text: String,
    /// Which id it does not know, if that is what it says.
    pub missing: Option<Missing>,
}

/// An id that names nothing, as the API itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The parameter.
    pub parameter: String,
    /// Its value.
    pub value: String,
}

/// The members of an error, be it the answer to a call or the result of a job.
#[derive(Deserialize)]
pub(crate) struct Members {
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    pub(crate) errorcode: Option<i64>,
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    cserrorcode: Option<i64>,
    #[serde(default, deserialize_with = "crate::wire::words_or_none")]
    errortext: Option<String>,
}

impl ApiError {
    /// A call that did not end in a good answer.
    pub(crate) fn of_call(http: HttpError, sent: &Parameters) -> Self {
        let Failure::Status(failure) = &http.failure else {
            return Self::bare(kind_without_status(&http.failure), http);
        };
        let status = failure.status;
        let members = crate::envelope::open(&failure.body)
            .ok()
            .and_then(|payload| serde_json::from_str::<Members>(payload.get()).ok())
            .filter(|members| members.errorcode.is_some() || members.errortext.is_some());
        let Some(members) = members else {
            return Self::bare(kind(status.as_u16(), failure.retry_after), http);
        };
        Self::said(members.said(status.as_u16()), http, Some(sent))
    }

    /// An answer that was good but says itself that the call failed.
    pub(crate) fn of_answer(members: Members, answer: HttpError, sent: &Parameters) -> Self {
        Self::said(members.said(0), answer, Some(sent))
    }

    /// A job that failed.
    pub(crate) fn of_job(said: Said, form: JobText, answer: HttpError) -> Self {
        Self {
            job: Some(form),
            ..Self::said(said, answer, None)
        }
    }

    /// A failure that only this client sees, in words for people.
    pub(crate) fn noted(kind: ErrorKind, note: String, http: HttpError) -> Self {
        Self {
            note: Some(note.into()),
            ..Self::bare(kind, http)
        }
    }

    fn bare(kind: ErrorKind, http: HttpError) -> Self {
        Self {
            kind,
            said: None,
            http,
            note: None,
            job: None,
        }
    }

    /// `sent` is what the call sent: that something is missing is believed only of what was asked for.
    fn said(mut said: Said, mut http: HttpError, sent: Option<&Parameters>) -> Self {
        let retry_after = http.retry_after().or_else(|| stated(&said.text));
        let mut kind = kind(said.code, retry_after);
        said.missing = missing(&said.text).filter(|missing| {
            let value = sent.and_then(|sent| sent.value(&missing.parameter));
            value.is_some_and(|value| value.split(',').any(|one| one == missing.value))
        });
        // A project that is gone says nothing of what was looked for in it.
        let counts = |missing: &Missing| missing.parameter != "projectid";
        if kind == ErrorKind::Invalid && said.missing.as_ref().is_some_and(counts) {
            kind = ErrorKind::NotFound;
        }
        said.text = http.call.redact(&said.text);
        if !matches!(http.failure, Failure::Status(_)) {
            // The answer came with a good status; what it says is what counts.
            http.failure = Failure::Status(Box::new(StatusFailure {
                status: StatusCode::from_u16(said.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                headers: Default::default(),
                retry_after,
                body: Default::default(),
                excerpt: said.text.clone(),
            }));
        }
        Self {
            said: Some(said.into()),
            ..Self::bare(kind, http)
        }
    }

    /// Whether a write may have had its effect: look before trying again.
    pub fn maybe_applied(&self) -> bool {
        match self.kind {
            ErrorKind::Server { .. }
            | ErrorKind::Transport
            | ErrorKind::Decode
            | ErrorKind::Truncated
            | ErrorKind::GateClosed
            | ErrorKind::Cancelled => self.http.maybe_applied(),
            // Refused before anything was done, if it is the API that says so.
            _ if self.said.is_some() => self.job.is_some(),
            _ => self.http.maybe_applied(),
        }
    }

    /// Whether the API itself said that the named id does not exist.
    pub fn proves_absence_of(&self, id: &str) -> bool {
        let missing = self.said.as_ref().and_then(|said| said.missing.as_ref());
        self.kind == ErrorKind::NotFound
            && missing.is_some_and(|missing| missing.value.eq_ignore_ascii_case(id))
    }

    /// Whether the other side could not be trusted, or does not speak TLS.
    pub fn is_insecure(&self) -> bool {
        matches!(self.http.failure, Failure::Tls(_))
    }

    /// The API's code, or the HTTP status of an answer by something else.
    pub fn code(&self) -> Option<u16> {
        match &self.said {
            Some(said) => Some(said.code),
            None => self.http.status().map(|status| status.as_u16()),
        }
    }
}

impl Members {
    /// `status` stands in for a code that is missing.
    pub(crate) fn said(self, status: u16) -> Said {
        let code = self.errorcode.and_then(|code| u16::try_from(code).ok());
        Said {
            code: code.unwrap_or(status),
            cs_code: self.cserrorcode.unwrap_or_default(),
            text: self.errortext.unwrap_or_default(),
            missing: None,
        }
    }
}

/// The meaning of the codes: those from 430 are the API's own.
fn kind(code: u16, retry_after: Option<Duration>) -> ErrorKind {
    match code {
        401 => ErrorKind::Unauthorized,
        429 => ErrorKind::Throttled { retry_after },
        432 => ErrorKind::CommandUnavailable,
        531 => ErrorKind::Forbidden,
        532 | 535 => ErrorKind::LimitReached,
        533 => ErrorKind::NoCapacity,
        536 => ErrorKind::InUse,
        537 => ErrorKind::RuleConflict,
        // Not said by the API: something in between gave up waiting.
        408 => ErrorKind::Server { retry_after },
        // A redirect is not followed: the URL in the settings is to be the API's own.
        300..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Server { retry_after },
    }
}

fn kind_without_status(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::Decode { .. } | Failure::TooLarge { .. } => ErrorKind::Decode,
        Failure::GateClosed(_) => ErrorKind::GateClosed,
        Failure::Cancelled => ErrorKind::Cancelled,
        Failure::Unsendable(_) => ErrorKind::Invalid,
        _ => ErrorKind::Transport,
    }
}

/// The time that the API's rate limiter tells in its text, in milliseconds, where other APIs have a header.
fn stated(text: &str) -> Option<Duration> {
    let (_, rest) = text.split_once("retry after ")?;
    let (number, _) = rest.split_once(" ms")?;
    let stated = Duration::from_millis(number.parse().ok()?);
    // As for one that a header states.
    (!stated.is_zero()).then(|| stated.min(LONGEST_DELAY))
}

/// Reads the one sentence with which the API says that an id names nothing.
fn missing(text: &str) -> Option<Missing> {
    let (_, rest) = text.split_once("Invalid parameter ")?;
    let (parameter, rest) = rest.split_once(" value=")?;
    let (value, _) = rest.split_once(" due to incorrect long value format, or entity does not exist")?;
    Some(Missing {
        parameter: parameter.to_owned(),
        value: value.to_owned(),
    })
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CloudStack API error {} (CSExceptionErrorCode: {}): {}",
            self.code, self.cs_code, self.text
        )
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.note, &self.said) {
            (Some(note), _) => f.write_str(note),
            // What operators and their alerts know of failed jobs begins with these words.
            (None, Some(said)) if self.job == Some(JobText::Object) => write!(f, "Undefined error: {said}"),
            (None, Some(said)) if self.job == Some(JobText::Bare) => f.write_str(&said.text),
            (None, Some(said)) => said.fmt(f),
            (None, None) => self.http.fmt(f),
        }
    }
}

impl StdError for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_limiters_time_is_read_from_its_text() {
        let text = "The given user has reached his/her account api limit, please retry after 59967 ms.";
        assert_eq!(stated(text), Some(Duration::from_millis(59_967)));
        for long in ["3600000", "18446744073709551615"] {
            assert_eq!(stated(&format!("retry after {long} ms")), Some(LONGEST_DELAY));
        }
        for other in [
            "",
            "please retry",
            "retry after some ms",
            "retry after 5",
            "retry after 0 ms",
            "retry after -1 ms",
        ] {
            assert_eq!(stated(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_missing_is_read_from_the_one_sentence() {
        let text = "Unable to execute API command listvirtualmachines due to invalid value. Invalid parameter id \
                    value=9c0b due to incorrect long value format, or entity does not exist or due to incorrect \
                    parameter annotation for the field in api cmd class.";
        let expected = Missing {
            parameter: "id".to_owned(),
            value: "9c0b".to_owned(),
        };
        assert_eq!(missing(text), Some(expected));
        for other in [
            "",
            "entity does not exist",
            "Invalid parameter id",
            "Invalid parameter id value=9c0b is wrong",
        ] {
            assert_eq!(missing(other), None, "{other}");
        }
    }
}
