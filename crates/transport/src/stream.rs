//! A connection of any kind.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::sync::OwnedSemaphorePermit;

use crate::gate::Gate;
use crate::lines::Line;

/// What every kind of connection can do.
pub trait Io: Read + Write + Connection + Send {}

impl<T: Read + Write + Connection + Send> Io for T {}

/// A connection of any kind.
pub struct Stream {
    pub(crate) io: Pin<Box<dyn Io>>,
    /// Whether a proxy at the other end forwards plain requests, which then name the whole URL.
    pub(crate) forwarded: bool,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) line: Option<Arc<Line>>,
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
}

impl Stream {
    pub(crate) fn over(io: impl Io + 'static) -> Self {
        Self {
            io: Box::pin(io),
            forwarded: false,
            gate: None,
            line: None,
            _permit: None,
        }
    }

    /// Something is about to be sent.
    fn check(&self) -> io::Result<()> {
        if let Some(line) = &self.line {
            line.check()?;
            line.ask();
        }
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.check()
            .map_err(|closed| io::Error::new(io::ErrorKind::PermissionDenied, closed))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.forwarded)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(line) = self.line.clone() else {
            return self.io.as_mut().poll_read(cx, buffer);
        };
        // First, or an end between the two would wake nobody.
        line.wait(cx);
        line.check()?;
        let read = self.io.as_mut().poll_read(cx, buffer);
        if read.is_ready() {
            line.hear();
        }
        read
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
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
        self.io.as_mut().poll_write_vectored(cx, slices)
    }
}

/// Host and port of a target, as proxies are told them: an IPv6 address without its brackets.
pub(crate) fn host_and_port(target: &Uri) -> io::Result<(&str, u16)> {
    let host = target
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the target has no host"))?;
    let known = if target.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    Ok((
        host.trim_start_matches('[').trim_end_matches(']'),
        target.port_u16().unwrap_or(known),
    ))
}
