//! Why a call failed, and whether its effect may have happened all the same.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{Class, Classified};
use bowline_transport::{GateClosed, seconds, with_causes};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::secret::{Secret, redact};

/// The most characters of a body that a message shows.
const EXCERPT: usize = 200;

/// A call that did not end in a good answer.
///
/// The text is `operation: METHOD path: what failed`, with the host if there was no answer. It holds no query string, no header and no secret.
#[derive(Debug, Clone)]
pub struct HttpError {
    /// Which call it was.
    pub call: Arc<Call>,
    /// What failed.
    pub failure: Failure,
}

/// Names one call for messages.
#[derive(Debug)]
pub struct Call {
    /// The operation, e.g. `load-balancers.create`.
    pub operation: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path of the URL, without its query.
    pub path: String,
    /// Host and port of the URL.
    pub(crate) host: Option<String>,
    /// Texts that must not be shown, should the cloud repeat them in an answer.
    pub(crate) secrets: Vec<Secret>,
    /// Whether the answer itself is a secret, so that nothing of it may be shown.
    pub(crate) confidential: bool,
}

impl Call {
    /// Who was asked: host and, unless it is the scheme's own, port; `None` if the call did not get that far.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn name(&self) -> String {
        let Self {
            operation,
            method,
            path,
            ..
        } = self;
        format!("{operation}: {method} {path}")
    }

    /// The same, with whom it asks.
    pub(crate) fn with_host(&self) -> String {
        match self.host() {
            Some(host) => format!("{} (host {host})", self.name()),
            None => self.name(),
        }
    }

    /// A text from the answer with this call's secrets cut out, fit to be shown.
    pub fn redact(&self, text: &str) -> String {
        if self.confidential {
            String::new()
        } else {
            redact(text, &self.secrets)
        }
    }

    /// The start of a body on one line, fit to be shown.
    pub(crate) fn excerpt(&self, body: &[u8]) -> String {
        // Redact before cutting, or a secret across the cut would show its first half.
        let text = self.redact(&String::from_utf8_lossy(body));
        let mut line = String::new();
        for word in text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
        {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            if line.len() > EXCERPT {
                break;
            }
        }
        match line.char_indices().nth(EXCERPT) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        }
    }
}

/// What failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Time ran out, or something newer did not wait for the rest of it.
    #[error("{}", unanswered(*.phase, *.after))]
    Timeout {
        /// What was under way.
        phase: Phase,
        /// How long it was waited for.
        after: Duration,
    },
    /// No request may begin because the cloud asked for a pause, by a 429 with `Retry-After`; nothing was sent.
    #[error("not sent within {}: the cloud limits requests, and has asked for a pause", seconds(*.waited))]
    Paused {
        /// How long it was waited for the end of the pause, and of those that came after it.
        waited: Duration,
        /// How long the pause lasts from now on.
        left: Duration,
    },
    /// No connection could be made; nothing was sent.
    #[error("cannot connect: {}", with_causes(&**.0))]
    Connect(#[source] Arc<dyn StdError + Send + Sync>),
    /// The other side could not be trusted or does not speak TLS; nothing was sent.
    #[error("cannot connect securely: {}", with_causes(&**.0))]
    Tls(#[source] Arc<dyn StdError + Send + Sync>),
    /// The connection broke after the request was handed over.
    #[error("the connection broke: {}", with_causes(&**.0))]
    Broken(#[source] Arc<dyn StdError + Send + Sync>),
    /// The cloud answered with a status outside 200 to 299.
    #[error("{0}")]
    Status(Box<StatusFailure>),
    /// The answer was good but its body was not what it should be.
    #[error("cannot read the answer ({status}): {reason}{}", after_colon(.excerpt))]
    Decode {
        /// The status of the answer.
        status: StatusCode,
        /// What the decoder stumbled over.
        reason: String,
        /// The start of the body, redacted.
        excerpt: String,
    },
    /// The body of a good answer is longer than allowed.
    #[error("the answer ({status}) is longer than {limit} bytes")]
    TooLarge {
        /// The status of the answer.
        status: StatusCode,
        /// The limit in bytes.
        limit: usize,
    },
    /// The request was not sent because requests are not allowed now.
    #[error("not sent: {0}")]
    GateClosed(#[source] GateClosed),
    /// The process is shutting down.
    #[error("cancelled by shutdown")]
    Cancelled,
    /// The request could not be built; nothing was sent.
    #[error("bad request: {0}")]
    Unsendable(String),
}

/// What a timeout interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The wait for the budget: nothing was sent.
    Queue,
    /// The exchange itself.
    Exchange,
    /// The exchange itself, which was given up because something newer waits for whoever made it.
    GivenUp,
}

/// A time without an answer, in words.
fn unanswered(phase: Phase, after: Duration) -> String {
    let after = seconds(after);
    match phase {
        Phase::Queue => format!("no answer within {after} (waiting for a free slot)"),
        Phase::Exchange => format!("no answer within {after} (request sent)"),
        Phase::GivenUp => {
            format!("no answer, given up after {after} because something newer waits (request sent)")
        }
    }
}

/// An answer with a status outside 200 to 299. The text is the status and, if there is one, the start of the body. So is
/// the debug form, because headers and body may repeat a secret.
#[derive(Clone)]
pub struct StatusFailure {
    /// The status.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// How long the cloud asks to wait before the next try; 10 min at most.
    pub retry_after: Option<Duration>,
    /// The body, cut at 64 KiB.
    pub body: Bytes,
    /// The start of the body, redacted, on one line.
    pub excerpt: String,
}

impl std::fmt::Display for StatusFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.status.as_str())?;
        if let Some(reason) = self.status.canonical_reason() {
            write!(f, " {reason}")?;
        }
        f.write_str(&after_colon(&self.excerpt))
    }
}

