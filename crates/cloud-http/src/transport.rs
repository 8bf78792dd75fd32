//! What carries one request to a cloud and its answer back: sockets or memory.

mod sockets;

use std::sync::Arc;

use bowline_transport::BoxError;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use self::sockets::Sockets;
pub use self::sockets::{ClientCertificate, SocketOptions, TransportSetupError, TrustedAuthorities};
use crate::error::Failure;
use bowline_transport::{Gate, GateClosed, Lines};

/// The body of an answer on its way in.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

type Service = BoxCloneSyncService<http::Request<Full<Bytes>>, http::Response<AnswerBody>, BoxError>;

/// The way to a cloud. The connections themselves belong to the [`CloudHttp`](crate::CloudHttp) that is built on it.
#[derive(Clone, Debug)]
pub struct Transport {
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Sockets(Sockets),
    Service(Service),
}

/// Carries requests. Clones share connections.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    service: Service,
    /// Those that are open; in memory there are none.
    pub(crate) lines: Lines,
}

impl Transport {
    /// Over TCP and TLS, HTTP/1.1 or HTTP/2, through a proxy where the options say so.
    ///
    /// # Errors
    ///
    /// The proxy settings cannot be used, or TLS cannot be set up.
    pub fn sockets(options: &SocketOptions) -> Result<Self, TransportSetupError> {
        let way = Way::Sockets(Sockets::new(options)?);
        Ok(Self { way })
    }

    /// Over any service inside of this process: a simulator, or a test's closure.
    ///
    /// An error that is a [`TransportError`] says what failed; any other one reads as a connection that broke after
    /// the request was sent.
    pub fn memory<S, B>(service: S) -> Self
    where
        S: tower::Service<http::Request<Full<Bytes>>, Response = http::Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|answer: http::Response<B>| {
                answer.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        let way = Way::Service(BoxCloneSyncService::new(service));
        Self { way }
    }

    /// Connections that send only while the gate is open; in memory there is nothing between the request and the other
    /// side.
    pub(crate) fn open(self, gate: &Arc<dyn Gate>) -> Connections {
        let lines = Lines::default();
        match self.way {
            Way::Sockets(sockets) => Connections {
                lines: lines.clone(),
                ..Self::memory(sockets.open(gate, lines)).open(gate)
            },
            Way::Service(service) => Connections { service, lines },
        }
    }
}

impl Connections {
    pub(crate) async fn send(
        &self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<AnswerBody>, Failure> {
        self.service.clone().oneshot(request).await.map_err(|error| {
            match error.downcast::<TransportError>() {
                Ok(error) => match *error {
                    TransportError::Connect(source) => Failure::Connect(source.into()),
                    TransportError::Tls(source) => Failure::Tls(source.into()),
                    TransportError::Broken(source) => Failure::Broken(source.into()),
                    TransportError::Gate(closed) => Failure::GateClosed(closed),
                },
                Err(error) => Failure::Broken(Arc::from(error)),
            }
        })
    }
}

/// Why a transport could not deliver, told apart by what may have happened on the other side.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection; nothing was sent.
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    /// A connection, but no trust; nothing was sent.
    #[error("cannot connect securely")]
    Tls(#[source] BoxError),
    /// The gate was closed before anything was sent.
    #[error("not sent")]
    Gate(#[source] GateClosed),
    /// The connection broke after the request was handed over.
    #[error("the connection broke")]
    Broken(#[source] BoxError),
}
