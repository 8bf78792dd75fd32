//! A good answer.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::error::{Call, Failure, HttpError};
use crate::metrics::Exchange;

/// An answer with a status from 200 to 299, read to its end.
///
/// It is counted when the last clone goes: only who reads it can tell whether it is an answer to the question.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    pub(crate) call: Arc<Call>,
    pub(crate) counted: Arc<Mutex<Exchange>>,
}

impl Response {
    /// Decodes the body as JSON.
    ///
    /// # Errors
    ///
    /// [`Failure::Decode`], which keeps the status and the start of the body. The call itself had its effect.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        self.decode().map_err(|reason| self.unusable(reason))
    }

    /// The same, where a part of the body may be left out: what cannot be decoded says nothing about the whole answer.
    ///
    /// # Errors
    ///
    /// As there; it counts as an answer all the same.
    pub fn json_or_parts<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        self.decode().map_err(|reason| self.error(reason))
    }

    fn decode<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // The decoder's text may quote the body.
            if self.call.confidential {
                format!(
                    "{:?} error at line {} column {}",
                    error.classify(),
                    error.line(),
                    error.column()
                )
                .to_lowercase()
            } else {
                crate::secret::redact(&error.to_string(), &self.call.secrets)
            }
        })
    }

    /// An error that says that this answer, though good, cannot be used: for what JSON decoding alone cannot see. A read with
    /// such an answer has read nothing.
    pub fn unusable(&self, reason: impl Into<String>) -> HttpError {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.was_unreadable();
        self.error(reason)
    }

    /// An error for the failure of something else, which this answer tells: that of a job.
    pub fn told(&self) -> HttpError {
        self.error("")
    }

    /// An error for a refusal in an answer whose status is good. It counts as one with `code` for a status.
    pub fn refused(&self, code: StatusCode) -> HttpError {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.was_refused(code);
        self.error("")
    }

    fn error(&self, reason: impl Into<String>) -> HttpError {
        HttpError {
            call: self.call.clone(),
            failure: Failure::Decode {
                status: self.status,
                reason: reason.into(),
                excerpt: self.call.excerpt(&self.body),
            },
        }
    }

    /// Which call this answers.
    pub fn call(&self) -> &Call {
        &self.call
    }
}

/// Whether a body is for people: a proxy, or a cloud that is being repaired, may answer every request with such a page. No cloud's
/// API answers with markup.
pub(crate) fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// Whether a body begins as JSON and does not end as such: a proxy may cut an answer off and make its length fit.
pub(crate) fn is_cut(body: &[u8]) -> bool {
    let text = body.trim_ascii();
    match text.first() {
        Some(b'{') => text.last() != Some(&b'}'),
        Some(b'[') => text.last() != Some(&b']'),
        _ => false,
    }
}
