//! Whom a cloud's client trusts, and what it shows to a cloud that asks who it is.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::convert::Infallible;
use std::sync::Arc;

use bowline_cloud_http::{
    Bytes, ClientCertificate, CloudHttp, CloudHttpConfig, HttpError, Method, Request, SocketOptions,
    Transport, TrustedAuthorities, Url,
};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertifiedKey, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn made(name: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// A cloud that lets in whoever has this certificate. Its port.
async fn cloud(own: &CertifiedKey<KeyPair>, known: &CertifiedKey<KeyPair>) -> u16 {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(known.cert.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else {
                    return;
                };
                let service = service_fn(|_| async {
                    Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"[]"))))
                });
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    port
}

fn identity(of: &CertifiedKey<KeyPair>) -> ClientCertificate {
    ClientCertificate::from_pem(
        of.cert.pem().as_bytes(),
        of.signing_key.serialize_pem().as_bytes(),
    )
    .unwrap()
}

async fn get(port: u16, options: &SocketOptions) -> Result<(), HttpError> {
    let mut config = CloudHttpConfig::new("nimbus", "bowline/test");
    config.retry.attempts = 1;
    let client = CloudHttp::new(config, Transport::sockets(options).unwrap());
    let url = Url::parse(&format!("https://localhost:{port}/v1/things")).unwrap();
    client
        .send(Request::read(Method::GET, "things.list", url))
        .await
        .map(drop)
}

#[tokio::test]
async fn a_cloud_that_asks_for_a_certificate_is_shown_it() {
    let (own, known, other) = (made("localhost"), made("client"), made("client"));
    let port = cloud(&own, &known).await;
    let trusting = SocketOptions {
        authorities: Some(TrustedAuthorities::from_pem(own.cert.pem().as_bytes()).unwrap()),
        ..SocketOptions::default()
    };
    let showing = |certificate: Option<&CertifiedKey<KeyPair>>| SocketOptions {
        certificate: certificate.map(identity),
        ..trusting.clone()
    };
    get(port, &showing(Some(&known))).await.unwrap();
    assert!(get(port, &showing(Some(&other))).await.is_err());
    assert!(get(port, &showing(None)).await.is_err());
}

#[tokio::test]
async fn named_authorities_take_the_place_of_all_others() {
    let (own, known, other) = (made("localhost"), made("client"), made("localhost"));
    let port = cloud(&own, &known).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, own.cert.pem()).unwrap();
    let options = SocketOptions {
        cert_file: Some(file),
        certificate: Some(identity(&known)),
        ..SocketOptions::default()
    };
    get(port, &options).await.unwrap();
    let replaced = SocketOptions {
        authorities: Some(TrustedAuthorities::from_pem(other.cert.pem().as_bytes()).unwrap()),
        ..options
    };
    assert!(get(port, &replaced).await.is_err());
}

#[test]
fn what_cannot_be_used_is_refused_before_the_first_connection() {
    let (one, other) = (made("a"), made("b"));
    assert!(TrustedAuthorities::from_pem(b"").is_err());
    let mixed = ClientCertificate::from_pem(
        one.cert.pem().as_bytes(),
        other.signing_key.serialize_pem().as_bytes(),
    );
    assert!(mixed.is_err());
}
