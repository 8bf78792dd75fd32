//! Where the write gate is asked for the last time: while the connection takes the request over.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use http_body::{Body, Frame, SizeHint};
use tower::BoxError;

use crate::client::WriteGate;

/// The gate of a write, on the request's way through the layers of the client.
#[derive(Clone)]
pub(crate) struct Fence(pub(crate) Arc<dyn WriteGate>);

/// The gate was closed when the write would have begun. Nothing of it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the write was not sent: this process does not hold the lease")]
pub(crate) struct Refused;

impl Refused {
    /// Whether this is what stands at the bottom of an error.
    pub(crate) fn is_cause_of(error: &(dyn StdError + 'static)) -> bool {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<Self>() {
                return true;
            }
            next = error.source();
        }
        false
    }
}

/// A body that asks the gate before it gives its first byte.
///
/// The gate is asked before a write is handed over; but then a connection may have to be made, which takes as long as
/// it takes. An HTTP/1.1 connection, and the client makes no other, puts the head of a request into its buffer, asks
/// for the body, and only then writes to the socket. So whoever refuses here has sent nothing, and the connection is
/// dropped. Every write of this client has a body.
pub(crate) struct Fenced<B> {
    body: B,
    gate: Option<Arc<dyn WriteGate>>,
}

impl<B> Fenced<B> {
    /// The request with its body behind the gate that it carries, if it carries one.
    pub(crate) fn request(mut request: Request<B>) -> Request<Self> {
        let gate = request.extensions_mut().remove::<Fence>().map(|fence| fence.0);
        request.map(|body| Self { body, gate })
    }
}

impl<B> Body for Fenced<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Some(gate) = self.gate.take()
            && !gate.is_open()
        {
            return Poll::Ready(Some(Err(Refused.into())));
        }
        Pin::new(&mut self.body)
            .poll_frame(cx)
            .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
