//! The wire below TLS: how much of a handshake is read, how fast the rest, and how long the client may take nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bowline_transport::{Bucket, Rate};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A handshake with a chain of client certificates has 10 KiB at most; TLS by itself would take 64 KiB.
const MAX_HANDSHAKE: usize = 16 * 1024;

/// What a client may send at once, and in a second, in bytes. A scrape has some hundred, and two seconds are enough for the
/// longest headers. It is so little because whoever connects anew may send as much at once again, and a frame that has to be
/// answered has only 17.
const BYTES: Rate = Rate {
    per_second: 16.0 * 1024.0,
    burst: 2 * 1024,
};

/// What is read at once, in bytes.
const MAX_READ: usize = 2 * 1024;

/// Requests at once, and in a second. With header compression one may have ten bytes.
const REQUESTS: Rate = Rate {
    per_second: 32.0,
    burst: 4,
};

/// A client that takes nothing of its answers for so long is given up.
const STALL_TIME: Duration = Duration::from_secs(20);

/// How much the client of one connection may still send. Clones share it.
#[derive(Clone)]
pub(super) struct Allowance(Arc<Buckets>);

struct Buckets {
    bytes: Bucket,
    requests: Bucket,
}

impl Default for Allowance {
    fn default() -> Self {
        Self(Arc::new(Buckets {
            bytes: Bucket::new(BYTES),
            requests: Bucket::new(REQUESTS),
        }))
    }
}

impl Allowance {
    /// Counts a request; says when it is its turn.
    pub(super) fn request(&self) -> Instant {
        self.0.requests.take(1)
    }

    fn read(&self, bytes: usize) -> Instant {
        self.0.bytes.take(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

/// A stream that is read no faster than its client is allowed to send.
pub(super) struct Metered<S> {
    stream: S,
    allowance: Allowance,
    /// What is left of the handshake, in bytes; `None`: it is done.
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
        let mut bytes = [0; MAX_READ];
        let room = buffer.remaining().min(MAX_READ);
        let mut part = ReadBuf::new(&mut bytes[..room]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        buffer.put_slice(part.filled());
        match &mut self.handshake {
            Some(left) => {
                *left = left
                    .checked_sub(read)
                    .ok_or_else(|| std::io::Error::other("the TLS handshake is too large"))?;
            }
            None => {
                let again = self.allowance.read(read);
                if again > Instant::now() {
                    self.pause = Some(Box::pin(tokio::time::sleep_until(again)));
                }
            }
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
