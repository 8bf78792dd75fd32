//! Credentials that change while the program runs, and the ways to an API server that is not reached directly. Over real
//! sockets, so with the real clock; nothing waits for time to pass.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{KubeApi, User};
use bowline_kube_io::{ConnectOptions, Kube, KubeError, KubeOptions};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::{node, server};

/// A certificate that signs itself and says that it may, as `openssl req -x509` makes it.
fn own(name: &str) -> CertifiedKey<KeyPair> {
    let signing_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&signing_key).unwrap();
    CertifiedKey { cert, signing_key }
}

/// One that signs itself and says nothing of authority.
fn client(name: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

fn tls(of: &CertifiedKey<KeyPair>, clients: &[&CertifiedKey<KeyPair>]) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if clients.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for client in clients {
            roots.add(client.cert.der().clone()).unwrap();
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    };
    let key = PrivateKeyDer::try_from(of.signing_key.serialize_der()).unwrap();
    Arc::new(
        builder
            .with_single_cert(vec![of.cert.der().clone()], key)
            .unwrap(),
    )
}

/// A server that knows its clients by their certificates, and answers nothing but that it is healthy.
struct Front {
    port: u16,
    known: Arc<Mutex<BTreeSet<Vec<u8>>>>,
    /// What each request was answered, and over which connection it came.
    answers: Arc<Mutex<Vec<(usize, u16)>>>,
}

