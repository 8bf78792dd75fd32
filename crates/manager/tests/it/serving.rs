//! The secure port over real sockets.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::net::IpAddr;
use std::sync::Arc;

use bowline_manager::config::{AccessConfig, CertificateSource, ServingConfig};
use bowline_manager::health::Health;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::serving::{Server, Site};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

fn site() -> Site {
    let metrics = Arc::new(Metrics::new(Registry::default(), &BuildInfo::default()));
    Site::new(
        &AccessConfig::default(),
        Arc::new(Health::default()),
        metrics,
        None,
    )
}

fn config(certificate: CertificateSource) -> ServingConfig {
    let address = IpAddr::from([127, 0, 0, 1]);
    ServingConfig {
        address,
        port: 0,
        certificate,
        ..ServingConfig::default()
    }
}

/// What a client that trusts the authority in this file is answered over the protocol it asks for.
async fn ask(
    server: &std::net::SocketAddr,
    authority: &std::path::Path,
    alpn: &[u8],
) -> (Option<Vec<u8>>, String) {
    let chain: Vec<_> = CertificateDer::pem_file_iter(authority)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(chain[1].clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect(server).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    let mut stream = connector
        .connect("localhost".try_into().unwrap(), stream)
        .await
        .unwrap();
    let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    let mut answer = Vec::new();
    if alpn == b"http/1.1" {
        let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        stream.read_to_end(&mut answer).await.unwrap();
    }
    (protocol, String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn health_is_answered_under_a_certificate_that_clients_can_verify() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(CertificateSource::Directory(directory.path().to_owned()));
    let server = Server::bind(&config, site(), Timestamp::now()).unwrap();
    let address = server.local_address().unwrap();
    let stop = CancellationToken::new();
    let run = tokio::spawn(server.run(stop.clone()));
    let authority = directory.path().join("cloud-controller-manager.crt");

    let (protocol, answer) = ask(&address, &authority, b"http/1.1").await;
    assert_eq!(protocol.unwrap(), b"http/1.1");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("cache-control: no-cache, private\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("content-type: text/plain; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    assert_eq!(ask(&address, &authority, b"h2").await.0.unwrap(), b"h2");

    stop.cancel();
    run.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let taken = Server::bind(&config(CertificateSource::Memory), site(), Timestamp::now()).unwrap();
    let address = taken.local_address().unwrap();
    let config = ServingConfig {
        port: address.port(),
        ..config(CertificateSource::Memory)
    };
    let error = Server::bind(&config, site(), Timestamp::now())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with(&format!(
            "failed to create listener: failed to listen on {address}: "
        )),
        "{error}"
    );
}
