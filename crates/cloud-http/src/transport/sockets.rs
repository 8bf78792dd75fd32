//! The transport over TCP and TLS.

mod identity;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline_transport::{
    Connector, Fenced, Gate, GateClosed, Lines, Names, ProxyError, ProxyRules, Way, cause, client_tls, pool,
    roots, send, tcp, turned_away,
};
use bytes::Bytes;
use http::StatusCode;
use http::header::PROXY_AUTHORIZATION;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::sign::SingleCertAndKey;

pub use self::identity::{ClientCertificate, TrustedAuthorities};
use super::TransportError;

/// How connections are made.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Which requests go through a proxy.
    pub proxies: ProxyRules,
    /// `SSL_CERT_FILE`: certificate authorities in place of the system's file.
    pub cert_file: Option<PathBuf>,
    /// `SSL_CERT_DIR`: directories of certificate authorities in place of the system's.
    pub cert_dirs: Option<Vec<PathBuf>>,
    /// Certificate authorities in place of all others. Default: none.
    pub authorities: Option<TrustedAuthorities>,
    /// What is shown to a cloud that asks for a certificate; a proxy never sees it. Default: none.
    pub certificate: Option<ClientCertificate>,
    /// The longest time until a connection stands, TLS and proxy included. Default 10 s.
    pub connect_timeout: Duration,
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
            authorities: None,
            certificate: None,
            connect_timeout: Duration::from_secs(10),
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
    connector: Connector<HttpConnector<Names>>,
    proxies: Arc<ProxyRules>,
}

impl Sockets {
    pub(super) fn new(options: &SocketOptions) -> Result<Self, TransportSetupError> {
        let authorities = options.verifies_certificates.then(|| match &options.authorities {
            Some(TrustedAuthorities(authorities)) => authorities.clone(),
            None => roots::load(options.cert_file.as_deref(), options.cert_dirs.as_deref()),
        });
        let tls = client_tls(authorities).map_err(TransportSetupError::Tls)?;
        let proxies = Arc::new(options.proxies.clone());
        // To a proxy, which is spoken to in HTTP/1.1; the cloud itself may choose HTTP/2.
        let proxy = Arc::new(tls.clone().with_no_client_auth());
        let mut target = match &options.certificate {
            Some(ClientCertificate(key)) => {
                tls.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(key))))
            }
            None => tls.with_no_client_auth(),
        };
        target.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let way = Way {
            target: Arc::new(target),
            server_name: None,
            proxy,
            proxies: Arc::clone(&proxies),
            limit: options.connect_timeout,
        };
        Ok(Self {
            connector: Connector::new(tcp(options.connect_timeout, None), way),
            proxies,
        })
    }

    /// Connections that send only while the gate is open, and are ended with these lines.
    pub(super) fn open(
        self,
        gate: &Arc<dyn Gate>,
        lines: Lines,
    ) -> impl tower::Service<
        http::Request<Full<Bytes>>,
        Response = http::Response<Incoming>,
        Error = TransportError,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + use<> {
        let client = pool(self.connector.gated(Arc::clone(gate)).among(lines));
        let proxies = self.proxies;
        tower::service_fn(move |mut request: http::Request<Full<Bytes>>| {
            if let Some(auth) = proxies.forward_auth(request.uri()) {
                request.headers_mut().insert(PROXY_AUTHORIZATION, auth);
            }
            let (proxies, target) = (Arc::clone(&proxies), request.uri().clone());
            let exchange = send(&client, Fenced::request(request));
            async move {
                let answer = exchange.await.map_err(classify)?;
                // The cloud was not reached, so this is no answer of it.
                let is_of_proxy = answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED;
                match turned_away(&proxies, &target).filter(|_| is_of_proxy) {
                    Some(error) => Err(TransportError::Connect(error)),
                    None => Ok(answer),
                }
            }
        })
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

fn classify(error: legacy::Error) -> TransportError {
    if !error.is_connect() {
        TransportError::Broken(error.into())
    } else if let Some(closed) = cause::<GateClosed>(&error) {
        TransportError::Gate(closed.clone())
    } else if cause::<rustls::Error>(&error).is_some() {
        // A connection that merely ended during the handshake is no such error.
        TransportError::Tls(error.into())
    } else {
        TransportError::Connect(error.into())
    }
}

#[cfg(test)]
mod tests;
