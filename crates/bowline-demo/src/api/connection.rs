//! One HTTP/1.1 connection, with TLS or without.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

/// Keeps a connection going; it ends when this is dropped.
pub(crate) type Connection = AbortOnDropHandle<()>;

type Sender = SendRequest<Full<Bytes>>;

/// Where a server is, and how to speak to it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Host and port.
    authority: Arc<str>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// Without the TLS settings, which hold a private key.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn plain(authority: impl Into<Arc<str>>) -> Self {
        Self {
            authority: authority.into(),
            tls: None,
        }
    }

    pub(crate) fn tls(
        authority: impl Into<Arc<str>>,
        config: ClientConfig,
        name: ServerName<'static>,
    ) -> Self {
        Self {
            authority: authority.into(),
            tls: Some((Arc::new(config), name)),
        }
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<(Sender, Connection)> {
        let socket = TcpStream::connect(&*self.authority).await?;
        // Small requests should not wait for more; a failure only costs time.
        let _ = socket.set_nodelay(true);
        match &self.tls {
            None => converse(socket).await,
            Some((config, name)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                converse(connector.connect(name.clone(), socket).await?).await
            }
        }
    }
}

async fn converse<S>(socket: S) -> anyhow::Result<(Sender, Connection)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    let going = tokio::spawn(async move {
        // What went wrong is told to whoever waits for the answer.
        let _ = connection.await;
    });
    Ok((sender, AbortOnDropHandle::new(going)))
}
