//! Makes a connection: direct, or through a proxy of either kind.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::gate::Gate;
use crate::lines::Lines;
use crate::proxy::{Protocol, Proxy, ProxyRules};
use crate::stream::{Io, Stream};
use crate::{BoxError, seconds, socks, tunnel};

/// The way to a proxy, or from there on, is not free.
#[derive(Debug, thiserror::Error)]
#[error("proxy {proxy}: {source}")]
struct ByProxy {
    /// Host and port: a proxy's URL may hold a password.
    proxy: String,
    source: BoxError,
}

impl ByProxy {
    fn new(proxy: &Proxy, source: impl Into<BoxError>) -> Self {
        Self {
            proxy: proxy.uri().authority().map_or("", |at| at.as_str()).to_owned(),
            source: source.into(),
        }
    }
}

/// What the answer 407 to a request means that a proxy was to forward; `None` if the request went to its host directly.
pub fn turned_away(proxies: &ProxyRules, target: &Uri) -> Option<BoxError> {
    let is_plain = target.scheme_str() == Some("http");
    let proxy = proxies.proxy_for(target).filter(|_| is_plain)?;
    Some(ByProxy::new(proxy, io::Error::other(tunnel::UNAUTHORIZED)).into())
}

/// What makes sockets.
pub trait Sockets:
    tower::Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Sockets for S where
    S: tower::Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Makes connections over sockets. Clones share their settings.
#[derive(Clone)]
pub struct Connector<S> {
    sockets: S,
    way: Arc<Way>,
    gate: Option<Arc<dyn Gate>>,
    bound: Option<Arc<Semaphore>>,
    lines: Option<Lines>,
}

/// How a target is reached over a socket.
#[derive(Clone)]
pub struct Way {
    /// Speaks to the target, where it wants TLS.
    pub target: Arc<ClientConfig>,
    /// The name that the target's certificate has to bear; `None`: its host's.
    pub server_name: Option<ServerName<'static>>,
    /// Speaks to a proxy that wants TLS.
    pub proxy: Arc<ClientConfig>,
    /// Which proxy to take.
    pub proxies: Arc<ProxyRules>,
    /// The longest time until a connection stands, TLS and proxy included.
    pub limit: Duration,
}

impl<S: Sockets> Connector<S> {
    /// Reaches targets over these sockets.
    pub fn new(sockets: S, way: Way) -> Self {
        Self {
            sockets,
            way: Arc::new(way),
            gate: None,
            bound: None,
            lines: None,
        }
    }

    /// The same, whose connections send only while the gate is open. What comes in is read in any case: an answer is worth
    /// having.
    ///
    /// The gate stands above TLS, so that it is asked before anything is encrypted and sent, whatever waited before: for the
    /// connection, for its turn among other requests (HTTP/2), or because the process was stopped.
    pub fn gated(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The same, with no more connections at once than there are permits; each holds its permit until it is closed.
    pub fn bounded(mut self, bound: Arc<Semaphore>) -> Self {
        self.bound = Some(bound);
        self
    }

    /// The same, whose connections are among these, and are ended with them when they have fallen silent.
    pub fn among(mut self, lines: Lines) -> Self {
        self.lines = Some(lines);
        self
    }

    async fn connect(self, target: Uri) -> Result<Stream, BoxError> {
        let permit = match self.bound {
            Some(bound) => Some(bound.acquire_owned().await?),
            None => None,
        };
        let stream = Self::reach(self.sockets, &self.way, target).await?;
        if let Some(gate) = &self.gate {
            // Here it is certain that nothing was sent; a stream that refuses later has a request under way.
            gate.check()?;
        }
        Ok(Stream {
            gate: self.gate,
            line: self.lines.map(|lines| lines.open()),
            _permit: permit,
            ..stream
        })
    }

    async fn reach(sockets: S, way: &Way, target: Uri) -> Result<Stream, BoxError> {
        let proxy = way.proxies.proxy_for(&target);
        let first = proxy.map_or(&target, Proxy::uri).clone();
        let stream = sockets.oneshot(first).await.map(Stream::over).map_err(Into::into);
        let Some(proxy) = proxy else {
            return way.secured(stream?, target).await;
        };
        let stream = way.through(stream, proxy, &target).await;
        let stream = stream.map_err(|source| ByProxy::new(proxy, source))?;
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

impl<S: Sockets> tower::Service<Uri> for Connector<S> {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let limit = self.way.limit;
        let connecting = timeout(limit, self.clone().connect(target));
        Box::pin(async move {
            connecting.await.unwrap_or_else(|_| {
                let text = format!("no connection within {}", seconds(limit));
                Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
            })
        })
    }
}

impl<C> fmt::Debug for Connector<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
