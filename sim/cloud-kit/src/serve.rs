//! Serving a [`CloudService`] on a socket.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::service::CloudService;

/// How long [`Server::stop`] waits for requests under way.
pub const GRACE: Duration = Duration::from_secs(2);

/// A simulator that listens. Dropping it closes the listener and every connection at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://<address>`, the base URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes no more connections, lets requests under way finish, and waits for that for at most [`GRACE`].
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // Whatever is left, a request that hangs on purpose for one, ends with the task when `self` is dropped.
        let _ = tokio::time::timeout(GRACE, &mut self.task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves HTTP/1.1 on `listener` until the returned handle is stopped or dropped.
///
/// # Errors
///
/// If the listener has no local address.
pub fn serve(listener: TcpListener, service: CloudService) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(listener, service, stopped));
    Ok(Server { address, stop, task })
}

async fn accept(listener: TcpListener, service: CloudService, mut stopped: watch::Receiver<bool>) {
    // Owned by this task, so that aborting it ends every connection.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = asked_to_stop(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve_stream(stream, service.clone(), stopped.clone()));
                }
                Err(error) => {
                    // Out of descriptors is the usual reason; others close theirs meanwhile.
                    tracing::warn!(err = %error, "Connection not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves HTTP/1.1 on one connection until it ends. The connection may be an in-memory stream, so that a client's whole
/// HTTP stack runs under a paused clock.
pub async fn serve_connection<S>(stream: S, service: CloudService)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (_never, stopped) = watch::channel(false);
    serve_stream(stream, service, stopped).await;
}

/// The client's end of a connection in memory, as hyper's client wants one.
#[derive(Debug)]
pub struct ClientEnd(pub DuplexStream);

impl Connection for ClientEnd {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for ClientEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ClientEnd {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Serves one connection until it ends or `stopped` says so.
async fn serve_stream<S>(stream: S, service: CloudService, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handler = service_fn(move |request| {
        let service = service.clone();
        async move { service.send(request).await }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    let finished = tokio::select! {
        biased;
        result = connection.as_mut() => Some(result),
        () = asked_to_stop(&mut stopped) => None,
    };
    let result = match finished {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        // Faults end here on purpose: an error of the service makes hyper close the connection.
        tracing::debug!(err = %error, "Connection ended early");
    }
}

async fn asked_to_stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the handle is gone, which is a request to stop as well.
    let _ = stopped.wait_for(|&stop| stop).await;
}