impl std::fmt::Debug for StatusFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatusFailure({self})")
    }
}

impl HttpError {
    /// A failure of a call that did not get as far as [`CloudHttp::send`](crate::CloudHttp::send).
    pub fn new(operation: &'static str, method: Method, path: impl Into<String>, failure: Failure) -> Self {
        let call = Call {
            operation,
            method,
            path: path.into(),
            host: None,
            secrets: Vec::new(),
            confidential: false,
        };
        Self {
            call: Arc::new(call),
            failure,
        }
    }

    /// Whether the effect of this call may have happened, so that one has to look before trying again.
    pub fn maybe_applied(&self) -> bool {
        match &self.failure {
            Failure::Timeout {
                phase: Phase::Queue, ..
            }
            | Failure::Paused { .. }
            | Failure::Connect(_)
            | Failure::Tls(_)
            | Failure::GateClosed(_)
            | Failure::Cancelled
            | Failure::Unsendable(_) => false,
            Failure::Timeout {
                phase: Phase::Exchange | Phase::GivenUp,
                ..
            }
            | Failure::Broken(_) => true,
            // A refusal is made before anything is done. A 408, and any answer of a server or proxy in trouble, does
            // not tell how far the request got; nor does a redirect, which this stack does not follow.
            Failure::Status(failure) => {
                !failure.status.is_client_error() || failure.status == StatusCode::REQUEST_TIMEOUT
            }
            // It happened; only its answer could not be used.
            Failure::Decode { .. } | Failure::TooLarge { .. } => true,
        }
    }

    /// The status, if the cloud answered.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.failure {
            Failure::Status(failure) => Some(failure.status),
            Failure::Decode { status, .. } | Failure::TooLarge { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// How long the cloud asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.failure {
            Failure::Status(failure) => failure.retry_after,
            Failure::Paused { left, .. } => Some(*left),
            _ => None,
        }
    }
}

/// What HTTP alone says. A cloud's client knows better what some answers of its API mean.
impl Classified for HttpError {
    fn class(&self) -> Class {
        match &self.failure {
            Failure::Status(failure) => Class::of_status(failure.status.as_u16(), failure.retry_after),
            Failure::Paused { left, .. } => Class::Throttled { after: Some(*left) },
            Failure::Timeout {
                phase: Phase::Exchange | Phase::GivenUp,
                ..
            } => Class::Silent,
            Failure::Timeout { .. } | Failure::Connect(_) | Failure::Tls(_) | Failure::Broken(_) => {
                Class::Unanswered
            }
            Failure::Decode { .. } | Failure::TooLarge { .. } => Class::Unusable,
            Failure::GateClosed(_) | Failure::Cancelled => Class::NotSent,
            Failure::Unsendable(_) => Class::Invalid,
        }
    }

    fn maybe_applied(&self) -> bool {
        self.maybe_applied()
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call.name(), self.failure)?;
        match self.call.host() {
            // Who does not answer is what has to be known.
            Some(host) if matches!(self.class(), Class::Unanswered | Class::Silent) => {
                write!(f, " (host {host})")
            }
            _ => Ok(()),
        }
    }
}

impl StdError for HttpError {
    // The text already holds the failure, and the failure's text its causes.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        None
    }
}

fn after_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
