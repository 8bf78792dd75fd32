//! The secure port: health for everybody, metrics for those who may.

mod access;
mod certificate;
mod respond;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use access::Reviews;
pub use certificate::CertificateError;

use crate::config::ServingConfig;
use crate::health::Health;
use crate::metrics::Metrics;
use access::Access;

/// The bounds of the framework: one header section, and the time to send it.
const MAX_HEADERS: u32 = 1 << 20;
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// A client that does not finish the TLS handshake by then is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at once. Probes and scrapes need a handful; beyond, a connection waits to be accepted.
const MAX_CONNECTIONS: usize = 128;

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
    site: Arc<Site>,
    http2: bool,
    http2_streams: Option<u32>,
}

/// What is served, over whatever kind of connection.
pub struct Site {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    access: Access,
}

impl Site {
    /// A site with these checks and series. Without `reviews` nobody has access to more than what everybody may read.
    #[must_use]
    pub fn new(
        config: &crate::config::AccessConfig,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
        reviews: Option<Arc<dyn Reviews>>,
    ) -> Self {
        Self {
            health,
            metrics,
            access: Access::new(config.clone(), reviews),
        }
    }
}

impl Server {
    /// Gets a certificate and listens. `now` dates a certificate that is made here.
    ///
    /// Call it inside the runtime. It blocks for the certificate's files, if there are any.
    ///
    /// # Errors
    ///
    /// The port is taken, or there is no usable certificate.
    pub fn bind(config: &ServingConfig, site: Site, now: Timestamp) -> Result<Self, ServingError> {
        let identity = certificate::obtain(&config.certificate, config.address, now)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls(config, identity)?));
        let listener = socket::listen(config)?;
        Ok(Self {
            listener,
            acceptor,
            site: Arc::new(site),
            http2: config.http2,
            http2_streams: config.http2_streams,
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
        let mut connections = JoinSet::new();
        let handler = Arc::new(self.handler());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let (acceptor, handler) = (self.acceptor.clone(), Arc::clone(&handler));
                        connections.spawn(async move {
                            let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                            match handshake.await {
                                Ok(Ok(stream)) => handler.connection(stream).await,
                                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                                Err(_) => tracing::debug!("TLS handshake took too long"),
                            }
                        });
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

    fn handler(&self) -> Handler {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(MAX_HEADERS as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADERS)
            .max_concurrent_streams(self.http2_streams.unwrap_or(250));
        let builder = if self.http2 { builder } else { builder.http1_only() };
        Handler {
            builder,
            site: Arc::clone(&self.site),
        }
    }
}

struct Handler {
    builder: auto::Builder<TokioExecutor>,
    site: Arc<Site>,
}

impl Handler {
    async fn connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let service = hyper::service::service_fn(|request| {
            let site = Arc::clone(&self.site);
            async move { Ok::<_, std::convert::Infallible>(site.respond(&request).await) }
        });
        if let Err(error) = self.builder.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%error, "Connection ended");
        }
    }
}

fn tls(config: &ServingConfig, identity: certificate::Identity) -> Result<ServerConfig, CertificateError> {
    let versions: &[&rustls::SupportedProtocolVersion] = if config.requires_tls13 {
        &[&rustls::version::TLS13]
    } else {
        rustls::ALL_VERSIONS
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)?;
    if config.http2 {
        tls.alpn_protocols.push(b"h2".to_vec());
    }
    tls.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(tls)
}
