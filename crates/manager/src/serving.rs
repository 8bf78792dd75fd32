//! The secure port: health for everybody, metrics and the rest for those who may.

mod access;
mod authorities;
mod certificate;
mod connection;
mod debug;
#[cfg(feature = "cpu-profile")]
mod profile;
mod respond;
mod socket;
mod tls;
mod zpages;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::Clock;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use access::Reviews;
pub use authorities::{Authorities, AuthoritiesError};
pub use certificate::CertificateError;
pub use tls::{CipherSuites, Groups, UnservableError};
pub use zpages::Pages;

use crate::config::{AccessConfig, ServingConfig};
use crate::health::Health;
use crate::metrics::Metrics;
use access::Access;
use certificate::Certificates;
use connection::Handler;

/// A client that does not finish the TLS handshake by then is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at once. Probes and scrapes need a handful; beyond, a connection waits to be accepted.
const MAX_CONNECTIONS: usize = 128;

/// How often files of certificates are read again: they are small, and a new one may be awaited by somebody.
const RELOAD: Duration = Duration::from_secs(20);

/// Why the secure port cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The port cannot be listened on.
    #[error("failed to create listener: failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The secure port, listened on and ready to answer.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
    handler: Arc<Handler>,
    site: Arc<Site>,
}

/// What is served, over whatever kind of connection.
pub struct Site {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    access: Access,
    pages: Pages,
    clock: Arc<dyn Clock>,
    /// What `/debug/` sets the verbosity of the log with; none: there is no `/debug/`.
    debug: Option<SetVerbosity>,
}

/// Sets the verbosity of the log.
pub type SetVerbosity = Arc<dyn Fn(u8) + Send + Sync>;

/// What a [`Site`] is made from.
pub struct SiteParts {
    /// The checks.
    pub health: Arc<Health>,
    /// The series.
    pub metrics: Arc<Metrics>,
    /// Who vouches for clients.
    pub authorities: Authorities,
    /// The API server's word about tokens and access; none: tokens say nothing, and nobody but masters has access to
    /// more than what everybody may read.
    pub reviews: Option<Arc<dyn Reviews>>,
    /// What there is to tell about the process.
    pub pages: Pages,
    /// The wall time, for certificates.
    pub clock: Arc<dyn Clock>,
    /// What `/debug/` sets the verbosity of the log with; none: there is no `/debug/`.
    pub debug: Option<SetVerbosity>,
}

impl Site {
    /// Puts a site together.
    #[must_use]
    pub fn new(config: &AccessConfig, parts: SiteParts) -> Self {
        let SiteParts {
            health,
            metrics,
            authorities,
            reviews,
            pages,
            clock,
            debug,
        } = parts;
        let access = Access::new(
            config,
            authorities,
            reviews,
            Arc::clone(&clock),
            metrics.serving().clone(),
        );
        Self {
            health,
            metrics,
            access,
            pages,
            clock,
            debug,
        }
    }
}

impl Server {
    /// Gets the certificates and listens.
    ///
    /// Call it inside the runtime. It blocks for the certificates' files, if there are any.
    ///
    /// # Errors
    ///
    /// The port is taken, or there is no usable certificate.
    pub fn bind(config: &ServingConfig, site: Site) -> Result<Self, ServingError> {
        let certificates = Arc::new(Certificates::obtain(config, Arc::clone(&site.clock))?);
        let tls = tls::server(config, Arc::clone(&certificates)).map_err(CertificateError::from)?;
        let listener = socket::listen(config)?;
        let site = Arc::new(site);
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            certificates,
            handler: Arc::new(Handler::new(config, Arc::clone(&site))),
            site,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop`; then every connection is closed.
    pub async fn run(self, stop: CancellationToken) {
        let upkeep = async {
            tokio::join!(self.certificates.keep_fresh(), self.site.access.keep_fresh());
        };
        tokio::select! {
            biased;
            () = self.accept(&stop) => {}
            () = upkeep => {}
        }
    }

    async fn accept(&self, stop: &CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let (acceptor, handler) = (self.acceptor.clone(), Arc::clone(&self.handler));
                        connections.spawn(serve(acceptor, handler, stream));
                    }
                    Err(error) => {
                        // Out of file descriptors or the like: the connections under way may free some.
                        tracing::warn!(%error, "Accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        connections.shutdown().await;
    }
}

async fn serve(acceptor: TlsAcceptor, handler: Arc<Handler>, stream: TcpStream) {
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let (_, tls) = stream.get_ref();
    let peer = tls.peer_certificates().unwrap_or_default().to_vec().into();
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    handler.serve(stream, peer, is_http2).await;
}
