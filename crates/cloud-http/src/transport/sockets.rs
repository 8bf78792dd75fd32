//! The transport over TCP and TLS.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline_edge::{AnyCertificate, ConnectFailed, Connector, ProxyError, ProxyRules, Trusted, Way, roots};
use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::TransportError;
use super::gated::Gated;
use bowline_edge::{Gate, GateClosed};

/// How connections are made.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Which requests go through a proxy.
    pub proxies: ProxyRules,
    /// `SSL_CERT_FILE`: certificate authorities in place of the system's file.
    pub cert_file: Option<PathBuf>,
    /// `SSL_CERT_DIR`: directories of certificate authorities in place of the system's.
    pub cert_dirs: Option<Vec<PathBuf>>,
    /// The longest time until a connection stands, TLS and proxy included. Default 10 s.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept. Default 90 s, as in Go.
    pub idle_timeout: Duration,
    /// Whether the other side has to prove who it is. Default true; without it anybody in between can read and change
    /// everything.
    pub verifies_certificates: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            proxies: ProxyRules::default(),
            cert_file: None,
            cert_dirs: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(90),
            verifies_certificates: true,
        }
    }
}

impl SocketOptions {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (upper case first, then lower case), `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` from an environment that is handed in.
    ///
    /// # Errors
    ///
    /// A proxy's URL does not parse, or names a scheme that is not supported.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let (cert_file, cert_dirs) = roots::from_env(&lookup);
        Ok(Self {
            proxies: ProxyRules::from_env(&lookup)?,
            cert_file,
            cert_dirs,
            ..Self::default()
        })
    }
}

/// The transport cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TransportSetupError {
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(rustls::Error),
}

/// The transport over TCP and TLS, before the first connection.
#[derive(Clone)]
pub(super) struct Sockets {
    connector: Connector<HttpConnector>,
    proxies: Arc<ProxyRules>,
    idle_timeout: Duration,
}

impl Sockets {
    pub(super) fn new(options: &SocketOptions) -> Result<Self, TransportSetupError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TransportSetupError::Tls)?;
        let tls = if options.verifies_certificates {
            let roots = roots::load(options.cert_file.as_deref(), options.cert_dirs.as_deref());
            let trusted = Trusted::new(roots, provider)
                .map_err(|error| TransportSetupError::Tls(rustls::Error::General(error.to_string())))?;
            tls.dangerous()
                .with_custom_certificate_verifier(Arc::new(trusted))
        } else {
            tls.dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        };
        let tls = tls.with_no_client_auth();
        let proxies = Arc::new(options.proxies.clone());
        // To a proxy, which is spoken to in HTTP/1.1; the cloud itself may choose HTTP/2.
        let proxy = Arc::new(tls.clone());
        let mut target = tls;
        target.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let way = Way {
            target: Arc::new(target),
            server_name: None,
            proxy,
            proxies: Arc::clone(&proxies),
            limit: options.connect_timeout,
        };
        Ok(Self {
            connector: Connector::new(tcp(options.connect_timeout), way),
            proxies,
            idle_timeout: options.idle_timeout,
        })
    }

    /// Connections that send only while the gate is open.
    pub(super) fn open(
        self,
        gate: &Arc<dyn Gate>,
    ) -> impl tower::Service<
        http::Request<Full<Bytes>>,
        Response = http::Response<Incoming>,
        Error = TransportError,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + use<> {
        let client = client(Gated::new(self.connector, Arc::clone(gate)), self.idle_timeout);
        let proxies = self.proxies;
        tower::service_fn(move |mut request: http::Request<Full<Bytes>>| {
            if let Some(auth) = proxies.forward_auth(request.uri()) {
                request.headers_mut().insert(PROXY_AUTHORIZATION, auth);
            }
            let exchange = client.request(request);
            async move { exchange.await.map_err(classify) }
        })
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

/// What one connection buffers of an answer at most, in bytes; also the longest head of an answer. Left to itself a buffer
/// that once saw a long list grows to 400 KiB and stays so for as long as the connection.
const READ_BUFFER: usize = 32 * 1024;

/// The pool over any connector.
pub(super) fn client<C>(connector: C, idle_timeout: Duration) -> legacy::Client<C, Full<Bytes>>
where
    C: Connect + Clone,
{
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle_timeout)
        .http1_max_buf_size(READ_BUFFER)
        // A connection that a firewall forgot is found before the next call runs into its timeout.
        .http2_keep_alive_interval(Duration::from_secs(30))
        .http2_keep_alive_timeout(Duration::from_secs(10))
        .build(connector)
}

fn tcp(limit: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Several addresses share the time, so that a dead one does not use it up.
    tcp.set_connect_timeout(Some(limit));
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    tcp
}

pub(super) fn classify(error: legacy::Error) -> TransportError {
    if !error.is_connect() {
        return TransportError::Broken(error.into());
    }
    if let Some(closed) = error
        .source()
        .and_then(|source| source.downcast_ref::<GateClosed>())
    {
        return TransportError::Gate(closed.clone());
    }
    if is_tls(&error) {
        TransportError::Tls(error.into())
    } else {
        TransportError::Connect(error.into())
    }
}

/// Whether the error came from TLS itself. A connection that merely ended during the handshake did not.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // `source` of an I/O error skips the error that it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => match error.downcast_ref::<ConnectFailed>() {
                Some(failed) => Some(&*failed.0),
                None => error.source(),
            },
        };
    }
    false
}
