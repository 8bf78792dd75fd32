//! The server on a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::core::Core;
use crate::service::ApiService;

/// How long a connection may take to finish its last answers when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait after a failed accept, e.g. when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server on a socket. Dropping the handle stops it without waiting.
pub struct ServerHandle {
    core: Arc<Core>,
    address: SocketAddr,
    stop: CancellationToken,
    accepting: JoinHandle<()>,
    connections: TaskTracker,
}

impl ServerHandle {
    pub(crate) fn start(
        core: Arc<Core>,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let connections = TaskTracker::new();
        let tls = tls.map(TlsAcceptor::from);
        let accepting = tokio::spawn(accept(
            listener,
            tls,
            ApiService::new(Arc::clone(&core)),
            stop.clone(),
            connections.clone(),
        ));
        Ok(Self {
            core,
            address,
            stop,
            accepting,
            connections,
        })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: no new connections, all watches of the API are closed, running requests are answered. Returns when the
    /// last task has ended.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.core.closed.send_modify(|epoch| *epoch += 1);
        // A join error is a panic of the accepting task; there is nothing left to stop then.
        let _ended = (&mut self.accepting).await;
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    service: ApiService,
    stop: CancellationToken,
    connections: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (tls, service, stop) = (tls.clone(), service.clone(), stop.clone());
        connections.spawn(async move {
            // Small answers should not wait for more; a failure only costs time.
            let _delayed = socket.set_nodelay(true);
            match tls {
                None => converse(socket, service, stop).await,
                Some(tls) => {
                    let shaken = tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        shaken = tls.accept(socket) => shaken,
                    };
                    // A failed handshake is the client's to report.
                    if let Ok(socket) = shaken {
                        converse(socket, service, stop).await;
                    }
                }
            }
        });
    }
}

async fn converse<S>(socket: S, service: ApiService, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(socket), TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        // Broken connections are everyday life for a server, and wanted by some tests.
        _ended = connection.as_mut() => return,
    }
    connection.as_mut().graceful_shutdown();
    let _ended = tokio::time::timeout(GRACE, connection).await;
}