impl Front {
    async fn start(tls: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let front = Self {
            port,
            known: Arc::default(),
            answers: Arc::default(),
        };
        let (known, answers) = (Arc::clone(&front.known), Arc::clone(&front.answers));
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = TlsAcceptor::from(Arc::clone(&tls));
                let (known, answers) = (Arc::clone(&known), Arc::clone(&answers));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let shown: Vec<u8> = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
                    let service = service_fn(move |_: Request<Incoming>| {
                        let is_known = known.lock().unwrap().contains(&shown);
                        let status = if is_known {
                            StatusCode::OK
                        } else {
                            StatusCode::UNAUTHORIZED
                        };
                        answers.lock().unwrap().push((connection, status.as_u16()));
                        let answer = Response::builder().status(status).body("ok".to_owned());
                        async move { Ok::<_, Infallible>(answer.unwrap()) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        front
    }

    fn knows(&self, clients: &[&CertifiedKey<KeyPair>]) {
        let certificates = clients.iter().map(|client| client.cert.der().to_vec());
        *self.known.lock().unwrap() = certificates.collect();
    }

    fn answers(&self) -> Vec<(usize, u16)> {
        self.answers.lock().unwrap().clone()
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), contents).unwrap();
    }

    fn write_pair(&self, pair: &CertifiedKey<KeyPair>) {
        self.write("tls.crt", pair.cert.pem());
        self.write("tls.key", pair.signing_key.serialize_pem());
    }

    async fn connect(&self, cluster: &str, user: &str, environment: &[(&str, &str)]) -> Kube {
        let kubeconfig = format!(
            "current-context: here\ncontexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        );
        self.write("kubeconfig", kubeconfig);
        let target = ConnectOptions {
            kubeconfig: Some(self.at("kubeconfig")),
            environment: environment.iter().copied().collect(),
            ..ConnectOptions::default()
        };
        Kube::connect(&target, KubeOptions::new("t")).await.unwrap()
    }
}

const PAIR: &str = "client-certificate: tls.crt, client-key: tls.key";

#[tokio::test]
async fn a_client_certificate_is_read_again_when_the_old_one_is_refused() {
    let (api, first, second) = (own("localhost"), client("first"), client("second"));
    let front = Front::start(tls(&api, &[&first, &second])).await;
    front.knows(&[&first]);
    let folder = Folder::new();
    folder.write("ca.crt", api.cert.pem());
    folder.write_pair(&first);
    let cluster = format!(
        "server: 'https://localhost:{}', certificate-authority: ca.crt",
        front.port
    );
    let kube = folder.connect(&cluster, PAIR, &[]).await;
    kube.is_healthy().await.unwrap();

    // Half of the pair is replaced: the old one stays, and one refusal is one answer.
    front.knows(&[&second]);
    folder.write("tls.crt", second.cert.pem());
    let error = kube.is_healthy().await.unwrap_err();
    assert!(matches!(error, KubeError::Unauthorized(_)), "{error:?}");
    assert_eq!(front.answers(), [(0, 200), (0, 401)]);
    front.knows(&[&first]);
    kube.is_healthy().await.unwrap();

    front.knows(&[&second]);
    folder.write_pair(&second);
    crate::eventually(async || kube.is_healthy().await.is_ok()).await;
    let answers = front.answers();
    let last = answers.last().unwrap();
    assert_eq!(*last, (1, 200), "on a connection of its own: {answers:?}");
}

#[tokio::test]
async fn who_refuses_for_ever_is_asked_once_per_request() {
    let (api, client) = (own("localhost"), client("client"));
    let front = Front::start(tls(&api, &[&client])).await;
    let folder = Folder::new();
    folder.write("ca.crt", api.cert.pem());
    folder.write_pair(&client);
    let cluster = format!(
        "server: 'https://localhost:{}', certificate-authority: ca.crt",
        front.port
    );
    let kube = folder.connect(&cluster, PAIR, &[]).await;
    for _ in 0..50 {
        let error = kube.is_healthy().await.unwrap_err();
        assert!(matches!(error, KubeError::Unauthorized(_)), "{error:?}");
    }
    assert_eq!(front.answers(), [(0, 401); 50]);
}

#[tokio::test]
async fn a_token_whose_predecessor_is_refused_at_once_costs_no_request() {
    let user = || User::new("ccm", &["system:masters"]);
    let api = KubeApi::builder().token("old", user()).build();
    api.apply_json(node("a")).unwrap();
    let server = api
        .serve(TcpListener::bind("127.0.0.1:0").await.unwrap())
        .unwrap();
    let folder = Folder::new();
    folder.write("token", "old\n");
    let cluster = format!("server: 'http://{}'", server.address());
    let kube = folder.connect(&cluster, "tokenFile: token", &[]).await;
    let name = NodeName::new("a");
    let seen = kube.node(&name).await.unwrap();

    // The write that is refused for the old one has had no effect, and is made with the new one.
    folder.write("token", "new\n");
    api.access().revoke_token("old");
    api.access().add_token("new", user());
    let networks = ["10.1.0.0/24".to_owned()];
    kube.set_pod_networks(&seen, &networks).await.unwrap();

    api.access().revoke_token("new");
    let error = kube.node(&name).await.unwrap_err();
    assert!(matches!(error, KubeError::Unauthorized(_)), "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn authorities_are_read_again_when_the_server_shows_another_certificate() {
    let folder = Folder::new();
    let (first, second) = (own("localhost"), own("localhost"));
    folder.write("ca.crt", first.cert.pem());
    let api = server();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let running = api.serve_tls(listener, tls(&first, &[])).unwrap();
    let cluster = format!(
        "server: 'https://localhost:{}', certificate-authority: ca.crt",
        address.port()
    );
    let kube = folder.connect(&cluster, "", &[]).await;
    kube.is_healthy().await.unwrap();
    running.stop().await;

    let listener = TcpListener::bind(address).await.unwrap();
    let running = api.serve_tls(listener, tls(&second, &[])).unwrap();
    // The first requests may find out that the old connections have ended.
    let is_distrusted = async || match kube.is_healthy().await {
        Ok(()) => panic!("nobody vouches for it"),
        Err(error) => error.to_string().contains("certificate"),
    };
    crate::eventually(is_distrusted).await;
    folder.write("ca.crt", second.cert.pem());
    crate::eventually(async || kube.is_healthy().await.is_ok()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_server_that_is_its_own_authority_is_trusted_for_its_names_only() {
    let api = server();
    let shown = own("localhost");
    let running = api
        .serve_tls(TcpListener::bind("127.0.0.1:0").await.unwrap(), tls(&shown, &[]))
        .unwrap();
    let folder = Folder::new();
    folder.write("ca.crt", shown.cert.pem());
    let port = running.address().port();
    let reach = async |cluster: &str| {
        let cluster = format!("certificate-authority: ca.crt, {cluster}");
        folder.connect(&cluster, "", &[]).await.is_healthy().await
    };
    reach(&format!("server: 'https://localhost:{port}'"))
        .await
        .unwrap();
    reach(&format!(
        "server: 'https://127.0.0.1:{port}', tls-server-name: localhost"
    ))
    .await
    .unwrap();
    let error = reach(&format!("server: 'https://127.0.0.1:{port}'"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    folder.write("ca.crt", own("localhost").cert.pem());
    let error = reach(&format!("server: 'https://localhost:{port}'"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    running.stop().await;
}

/// What a proxy was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy of either kind that leads everything to one port.
async fn proxy(tls: Option<Arc<ServerConfig>>, is_socks: bool, to: u16) -> (u16, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Asked::default();
    let written = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tls, asked) = (tls.clone(), Arc::clone(&written));
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
                            lead(stream, is_socks, to, asked).await;
                        }
                    }
                    None => lead(stream, is_socks, to, asked).await,
                }
            });
        }
    });
    (port, asked)
}

