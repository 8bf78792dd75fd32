//! The transport over real sockets: protocols, trust and proxies.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bowline_cloud_http::{
    Bytes, CloudHttp, CloudHttpConfig, Failure, Method, Request, SocketOptions, Transport, Url,
};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};

/// What servers write down: one line per request.
type Journal = Arc<Mutex<Vec<String>>>;

/// A cloud that does not exist in any DNS, with a certificate of its own authority.
struct Cloud {
    port: u16,
    journal: Journal,
    folder: tempfile::TempDir,
    tls: Option<TlsAcceptor>,
}

impl Cloud {
    async fn plain() -> Self {
        Self::start(None).await
    }

    async fn secure(protocols: &[&str]) -> Self {
        Self::start(Some(protocols)).await
    }

    async fn start(protocols: Option<&[&str]>) -> Self {
        Self::showing(protocols, None).await
    }

    /// A cloud that shows this certificate instead of its own.
    async fn showing(protocols: Option<&[&str]>, certificate: Option<CertificateDer<'static>>) -> Self {
        let named = rcgen::CertificateParams::new(["localhost".to_owned(), "cloud.example".to_owned()]);
        Self::of(named.unwrap(), protocols, certificate).await
    }

    /// A cloud whose own certificate is like this, signed by itself.
    async fn of(
        own: rcgen::CertificateParams,
        protocols: Option<&[&str]>,
        certificate: Option<CertificateDer<'static>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let own = own.self_signed(&signing_key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), own.pem()).unwrap();
        let tls = protocols.map(|protocols| {
            let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
            let provider = tokio_rustls::rustls::crypto::ring::default_provider();
            let key = provider.key_provider.load_private_key(key).unwrap();
            let shown = certificate.unwrap_or_else(|| own.der().clone());
            let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::new(
                    vec![shown],
                    key,
                ))));
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let journal = Journal::default();
        let (written, acceptor) = (journal.clone(), tls.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, journal) = (acceptor.clone(), written.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, journal).await;
                            }
                        }
                        None => serve(stream, journal).await,
                    }
                });
            }
        });
        Self {
            port,
            journal,
            folder,
            tls,
        }
    }

    /// A client that trusts this cloud's authority only.
    fn client(&self, environment: &[(&str, String)]) -> CloudHttp {
        let options = SocketOptions {
            cert_file: Some(self.folder.path().join("ca.pem")),
            cert_dirs: Some(Vec::new()),
            ..options(environment)
        };
        client(&options)
    }

    fn journal(&self) -> Vec<String> {
        self.journal.lock().unwrap().clone()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, journal: Journal) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        journal.lock().unwrap().push(format!(
            "{:?} {} {}",
            request.version(),
            request.method(),
            request.uri().path()
        ));
        async { Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"[]")))) }
    });
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A proxy that opens tunnels to a fixed port and answers plain requests itself; it writes down their first lines and
/// credentials.
async fn proxy(tunnels_to: u16) -> (u16, Journal) {
    proxy_inside(None, tunnels_to).await
}

/// The same inside of TLS.
async fn proxy_inside(tls: Option<TlsAcceptor>, tunnels_to: u16) -> (u16, Journal) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let journal = Journal::default();
    let written = journal.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (journal, tls) = (written.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => relay(BufReader::new(stream), journal, tunnels_to).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            relay(BufReader::new(stream), journal, tunnels_to).await;
                        }
                    }
                }
            });
        }
    });
    (port, journal)
}

async fn relay<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: BufReader<S>,
    journal: Journal,
    tunnels_to: u16,
) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) <= 2 {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let auth = lines
        .iter()
        .find(|line| line.to_lowercase().starts_with("proxy-authorization:"));
    let auth = auth
        .and_then(|line| line.split_once(": "))
        .map_or("-", |(_, value)| value);
    journal.lock().unwrap().push(format!("{} | {auth}", lines[0]));
    if lines[0].starts_with("CONNECT cloud.example:") {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", tunnels_to)).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    } else if lines[0].starts_with("CONNECT") {
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
    } else if lines[0].starts_with("GET http://locked.example/") {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
    } else {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
            .await
            .unwrap();
    }
}

