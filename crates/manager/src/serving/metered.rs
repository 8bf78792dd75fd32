//! The wire below TLS: how much of a handshake is read, how fast the rest, and how long the client may take nothing.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::bucket::Bucket;

/// A handshake with a chain of client certificates has 10 KiB at most; TLS by itself would take 64 KiB.
const MAX_HANDSHAKE: usize = 16 * 1024;

/// What a client may send at once, and in a second: a scrape has some hundred bytes.
const BURST: u32 = 64 * 1024;
const RATE: u32 = 64 * 1024;

/// What a request counts besides its bytes: with header compression it may have ten of them.
const REQUEST: u32 = 256;

/// A client that takes nothing of its answers for so long is given up.
const STALL_TIME: Duration = Duration::from_secs(20);

/// How much a client may still send, in bytes. Clones share it.
#[derive(Clone)]
pub(super) struct Allowance(Arc<Mutex<Bucket>>);

impl Default for Allowance {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Bucket::new(BURST, RATE))))
    }
}

impl Allowance {
    /// Counts a request.
    pub(super) fn request(&self) {
        self.take(REQUEST);
    }

    fn take(&self, units: u32) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(units)
    }
}

/// A stream that is read no faster than its client is allowed to send.
pub(super) struct Metered<S> {
    stream: S,
    allowance: Allowance,
    /// What is left of the handshake, in bytes; none: it is done.
    handshake: Option<usize>,
    pause: Option<Pin<Box<Sleep>>>,
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, allowance: Allowance) -> Self {
        Self {
            stream,
            allowance,
            handshake: Some(MAX_HANDSHAKE),
            pause: None,
            stall: None,
        }
    }

    /// Ends the bound on the handshake.
    pub(super) fn has_shaken_hands(&mut self) {
        self.handshake = None;
    }

    pub(super) fn get_ref(&self) -> &S {
        &self.stream
    }

    /// An answer of the stream, or an error if it has been waiting for its client for too long.
    fn unless_stalled<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if result.is_ready() {
            self.stall = None;
            return result;
        }
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_TIME)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if let Some(left) = &mut self.handshake {
            *left = left
                .checked_sub(read)
                .ok_or_else(|| std::io::Error::other("the TLS handshake is too large"))?;
        }
        let again = self.allowance.take(u32::try_from(read).unwrap_or(u32::MAX));
        if again > Instant::now() {
            self.pause = Some(Box::pin(tokio::time::sleep_until(again)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_stalled(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_stalled(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.unless_stalled(context, result)
    }
}

#[cfg(test)]
mod tests;
