//! How one call travels: tries, budget, gate, exchange.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_transport::patience::{self, Does, Unanswered, in_time};
use bowline_transport::{BoxError, GateClosed, Jitter, TOLD_AFTER, Unheard, seconds, stated_delay};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use crate::budget::{Budget, Turn};
use crate::config::CloudHttpConfig;
use crate::dump;
use crate::error::{Call, Failure, HttpError, Phase, StatusFailure};
use crate::request::{Kind, Request};
use crate::response::{self, Response};
use crate::retry;
use crate::transport::{AnswerBody, Connections, Transport};

/// The most bytes of a refusal's body that are kept.
const MAX_REFUSAL: usize = 64 << 10;

/// The longest that a cloud is left alone because it says so. It is a guess at the longest maintenance that is worth
/// waiting for without asking; without a bound a mistaken number would have us wait for ever.
pub const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// The way to one cloud. Clones share budget, connections and metrics.
#[derive(Clone)]
pub struct CloudHttp {
    shared: Arc<Shared>,
}

struct Shared {
    config: CloudHttpConfig,
    user_agent: HeaderValue,
    connections: Connections,
    budget: Budget,
    jitter: Jitter,
}

impl CloudHttp {
    /// Puts the layers on top of a transport.
    pub fn new(config: CloudHttpConfig, transport: Transport) -> Self {
        let user_agent = HeaderValue::from_str(&config.user_agent)
            .unwrap_or_else(|_| HeaderValue::from_static(env!("CARGO_PKG_NAME")));
        let budget = Budget::new(&config);
        config.metrics.budget_left(config.provider, budget.left());
        let jitter = Jitter::seeded(config.seed);
        let connections = transport.open(&config.gate);
        Self {
            shared: Arc::new(Shared {
                config,
                user_agent,
                connections,
                budget,
                jitter,
            }),
        }
    }

    /// The provider's name.
    pub fn provider(&self) -> &'static str {
        self.shared.config.provider
    }

    /// The limits in force.
    pub fn config(&self) -> &CloudHttpConfig {
        &self.shared.config
    }

    /// Sends a call, and repeats it if it may be repeated.
    ///
    /// # Errors
    ///
    /// Any answer with a status outside 200 to 299, and no answer. [`HttpError::maybe_applied`] says whether a write may have
    /// happened all the same.
    ///
    /// # Cancellation
    ///
    /// A dropped read costs nothing. A dropped write may or may not have happened, as if its answer had been lost.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let call = Arc::new(request.call());
        let span = tracing::debug_span!(
            "cloud_call",
            provider = self.shared.config.provider,
            operation = call.operation,
            method = %call.method,
            path = %call.path,
        );
        // Boxed, because callers hold this future inside of their own.
        let outcome = Box::pin(self.shared.tries(&request, &call).instrument(span)).await;
        outcome.map_err(|failure| HttpError { call, failure })
    }
}

impl Shared {
    async fn tries(&self, request: &Request, call: &Arc<Call>) -> Result<Response, Failure> {
        let give_up = Instant::now() + self.config.deadline;
        let mut tries = 0;
        loop {
            let failure = match self.once(request, call, give_up).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            tries += 1;
            if !request.idempotent {
                return Err(failure);
            }
            // From the upper half: enough to spread callers out, and never almost nothing.
            let share = || self.jitter.share(0.5);
            let Some(delay) = retry::delay(&self.config.retry, tries, &failure, share) else {
                return Err(failure);
            };
            if Instant::now() + delay >= give_up {
                return Err(failure);
            }
            tracing::warn!(err = %failure, attempt = tries, delay = seconds(delay), "Cloud call will be repeated");
            self.unless_shut_down(sleep(delay)).await?;
        }
    }

    /// Why a call did not begin before its time was over.
    fn no_turn(&self) -> Failure {
        let waited = self.config.deadline;
        match self.budget.pause_left() {
            Some(left) => Failure::Paused { waited, left },
            None => Failure::Timeout {
                phase: Phase::Queue,
                after: waited,
            },
        }
    }

