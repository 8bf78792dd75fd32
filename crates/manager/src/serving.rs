//! The secure port: health for everybody, metrics and the rest for those who may.

mod access;
mod authorities;
mod bucket;
mod certificate;
mod client;
mod connection;
mod debug;
mod metered;
mod places;
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
use rustls::ServerConnection;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
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
use client::Client;
use connection::Handler;
use metered::{Allowance, Metered};
use places::{CONVERSATIONS, HANDSHAKES, Origin, Place, Places};

/// A client that does not finish the TLS handshake by then is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// What TLS keeps of answers that a client does not take, in bytes.
const UNSENT: usize = 16 * 1024;

/// How long nothing is accepted after the system could not give a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
        let handshakes = Places::new(HANDSHAKES);
        let conversations = Places::new(CONVERSATIONS);
        let mut connections = JoinSet::new();
        let accept = async {
            loop {
                let (stream, address) = tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => continue,
                    accepted = self.listener.accept() => match accepted {
                        Ok(accepted) => accepted,
                        Err(error) => {
                            self.recover(&error, [&handshakes, &conversations]).await;
                            continue;
                        }
                    },
                };
                let origin = Origin::from(address.ip());
                let place = handshakes.enter(origin).await;
                let newcomer = Newcomer {
                    stream,
                    origin,
                    place,
                    conversations: Arc::clone(&conversations),
                };
                connections.spawn(newcomer.serve(self.acceptor.clone(), Arc::clone(&self.handler)));
                // First those that are here: no more are let in than can be served, and the rest of the program has its turn.
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = accept => {}
        }
        connections.shutdown().await;
    }

    /// After a connection that the system could not give.
    async fn recover(&self, error: &std::io::Error, rooms: [&Arc<Places>; 2]) {
        use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        // The client has gone; that is its matter alone.
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        // Out of file descriptors or the like. What is given back is for the next one.
        tracing::warn!(%error, "Accepting a connection failed");
        for places in rooms {
            places.yield_one();
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// A connection that was let in.
struct Newcomer {
    stream: TcpStream,
    origin: Origin,
    place: Place,
    conversations: Arc<Places>,
}

impl Newcomer {
    /// Serves it until it ends or has to give way.
    async fn serve(self, acceptor: TlsAcceptor, handler: Arc<Handler>) {
        let gives_way = self.place.gives_way();
        let conversation = tokio::select! {
            biased;
            () = gives_way.cancelled() => None,
            conversation = self.shake_hands(acceptor) => conversation,
        };
        if let Some(conversation) = conversation {
            conversation.hold(&handler).await;
        }
    }

    async fn shake_hands(self, acceptor: TlsAcceptor) -> Option<Conversation> {
        let allowance = Allowance::default();
        // Nothing is prepared for a client that says nothing.
        let handshake = async {
            self.stream.readable().await?;
            let metered = Metered::new(self.stream, allowance.clone());
            let prepare = |tls: &mut ServerConnection| tls.set_buffer_limit(Some(UNSENT));
            Box::pin(acceptor.accept_with(metered, prepare)).await
        };
        let mut stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                return None;
            }
            Err(_) => {
                tracing::debug!("TLS handshake took too long");
                return None;
            }
        };
        stream.get_mut().0.has_shaken_hands();
        self.place.answered();
        let place = self.conversations.enter(self.origin).await;
        Some(Conversation {
            stream,
            allowance,
            origin: self.origin,
            place,
        })
    }
}

/// A connection that speaks HTTP.
struct Conversation {
    stream: TlsStream<Metered<TcpStream>>,
    allowance: Allowance,
    origin: Origin,
    place: Place,
}

impl Conversation {
    /// Serves it until it ends or has to give way.
    async fn hold(self, handler: &Handler) {
        let gives_way = self.place.gives_way();
        let (_, tls) = self.stream.get_ref();
        let client = Client::showing(tls.peer_certificates().unwrap_or_default()).at(self.origin, self.place);
        let (client, is_http2) = (Arc::new(client), tls.alpn_protocol() == Some(b"h2"));
        let served = handler.serve(self.stream, &client, self.allowance, is_http2);
        tokio::select! {
            biased;
            () = gives_way.cancelled() => {}
            () = Box::pin(served) => {}
        }
    }
}
