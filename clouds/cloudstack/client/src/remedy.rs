//! What to do about answers whose cause lies with who asked: a role that lacks a command, a clock that is wrong, or a URL that is not the
//! API's.

use bowline_cloud_http::{Failure, HeaderMap, HttpError, StatusCode, Url};
use jiff::Timestamp;

/// From which difference on a clock is told of, in minutes: a signature is good for ten, and some servers refuse one that is
/// good for more than 15.
const TELLING_MINUTES: u64 = 2;

/// How the URL ends on servers that were installed as documented.
const USUAL_PATH: &str = "/client/api";

/// What to do where a command is refused, and not for its keys (`reason`).
pub(crate) fn of_role(reason: &str, command: &str) -> String {
    format!("{reason}: see whether the role of their account allows `{command}`")
}

/// What to do where a part of the cloud is not reached.
pub(crate) const OF_ROUTER: &str = "whoever runs CloudStack looks at the virtual router, the agent of its host, and the log of the management server";

/// What to do where a signature was refused and nothing tells why.
pub(crate) fn of_keys_or_clock() -> String {
    "the keys are wrong or were revoked, or the clock of this machine is off by minutes: compare it with `date -u`".to_owned()
}

/// How our clock stands to that of an answer.
pub(crate) enum Clock {
    /// Right enough for a signature.
    Right,
    /// Off, with what to do.
    Off(String),
    /// The answer does not tell.
    Unknown,
}

/// How our clock stands to that of the answer by which a signature was refused. The management server itself sends no
/// `Date` (`ServerDaemon.java`: `setSendDateHeader(false)`); proxies in front of it do.
pub(crate) fn clock(headers: &HeaderMap, now: Timestamp) -> Clock {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let Some(theirs) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else {
        return Clock::Unknown;
    };
    let theirs = theirs.timestamp();
    let seconds = now.duration_since(theirs).as_secs();
    let minutes = seconds.unsigned_abs() / 60;
    if minutes < TELLING_MINUTES {
        return Clock::Right;
    }
    let place = if seconds < 0 { "behind" } else { "ahead of" };
    Clock::Off(format!(
        "the clock of this machine is {minutes} min {place} that of the answer, and a signature is good for some minutes only: \
         correct the time of the node"
    ))
}

/// What to do where the project of the configuration is not there, or the account of the keys is not in it.
pub(crate) fn of_project() -> String {
    "set `project-id` of the configuration to the ID of a project that the account of these keys is in, or leave it out".to_owned()
}

/// What to do where what answers at the URL is not the API.
pub(crate) fn of_url(url: &Url, error: &HttpError) -> Option<String> {
    let is_elsewhere = match &error.failure {
        Failure::Status(failure) => {
            failure.status.is_redirection()
                || matches!(
                    failure.status,
                    StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
                )
        }
        Failure::Decode { excerpt, .. } => excerpt.starts_with('<'),
        _ => false,
    };
    if !is_elsewhere {
        return None;
    }
    // Whatever else stands in it may be a secret.
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path();
    let what = if path.trim_end_matches('/').ends_with(USUAL_PATH) {
        "correct scheme, host or port of `api-url`".to_owned()
    } else {
        format!(
            "`api-url` is the whole URL, such as {}://{host}{port}{USUAL_PATH}",
            url.scheme()
        )
    };
    Some(format!(
        "what answers at {}://{host}{port}{path} is not CloudStack's API: {what}",
        url.scheme()
    ))
}
