//! Makes a connection: direct, through a tunnel, or to a proxy that forwards plain requests.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use tokio::time::timeout;
use tower::ServiceExt;

use super::BoxError;
use crate::proxy::{Proxy, ProxyRules};

/// A connection could not be made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct ConnectFailed(pub(super) BoxError);

#[derive(Clone)]
pub(super) struct Connector {
    /// To the cloud itself, which may choose HTTP/2.
    direct: HttpsConnector<HttpConnector>,
    /// To a proxy, which is spoken to in HTTP/1.1.
    to_proxy: HttpsConnector<HttpConnector>,
    tls: Arc<rustls::ClientConfig>,
    proxies: Arc<ProxyRules>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(tls: rustls::ClientConfig, proxies: ProxyRules, limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Several addresses share the time, so that a dead one does not use it up.
        tcp.set_connect_timeout(Some(limit));
        tcp.set_keepalive(Some(Duration::from_secs(30)));
        let plain = Arc::new(tls.clone());
        let mut negotiated = tls;
        negotiated.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = Arc::new(negotiated);
        Self {
            direct: (tcp.clone(), tls.clone()).into(),
            to_proxy: (tcp, plain).into(),
            tls,
            proxies: Arc::new(proxies),
            limit,
        }
    }

    async fn connect(self, target: Uri) -> Result<Stream, BoxError> {
        let Some(proxy) = self.proxies.proxy_for(&target) else {
            return self.direct.oneshot(target).await.map(Stream::direct);
        };
        if target.scheme_str() == Some("https") {
            let tunnel = tunnel(proxy, self.to_proxy);
            let connector: HttpsConnector<_> = (tunnel, self.tls).into();
            connector.oneshot(target).await.map(Stream::direct)
        } else {
            self.to_proxy
                .oneshot(proxy.uri().clone())
                .await
                .map(Stream::forwarded)
        }
    }
}

fn tunnel<C>(proxy: &Proxy, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectFailed;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectFailed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let limit = connector.limit;
            match timeout(limit, connector.connect(target)).await {
                Ok(outcome) => outcome.map_err(ConnectFailed),
                Err(_) => {
                    let text = format!("no connection within {} s", limit.as_secs_f64());
                    Err(ConnectFailed(
                        io::Error::new(io::ErrorKind::TimedOut, text).into(),
                    ))
                }
            }
        })
    }
}

/// What every kind of connection can do.
trait Io: Read + Write + Connection + Send {}

impl<T: Read + Write + Connection + Send> Io for T {}

/// A connection of any kind.
pub(super) struct Stream {
    io: Pin<Box<dyn Io>>,
    /// Whether a proxy at the other end forwards plain requests, which then name the whole URL.
    forwarded: bool,
}

impl Stream {
    fn direct(io: impl Io + 'static) -> Self {
        Self {
            io: Box::pin(io),
            forwarded: false,
        }
    }

    fn forwarded(io: impl Io + 'static) -> Self {
        Self {
            io: Box::pin(io),
            forwarded: true,
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
