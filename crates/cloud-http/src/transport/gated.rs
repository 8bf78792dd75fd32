//! Connections behind the gate: the last question before bytes leave the process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bowline_edge::BoxError;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use bowline_edge::Gate;

/// Makes connections that send only while the gate is open.
#[derive(Clone)]
pub(super) struct Gated<C> {
    inner: C,
    gate: Arc<dyn Gate>,
}

impl<C> Gated<C> {
    pub(super) fn new(inner: C, gate: Arc<dyn Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<C> tower::Service<Uri> for Gated<C>
where
    C: tower::Service<Uri, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = GatedStream<C::Response>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<GatedStream<C::Response>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.inner.call(target);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            let io = connecting.await.map_err(Into::into)?;
            // Here it is certain that nothing was sent; a stream that refuses later has a request under way.
            gate.check()?;
            Ok(GatedStream { io, gate })
        })
    }
}

/// A connection that sends only while the gate is open. What comes in is read in any case: an answer is worth having.
///
/// It stands above TLS, so that it is asked before anything is encrypted and sent, whatever waited before: for the
/// connection, for its turn among other requests (HTTP/2), or because the process was stopped.
pub(super) struct GatedStream<T> {
    io: T,
    gate: Arc<dyn Gate>,
}

impl<T> GatedStream<T> {
    fn check(&self) -> io::Result<()> {
        self.gate
            .check()
            .map_err(|closed| io::Error::new(io::ErrorKind::PermissionDenied, closed))
    }
}

impl<T: Connection> Connection for GatedStream<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

impl<T: Read + Unpin> Read for GatedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: Write + Unpin> Write for GatedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests;
