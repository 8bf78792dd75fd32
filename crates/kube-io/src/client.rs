//! The client: one connection pool, and who speaks through it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_transport::{Bucket, Dates, Gate, Lines, OpenGate, Places, Rate};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::buffer::Buffer;
use tower::util::BoxService;
use tower::{BoxError, Service, ServiceExt as _};

use crate::clock::{Clock, SystemClock};
use crate::connect::credentials::Credentials;
use crate::drain::Writes;
use crate::error::KubeError;
use crate::intern::Interner;
use crate::metrics::KubeMetrics;
use crate::rank::Rank;

/// How long a request may take, from being sent to the last byte of its answer. A page of 100 large Nodes comes in well
/// under a second; the API server itself gives up on a request after 60 s.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests under way at once, as many as the API server's default priority level serves a single client without
/// making it wait.
const MAX_IN_FLIGHT: usize = 32;

/// Of these, so many are left to others by requests of low priority.
const RESERVED: usize = 4;

/// What a request brings along: all of it at once, or nothing.
pub type Body = Full<Bytes>;

/// What an answer brings along, bit by bit.
pub(crate) type Answer = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) type Inner = BoxService<Request<Body>, Response<Answer>, BoxError>;

/// Who carries a request to the API server, and brings the answer.
pub(crate) type Carrier = Buffer<Request<Body>, <Inner as Service<Request<Body>>>::Future>;

/// More requests than are ever under way.
const HANDED_OVER: usize = 1024;

/// This service in a task of its own that requests are handed over to. The task is not needed; but without it the heap of a process with
/// 1,000 Nodes was measured to be twice as large (10.3 instead of 4.9 MiB).
pub(crate) fn carrier(service: Inner) -> Carrier {
    Buffer::new(service, HANDED_OVER)
}

/// An answer whatever its body is.
pub(crate) fn answer<B>(answer: Response<B>) -> Response<Answer>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// Has a request carried. The future is boxed, because the compiler does not see through its type that it may be sent.
pub(crate) fn carry(
    carrier: &Carrier,
    request: Request<Body>,
) -> BoxFuture<'static, Result<Response<Answer>, BoxError>> {
    carrier.clone().oneshot(request).boxed()
}

/// How a [`Kube`] behaves.
#[derive(Clone)]
pub struct KubeOptions {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Asked immediately before a write is sent: when it has its turn, and once more when a connection is ready to take it
    /// over.
    pub gate: Arc<dyn Gate>,
    /// Tells the time that goes into events and conditions.
    pub clock: Arc<dyn Clock>,
    /// Requests under way at once, watches and the lease not counted; at least 1. Over sockets fewer are possible, see
    /// [`MAX_SOCKETS`](crate::MAX_SOCKETS).
    pub max_in_flight: usize,
    /// A bound on the rate, if the operator gave one (`--kube-api-qps`, `--kube-api-burst`). It holds for each
    /// [identity](Kube::identified) by itself, as it does for each client of the Go libraries. Watches and the lease are
    /// exempt.
    pub pace: Option<Rate>,
    /// Where requests are counted.
    pub metrics: KubeMetrics,
}

impl KubeOptions {
    /// An open gate, the computer's clock, no bound on the rate.
    pub fn new(user_agent: impl Into<String>) -> Self {
        Self {
            user_agent: user_agent.into(),
            gate: Arc::new(OpenGate),
            clock: Arc::new(SystemClock),
            max_in_flight: MAX_IN_FLIGHT,
            pace: None,
            metrics: KubeMetrics::default(),
        }
    }
}

impl fmt::Debug for KubeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeOptions")
            .field("user_agent", &self.user_agent)
            .field("max_in_flight", &self.max_in_flight)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

/// The API server. Clones share the connections, the bounds and the strings of what was read.
#[derive(Clone)]
pub struct Kube {
    pub(crate) link: Arc<Link>,
    pub(crate) speaker: Arc<Speaker>,
}

/// What all clones have in common.
pub(crate) struct Link {
    pub(crate) client: Carrier,
    /// Connections without credentials, for requests that bring their own.
    pub(crate) anonymous: Carrier,
    pub(crate) host: Arc<str>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) in_flight: Places,
    pub(crate) pace: Option<Rate>,
    pub(crate) metrics: KubeMetrics,
    pub(crate) strings: Interner,
    /// What is read again when the API server refuses it; in memory there is nothing to read.
    pub(crate) credentials: Option<Arc<Credentials>>,
    /// The connections that are open; in memory there are none.
    pub(crate) lines: Lines,
    /// What time it is at the API server.
    pub(crate) dates: Dates,
}

impl Link {
    /// One connection has proved to be dead, by an end or an answer that did not come for so long: all that were silent in that
    /// time are given up. Those that spoke in it live.
    pub(crate) fn is_dead_since(&self, silence: Duration) {
        let given_up = self.lines.end_silent(silence);
        if given_up > 0 {
            tracing::warn!(
                given_up,
                "A connection to the API server has died without a word, those that were as silent are given up"
            );
        }
    }
}

