//! Failures of the API, in terms of what to do next.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_paper_client::ApiError;

/// How long to leave the API alone when it says that it is too much but not for how long.
const THROTTLED: Duration = Duration::from_secs(10);

// guide: errors
/// Translates a failure. The loops look at the kind alone, so this table is all that they know of the API's errors.
pub(crate) fn cloud_error(error: &ApiError) -> CloudError {
    let kind = match (error.status().map(|status| status.as_u16()), error.retry_after()) {
        (Some(401 | 403), _) => ErrorKind::Denied,
        (Some(404), _) => ErrorKind::NotFound,
        (Some(409), _) => ErrorKind::Conflict,
        (Some(429), after) => ErrorKind::Throttled {
            after: after.unwrap_or(THROTTLED),
        },
        (Some(400..500), _) => ErrorKind::Invalid,
        (Some(500..), Some(after)) => ErrorKind::Throttled { after },
        (Some(500..) | None, _) => ErrorKind::Transient,
        (Some(_), _) => ErrorKind::Other, // a good answer that cannot be read
    };
    CloudError::new(kind, error.to_string())
}
// guide: end

/// Translates a failed write: what is missing then means that the cloud moved meanwhile, so that one has to look again.
pub(crate) fn write_error(error: &ApiError) -> CloudError {
    let translated = cloud_error(error);
    match translated.kind() {
        ErrorKind::NotFound => CloudError::new(ErrorKind::Conflict, translated.message()),
        _ => translated,
    }
}
