//! Failures of the APIs, in terms of what to do next.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_phoenixnap_client::{ApiError, ErrorKind as ApiErrorKind};

/// How long to leave an API alone when it says that it is too much but not for how long.
const THROTTLED: Duration = Duration::from_secs(10);

/// The longest that an API is left alone because it says so, between two tries of a Service or a Node as within one call.
const LONGEST: Duration = Duration::from_secs(30);

/// Translates a failure.
pub(crate) fn cloud_error(error: &ApiError) -> CloudError {
    let kind = match error.kind {
        // The API itself failed at this very call; others may be fine.
        ApiErrorKind::Server { retry_after: None } if error.status() == Some(500) => ErrorKind::Other,
        ApiErrorKind::NotFound => ErrorKind::NotFound,
        ApiErrorKind::Unauthorized | ApiErrorKind::Forbidden => ErrorKind::Denied,
        ApiErrorKind::Invalid => ErrorKind::Invalid,
        ApiErrorKind::Conflict => ErrorKind::Conflict,
        ApiErrorKind::Throttled { retry_after } => ErrorKind::Throttled {
            after: retry_after.unwrap_or(THROTTLED).min(LONGEST),
        },
        ApiErrorKind::Server {
            retry_after: Some(after),
        } => ErrorKind::Throttled {
            after: after.min(LONGEST),
        },
        ApiErrorKind::Server { retry_after: None }
        | ApiErrorKind::SoldOut
        | ApiErrorKind::Transport
        | ApiErrorKind::GateClosed
        | ApiErrorKind::Cancelled => ErrorKind::Transient,
        _ => ErrorKind::Other,
    };
    CloudError::new(kind, error.to_string())
}
