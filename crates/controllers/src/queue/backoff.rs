//! How long keys that failed wait before they are tried again.

use std::time::Duration;

use bowline_cloud_provider::CloudError;
use bowline_kube_io::KubeError;
use bowline_transport::{Backoff, Jitter};

/// What was said with a failure about the time of the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// Nothing: the back-off decides.
    Nothing,
    /// By the cloud: after exactly this time. The back-off neither counts nor grows.
    Exactly(Duration),
    /// By the API server: not before this time. The back-off counts and grows all the same, for each try asks the cloud first,
    /// which is not the one that is busy.
    AtLeast(Duration),
    /// The same would be refused sooner, whoever asks: the back-off decides, or this time if it is longer, and nothing comes before it.
    NotSooner(Duration),
    /// Nothing new: a try is planned already, after this time. The back-off neither counts nor grows, and another cause may come sooner.
    Planned(Duration),
}

impl RetryAfter {
    /// What the cloud said.
    #[must_use]
    pub fn by_cloud(error: &CloudError) -> Self {
        error.retry_after().map_or(Self::Nothing, Self::Exactly)
    }

    /// What the API server said.
    #[must_use]
    pub fn by_kube(error: &KubeError) -> Self {
        error.retry_after().map_or(Self::Nothing, Self::AtLeast)
    }

    /// The same of a write that costs nothing but itself.
    #[must_use]
    pub fn by_kube_write(error: &KubeError) -> Self {
        Self::NotSooner(error.retry_after().unwrap_or_default())
    }

    /// The time to the next try, where the back-off asks for this one.
    #[must_use]
    pub fn delay(self, backoff: Duration) -> Duration {
        match self {
            Self::Nothing => backoff,
            Self::Exactly(retry_after) | Self::Planned(retry_after) => retry_after,
            Self::AtLeast(retry_after) | Self::NotSooner(retry_after) => retry_after.max(backoff),
        }
    }
}

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