async fn lead<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, is_socks: bool, to: u16, asked: Asked) {
    if is_socks {
        let mut methods = [0; 3];
        stream.read_exact(&mut methods).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        let mut name = vec![0; usize::from(head[4]) + 2];
        stream.read_exact(&mut name).await.unwrap();
        name.truncate(name.len() - 2);
        asked.lock().unwrap().push(String::from_utf8(name).unwrap());
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    } else {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        asked
            .lock()
            .unwrap()
            .push(head.lines().next().unwrap().to_owned());
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    }
    let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

#[tokio::test]
async fn the_api_server_is_reached_through_each_kind_of_proxy() {
    // A name that only the proxy knows.
    let (shown, of_proxy) = (own("api.example"), own("localhost"));
    let api = server();
    let running = api
        .serve_tls(TcpListener::bind("127.0.0.1:0").await.unwrap(), tls(&shown, &[]))
        .unwrap();
    let to = running.address().port();
    let folder = Folder::new();
    folder.write("ca.crt", shown.cert.pem());
    folder.write("system.crt", of_proxy.cert.pem());
    let system = folder.at("system.crt").display().to_string();
    let cluster = "server: 'https://api.example:6443', certificate-authority: ca.crt";
    for (scheme, expected) in [
        ("http", "CONNECT api.example:6443 HTTP/1.1"),
        ("https", "CONNECT api.example:6443 HTTP/1.1"),
        ("socks5", "api.example"),
        ("socks5h", "api.example"),
    ] {
        let secure = (scheme == "https").then(|| tls(&of_proxy, &[]));
        let (port, asked) = proxy(secure, scheme.starts_with("socks"), to).await;
        let address = format!("{scheme}://localhost:{port}");
        let environment = [
            ("HTTPS_PROXY", &*address),
            ("SSL_CERT_FILE", &*system),
            ("SSL_CERT_DIR", "/nonexistent"),
        ];
        let kube = folder.connect(cluster, "", &environment).await;
        kube.is_healthy()
            .await
            .unwrap_or_else(|error| panic!("{scheme}: {error}"));
        let named = format!("{cluster}, proxy-url: '{address}'");
        let kube = folder.connect(&named, "", &environment[1..]).await;
        kube.is_healthy()
            .await
            .unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert_eq!(*asked.lock().unwrap(), [expected; 2], "{scheme}");
    }
    // The cluster's authority may vouch for the proxy, too, as with the Go managers; nobody else may.
    let secure = || Some(tls(&of_proxy, &[]));
    let (port, asked) = proxy(secure(), false, to).await;
    folder.write("ca.crt", shown.cert.pem() + &of_proxy.cert.pem());
    let address = format!("https://user:hunter2@localhost:{port}");
    let nowhere = [
        ("HTTPS_PROXY", &*address),
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ];
    folder
        .connect(cluster, "", &nowhere)
        .await
        .is_healthy()
        .await
        .unwrap();
    folder.write("ca.crt", shown.cert.pem());
    let error = folder
        .connect(cluster, "", &nowhere)
        .await
        .is_healthy()
        .await
        .unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains(&format!("proxy localhost:{port}")) && !told.contains("hunter2"),
        "{told}"
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn a_password_in_the_address_shows_nowhere() {
    let mut registry = prometheus_client::registry::Registry::default();
    let options = KubeOptions {
        metrics: bowline_kube_io::KubeMetrics::registered(&mut registry),
        ..KubeOptions::new("t")
    };
    let target = ConnectOptions {
        master: Some("http://anna:hunter2@127.0.0.1:1".to_owned()),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, options).await.unwrap();
    let error = kube.is_healthy().await.unwrap_err();
    let mut shown = format!("{kube:?} {error} {error:?}");
    prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
    assert!(
        shown.contains("127.0.0.1:1") && !shown.contains("hunter2"),
        "{shown}"
    );
}
