//! How long keys that failed wait before they are tried again.

use std::time::Duration;

use bowline_edge::{Backoff, Jitter};

/// The schedule of Services that every Go manager shows its users: 5, 10, 20, 40, 80, 160, then 300 s, exact.
#[must_use]
pub fn of_services() -> Backoff {
    Backoff {
        base: Duration::from_secs(5),
        max: Duration::from_secs(300),
        jitter: None,
    }
}

/// The schedule of Nodes: 1 s to 60 s with jitter. Long enough not to beat a cloud that is down, short enough to be
/// there soon when it is back.
#[must_use]
pub fn of_nodes(jitter: Jitter) -> Backoff {
    Backoff {
        base: Duration::from_secs(1),
        max: Duration::from_secs(60),
        jitter: Some(jitter),
    }
}
