//! Connections over sockets: a bounded number of them, through a proxy where one is named.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_cloud_provider::Environment;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::AuthInfo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, Service, ServiceBuilder};

use super::ConnectError;
use super::token_file::TokenFile;
use crate::client::{Kube, KubeOptions};
use crate::fence::Fenced;

/// Sockets to the API server at most. The client speaks HTTP/1.1 only, so each request under way takes one, with its
/// TLS state of some 50 KiB.
pub const MAX_SOCKETS: usize = 16;

/// Sockets that are not for ordinary requests: two watches and the lease.
const SET_ASIDE: usize = 3;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Finds out about a dead peer within two minutes, also under a watch that shows nothing.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Longer than the pauses between the loops' passes, shorter than what middleboxes remember.
const IDLE: Duration = Duration::from_secs(90);
/// What one connection buffers of an answer at most, in bytes; also the longest head of an answer. Left to itself a buffer
/// that once saw a long list grows to 400 KiB and stays so for as long as a watch lasts.
const READ_BUFFER: usize = 32 * 1024;

/// A proxy on the way to the API server.
pub(super) struct Proxy {
    address: Uri,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// The proxy that a kubeconfig names.
    pub(super) fn at(address: &str) -> Result<Self, ConnectError> {
        let matcher = Matcher::builder().all(address).build();
        // Any address will do: the matcher only takes the proxy's own apart.
        let intercept = matcher.intercept(&Uri::from_static("https://api"));
        Self::checked(address, intercept)?.ok_or_else(|| Self::unusable(address))
    }

    /// The proxy that `HTTPS_PROXY` or `HTTP_PROXY` names, unless `NO_PROXY` excludes the server.
    pub(super) fn from_environment(
        environment: &Environment,
        server: &Uri,
    ) -> Result<Option<Self>, ConnectError> {
        let variable = |upper: &str, lower: &str| {
            let value = environment.value(upper).filter(|value| !value.is_empty());
            value
                .or_else(|| environment.value(lower))
                .unwrap_or_default()
                .to_owned()
        };
        let https = variable("HTTPS_PROXY", "https_proxy");
        let http = variable("HTTP_PROXY", "http_proxy");
        let named = if server.scheme_str() == Some("http") {
            http.clone()
        } else {
            https.clone()
        };
        // As for the Go managers, a server on this machine is never behind a proxy.
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if named.is_empty() || is_here {
            return Ok(None);
        }
        let no = variable("NO_PROXY", "no_proxy");
        let matcher = Matcher::builder().http(http).https(https).no(no).build();
        Self::checked(&named, matcher.intercept(server))
    }

    fn checked(named: &str, intercept: Option<Intercept>) -> Result<Option<Self>, ConnectError> {
        let Some(intercept) = intercept else {
            return Ok(None);
        };
        if intercept.uri().scheme_str() != Some("http") {
            return Err(Self::unusable(named));
        }
        let authorization = intercept.basic_auth().cloned();
        Ok(Some(Self {
            address: intercept.uri().clone(),
            authorization,
        }))
    }

    /// Proxy addresses may hold a password, so the text does not repeat it.
    fn unusable(named: &str) -> ConnectError {
        let scheme = named.split_once("://").map_or("", |(scheme, _)| scheme);
        ConnectError::Setup(format!("the proxy has to be an http:// address, not {scheme}://"))
    }
}

/// Prepares the connections. Nothing is sent yet.
pub(super) fn connect(
    config: &Config,
    proxy: Option<&Proxy>,
    speaks_for_others: bool,
    mut options: KubeOptions,
) -> Result<Kube, ConnectError> {
    // A library that is built with several sources of cryptography wants to be told which; all of ours name the same.
    let _ = rustls::crypto::ring::default_provider().install_default();

    options.max_in_flight = options.max_in_flight.min(MAX_SOCKETS - SET_ASIDE);
    let own = pool(config, proxy)?;
    // A pool of its own, because idle sockets of one would keep the other waiting; requests in flight are bounded
    // together.
    let anonymous = if speaks_for_others {
        let mut config = config.clone();
        config.auth_info = AuthInfo::default();
        pool(&config, proxy)?
    } else {
        own.clone()
    };
    let host = config
        .cluster_url
        .authority()
        .map_or("", |authority| authority.as_str());
    Ok(Kube::assemble(own, anonymous, host, options))
}

/// A bounded number of sockets with the credentials of this configuration.
fn pool(config: &Config, proxy: Option<&Proxy>) -> Result<kube::Client, ConnectError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE));
    let bounded = Bounded {
        inner: tcp,
        sockets: Arc::new(Semaphore::new(MAX_SOCKETS)),
    };
    match proxy {
        None => layered(config, bounded),
        Some(Proxy {
            address,
            authorization,
        }) => {
            let mut tunnel = Tunnel::new(address.clone(), bounded);
            if let Some(authorization) = authorization {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            layered(config, tunnel)
        }
    }
}

/// Puts the layers together.
fn layered<C>(config: &Config, connector: C) -> Result<kube::Client, ConnectError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let setup = |error: kube::Error| ConnectError::Setup(error.to_string());
    let connector = config
        .rustls_https_connector_with_connector(connector)
        .map_err(setup)?;
    let http: Client<_, Fenced<Body>> = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(READ_BUFFER)
        .build(connector);
    // The library sends the line break at the end of a file, too, with which there is no header.
    let token = config
        .auth_info
        .token_file
        .as_ref()
        .map(|path| TokenFile::read(Path::new(path)))
        .transpose()?
        .map(Arc::new);
    let mut others = config.clone();
    others.auth_info.token_file = None;
    if token.is_some() {
        others.auth_info.token = None; // the file comes first
    }
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(others.auth_layer().map_err(setup)?)
        .map_request(move |mut request: Request<Body>| {
            if let Some(token) = &token {
                request.headers_mut().insert(AUTHORIZATION, token.header());
            }
            request
        })
        .layer(config.extra_headers_layer().map_err(setup)?)
        .map_err(BoxError::from)
        .map_request(Fenced::<Body>::request)
        .service(http);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// Opens no more sockets than there are permits; each holds its permit until it is closed.
#[derive(Clone)]
struct Bounded {
    inner: HttpConnector,
    sockets: Arc<Semaphore>,
}

type Tcp = <HttpConnector as Service<Uri>>::Response;

impl Service<Uri> for Bounded {
    type Response = BoundedSocket;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<BoundedSocket, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let sockets = Arc::clone(&self.sockets);
        Box::pin(async move {
            let permit = sockets.acquire_owned().await?;
            let tcp = inner.call(target).await?;
            Ok(BoundedSocket { tcp, _permit: permit })
        })
    }
}

struct BoundedSocket {
    tcp: Tcp,
    _permit: OwnedSemaphorePermit,
}

impl Connection for BoundedSocket {
    fn connected(&self) -> Connected {
        self.tcp.connected()
    }
}

impl Read for BoundedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl Write for BoundedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests;
