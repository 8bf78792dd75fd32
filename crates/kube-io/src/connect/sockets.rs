//! Connections over sockets: a bounded number of them, through a proxy where one is named.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_edge::{Authorities, Connector, Io, Way, roots, with_causes};
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{Request, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::AuthInfo;
use rustls::pki_types::ServerName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, Service, ServiceBuilder};

use super::credentials::Keys;
use super::{ConnectError, Reach};
use crate::client::{Kube, KubeOptions};
use crate::exchange::Pool;
use crate::fence::Fenced;

/// Sockets to the API server at most. The client speaks HTTP/1.1 only, so each request under way takes one, with its
/// TLS state of some 50 KiB.
pub const MAX_SOCKETS: usize = ORDINARY + WATCHES + LEASES;

/// For ordinary requests, which can all hang at once.
const ORDINARY: usize = 10;

/// One for each watch: Nodes, Services, the ConfigMap with the authorities of clients, and the lease that is stood for.
/// With leader migration there are two leases, but the second one is stood for when the first is held.
const WATCHES: usize = 4;

/// One for each lease. Each asks for one thing at a time.
const LEASES: usize = 2;

/// The longest time until a connection stands, TLS and proxy included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A peer that has died without a word is found out within 45 s: by probes on a connection on which nothing happens, at
/// the latest after 15 + 3 x 5 s, and otherwise when nothing that was sent is acknowledged for 30 s.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Longer than the pauses between the loops' passes, shorter than what middleboxes remember.
const IDLE: Duration = Duration::from_secs(90);
/// What one connection buffers of an answer at most, in bytes; also the longest head of an answer. Left to itself a buffer
/// that once saw a long list grows to 400 KiB and stays so for as long as a watch lasts.
const READ_BUFFER: usize = 32 * 1024;

/// Prepares the connections. Nothing is sent yet.
pub(super) fn connect(
    reach: Reach,
    speaks_for_others: bool,
    mut options: KubeOptions,
) -> Result<Kube, ConnectError> {
    // A library that is built with several sources of cryptography wants to be told which; all of ours name the same.
    let _ = rustls::crypto::ring::default_provider().install_default();

    options.max_in_flight = options.max_in_flight.min(ORDINARY);
    // The name in metrics: no part of the address that may be a secret.
    let server = &reach.config.cluster_url;
    let host = server
        .authority()
        .map_or("", |authority| authority.as_str())
        .to_owned();
    let reach = Arc::new(reach);
    let own = layered(&reach, Whose::Own, tcp)?;
    // Pools of its own, because idle sockets of one would keep the other waiting; requests in flight are bounded
    // together.
    let anonymous = if speaks_for_others {
        layered(&reach, Whose::Others, tcp)?
    } else {
        own.clone()
    };
    let credentials = Some(Arc::clone(&reach.credentials));
    Ok(Kube::assemble(own, anonymous, &host, credentials, options))
}

/// Whose credentials requests bear.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The connection's.
    Own,
    /// Their own.
    Others,
}

/// Makes sockets, as all connections to the API server take them.
fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

/// What makes sockets.
trait Sockets:
    Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Sockets for S where
    S: Service<Uri, Response: Io + Unpin + 'static, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Puts the layers together, over bounded numbers of the sockets that are made so.