/// A SOCKS proxy that wants a password and leads everything to a fixed port; it writes down what it was told.
async fn socks_proxy(leads_to: u16) -> (u16, Journal) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let journal = Journal::default();
    let written = journal.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let journal = written.clone();
            tokio::spawn(async move {
                let mut methods = [0; 4];
                stream.read_exact(&mut methods).await.unwrap();
                assert_eq!(methods, [5, 2, 0, 2]);
                stream.write_all(&[5, 2]).await.unwrap();
                let mut login = [0; 9];
                stream.read_exact(&mut login).await.unwrap();
                stream.write_all(&[1, 0]).await.unwrap();
                let mut head = [0; 5];
                stream.read_exact(&mut head).await.unwrap();
                assert_eq!(head[..4], [5, 1, 0, 3], "a name, for the proxy to look up");
                let mut name = vec![0; usize::from(head[4]) + 2];
                stream.read_exact(&mut name).await.unwrap();
                let name = String::from_utf8_lossy(&name[..name.len() - 2]).into_owned();
                let login = String::from_utf8_lossy(&login[1..]).into_owned();
                journal.lock().unwrap().push(format!("{name} | {login:?}"));
                stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
                let mut server = TcpStream::connect(("127.0.0.1", leads_to)).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (port, journal)
}

fn options(environment: &[(&str, String)]) -> SocketOptions {
    SocketOptions::from_env(|name| {
        environment
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value.clone())
    })
    .unwrap()
}

fn client(options: &SocketOptions) -> CloudHttp {
    let mut config = CloudHttpConfig::new("nimbus", "bowline/test");
    config.retry.attempts = 1;
    CloudHttp::new(config, Transport::sockets(options).unwrap())
}

async fn get(client: &CloudHttp, url: &str) -> Result<Vec<u8>, bowline_cloud_http::HttpError> {
    client
        .send(Request::read(
            Method::GET,
            "things.list",
            Url::parse(url).unwrap(),
        ))
        .await?
        .json()
}

#[tokio::test]
async fn plain_http_works_for_clouds_in_a_laboratory() {
    let cloud = Cloud::plain().await;
    get(&cloud.client(&[]), &format!("http://127.0.0.1:{}/v1", cloud.port))
        .await
        .unwrap();
    assert_eq!(cloud.journal(), ["HTTP/1.1 GET /v1"]);
}

#[tokio::test]
async fn the_server_chooses_between_http_1_and_2() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], "HTTP/2.0"),
        (&["http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ] {
        let cloud = Cloud::secure(protocols).await;
        get(
            &cloud.client(&[]),
            &format!("https://localhost:{}/v1", cloud.port),
        )
        .await
        .unwrap();
        assert_eq!(cloud.journal(), [format!("{version} GET /v1")]);
    }
}

#[tokio::test]
async fn an_unknown_authority_is_a_failure_of_trust_and_nothing_was_sent() {
    let cloud = Cloud::secure(&["http/1.1"]).await;
    let stranger = Cloud::plain().await;
    let url = format!("https://localhost:{}/v1", cloud.port);
    let error = get(&stranger.client(&[]), &url).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Tls(_)), "{error}");
    assert!(
        error
            .to_string()
            .to_lowercase()
            .contains("invalid peer certificate"),
        "{error}"
    );
    assert!(!error.maybe_applied());
    assert!(cloud.journal().is_empty());
}

/// What `openssl req -x509` makes unless it is told otherwise.
fn authority_of_its_own(name: &str) -> rcgen::CertificateParams {
    let mut own = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    own.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    own
}

#[tokio::test]
async fn a_server_may_be_its_own_authority_if_it_is_trusted_itself() {
    let own = authority_of_its_own("localhost");
    let cloud = Cloud::of(own.clone(), Some(&["http/1.1"]), None).await;
    let url = format!("https://localhost:{}/v1", cloud.port);
    get(&cloud.client(&[]), &url).await.unwrap();

    let stranger = Cloud::of(own.clone(), None, None).await;
    let mut late = own;
    late.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let mut early = authority_of_its_own("localhost");
    early.not_before = rcgen::date_time_ymd(4000, 1, 1);
    for (what, own, trusts) in [
        (
            "of an unknown authority",
            authority_of_its_own("localhost"),
            Some(&stranger),
        ),
        ("for another name", authority_of_its_own("cloud.example"), None),
        ("of the past", late, None),
        ("of the future", early, None),
    ] {
        let cloud = Cloud::of(own, Some(&["http/1.1"]), None).await;
        let url = format!("https://localhost:{}/v1", cloud.port);
        let client = trusts.unwrap_or(&cloud).client(&[]);
        let error = get(&client, &url).await.expect_err(what);
        assert!(matches!(error.failure, Failure::Tls(_)), "{what}: {error}");
        assert!(cloud.journal().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn ssl_cert_file_and_ssl_cert_dir_name_the_authorities() {
    let cloud = Cloud::secure(&["http/1.1"]).await;
    let url = format!("https://localhost:{}/v1", cloud.port);
    let folder = cloud.folder.path().display().to_string();
    let nowhere = "/nonexistent".to_owned();
    for environment in [
        [
            ("SSL_CERT_FILE", format!("{folder}/ca.pem")),
            ("SSL_CERT_DIR", nowhere.clone()),
        ],
        [
            ("SSL_CERT_FILE", nowhere.clone()),
            ("SSL_CERT_DIR", format!("{nowhere}:{folder}")),
        ],
    ] {
        let options = options(&environment);
        assert_eq!(options.cert_file, Some(PathBuf::from(&environment[0].1)));
        get(&client(&options), &url).await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_connection_is_told_apart_from_a_broken_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = client(&options(&[]));
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        // Read the request, so that the end of the connection is not a refusal.
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.unwrap();
    });
    let error = get(&client, &url).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Broken(_)), "{error}");
    assert!(error.maybe_applied());
    let error = get(&client, &url).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Connect(_)), "{error}");
    assert!(!error.maybe_applied());
}

