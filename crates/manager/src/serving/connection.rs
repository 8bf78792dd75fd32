//! One connection: how long it may take over a header, and how long it may rest.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::Site;
use crate::config::ServingConfig;

/// The bounds of Kubernetes' server library: one header section, the time to send it, and the time between requests.
const MAX_HEADERS: u32 = 1 << 20;
const HEADER_TIME: Duration = Duration::from_secs(32);
const IDLE_TIME: Duration = Duration::from_secs(90);

/// How long a connection may take to end once it was told to.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// Requests under way on one HTTP/2 connection, as many as Go's library allows.
const HTTP2_STREAMS: u32 = 250;

/// Serves connections.
pub(super) struct Handler {
    builder: auto::Builder<TokioExecutor>,
    site: Arc<Site>,
}

impl Handler {
    pub(super) fn new(config: &ServingConfig, site: Arc<Site>) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            // Its own limit would count the rest between two requests, too.
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADERS as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADERS)
            .max_concurrent_streams(config.http2_streams.unwrap_or(HTTP2_STREAMS));
        let builder = if config.http2 {
            builder
        } else {
            builder.http1_only()
        };
        Self { builder, site }
    }

    /// Serves one connection to its end. `peer` is the certificate that the client showed, with its chain.
    pub(super) async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        peer: Arc<[CertificateDer<'static>]>,
        is_http2: bool,
    ) {
        let activity = Arc::new(Activity::default());
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let (site, peer) = (Arc::clone(&self.site), Arc::clone(&peer));
            let busy = Busy::begin(&activity);
            async move {
                let response = site.respond(request, &peer).await;
                drop(busy);
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let timed = Timed {
            stream,
            activity: Arc::clone(&activity),
            // Frames of HTTP/2 come at any time; there, only the rest is bounded.
            header: (!is_http2).then(|| Header::begin(&activity)),
            is_bounded: !is_http2,
        };
        let connection = self.builder.serve_connection(TokioIo::new(timed), service);
        tokio::pin!(connection);
        let result = tokio::select! {
            biased;
            result = &mut connection => result,
            () = activity.rested() => {
                connection.as_mut().graceful_shutdown();
                tokio::time::timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "Connection ended");
        }
    }
}

/// What goes on on a connection.
struct Activity(watch::Sender<State>);

#[derive(Clone, Copy)]
struct State {
    requests_begun: u64,
    under_way: u32,
    /// Since when it is as it is.
    since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(watch::Sender::new(State {
            requests_begun: 0,
            under_way: 0,
            since: Instant::now(),
        }))
    }
}

impl Activity {
    /// Ends when no request was under way for the time that a connection may rest.
    async fn rested(&self) {
        let mut states = self.0.subscribe();
        loop {
            let State { under_way, since, .. } = *states.borrow_and_update();
            let rest = async {
                if under_way == 0 {
                    tokio::time::sleep_until(since + IDLE_TIME).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                _ = states.changed() => {}
                () = rest => return,
            }
        }
    }
}

/// A request under way.
struct Busy(Arc<Activity>);

impl Busy {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.0.send_modify(|state| {
            state.requests_begun += 1;
            state.under_way += 1;
            state.since = Instant::now();
        });
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| {
            state.under_way -= 1;
            state.since = Instant::now();
        });
    }
}

/// A stream whose headers have to come in time: from the first byte to the request, of the first one from the beginning
/// of the connection.
struct Timed<S> {
    stream: S,
    activity: Arc<Activity>,
    header: Option<Header>,
    is_bounded: bool,
}

/// A header that is being read.
struct Header {
    /// Before it, so many requests had begun.
    after: u64,
    end: Pin<Box<Sleep>>,
}

impl Header {
    fn begin(activity: &Activity) -> Self {
        Self {
            after: activity.0.borrow().requests_begun,
            end: Box::pin(tokio::time::sleep(HEADER_TIME)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let State {
            requests_begun,
            under_way,
            ..
        } = *self.activity.0.borrow();
        if self
            .header
            .as_ref()
            .is_some_and(|header| header.after != requests_begun)
        {
            self.header = None; // it has become a request
        }
        if let Some(header) = &mut self.header
            && header.end.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let has_read = buffer.filled().len() > before;
        if self.is_bounded && has_read && under_way == 0 && self.header.is_none() {
            self.header = Some(Header::begin(&self.activity));
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
