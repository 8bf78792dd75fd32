//! What a provider says about how its cloud may be called.

use std::sync::Arc;
use std::time::Duration;

use bowline_transport::{Dates, Gate, OpenGate, Rate, Silences};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// How a cloud is called: names, limits and times. All have working defaults but the provider's name.
#[derive(Clone)]
pub struct CloudHttpConfig {
    /// The provider's name, as in `--cloud-provider`: the `provider` label of metrics and log lines.
    pub provider: &'static str,
    /// The `User-Agent` header of each request.
    pub user_agent: String,
    /// The longest time one exchange of a read may take, its body included. Default 20 s.
    pub read_timeout: Duration,
    /// The longest time one exchange of a write may take, its body included. Default 120 s: clouds hold a write back
    /// while another one to the same object is under way.
    pub write_timeout: Duration,
    /// The longest time one exchange may take that only prepares others, such as a sign-in; `None` is that of reads. Default `None`.
    pub preliminary_timeout: Option<Duration>,
    /// The longest time from the first try of a call to the begin of its last one, waiting for the budget included.
    /// Default 90 s.
    pub deadline: Duration,
    /// How many exchanges may be under way at a time. Default 16.
    pub max_in_flight: usize,
    /// How many exchanges may begin per second; `None` is no limit. Default `None`.
    pub rate: Option<Rate>,
    /// When and how often calls that may be repeated are repeated.
    pub retry: RetryPolicy,
    /// The longest body of a good answer, in bytes. Default 32 MiB (a thousand servers are about 3 MiB).
    pub max_body: usize,
    /// Where the jitter of the backoff comes from: the same seed gives the same delays.
    pub seed: u64,
    /// Asked before each request, and by each connection before it sends. Default: open.
    pub gate: Arc<dyn Gate>,
    /// No write is ever sent: for commands that only look. Default false.
    pub reads_only: bool,
    /// Whether every exchange is written to the log with its bodies, without secrets. Default false.
    pub shows_exchanges: bool,
    /// The metrics to count in; clones of one [`Metrics`] share their series.
    pub metrics: Metrics,
    /// Where it is noted what time it is at the cloud.
    pub dates: Dates,
    /// Where a read is noted that has no answer for long.
    pub silences: Silences,
    /// When this is cancelled, reads and waits end at once. A write already handed over runs to its end or timeout,
    /// because nobody could say whether it happened.
    pub shutdown: CancellationToken,
}

impl CloudHttpConfig {
    /// The defaults for a provider.
    pub fn new(provider: &'static str, user_agent: impl Into<String>) -> Self {
        Self {
            provider,
            user_agent: user_agent.into(),
            read_timeout: Duration::from_secs(20),
            write_timeout: Duration::from_secs(120),
            preliminary_timeout: None,
            deadline: Duration::from_secs(90),
            max_in_flight: 16,
            rate: None,
            retry: RetryPolicy::default(),
            max_body: 32 << 20,
            seed: 0,
            gate: Arc::new(OpenGate),
            reads_only: false,
            shows_exchanges: false,
            metrics: Metrics::default(),
            dates: Dates::default(),
            silences: Silences::default(),
            shutdown: CancellationToken::new(),
        }
    }

    /// The same for questions at start, which come before any leadership: a process that only follows reads nothing after
    /// them, so they begin no age of a last good read.
    pub fn for_questions(&self) -> Self {
        Self {
            gate: Arc::new(OpenGate),
            reads_only: true,
            metrics: self.metrics.without_good_reads(),
            ..self.clone()
        }
    }
}

/// When a call that may be repeated is repeated inside of one [`CloudHttp::send`](crate::CloudHttp::send).
///
/// The delay before try n + 1 is drawn from the upper half of `first_delay * 2^(n-1)` (at most `max_delay`), and is
/// never shorter than the cloud's `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a call is tried in all, the first try included. Default 3; 1 is no repeat.
    pub attempts: u32,
    /// The longest delay before the second try. Default 0.5 s.
    pub first_delay: Duration,
    /// The longest delay that backoff alone gives. Default 5 s.
    pub max_delay: Duration,
    /// A `Retry-After` beyond this ends the call instead of being waited for, and pauses the provider no longer than
    /// this. Default 30 s.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(5),
            max_retry_after: Duration::from_secs(30),
        }
    }
}
