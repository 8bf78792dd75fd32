//! Makes a connection: direct, or through a proxy of either kind.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_util::client::legacy::connect::{Connected, Connection};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::proxy::{Protocol, Proxy, ProxyRules};
use crate::{BoxError, socks, tunnel};

/// A connection could not be made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConnectFailed(pub BoxError);

/// The way to a proxy, or from there on, is not free.
#[derive(Debug, thiserror::Error)]
#[error("proxy {proxy}: {source}")]
struct ByProxy {
    /// Host and port: a proxy's URL may hold a password.
    proxy: String,
    source: BoxError,
}

/// Makes connections on top of one that makes sockets. Clones share their settings.
#[derive(Clone)]
pub struct Connector<C> {
    sockets: C,
    way: Arc<Way>,
}

/// How a target is reached over a socket.
#[derive(Clone)]
pub struct Way {
    /// Speaks to the target, where it wants TLS.
    pub target: Arc<ClientConfig>,
    /// The name that the target's certificate has to bear; none: its host's.
    pub server_name: Option<ServerName<'static>>,
    /// Speaks to a proxy that wants TLS.
    pub proxy: Arc<ClientConfig>,
    /// Which proxy to take.
    pub proxies: Arc<ProxyRules>,
    /// The longest time until a connection stands, TLS and proxy included.
    pub limit: Duration,
}

impl<C> Connector<C> {
    /// Reaches targets over these sockets.
    pub fn new(sockets: C, way: Way) -> Self {
        let way = Arc::new(way);
        Self { sockets, way }
    }
}

impl<C> Connector<C>
where
    C: tower::Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>>,
{
    async fn connect(sockets: C, way: &Way, target: Uri) -> Result<Stream, BoxError> {
        let proxy = way.proxies.proxy_for(&target);
        let first = proxy.map_or(&target, Proxy::uri).clone();
        let stream = sockets.oneshot(first).await.map(Stream::over).map_err(Into::into);
        let Some(proxy) = proxy else {
            return way.secured(stream?, target).await;
        };
        let by_proxy = |source| ByProxy {
            proxy: proxy.uri().authority().map_or("", |at| at.as_str()).to_owned(),
            source,
        };
        let stream = way.through(stream, proxy, &target).await.map_err(by_proxy)?;
        if stream.forwarded {
            return Ok(stream);
        }
        way.secured(stream, target).await
    }
}

impl Way {
    /// The way from a proxy on, as far as the proxy sees to it.
    async fn through(
        &self,
        stream: Result<Stream, BoxError>,
        proxy: &Proxy,
        target: &Uri,
    ) -> Result<Stream, BoxError> {
        match proxy.protocol() {
            Protocol::Socks => Ok(socks::open(stream?, proxy.login(), target).await?),
            Protocol::Http => {
                let stream = secure(stream?, proxy.uri().clone(), &self.proxy, None).await?;
                if target.scheme_str() == Some("https") {
                    Ok(tunnel::open(stream, proxy.auth().as_ref(), target).await?)
                } else {
                    Ok(Stream {
                        forwarded: true,
                        ..stream
                    })
                }
            }
        }
    }

    async fn secured(&self, stream: Stream, target: Uri) -> Result<Stream, BoxError> {
        secure(stream, target, &self.target, self.server_name.clone()).await
    }
}

/// The stream inside of TLS, if the target wants it.
async fn secure(
    stream: Stream,
    target: Uri,
    tls: &Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
) -> Result<Stream, BoxError> {
    if target.scheme_str() != Some("https") {
        return Ok(stream);
    }
    let resolver: Arc<dyn ResolveServerName + Send + Sync> = match name {
        Some(name) => Arc::new(FixedServerNameResolver::new(name)),
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    HttpsConnector::new(Made(Some(stream)), Arc::clone(tls), true, resolver)
        .oneshot(target)
        .await
        .map(Stream::over)
}

/// A connection that stands already, in the form of one to be made.
struct Made(Option<Stream>);

impl tower::Service<Uri> for Made {
    type Response = Stream;
    type Error = io::Error;
    type Future = Ready<io::Result<Stream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

impl<C> tower::Service<Uri> for Connector<C>
where
    C: tower::Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
{
    type Response = Stream;
    type Error = ConnectFailed;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectFailed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let (sockets, way) = (self.sockets.clone(), Arc::clone(&self.way));
        Box::pin(async move {
            match timeout(way.limit, Self::connect(sockets, &way, target)).await {
                Ok(outcome) => outcome.map_err(ConnectFailed),
                Err(_) => {
                    let text = format!("no connection within {} s", way.limit.as_secs_f64());
                    Err(ConnectFailed(
                        io::Error::new(io::ErrorKind::TimedOut, text).into(),
                    ))
                }
            }
        })
    }
}

impl<C> fmt::Debug for Connector<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// What every kind of connection can do.
pub trait Io: Read + Write + Connection + Send {}

impl<T: Read + Write + Connection + Send> Io for T {}

/// A connection of any kind.
pub struct Stream {
    io: Pin<Box<dyn Io>>,
    /// Whether a proxy at the other end forwards plain requests, which then name the whole URL.
    forwarded: bool,
}

impl Stream {
    pub(crate) fn over(io: impl Io + 'static) -> Self {
        Self {
            io: Box::pin(io),
            forwarded: false,
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.forwarded)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write_vectored(cx, slices)
    }
}

/// Host and port of a target, as proxies are told them: an IPv6 address without its brackets.
pub(crate) fn host_and_port(target: &Uri) -> io::Result<(&str, u16)> {
    let host = target
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the target has no host"))?;
    let known = if target.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    Ok((
        host.trim_start_matches('[').trim_end_matches(']'),
        target.port_u16().unwrap_or(known),
    ))
}
