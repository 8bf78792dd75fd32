//! One connection: how long it may take over a header, and how long it may rest.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::Site;
use super::client::Client;
use super::metered::Allowance;
use crate::config::ServingConfig;

/// The time to send one header section, and the time between requests: the bounds of Kubernetes' server library.
const HEADER_TIME: Duration = Duration::from_secs(32);
const IDLE_TIME: Duration = Duration::from_secs(90);

/// How long a connection may take to end once it was told to.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// One header section, in bytes. Those of service accounts' tokens have some 1,000.
const MAX_HEADERS: usize = 32 * 1024;

/// The same for HTTP/2, which counts 32 more for each field. Taken apart, fields without a value take three times as much.
const MAX_HEADER_LIST: u32 = 16 * 1024;

/// Requests under way on one HTTP/2 connection. A scrape is one.
const HTTP2_STREAMS: u32 = 8;

/// As many as Go's library allows: more are not served, whatever the flag says.
const MAX_HTTP2_STREAMS: u32 = 250;

/// What an HTTP/2 connection keeps of answers that are not taken, in bytes for each of its requests.
const HTTP2_UNSENT: usize = 16 * 1024;

/// What a client may send of one HTTP/2 request before it is told that there is room for more. A body is a number of a few
/// digits.
const HTTP2_WINDOW: u32 = 4 * 1024;

/// The window of an HTTP/2 connection as it is before anybody has said anything about it; it cannot be less.
const HTTP2_CONNECTION_WINDOW: u32 = 65_535;

/// HTTP/2 requests that the client has taken back before they were looked at, and requests that break the rules: with more,
/// the connection is closed.
const HTTP2_RESETS: usize = 16;

/// What is read before other connections have their turn, in bytes. In so few there are no more than a hundred frames.
const MAX_READ: usize = 2 * 1024;

/// Serves connections.
pub(super) struct Handler {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    site: Arc<Site>,
}

impl Handler {
    pub(super) fn new(config: &ServingConfig, site: Arc<Site>) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            // Its own limit would count the rest between two requests, too.
            .header_read_timeout(None)
            .max_header_size(MAX_HEADERS)
            .max_buf_size(MAX_HEADERS);
        let streams = config.http2_streams.unwrap_or(HTTP2_STREAMS);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams.min(MAX_HTTP2_STREAMS))
            .max_header_list_size(MAX_HEADER_LIST)
            .initial_stream_window_size(HTTP2_WINDOW)
            .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
            .max_send_buf_size(HTTP2_UNSENT)
            .max_pending_accept_reset_streams(HTTP2_RESETS)
            .max_local_error_reset_streams(HTTP2_RESETS);
        Self { http1, http2, site }
    }

    /// Serves one connection of this client to its end.
    pub(super) async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        client: &Arc<Client>,
        allowance: Allowance,
        is_http2: bool,
    ) {
        let activity = Arc::new(Activity::default());
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let (site, client) = (Arc::clone(&self.site), Arc::clone(client));
            let turn = allowance.request();
            let busy = Busy::begin(&activity);
            async move {
                tokio::time::sleep_until(turn).await;
                let response = site.answer(request, &client).await;
                if let Some(place) = client.place() {
                    place.answered();
                }
                drop(busy);
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let timed = TokioIo::new(Timed {
            stream,
            activity: Arc::clone(&activity),
            header: Some(Header::begin(&activity)),
            // Frames of HTTP/2 come at any time; there, only the time to the first request and the rest are bounded.
            is_bounded: !is_http2,
            has_read: false,
        });
        let result = if is_http2 {
            let connection = self.http2.serve_connection(timed, service);
            until_rested(connection, &activity, |it| it.graceful_shutdown()).await
        } else {
            let connection = self.http1.serve_connection(timed, service);
            until_rested(connection, &activity, |it| it.graceful_shutdown()).await
        };
        if let Err(error) = result {
            tracing::debug!(%error, "Connection ended");
        }
    }
}

/// Drives a connection to its end, which it is told to come to when it has rested for long enough.
async fn until_rested<C>(
    connection: C,
    activity: &Activity,
    close: impl FnOnce(Pin<&mut C>),
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    tokio::select! {
        biased;
        result = &mut connection => result,
        () = activity.rested() => {
            close(connection.as_mut());
            tokio::time::timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
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
    /// Whether the last read gave something: then it is the others' turn before the next.
    has_read: bool,
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
        if std::mem::take(&mut self.has_read) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut bytes = [0; MAX_READ];
        let room = buffer.remaining().min(MAX_READ);
        let mut part = ReadBuf::new(&mut bytes[..room]);
        let result = Pin::new(&mut self.stream).poll_read(context, &mut part);
        buffer.put_slice(part.filled());
        self.has_read = !part.filled().is_empty();
        if self.is_bounded && self.has_read && under_way == 0 && self.header.is_none() {
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
