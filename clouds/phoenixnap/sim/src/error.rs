//! Refusals as the APIs word them: a message, and what was wrong with single fields.

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::service::json;
use http::StatusCode;
use serde_json::json as value;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    message: String,
    validation_errors: Vec<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            validation_errors: Vec::new(),
        }
    }

    /// A bad request as a whole.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A request whose fields are wrong, each named in front of its text.
    pub(crate) fn validation(errors: Vec<String>) -> Self {
        Self {
            validation_errors: errors,
            ..Self::bad("Request validation failed.")
        }
    }

    /// The same, if anything is wrong.
    pub(crate) fn if_any(errors: Vec<String>) -> Result<(), Self> {
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Self::validation(errors)),
        }
    }

    /// A state that does not allow it now.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// A status that a switch of the simulator names.
    pub(crate) fn switched(status: u16, message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            message,
        )
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn reply(&self) -> Reply {
        let mut body = value!({ "message": self.message });
        if !self.validation_errors.is_empty() {
            body["validationErrors"] = value!(self.validation_errors);
        }
        json(self.status, &body)
    }
}
