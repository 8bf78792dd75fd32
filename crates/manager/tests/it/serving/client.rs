//! What `curl` does: a request with or without a client certificate, headers and a body, and an authority that signs
//! certificates for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An authority that signs.
pub(crate) struct Pki {
    name: String,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            name: name.to_owned(),
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn write_authority(&self, directory: &Path) -> PathBuf {
        let path = directory.join(format!("{}.crt", self.name));
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    /// Writes a certificate of this common name, for servers and clients.
    pub(crate) fn write(
        &self,
        directory: &Path,
        stem: &str,
        common_name: &str,
        organizations: &[&str],
    ) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = named(common_name, organizations);
        params.subject_alt_names = vec![rcgen::SanType::DnsName("localhost".try_into().unwrap())];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths = (
            directory.join(format!("{stem}.crt")),
            directory.join(format!("{stem}.key")),
        );
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }
}

fn named(common_name: &str, organizations: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    for organization in organizations {
        params
            .distinguished_name
            .push(DnType::OrganizationName, *organization);
    }
    params
}

#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    roots: Arc<rustls::RootCertStore>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Client {
    /// A client that trusts the last certificate in this file.
    pub(crate) fn trusting(authority: &Path, address: SocketAddr) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        let last = CertificateDer::pem_file_iter(authority).unwrap().last();
        roots.add(last.unwrap().unwrap()).unwrap();
        Self {
            address,
            roots: Arc::new(roots),
            identity: None,
        }
    }

    pub(crate) fn showing(&self, identity: &(PathBuf, PathBuf)) -> Self {
        Self {
            identity: Some(identity.clone()),
            ..self.clone()
        }
    }

    async fn connect(&self, alpn: &[u8]) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots));
        let mut tls = match &self.identity {
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_file_iter(certificate)
                    .unwrap()
                    .map(Result::unwrap);
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain.collect(), key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(tls))
            .connect("localhost".try_into().unwrap(), stream)
            .await
    }

    /// Which protocol is agreed on if the client offers this one.
    pub(crate) async fn protocol(&self, alpn: &[u8]) -> Option<Vec<u8>> {
        let stream = self.connect(alpn).await.unwrap();
        stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// Whether the server shows a certificate that this client trusts.
    pub(crate) async fn answers(&self) -> bool {
        self.connect(b"http/1.1").await.is_ok()
    }

    /// One request over HTTP/1.1: the protocol, and the answer with its head.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (Option<Vec<u8>>, String) {
        let mut stream = self.connect(b"http/1.1").await.unwrap();
        let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        (protocol, String::from_utf8(answer).unwrap())
    }

    /// One `HEAD` request over HTTP/2: the status, the announced length, and how much came.
    pub(crate) async fn head_over_http2(&self, path: &str) -> (u16, String, usize) {
        let stream = TokioIo::new(self.connect(b"h2").await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let request = http::Request::head(format!("https://localhost{path}"))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let length = response.headers()["content-length"].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        connection.abort();
        (status, length, body.len())
    }

    /// The status and the body of the answer.
    pub(crate) async fn status(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let (_, answer) = self.ask(method, path, headers, "").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("cache-control: no-cache, private"), "{head}");
        (head[9..12].parse().unwrap(), body.to_owned())
    }
}
