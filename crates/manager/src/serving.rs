//! The secure port: health for everybody, metrics and the rest for those who may.

mod access;
mod answers;
mod authorities;
mod certificate;
mod client;
mod connection;
mod debug;
mod holder;
mod metered;
mod paths;
mod places;
mod respond;
mod socket;
mod subject;
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
pub use zpages::Pages;

use crate::config::{AccessConfig, ServingConfig};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::metrics::gauges::{CREDENTIALS, expires_in};
use access::Access;
use certificate::Certificates;
use client::Client;
use connection::Handler;
use metered::{Allowance, Metered};
use places::{Origin, Place, Places};

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
    #[error("failed to create listener: failed to listen on {address}: {source}{holder}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
        /// Who has it, and what to do, if that can be seen.
        holder: String,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Reads the files that the secure port is served with, as its start does, and nothing else.
///
/// # Errors
///
/// What is wrong with the first one that cannot be used.
pub async fn check_files(config: &ServingConfig) -> Result<(), String> {
    Certificates::check(config).map_err(|error| error.to_string())?;
    let authorities = Authorities::establish(&config.access, None).await;
    authorities.map(drop).map_err(|error| error.to_string())
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
    /// What `/debug/` sets the verbosity of the log with; `None`: there is no `/debug/`.
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
    /// The API server's word about tokens and access; `None`: tokens say nothing, and nobody but masters has access to
    /// more than what everybody may read.
    pub reviews: Option<Arc<dyn Reviews>>,
    /// What there is to tell about the process.
    pub pages: Pages,
    /// The wall time, for certificates.
    pub clock: Arc<dyn Clock>,
    /// What `/debug/` sets the verbosity of the log with; `None`: there is no `/debug/`.
    pub debug: Option<SetVerbosity>,
}

impl Site {
    /// Puts a site together.
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
        let (shown, clock) = (Arc::downgrade(&certificates), Arc::clone(&site.clock));
        let probes = &site.metrics.controllers().probes;
        probes.probe(&CREDENTIALS, "serving", move || {
            let end = shown.upgrade()?.first_end();
            Some(expires_in(&*clock, end.map(|end| ("serving-certificate", end))))
        });
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
        let places = Places::new();
        let mut connections = JoinSet::new();
        let accept = async {
            loop {
                let (stream, address) = tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => continue,
                    accepted = self.listener.accept() => match accepted {
                        Ok(accepted) => accepted,
                        Err(error) => {
                            self.recover(&error, &places).await;
                            continue;
                        }
                    },
                };
                let place = places.enter(Origin::from(address.ip())).await;
                let serve = serve(stream, place, self.acceptor.clone(), Arc::clone(&self.handler));
                connections.spawn(serve);
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
    async fn recover(&self, error: &std::io::Error, places: &Places) {
        use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        // The client has gone; that is its matter alone.
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        // Out of file descriptors or the like. What is given back is for the next one.
        tracing::warn!(%error, "Accepting a connection failed");
        places.yield_some();
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Serves a connection until it ends or has to give way.
async fn serve(stream: TcpStream, place: Place, acceptor: TlsAcceptor, handler: Arc<Handler>) {
    let gives_way = place.gives_way();
    tokio::select! {
        biased;
        // First: what has arrived is answered, and what is answered is sent, before the connection gives way.
        () = converse(stream, place, acceptor, &handler) => {}
        () = gives_way.cancelled() => {}
    }
}

async fn converse(stream: TcpStream, place: Place, acceptor: TlsAcceptor, handler: &Handler) {
    let allowance = Allowance::default();
    let Some(stream) = shake_hands(stream, acceptor, allowance.clone()).await else {
        return;
    };
    place.shaken_hands().await;
    let (_, tls) = stream.get_ref();
    let client = Arc::new(Client::showing(tls.peer_certificates().unwrap_or_default()).at(place));
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    Box::pin(handler.serve(stream, &client, allowance, is_http2)).await;
}

async fn shake_hands(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    allowance: Allowance,
) -> Option<TlsStream<Metered<TcpStream>>> {
    let handshake = async {
        // Nothing is prepared for a client that says nothing.
        stream.readable().await?;
        let metered = Metered::new(stream, allowance);
        let prepare = |tls: &mut ServerConnection| tls.set_buffer_limit(Some(UNSENT));
        Box::pin(acceptor.accept_with(metered, prepare)).await
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(mut stream)) => {
            let metered = stream.get_mut().0;
            metered.has_shaken_hands();
            socket::confirm(metered.get_ref());
            Some(stream)
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("TLS handshake took too long");
            None
        }
    }
}
