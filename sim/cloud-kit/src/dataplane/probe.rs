//! One probe of one member.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::{MonitorConfig, Probe};

/// More than any status line has.
const MAX_STATUS_LINE: usize = 4096;

/// Whether the member answers as the monitor wants within its time-out.
pub(super) async fn succeeds(monitor: &MonitorConfig, address: IpAddr, port: u16) -> bool {
    if !address.is_loopback() {
        return false;
    }
    let target = SocketAddr::new(address, port);
    if monitor.probe == Probe::UdpConnect {
        return !is_refused(target, monitor.timeout).await;
    }
    matches!(
        tokio::time::timeout(monitor.timeout, attempt(&monitor.probe, target)).await,
        Ok(Ok(true))
    )
}

async fn attempt(probe: &Probe, target: SocketAddr) -> io::Result<bool> {
    match probe {
        Probe::Tcp => TcpStream::connect(target).await.map(|_| true),
        Probe::TlsHello => hello(target).await.map(|_| true),
        Probe::Http {
            tls,
            method,
            path,
            host,
            expected,
        } => {
            let (version, host) = match host {
                None => ("1.0", String::new()),
                Some(host) if host.is_empty() => ("1.1", format!("host: {target}\r\n")),
                Some(host) => ("1.1", format!("host: {host}\r\n")),
            };
            let request = format!("{method} {path} HTTP/{version}\r\n{host}connection: close\r\n\r\n");
            let status = if *tls {
                ask(hello(target).await?, &request).await?
            } else {
                ask(TcpStream::connect(target).await?, &request).await?
            };
            Ok(status.is_some_and(|status| is_expected(expected, status)))
        }
        Probe::Ping | Probe::UdpConnect => UdpSocket::bind(SocketAddr::new(target.ip(), 0))
            .await
            .map(|_| true),
    }
}

fn is_expected(expected: &[RangeInclusive<u16>], status: u16) -> bool {
    expected.iter().any(|range| range.contains(&status))
}

/// Sends a request and reads the status of the answer.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, request: &str) -> io::Result<Option<u16>> {
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < MAX_STATUS_LINE {
        let mut chunk = [0_u8; 256];
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        line.extend_from_slice(&chunk[..read]);
    }
    Ok(status_of(&String::from_utf8_lossy(&line)))
}

/// `HTTP/1.1 200 OK` is 200.
fn status_of(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/")?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Whether a datagram is answered with "port unreachable". Silence until the time-out is no refusal.
async fn is_refused(target: SocketAddr, timeout: std::time::Duration) -> bool {
    let exchange = async {
        let socket = UdpSocket::bind(SocketAddr::new(target.ip(), 0)).await?;
        socket.connect(target).await?;
        socket.send(&[]).await?;
        socket.recv(&mut [0_u8; 1]).await
    };
    matches!(tokio::time::timeout(timeout, exchange).await, Ok(Err(_)))
}

async fn hello(target: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(ring::default_provider());
    let anything = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(anything)
        .with_no_client_auth();
    let name = ServerName::IpAddress(target.ip().into());
    TlsConnector::from(Arc::new(config))
        .connect(name, TcpStream::connect(target).await?)
        .await
}

/// Health monitors of clouds take any certificate: members mostly have none that names their address.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_is_read() {
        assert_eq!(status_of("HTTP/1.1 204 No Content\r\n"), Some(204));
        assert_eq!(status_of("HTTP/1.0 503\r\n"), Some(503));
        assert_eq!(status_of("SSH-2.0-OpenSSH"), None);
        assert_eq!(status_of(""), None);
        assert!(is_expected(&[200..=200, 204..=206], 205));
        assert!(!is_expected(&[200..=204], 205));
    }
}
