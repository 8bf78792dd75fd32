//! The kinds of attack.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

/// What a connection does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attack {
    Silent,
    DrippedHandshake,
    HandshakeNeverFinished,
    HugeHandshake,
    Garbage,
    IdleAfterHandshake,
    HeadersNeverEnded,
    Pipelined,
    BodyNeverEnded,
    MadeUpTokens,
    MadeUpPaths,
    Http2Idle,
    Http2Resets,
    Http2MadeUpTokens,
    Http2HeadersNeverEnded,
    Http2WindowClosed,
    Http2Pings,
}

const DRIP: Duration = Duration::from_millis(200);

/// `GET https`, and the fields that follow.
const HTTP2_GET: &[u8] = b"\x82\x87\x41\x01a";
const HTTP2_LIVEZ: &[u8] = b"\x44\x06/livez";

impl Attack {
    pub(crate) const ALL: [Self; 17] = [
        Self::Silent,
        Self::DrippedHandshake,
        Self::HandshakeNeverFinished,
        Self::HugeHandshake,
        Self::Garbage,
        Self::IdleAfterHandshake,
        Self::HeadersNeverEnded,
        Self::Pipelined,
        Self::BodyNeverEnded,
        Self::MadeUpTokens,
        Self::MadeUpPaths,
        Self::Http2Idle,
        Self::Http2Resets,
        Self::Http2MadeUpTokens,
        Self::Http2HeadersNeverEnded,
        Self::Http2WindowClosed,
        Self::Http2Pings,
    ];

