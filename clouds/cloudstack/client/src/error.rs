//! Why a call failed, in terms of what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{
    Class, Classified, Failure, HttpError, LONGEST_DELAY, Response, StatusCode, StatusFailure, Url,
    speaks_of_limit,
};
use jiff::Timestamp;
use serde::Deserialize;

use crate::remedy::{self, Clock};
use crate::sign::Parameters;

/// Another rule has this port of this address.
const RULE_CONFLICT: u16 = 537;
/// A part of the cloud is not reached, such as the agent that writes to a virtual router.
const UNREACHABLE: u16 = 534;
/// Something failed, whatever it was.
const INTERNAL: u16 = 530;
/// What a 401 or 432 says of a command that there is not, or that the role of the account lacks (`ApiServer.commandAvailable`,
/// `DynamicRoleBasedAPIAccessChecker`). Of wrong keys a 401 says something else, and some servers say that of both.
const OF_ROLE: &str = "is not available for";

/// A call, or the job that it started, that failed.
///
/// The text is `CloudStack API error CODE (CSExceptionErrorCode: N): TEXT` if the API said something, else `command:
/// METHOD path: what failed`, then what to do where that is known; without query, form, keys or signature.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it. [`Class::NotFound`] is a 431 of the form that says that an id of ours names nothing: see
    /// [`Missing`]. A 401 is [`Class::Denied`] where its words are of the role of the account, or the command was refused before and
    /// the keys were good for another one since; else it is [`Class::Unauthenticated`], and may mean either.
    pub class: Class,
    /// What the API itself said. `None`: no answer, or one of something in between.
    pub said: Option<Box<Said>>,
    /// The failure below.
    pub http: HttpError,
    /// What this client has to say itself.
    words: Option<Box<Words>>,
    /// Set if a job failed, not the call.
    job: Option<JobText>,
}

/// What a client says of a failure.
#[derive(Debug, Clone)]
enum Words {
    /// What failed, where the failure below does not say it for people.
    Instead(String),
    /// What to do about it, where the answer tells it.
    Remedy(String),
}