/// As a firewall does that has lost its memory: it lets new connections through.
#[tokio::test]
async fn after_a_call_that_found_its_connection_silent_no_other_silent_one_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // The first two connections answer once, when both have been asked.
    let (both, mut accepted) = (Arc::new(tokio::sync::Barrier::new(2)), 0);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            accepted += 1;
            let both = (accepted <= 2).then(|| both.clone());
            tokio::spawn(async move {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await.unwrap();
                if let Some(both) = &both {
                    both.wait().await;
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]";
                stream.write_all(answer).await.unwrap();
                std::future::pending::<()>().await;
            });
        }
    });
    let config = CloudHttpConfig {
        read_timeout: std::time::Duration::from_millis(500),
        ..CloudHttpConfig::new("nimbus", "bowline-test/1")
    };
    let client = CloudHttp::new(config, Transport::sockets(&options(&[])).unwrap());
    let (one, other) = tokio::join!(get(&client, &url), get(&client, &url));
    one.and(other).unwrap();
    let silent = get(&client, &url).await.unwrap_err();
    assert!(matches!(silent.failure, Failure::Timeout { .. }), "{silent}");
    get(&client, &url).await.unwrap();
}

#[tokio::test]
async fn https_goes_through_a_tunnel_and_the_proxy_sees_no_request() {
    let cloud = Cloud::secure(&["h2", "http/1.1"]).await;
    let (port, journal) = proxy(cloud.port).await;
    let client = cloud.client(&[("HTTPS_PROXY", format!("http://anna:pw@127.0.0.1:{port}"))]);
    get(&client, "https://cloud.example/v1").await.unwrap();
    assert_eq!(cloud.journal(), ["HTTP/2.0 GET /v1"]);
    // `anna:pw` in base64.
    assert_eq!(
        *journal.lock().unwrap(),
        ["CONNECT cloud.example:443 HTTP/1.1 | Basic YW5uYTpwdw=="]
    );

    let error = get(&client, "https://other.example/v1").await.unwrap_err();
    assert!(matches!(error.failure, Failure::Connect(_)), "{error}");
    assert!(!error.to_string().contains("pw"), "{error}");
}