    /// One try: budget, gate, exchange.
    async fn once(&self, request: &Request, call: &Arc<Call>, give_up: Instant) -> Result<Response, Failure> {
        let wait = give_up.saturating_duration_since(Instant::now());
        let turn = self
            .unless_shut_down(timeout(wait, self.budget.acquire()))
            .await?
            .map_err(|_| self.no_turn())?;
        let turn = Counted {
            shared: self,
            turn: Some(turn),
        };
        self.note_budget();
        let outcome = match request.kind {
            Kind::Read => self
                .unless_shut_down(self.exchange(request, call))
                .await
                .flatten(),
            Kind::Write => self.exchange(request, call).await,
        };
        match &outcome {
            Err(Failure::Status(failure)) if failure.status == StatusCode::TOO_MANY_REQUESTS => {
                self.config.metrics.throttled(self.config.provider);
                if let Some(asked) = failure.retry_after {
                    // While the turn is still held, so that no one who waits for its end slips through.
                    let asked = asked.min(self.config.retry.max_retry_after);
                    self.budget.refused(request, asked);
                }
            }
            Ok(_) => self.budget.taken(request),
            Err(_) => {}
        }
        drop(turn);
        outcome
    }

    async fn exchange(&self, request: &Request, call: &Arc<Call>) -> Result<Response, Failure> {
        let message = request.to_http(&self.user_agent)?;
        let (does, limit) = match request.kind {
            Kind::Read => (Does::Read, self.config.read_timeout),
            Kind::Write => (Does::Write, self.config.write_timeout),
        };
        let limit = request.timeout.unwrap_or(limit);
        let preliminary = self.config.preliminary_timeout.filter(|_| request.is_preliminary);
        let limit = limit.min(preliminary.unwrap_or(limit));
        if self.config.reads_only && request.kind == Kind::Write {
            return Err(Failure::GateClosed(GateClosed::new("this process only reads")));
        }
        // Here for what need not be tried at all; connections ask again before they send.
        self.config.gate.check().map_err(Failure::GateClosed)?;
        let mut counted = self.config.metrics.begin(self.config.provider, request.operation);
        let begun = Instant::now();
        let exchange = async {
            let answer = self.connections.send(message).await?;
            let (head, body) = answer.into_parts();
            self.config.dates.note(&head.headers);
            if head.status.is_success() {
                let (body, end) = read(body, self.config.max_body).await;
                return match end {
                    End::Whole => Ok((head, body)),
                    End::TooLong => Err(Failure::TooLarge {
                        status: head.status,
                        limit: self.config.max_body,
                    }),
                    End::Broken(error) => Err(Failure::Broken(error.into())),
                };
            }
            // A refusal is a refusal even if its text does not arrive.
            let (body, _) = read(body, MAX_REFUSAL).await;
            Err(Failure::Status(Box::new(StatusFailure {
                status: head.status,
                retry_after: stated_delay(&head.headers, LONGEST_DELAY),
                headers: head.headers,
                excerpt: call.excerpt(&body),
                body,
            })))
        };
        let silence = Silence {
            connections: &self.connections,
            begun,
            is_long: limit.min(patience::SHORTEST),
        };
        let exchange = async {
            tokio::select! {
                biased;
                answer = exchange => answer,
                never = self.tell_of_silence(request, call) => match never {},
            }
        };
        let outcome = match in_time(does, limit, exchange).await {
            Ok(outcome) => {
                std::mem::forget(silence);
                outcome
            }
            Err(Unanswered::Within(after)) => Err(Failure::Timeout {
                phase: Phase::Exchange,
                after,
            }),
            Err(Unanswered::GivenUp(after)) => Err(Failure::Timeout {
                phase: Phase::GivenUp,
                after,
            }),
        };
        let outcome = match outcome {
            Ok((head, body)) => {
                if response::is_page(&body) {
                    counted.was_page();
                } else if response::is_cut(&body) {
                    counted.failed();
                } else {
                    counted.answered(head.status);
                    if request.kind == Kind::Read && !request.is_preliminary {
                        counted.was_good_read();
                    }
                }
                counted.end();
                Ok(Response {
                    status: head.status,
                    headers: head.headers,
                    body,
                    call: call.clone(),
                    counted: Arc::new(Mutex::new(counted)),
                })
            }
            Err(failure) => {
                match &failure {
                    Failure::Status(failure) => counted.answered(failure.status),
                    Failure::TooLarge { status, .. } => counted.answered(*status),
                    _ => counted.failed(),
                }
                drop(counted);
                Err(failure)
            }
        };
        if self.config.shows_exchanges {
            dump::log(request, call, &outcome, begun.elapsed());
        }
        match &outcome {
            Ok(response) => tracing::debug!(
                status = response.status.as_u16(),
                seconds = begun.elapsed().as_secs_f64(),
                bytes = response.body.len(),
                "Cloud answered"
            ),
            Err(failure) => {
                tracing::debug!(seconds = begun.elapsed().as_secs_f64(), err = %failure, "Cloud call failed");
            }
        }
        outcome
    }