fn layered<C: Sockets>(
    reach: &Arc<Reach>,
    whose: Whose,
    sockets: impl Fn() -> C,
) -> Result<kube::Client, ConnectError> {
    let setup = |error: kube::Error| ConnectError::Setup(with_causes(&error));
    let mut config = reach.config.clone();
    if whose == Whose::Others {
        config.auth_info = AuthInfo::default();
    }
    let sockets = Pools {
        ordinary: Bounded::new(sockets(), ORDINARY),
        watches: Bounded::new(sockets(), WATCHES),
        leases: Bounded::new(sockets(), LEASES),
    };
    let http = Renewed::new(Arc::clone(reach), &config, whose, sockets)?;
    let of_token = Arc::clone(reach);
    let of_proxy = reach.proxies.forward_auth(&config.cluster_url);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .map_request(move |mut request: Request<Body>| {
            let token = (whose == Whose::Own).then(|| of_token.credentials.authorization());
            if let Some(token) = token.flatten() {
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            if let Some(auth) = &of_proxy {
                request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
            }
            request
        })
        .layer(config.extra_headers_layer().map_err(setup)?)
        .map_err(BoxError::from)
        .map_request(Fenced::<Body>::request)
        .service(http);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// Something for each [`Pool`]: a slow request can keep only its own kind waiting.
#[derive(Clone)]
struct Pools<T> {
    ordinary: T,
    watches: T,
    leases: T,
}

impl<T> Pools<T> {
    fn map<U>(&self, make: impl Fn(&T) -> U) -> Pools<U> {
        Pools {
            ordinary: make(&self.ordinary),
            watches: make(&self.watches),
            leases: make(&self.leases),
        }
    }

    fn of(&self, pool: Pool) -> &T {
        match pool {
            Pool::Ordinary => &self.ordinary,
            Pool::Watches => &self.watches,
            Pool::Leases => &self.leases,
        }
    }
}

type Http<C> = Client<Connector<Bounded<C>>, Fenced<Body>>;

/// The connections that were opened with the credentials of now. When these change, later requests take new ones; those
/// under way end on the old ones, whose sockets count until they are closed.
#[derive(Clone)]
struct Renewed<C> {
    maker: Arc<Maker<C>>,
    now: Arc<Mutex<(Keys, Pools<Http<C>>)>>,
}

/// Makes them.
struct Maker<C> {
    reach: Arc<Reach>,
    whose: Whose,
    sockets: Pools<Bounded<C>>,
    server_name: Option<ServerName<'static>>,
    /// The system's authorities, if they have a part in it.
    system: Option<Authorities>,
}

impl<C: Sockets> Renewed<C> {
    fn new(
        reach: Arc<Reach>,
        config: &Config,
        whose: Whose,
        sockets: Pools<Bounded<C>>,
    ) -> Result<Self, ConnectError> {
        let setup = |error: String| ConnectError::Setup(error);
        let server_name = config
            .tls_server_name
            .clone()
            .map(ServerName::try_from)
            .transpose()
            .map_err(|_| setup("`tls-server-name` is neither a host name nor an address".to_owned()))?;
        let is_proxy_secure = reach
            .proxies
            .proxy_for(&config.cluster_url)
            .is_some_and(|proxy| proxy.uri().scheme_str() == Some("https"));
        let (file, dirs) = &reach.system;
        let system = is_proxy_secure.then(|| roots::load(file.as_deref(), dirs.as_deref()));
        let maker = Maker {
            reach,
            whose,
            sockets,
            server_name,
            system,
        };
        let keys = maker.keys();
        let http = maker.http(&keys).map_err(|error| setup(error.to_string()))?;
        Ok(Self {
            maker: Arc::new(maker),
            now: Arc::new(Mutex::new((keys, http))),
        })
    }

    fn current(&self, pool: Pool) -> Http<C> {
        let keys = self.maker.keys();
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.is_same(&now.0) {
            match self.maker.http(&keys) {
                // What is idle of the old ones is closed with them.
                Ok(http) => *now = (keys, http),
                Err(error) => {
                    tracing::error!(err = %error, "Credentials cannot be used, connections are made with the old ones");
                }
            }
        }
        now.1.of(pool).clone()
    }
}

impl<C: Sockets> Maker<C> {
    fn keys(&self) -> Keys {
        let keys = self.reach.credentials.keys();
        match self.whose {
            Whose::Own => keys,
            Whose::Others => keys.anonymous(),
        }
    }

    fn http(&self, keys: &Keys) -> Result<Pools<Http<C>>, rustls::Error> {
        let way = Way {
            target: Arc::new(keys.to_server()?),
            server_name: self.server_name.clone(),
            proxy: Arc::new(keys.to_proxy(self.system.as_ref())?),
            proxies: Arc::new(self.reach.proxies.clone()),
            limit: CONNECT_TIMEOUT,
        };
        Ok(self.sockets.map(|sockets| {
            let connector = Connector::new(sockets.clone(), way.clone());
            Client::builder(TokioExecutor::new())
                .pool_idle_timeout(IDLE)
                .pool_timer(TokioTimer::new())
                .http1_max_buf_size(READ_BUFFER)
                .build(connector)
        }))
    }
}

impl<C: Sockets> Service<Request<Fenced<Body>>> for Renewed<C> {
    type Response = <Http<C> as Service<Request<Fenced<Body>>>>::Response;
    type Error = <Http<C> as Service<Request<Fenced<Body>>>>::Error;
    type Future = <Http<C> as Service<Request<Fenced<Body>>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Fenced<Body>>) -> Self::Future {
        let pool = request.extensions().get().copied().unwrap_or(Pool::Ordinary);
        self.current(pool).call(request)
    }
}

/// Opens no more sockets than there are permits; each holds its permit until it is closed.
#[derive(Clone)]
struct Bounded<C> {
    inner: C,
    sockets: Arc<Semaphore>,
}

impl<C> Bounded<C> {
    fn new(inner: C, sockets: usize) -> Self {
        Self {
            inner,
            sockets: Arc::new(Semaphore::new(sockets)),
        }
    }
}

impl<C: Sockets> Service<Uri> for Bounded<C> {
    type Response = BoundedSocket<C::Response>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let sockets = Arc::clone(&self.sockets);
        Box::pin(async move {
            let permit = sockets.acquire_owned().await?;
            let socket = inner.call(target).await.map_err(Into::into)?;
            Ok(BoundedSocket {
                socket,
                _permit: permit,
            })
        })
    }
}

struct BoundedSocket<S> {
    socket: S,
    _permit: OwnedSemaphorePermit,
}

impl<S: Connection> Connection for BoundedSocket<S> {
    fn connected(&self) -> Connected {
        self.socket.connected()
    }
}

impl<S: Read + Unpin> Read for BoundedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for BoundedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests;