#[tokio::test]
async fn a_proxy_may_itself_want_tls() {
    let cloud = Cloud::secure(&["h2", "http/1.1"]).await;
    // It shows the cloud's certificate, which is for `localhost`, too; it does not speak HTTP/2.
    let shown = Cloud::secure(&["http/1.1"]).await;
    let (port, journal) = proxy_inside(shown.tls.clone(), cloud.port).await;
    let authorities = cloud.folder.path().join("all.pem");
    let pem = |cloud: &Cloud| std::fs::read_to_string(cloud.folder.path().join("ca.pem")).unwrap();
    std::fs::write(&authorities, pem(&cloud) + &pem(&shown)).unwrap();
    let environment = [
        ("HTTPS_PROXY", format!("https://anna:pw@localhost:{port}")),
        ("SSL_CERT_FILE", authorities.display().to_string()),
    ];
    get(&client(&options(&environment)), "https://cloud.example/v1")
        .await
        .unwrap();
    assert_eq!(cloud.journal(), ["HTTP/2.0 GET /v1"]);
    assert_eq!(
        *journal.lock().unwrap(),
        ["CONNECT cloud.example:443 HTTP/1.1 | Basic YW5uYTpwdw=="]
    );
    // One that nobody vouches for is told nothing.
    let error = get(&cloud.client(&environment[..1]), "https://cloud.example/v1")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, Failure::Tls(_)), "{error}");
    let told = error.to_string();
    assert!(
        told.contains(&format!("proxy localhost:{port}")) && !told.contains("pw"),
        "{told}"
    );
    assert_eq!(journal.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_socks_proxy_is_asked_for_the_name_whatever_the_scheme_of_the_cloud() {
    let (secure, plain) = (Cloud::secure(&["http/1.1"]).await, Cloud::plain().await);
    for (cloud, url) in [
        (&secure, "https://cloud.example/v1"),
        (&plain, "http://cloud.example/v1"),
    ] {
        for scheme in ["socks5", "socks5h"] {
            let (port, journal) = socks_proxy(cloud.port).await;
            let proxy = format!("{scheme}://anna:pw@127.0.0.1:{port}");
            let client = cloud.client(&[("HTTPS_PROXY", proxy.clone()), ("HTTP_PROXY", proxy)]);
            get(&client, url).await.unwrap();
            assert_eq!(
                *journal.lock().unwrap(),
                [r#"cloud.example | "\u{4}anna\u{2}pw""#]
            );
        }
        assert_eq!(cloud.journal(), ["HTTP/1.1 GET /v1"; 2]);
    }
}

#[tokio::test]
async fn plain_requests_are_handed_to_the_proxy_whole() {
    let (port, journal) = proxy(0).await;
    let client = client(&options(&[("http_proxy", format!("anna:pw@127.0.0.1:{port}"))]));
    get(&client, "http://cloud.example/v1?a=b").await.unwrap();
    let expected = ["GET http://cloud.example/v1?a=b HTTP/1.1 | Basic YW5uYTpwdw=="];
    assert_eq!(*journal.lock().unwrap(), expected);
}

/// A 407 is the proxy's word: the cloud was not reached.
#[tokio::test]
async fn a_proxy_that_wants_a_password_is_told_as_such_and_not_as_an_answer_of_the_cloud() {
    let (port, _) = proxy(0).await;
    let client = client(&options(&[("http_proxy", format!("anna:pw@127.0.0.1:{port}"))]));
    let error = get(&client, "http://locked.example/v1").await.unwrap_err();
    assert!(matches!(error.failure, Failure::Connect(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&format!(
            "proxy 127.0.0.1:{port}: it wants other credentials (407)"
        )) && !text.contains("anna"),
        "{text}"
    );
}

#[tokio::test]
async fn this_machine_is_reached_directly_whatever_proxy_is_set() {
    let cloud = Cloud::secure(&["http/1.1"]).await;
    // A proxy that nobody listens on: the call can only succeed past it.
    let environment = [("HTTPS_PROXY", "http://127.0.0.1:1".to_owned())];
    get(
        &cloud.client(&environment),
        &format!("https://localhost:{}/v1", cloud.port),
    )
    .await
    .unwrap();
    assert_eq!(cloud.journal(), ["HTTP/1.1 GET /v1"]);
    let error = get(&cloud.client(&environment), "https://cloud.example/v1")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, Failure::Connect(_)), "{error}");
}

#[tokio::test]
async fn an_unknown_authority_is_refused_unless_the_check_is_switched_off() {
    let cloud = Cloud::secure(&["http/1.1"]).await;
    // The name is not in the certificate either.
    let url = format!("https://127.0.0.1:{}/v1/x", cloud.port);
    let request = || Request::read(Method::GET, "x.list", Url::parse(&url).unwrap());
    let refusing = options(&[]);
    let error = client(&refusing).send(request()).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Tls(_)), "{error}");
    assert!(cloud.journal().is_empty());
    let believing = SocketOptions {
        verifies_certificates: false,
        ..refusing
    };
    client(&believing).send(request()).await.unwrap();
    assert_eq!(cloud.journal(), ["HTTP/1.1 GET /v1/x"]);
}

/// An X.509 certificate of version 1, self-signed, as `openssl x509 -req -signkey` makes it.
const VERSION_1: &str = "\
    MIIBFDCBuwIUdMZfHeHxVcmBs6DYfm8Jp35P4EUwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBeDAgFw0yNjExMjEyMTIxNDNaGA8y\
    MTI2MTAyODIxMjE0M1owDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHUb40DrH8/ItWK5ofY9ofjU2j+z\
    jCXbUBq4jZn9VZrfvjtgzqs/E62+7lFBf9dQooHrCBtTvmbqFSellkm1IxswCgYIKoZIzj0EAwIDSAAwRQIhAIO3cWhWlRFjTpF5\
    b02kf4VP5/RvEp6gtVVnxInnX9X3AiBCo1jr04jNNP3w44cu0/rnFZ+IxoiwewFLojZzhVmIkw==";

#[tokio::test]
async fn a_certificate_of_an_old_form_does_where_the_check_is_switched_off() {
    let der = STANDARD.decode(VERSION_1).unwrap();
    let cloud = Cloud::showing(Some(&["http/1.1"]), Some(der.into())).await;
    let believing = SocketOptions {
        verifies_certificates: false,
        ..options(&[])
    };
    let url = format!("https://127.0.0.1:{}/v1/x", cloud.port);
    get(&client(&believing), &url).await.unwrap();
    let refusing = SocketOptions {
        verifies_certificates: true,
        ..believing
    };
    let error = get(&client(&refusing), &url).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Tls(_)), "{error}");
}