    /// Tells, while it is waited for, that a read has no answer.
    async fn tell_of_silence(&self, request: &Request, call: &Call) -> Infallible {
        if request.kind == Kind::Write {
            return std::future::pending().await;
        }
        sleep(TOLD_AFTER).await;
        let call = call.with_host();
        if request.is_preliminary {
            let after = seconds(TOLD_AFTER);
            tracing::warn!(
                call,
                after,
                "A call that others wait for, such as a sign-in, has no answer yet"
            );
        }
        let _until_it_ends = self.config.silences.note(Unheard {
            call,
            is_preliminary: request.is_preliminary,
        });
        std::future::pending().await
    }

    async fn unless_shut_down<F: Future>(&self, work: F) -> Result<F::Output, Failure> {
        tokio::select! {
            biased;
            () = self.config.shutdown.cancelled() => Err(Failure::Cancelled),
            output = work => Ok(output),
        }
    }

    fn note_budget(&self) {
        self.config
            .metrics
            .budget_left(self.config.provider, self.budget.left());
    }
}

/// A call's turn. It ends, and the gauge is told, also when the caller goes away.
struct Counted<'a> {
    shared: &'a Shared,
    turn: Option<Turn<'a>>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        drop(self.turn.take());
        self.shared.note_budget();
    }
}

/// A call that is not answered, until it is given up by whoever made it.
struct Silence<'a> {
    connections: &'a Connections,
    begun: Instant,
    /// How long it goes without an answer where something is wrong.
    is_long: Duration,
}

impl Drop for Silence<'_> {
    /// What took the way to the cloud from this connection may have taken it from all that stood then.
    fn drop(&mut self) {
        let after = self.begun.elapsed();
        if after < self.is_long {
            return; // nobody waited for it
        }
        let given_up = self.connections.lines.end_unused(after);
        if given_up > 0 {
            tracing::warn!(
                given_up,
                "A cloud call was not answered, unused connections that were as silent are given up"
            );
        }
    }
}

enum End {
    Whole,
    TooLong,
    Broken(BoxError),
}

/// Room that is made at once for an answer whose length is announced, in bytes.
const MOST_ANNOUNCED: usize = 4 << 20;

/// Reads a body up to a limit, and says how it ended.
async fn read(mut body: AnswerBody, limit: usize) -> (Bytes, End) {
    // A list of a thousand instances has megabytes: growing to them by doubling would take twice the room. What the peer
    // announces is believed up to a point.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut bytes = BytesMut::with_capacity(announced.min(limit).min(MOST_ANNOUNCED));
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data(),
            Err(error) => return (bytes.freeze(), End::Broken(error)),
        };
        // Anything but data is trailers, which no cloud uses.
        let Ok(data) = data else { continue };
        let room = limit - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return (bytes.freeze(), End::TooLong);
        }
    }
    (bytes.freeze(), End::Whole)
}