/// Who sends, and under which conditions.
#[derive(Clone)]
pub(crate) struct Speaker {
    pub(crate) user_agent: HeaderValue,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) timeout: Duration,
    /// How its requests stand to those of others, unless they say so themselves.
    pub(crate) rank: Rank,
    /// Where its writes are counted, if somebody wants to bring them to their end.
    pub(crate) writes: Option<Writes>,
    pub(crate) pacer: Option<Arc<Bucket>>,
    /// The ServiceAccount in whose name requests are sent; `None`: the process's own credentials.
    pub(crate) account: Option<Arc<AccountToken>>,
    /// The user in whose name a person asks (`Impersonate-User`).
    pub(crate) acts_as: Option<HeaderValue>,
    /// Whether its writes on Services take the note of the class off.
    pub(crate) notes_no_class: bool,
}

/// The token of one ServiceAccount. Whoever needs it waits for it; it is asked for once for all.
pub(crate) struct AccountToken {
    pub(crate) kube: Kube,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) state: Mutex<Tokens>,
}

/// What of it is known.
#[derive(Default)]
pub(crate) struct Tokens {
    pub(crate) token: Option<Token>,
    pub(crate) failure: Option<(Instant, KubeError)>,
}

/// A token, and how long it is good.
pub(crate) struct Token {
    /// `Bearer ...`, marked as sensitive, so that it does not show.
    pub(crate) header: HeaderValue,
    pub(crate) renewed_at: Instant,
    pub(crate) expires_at: Instant,
}

impl Kube {
    /// The API server behind this service, such as one in the same process. Call it inside the runtime.
    pub fn with_service<S, B>(service: S, options: KubeOptions) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>> + Send + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let own = carrier(service.map_response(answer).map_err(Into::into).boxed());
        let lines = Lines::default();
        Self::assemble(own.clone(), own, "in-memory", None, lines, options)
    }

    pub(crate) fn assemble(
        client: Carrier,
        anonymous: Carrier,
        host: &str,
        credentials: Option<Arc<Credentials>>,
        lines: Lines,
        options: KubeOptions,
    ) -> Self {
        let KubeOptions {
            user_agent,
            gate,
            clock,
            max_in_flight,
            pace,
            metrics,
        } = options;
        Self {
            link: Arc::new(Link {
                client,
                anonymous,
                host: Arc::from(host),
                clock,
                in_flight: Places::new(max_in_flight, RESERVED),
                pace,
                metrics,
                strings: Interner::default(),
                credentials,
                lines,
                dates: Dates::default(),
            }),
            speaker: Arc::new(Speaker {
                user_agent: header(&user_agent),
                gate,
                timeout: TIMEOUT,
                rank: Rank::Ordinary,
                writes: None,
                pacer: pace.map(Bucket::new).map(Arc::new),
                account: None,
                acts_as: None,
                notes_no_class: false,
            }),
        }
    }

    /// Host and port of the API server; of one in the same process, what stands for them.
    pub fn host(&self) -> &str {
        &self.link.host
    }

    /// The clock that was handed in.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.link.clock
    }

    /// What time it is at the API server, by its last answer; `None` if that did not tell.
    pub fn time_there(&self) -> Option<jiff::Timestamp> {
        self.link.dates.now()
    }

    /// When the credentials of this client end, by their names, in seconds since 1970; those that do not tell are left out.
    pub fn credential_ends(&self) -> Vec<(&'static str, i64)> {
        let credentials = self.link.credentials.as_ref();
        credentials
            .map(|credentials| credentials.ends())
            .unwrap_or_default()
    }

    /// The same connections for one part of the program: its name ends the `User-Agent`, and the bound on the rate holds
    /// for it alone. The bound on requests in flight stays shared.
    pub fn identified(&self, part: &str) -> Self {
        let base = self.speaker.user_agent.to_str().unwrap_or_default();
        let user_agent = header(&format!("{base}/{part}"));
        self.speaking(|speaker| {
            speaker.user_agent = user_agent;
            speaker.pacer = self.link.pace.map(Bucket::new).map(Arc::new);
        })
    }

    /// The same connections, whose writes on Services take the note of the class off, or do not put it on.
    pub fn without_class_note(&self) -> Self {
        self.speaking(|speaker| speaker.notes_no_class = true)
    }

    /// The same connections behind another write gate.
    pub fn with_gate(&self, gate: Arc<dyn Gate>) -> Self {
        self.speaking(|speaker| speaker.gate = gate)
    }

    /// The same connections for a user whose writes can be brought to their end by themselves.
    pub fn with_writes(&self, writes: &Writes) -> Self {
        self.speaking(|speaker| speaker.writes = Some(writes.clone()))
    }

    /// The same connections with another bound on how long one request may take.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.speaking(|speaker| speaker.timeout = timeout)
    }

    /// The same for a watch and its lists: they take none of the connections and slots that ordinary requests can use up,
    /// so that a cache does not grow old because its owner is busy. One request at a time.
    pub(crate) fn for_watches(&self) -> Self {
        self.speaking(|speaker| speaker.rank = Rank::Watch)
    }

    pub(crate) fn speaking(&self, change: impl FnOnce(&mut Speaker)) -> Self {
        let mut speaker = Speaker::clone(&self.speaker);
        change(&mut speaker);
        Self {
            link: Arc::clone(&self.link),
            speaker: Arc::new(speaker),
        }
    }
}

impl fmt::Debug for Kube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kube")
            .field("host", &self.link.host)
            .finish_non_exhaustive()
    }
}

/// The text as a header; what a header cannot hold is left out.
pub(crate) fn header(text: &str) -> HeaderValue {
    let printable: String = text.chars().filter(|c| matches!(c, ' '..='~')).collect();
    HeaderValue::from_str(&printable).unwrap_or_else(|_| HeaderValue::from_static("bowline"))
}
