//! Failures of the API, in terms of what to do next.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_cloudstack_client::{ApiError, ErrorKind as ApiErrorKind};

/// How long to leave the API alone when it says that it is too much but not for how long.
const THROTTLED: Duration = Duration::from_secs(10);

/// Translates a failure.
pub(crate) fn cloud_error(error: &ApiError) -> CloudError {
    let kind = match error.kind {
        ApiErrorKind::NotFound => ErrorKind::NotFound,
        ApiErrorKind::Unauthorized
        | ApiErrorKind::Forbidden
        | ApiErrorKind::CommandUnavailable
        | ApiErrorKind::NoSuchProject => ErrorKind::Denied,
        ApiErrorKind::Invalid => ErrorKind::Invalid,
        ApiErrorKind::InUse | ApiErrorKind::RuleConflict => ErrorKind::Conflict,
        ApiErrorKind::Throttled { retry_after } => ErrorKind::Throttled {
            after: retry_after.unwrap_or(THROTTLED),
        },
        ApiErrorKind::Server {
            retry_after: Some(after),
        } => ErrorKind::Throttled { after },
        ApiErrorKind::Server { retry_after: None }
        | ApiErrorKind::LimitReached
        | ApiErrorKind::NoCapacity
        | ApiErrorKind::Truncated
        | ApiErrorKind::Transport
        | ApiErrorKind::GateClosed
        | ApiErrorKind::Cancelled => ErrorKind::Transient,
        _ => ErrorKind::Other,
    };
    CloudError::new(kind, error.to_string())
}