/// In which form a job told its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobText {
    /// As an object, with a code.
    Object,
    /// As a bare text.
    Bare,
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
            return Self::bare(http.class(), http);
        };
        let status = failure.status;
        let members = crate::envelope::open(&failure.body)
            .ok()
            .and_then(|payload| serde_json::from_slice::<Members>(payload.get().as_bytes()).ok())
            .filter(|members| members.errorcode.is_some() || members.errortext.is_some());
        let Some(members) = members else {
            return Self::bare(class(status.as_u16(), failure.retry_after), http);
        };
        Self::said(members.said(status.as_u16()), http, Some(sent))
    }

    /// An answer that was good but says itself that the call failed.
    pub(crate) fn of_answer(members: Members, answer: &Response, sent: &Parameters) -> Self {
        let said = members.said(0);
        let code = StatusCode::from_u16(said.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::said(said, answer.refused(code), Some(sent))
    }

    /// The same with what to do, where the answer tells that a clock or the URL is wrong, or `of_role` knows that it is not the keys.
    /// `now` is the time of the answer by our clock.
    pub(crate) fn advised(
        mut self,
        url: &Url,
        now: Timestamp,
        of_role: impl FnOnce() -> Option<String>,
    ) -> Self {
        let remedy = match (&self.http.failure, &self.said) {
            (_, Some(said)) if said.is_of_role() => Some(remedy::of_role(
                "these keys may not use it",
                self.http.call.operation,
            )),
            (Failure::Status(failure), said) if self.is_of_keys() => {
                let said = said.as_ref();
                let of_role = || {
                    said.and_then(|_| of_role())
                        .inspect(|_| self.class = Class::Denied)
                };
                match remedy::clock(&failure.headers, now) {
                    Clock::Off(remedy) => Some(remedy),
                    Clock::Right => of_role(),
                    Clock::Unknown => of_role().or_else(|| said.map(|_| remedy::of_keys_or_clock())),
                }
            }
            (_, Some(said)) if said.is_of_project() => Some(remedy::of_project()),
            (_, None) => remedy::of_url(url, &self.http),
            _ => None,
        };
        self.words = remedy.map(|remedy| Words::Remedy(remedy).into()).or(self.words);
        self
    }

    /// The same with what may be wrong with the keys, where it is about these, or about the project that stands beside them.
    pub(crate) fn doubting(mut self, doubt: &str) -> Self {
        let is_of_project = self.said.as_ref().is_some_and(|said| said.is_of_project());
        if doubt.is_empty() || self.class != Class::Unauthenticated && !is_of_project {
            return self;
        }
        let remedy = match self.words.as_deref() {
            Some(Words::Remedy(remedy)) => format!("{remedy}; {doubt}"),
            _ => doubt.to_owned(),
        };
        self.words = Some(Words::Remedy(remedy).into());
        self
    }

    /// A job that failed.
    pub(crate) fn of_job(said: Said, form: JobText, answer: HttpError) -> Self {
        Self {
            job: Some(form),
            ..Self::said(said, answer, None)
        }
    }

    /// A failure that only this client sees, in words for people.
    pub(crate) fn noted(class: Class, note: String, http: HttpError) -> Self {
        Self {
            words: Some(Words::Instead(note).into()),
            ..Self::bare(class, http)
        }
    }

    fn bare(class: Class, http: HttpError) -> Self {
        Self {
            class,
            said: None,
            http,
            words: None,
            job: None,
        }
    }

    /// `sent` is what the call sent: that something is missing is believed only of what was asked for.
    fn said(mut said: Said, mut http: HttpError, sent: Option<&Parameters>) -> Self {
        let retry_after = http.retry_after().or_else(|| stated(&said.text));
        let mut class = class(said.code, retry_after);
        // A job that runs into a limit fails with the code of any failure.
        if matches!(class, Class::Invalid | Class::Denied) || said.code == INTERNAL {
            class = if speaks_of_limit(&said.text) {
                Class::Exhausted
            } else {
                class
            };
        }
        said.missing = missing(&said.text).filter(|missing| {
            let value = sent.and_then(|sent| sent.value(&missing.parameter));
            value.is_some_and(|value| value.split(',').any(|one| one == missing.value))
        });
        // A project that is gone says nothing of what was looked for in it.
        if class == Class::Invalid && said.missing.is_some() && !said.is_of_project() {
            class = Class::NotFound;
        }
        if said.is_of_role() {
            class = Class::Denied;
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
        let words = (said.code == UNREACHABLE).then(|| Words::Remedy(remedy::OF_ROUTER.to_owned()).into());
        Self {
            said: Some(said.into()),
            words,
            ..Self::bare(class, http)
        }
    }

    /// Whether a write may have had its effect: look before trying again.
    pub fn maybe_applied(&self) -> bool {
        match &self.said {
            // Refused before anything was done, if it is the API that says so.
            Some(_) if !matches!(self.class, Class::Unavailable { .. } | Class::Unanswered) => {
                self.job.is_some()
            }
            _ => self.http.maybe_applied(),
        }
    }

    /// Whether the API itself said that the named id does not exist.
    pub fn proves_absence_of(&self, id: &str) -> bool {
        let missing = self.said.as_ref().and_then(|said| said.missing.as_ref());
        self.class == Class::NotFound && missing.is_some_and(|missing| missing.value.eq_ignore_ascii_case(id))
    }

    /// Whether another rule has this port of this address.
    pub fn is_rule_conflict(&self) -> bool {
        self.code() == Some(RULE_CONFLICT)
    }

    /// Whether the server refuses the keys, or says so of a command that the role of their account lacks.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.code() == Some(401) && !self.said.as_ref().is_some_and(|said| said.is_of_role())
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

impl Said {
    /// Whether the role of the account lacks the command.
    fn is_of_role(&self) -> bool {
        matches!(self.code, 401 | 432) && self.text.contains(OF_ROLE)
    }

    /// Whether the project that the configuration names is not there.
    fn is_of_project(&self) -> bool {
        let missing = self.missing.as_ref();
        missing.is_some_and(|it| it.parameter == "projectid")
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

/// The meaning of the codes: those from 430 are the API's own. A status that is none of the API's is of something in between.
fn class(code: u16, after: Option<Duration>) -> Class {
    match code {
        // A command that is unknown to the server or not open to the account; an object that the account may not use.
        432 | 531 => Class::Denied,
        // Limits of the account; the cloud itself has no more.
        532 | 533 | 535 => Class::Exhausted,
        // In use; another rule has this port of this address.
        536 | RULE_CONFLICT => Class::Conflict,
        401 | 408 | 429 | 502 | 504 => Class::of_status(code, after),
        // A redirect is not followed: the URL in the settings is to be the API's own.
        300..=499 => Class::Invalid,
        _ => Class::Unavailable { after },
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
        match (self.words.as_deref(), &self.said) {
            (Some(Words::Instead(words)), _) => return f.write_str(words),
            // What operators and their alerts know of failed jobs begins with these words.
            (_, Some(said)) if self.job == Some(JobText::Object) => write!(f, "Undefined error: {said}"),
            (_, Some(said)) if self.job == Some(JobText::Bare) => f.write_str(&said.text),
            (_, Some(said)) => said.fmt(f),
            (_, None) => self.http.fmt(f),
        }?;
        match self.words.as_deref() {
            Some(Words::Remedy(remedy)) => write!(f, "; {remedy}"),
            _ => Ok(()),
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
