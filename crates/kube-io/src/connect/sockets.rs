//! Connections over sockets: a bounded number of them, through a proxy where one is named.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_transport::{Authorities, Connector, Fenced, Sockets, Way, pool, roots, tcp};
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use hyper_util::client::legacy::Client;
use rustls::pki_types::ServerName;
use tokio::sync::Semaphore;
use tower::{Service, ServiceExt as _};

use super::credentials::Keys;
use super::{ConnectError, Reach};
use crate::client::{Body, Carrier, Kube, KubeOptions, answer, carrier};
use crate::rank::Pool;

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
    let host = reach
        .server
        .authority()
        .map_or("", |authority| authority.as_str())
        .to_owned();
    let reach = Arc::new(reach);
    let metrics = options.metrics.clone();
    let on_lookup = Arc::new(move |host: &str, took| metrics.looked_up(host, took));
    let sockets = tcp(CONNECT_TIMEOUT, Some(on_lookup));
    let own = layered(&reach, Whose::Own, sockets.clone())?;
    // Pools of its own, because idle sockets of one would keep the other waiting; requests in flight are bounded
    // together.
    let anonymous = if speaks_for_others {
        layered(&reach, Whose::Others, sockets)?
    } else {
        own.clone()
    };
    let credentials = Some(Arc::clone(&reach.credentials));
    let lines = reach.lines.clone();
    Ok(Kube::assemble(own, anonymous, &host, credentials, lines, options))
}

/// Whose credentials requests bear.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The connection's.
    Own,
    /// Their own.
    Others,
}

/// Puts the layers together, over bounded numbers of these sockets.
fn layered<S: Sockets>(reach: &Arc<Reach>, whose: Whose, sockets: S) -> Result<Carrier, ConnectError> {
    let http = Renewed::new(Arc::clone(reach), whose, sockets)?;
    let reach = Arc::clone(reach);
    let of_proxy = reach.proxies.forward_auth(&reach.server);
    let layered = http.map_request(move |mut request: Request<Body>| {
        *request.uri_mut() = at(&reach.server, request.uri());
        let headers = request.headers_mut();
        if whose == Whose::Own {
            headers.extend(reach.impersonation.clone());
            if let Some(token) = reach.credentials.authorization() {
                headers.insert(AUTHORIZATION, token);
            }
        }
        if let Some(auth) = &of_proxy {
            headers.insert(PROXY_AUTHORIZATION, auth.clone());
        }
        Fenced::request(request)
    });
    Ok(carrier(layered.map_response(answer).map_err(Into::into).boxed()))
}

/// A path of the API as an address of this server, whose own path comes first.
fn at(server: &Uri, path: &Uri) -> Uri {
    let asked = path.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut parts = server.clone().into_parts();
    let whole = format!("{}{asked}", server.path().trim_end_matches('/'));
    parts.path_and_query = whole.parse().ok();
    // Two good paths make a good one.
    Uri::from_parts(parts).unwrap_or_else(|_| path.clone())
}

/// Something for each [`Pool`], in their order: a slow request can keep only its own kind waiting.
type Pools<T> = [T; 3];

type Http<S> = Client<Connector<S>, Fenced<Body>>;

/// The connections that were opened with the credentials of now. When these change, later requests take new ones; those
/// under way end on the old ones, whose sockets count until they are closed.
#[derive(Clone)]
struct Renewed<S> {
    maker: Arc<Maker<S>>,
    now: Arc<Mutex<(Keys, Pools<Http<S>>)>>,
}

/// Makes them.
struct Maker<S> {
    reach: Arc<Reach>,
    whose: Whose,
    sockets: S,
    bounds: Pools<Arc<Semaphore>>,
    server_name: Option<ServerName<'static>>,
    /// The system's authorities, if they have a part in it.
    system: Option<Authorities>,
}

impl<S: Sockets> Renewed<S> {
    fn new(reach: Arc<Reach>, whose: Whose, sockets: S) -> Result<Self, ConnectError> {
        let setup = |error: String| ConnectError::Setup(error);
        let server_name = reach
            .server_name
            .clone()
            .map(ServerName::try_from)
            .transpose()
            .map_err(|_| setup("`tls-server-name` is neither a host name nor an address".to_owned()))?;
        let is_proxy_secure = reach
            .proxies
            .proxy_for(&reach.server)
            .is_some_and(|proxy| proxy.uri().scheme_str() == Some("https"));
        let (file, dirs) = &reach.system;
        let system = is_proxy_secure.then(|| roots::load(file.as_deref(), dirs.as_deref()));
        let maker = Maker {
            reach,
            whose,
            sockets,
            bounds: [ORDINARY, WATCHES, LEASES].map(|sockets| Arc::new(Semaphore::new(sockets))),
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

    fn current(&self, pool: Pool) -> Http<S> {
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
        now.1[pool as usize].clone()
    }
}

impl<S: Sockets> Maker<S> {
    fn keys(&self) -> Keys {
        let keys = self.reach.credentials.keys();
        match self.whose {
            Whose::Own => keys,
            Whose::Others => keys.anonymous(),
        }
    }

    fn http(&self, keys: &Keys) -> Result<Pools<Http<S>>, rustls::Error> {
        let way = Way {
            target: Arc::new(keys.to_server()?),
            server_name: self.server_name.clone(),
            proxy: Arc::new(keys.to_proxy(self.system.as_ref())?),
            proxies: Arc::new(self.reach.proxies.clone()),
            limit: CONNECT_TIMEOUT,
        };
        Ok(self.bounds.each_ref().map(|bound| {
            let connector = Connector::new(self.sockets.clone(), way.clone());
            let lines = self.reach.lines.clone();
            pool(connector.bounded(Arc::clone(bound)).among(lines))
        }))
    }
}

impl<S: Sockets> Service<Request<Fenced<Body>>> for Renewed<S> {
    type Response = <Http<S> as Service<Request<Fenced<Body>>>>::Response;
    type Error = <Http<S> as Service<Request<Fenced<Body>>>>::Error;
    type Future = <Http<S> as Service<Request<Fenced<Body>>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Fenced<Body>>) -> Self::Future {
        let pool = request.extensions().get().copied().unwrap_or(Pool::Ordinary);
        self.current(pool).call(request)
    }
}

#[cfg(test)]
mod tests;
