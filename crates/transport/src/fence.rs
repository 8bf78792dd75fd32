//! Where the write gate is asked for the last time: while the connection takes the request over.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use http_body::{Body, Frame, SizeHint};

use crate::{BoxError, Gate};

/// The gate of a write, on the request's way through the layers of the client.
#[derive(Clone)]
pub struct Fence(pub Arc<dyn Gate>);

/// A body that asks the gate of its request, if that carries one, before it gives its first byte.
///
/// The gate is asked before a write is handed over; but then a connection may have to be made, which takes as long as
/// it takes. An HTTP/1.1 connection, and the client of the API server makes no other, puts the head of a request into its
/// buffer, asks for the body, and only then writes to the socket. So whoever refuses here has sent nothing, and the
/// connection is dropped. Every write of that client has a body. The clouds' gate is asked by the connection itself
/// ([`Connector::gated`](crate::Connector::gated)); their bodies are of this type because each type of body is another
/// copy of the client in the program.
pub struct Fenced<B> {
    body: B,
    gate: Option<Arc<dyn Gate>>,
}

impl<B> Fenced<B> {
    /// The request with its body behind the gate that it carries, if it carries one.
    pub fn request(mut request: Request<B>) -> Request<Self> {
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
            && let Err(closed) = gate.check()
        {
            return Poll::Ready(Some(Err(closed.into())));
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