    /// Until the program closes the connection, or with an error that says so.
    pub(crate) async fn run(self, address: SocketAddr, number: usize) -> std::io::Result<()> {
        match self {
            Self::Silent => closed(TcpStream::connect(address).await?).await,
            Self::DrippedHandshake => {
                let mut stream = TcpStream::connect(address).await?;
                for byte in client_hello()? {
                    stream.write_all(&[byte]).await?;
                    tokio::time::sleep(DRIP).await;
                }
                closed(stream).await
            }
            Self::HandshakeNeverFinished => {
                let mut stream = TcpStream::connect(address).await?;
                stream.write_all(&client_hello()?).await?;
                closed(stream).await
            }
            Self::HugeHandshake => {
                let mut stream = TcpStream::connect(address).await?;
                // A client hello of 60 KiB in records of 16 KiB.
                for part in 0..4 {
                    stream.write_all(&[22, 3, 1, 0x40, 0]).await?;
                    let mut record = vec![0; 0x4000];
                    if part == 0 {
                        record[..4].copy_from_slice(&[1, 0, 0xf0, 0]);
                    }
                    stream.write_all(&record).await?;
                }
                closed(stream).await
            }
            Self::Garbage => {
                let mut stream = TcpStream::connect(address).await?;
                loop {
                    stream.write_all(&[b'x'; 4096]).await?;
                }
            }
            Self::IdleAfterHandshake => closed(secure(address, b"http/1.1").await?).await,
            Self::HeadersNeverEnded => {
                let mut stream = secure(address, b"http/1.1").await?;
                stream.write_all(b"GET /livez HTTP/1.1\r\nhost: ").await?;
                stream.write_all(&vec![b'a'; 31 * 1024]).await?;
                stream.flush().await?;
                if number.is_multiple_of(2) {
                    stream.write_all(&vec![b'a'; 64 * 1024]).await?;
                }
                closed(stream).await
            }
            Self::Pipelined => {
                let mut stream = secure(address, b"http/1.1").await?;
                let requests = b"GET /livez?verbose HTTP/1.1\r\n\r\n".repeat(100);
                loop {
                    stream.write_all(&requests).await?;
                }
            }
            Self::BodyNeverEnded => {
                let mut stream = secure(address, b"http/1.1").await?;
                stream
                    .write_all(b"POST /livez HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
                    .await?;
                loop {
                    stream.write_all(b"1\r\na\r\n").await?;
                    stream.flush().await?;
                    tokio::time::sleep(DRIP / 10).await;
                }
            }
            Self::MadeUpTokens => {
                let mut stream = secure(address, b"http/1.1").await?;
                ask_for_ever(&mut stream, |n| {
                    format!("GET /metrics HTTP/1.1\r\nauthorization: Bearer {number}.{n}\r\n\r\n")
                })
                .await
            }
            Self::MadeUpPaths => {
                let mut stream = secure(address, b"http/1.1").await?;
                ask_for_ever(&mut stream, |n| format!("GET /{number}/{n} HTTP/1.1\r\n\r\n")).await
            }
            Self::Http2Idle => closed(http2(address).await?).await,
            Self::Http2Resets => {
                let mut stream = http2(address).await?;
                for n in 0.. {
                    let id = 2 * n + 1;
                    let mut frames = frame(1, 5, id, &[HTTP2_GET, HTTP2_LIVEZ].concat());
                    frames.extend(frame(3, 0, id, &[0, 0, 0, 8]));
                    stream.write_all(&frames).await?;
                    if n % 8 == 0 {
                        stream.flush().await?;
                        tokio::time::sleep(DRIP / 40).await;
                    }
                }
                Ok(())
            }
            Self::Http2MadeUpTokens => {
                let mut stream = http2(address).await?;
                for n in 0..1000 {
                    let mut fields = [HTTP2_GET, b"\x44\x08/metrics"].concat();
                    let token = format!("Bearer {number}.{n}");
                    fields.extend([0x0f, 0x08, u8::try_from(token.len()).unwrap_or_default()]);
                    fields.extend(token.into_bytes());
                    stream.write_all(&frame(1, 5, 2 * n + 1, &fields)).await?;
                    stream.flush().await?;
                    tokio::time::sleep(DRIP / 40).await;
                }
                closed(stream).await
            }
            Self::Http2HeadersNeverEnded => {
                let mut stream = http2(address).await?;
                // One field for the table, then one byte each for as many fields as the bound takes.
                let mut fields = [HTTP2_GET, HTTP2_LIVEZ, b"\x40\x01x\x00"].concat();
                fields.extend([0xbe; 450]);
                stream.write_all(&frame(1, 0, 1, &fields)).await?;
                stream.flush().await?;
                closed(stream).await
            }
            Self::Http2WindowClosed => {
                let mut stream = http2(address).await?;
                // No room for a single byte of an answer.
                stream.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])).await?;
                let path = format!("/{}", "\"".repeat(100));
                for n in 0..8 {
                    let mut fields = [HTTP2_GET, &[0x44, 101]].concat();
                    fields.extend(path.as_bytes());
                    stream.write_all(&frame(1, 5, 2 * n + 1, &fields)).await?;
                }
                stream.flush().await?;
                closed(stream).await
            }
            Self::Http2Pings => {
                let mut stream = http2(address).await?;
                let pings = frame(6, 0, 0, &[0; 8]).repeat(200);
                loop {
                    stream.write_all(&pings).await?;
                }
            }
        }
    }
}

/// Waits for the program to close.
async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<()> {
    let mut said = [0; 1024];
    while stream.read(&mut said).await? > 0 {}
    Ok(())
}

/// One request after the other, each after the answer to the one before.
async fn ask_for_ever(
    stream: &mut TlsStream<TcpStream>,
    request: impl Fn(usize) -> String,
) -> std::io::Result<()> {
    let mut said = [0; 4096];
    for n in 0.. {
        stream.write_all(request(n).as_bytes()).await?;
        if stream.read(&mut said).await? == 0 {
            break;
        }
    }
    Ok(())
}

fn client_hello() -> std::io::Result<Vec<u8>> {
    let mut hello = Vec::new();
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    let mut connection = ClientConnection::new(config(b"http/1.1"), name).map_err(std::io::Error::other)?;
    connection.write_tls(&mut hello)?;
    Ok(hello)
}

/// A connection with TLS.
pub(crate) async fn secure(address: SocketAddr, alpn: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    tokio_rustls::TlsConnector::from(config(alpn))
        .connect(name, stream)
        .await
}

/// A connection with HTTP/2.
async fn http2(address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let mut stream = secure(address, b"h2").await?;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    stream.write_all(&frame(4, 0, 0, b"")).await?;
    stream.flush().await?;
    Ok(stream)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn config(alpn: &[u8]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

/// Believes every server.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
