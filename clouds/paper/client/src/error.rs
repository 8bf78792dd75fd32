//! Why a call failed.

use std::fmt;

use bowline_cloud_http::{Class, Classified, Failure, HttpError};
use serde::Deserialize;

/// A call that failed: what the API said, if it was the API that answered, and the failure below.
#[derive(Debug, Clone)]
pub struct ApiError {
    said: Option<Refusal>,
    http: HttpError,
}

/// The body of every refusal.
#[derive(Debug, Clone, Deserialize)]
struct Refusal {
    /// A word for programs.
    code: String,
    /// A text for people.
    message: String,
}

impl ApiError {
    // guide: proof
    /// Whether the API itself said that there is no such object.
    ///
    /// Any other 404 comes from something in between, or from a wrong base URL, and proves nothing: Nodes are deleted on
    /// this word.
    pub fn proves_absence(&self) -> bool {
        let is_said = self.said.as_ref().is_some_and(|said| said.code == "not_found");
        self.class() == Class::NotFound && is_said
    }
    // guide: end
}

// guide: class
/// The API means by each status what HTTP says.
impl Classified for ApiError {
    fn class(&self) -> Class {
        self.http.class()
    }
}
// guide: end

impl From<HttpError> for ApiError {
    fn from(http: HttpError) -> Self {
        let said = match &http.failure {
            Failure::Status(failure) => serde_json::from_slice(&failure.body).ok(),
            _ => None,
        };
        Self { said, http }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.said, self.http.status()) {
            (Some(said), Some(status)) => {
                let call = &self.http.call;
                let message = call.redact(&said.message);
                write!(
                    f,
                    "{}: {} {}: {status}: {message}",
                    call.operation, call.method, call.path
                )
            }
            _ => self.http.fmt(f),
        }
    }
}

impl std::error::Error for ApiError {}
