//! Every path of the secure port, asked in every way that a client can show who it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use bowline_kube_io::UserInfo;
use bowline_manager::config::{CertificateSource, FrontProxyConfig, FrontProxyHeaders, ServingConfig};
use bowline_manager::serving::{Authorities, Pages, Reviews, Server, Site, SiteParts};
use futures::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Pki};
use super::{config, parts};

/// An API server that knows two tokens, lets `prometheus` and `proxied` read series, and writes down what it is asked.
#[derive(Default)]
struct Cluster {
    reviewed: Mutex<Vec<(UserInfo, String)>>,
}

impl Reviews for Cluster {
    fn token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        let user = matches!(token, "prometheus" | "stranger").then(|| UserInfo {
            name: token.to_owned(),
            ..UserInfo::default()
        });
        Box::pin(async move { Ok(user) })
    }

    fn access<'a>(
        &'a self,
        user: &'a UserInfo,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<bool, String>> {
        self.reviewed
            .lock()
            .unwrap()
            .push((user.clone(), format!("{verb} {path}")));
        let granted = matches!(user.name.as_str(), "prometheus" | "proxied" | "alice")
            && path.starts_with("/metrics")
            && verb == "get";
        Box::pin(async move { Ok(granted) })
    }
}

struct World {
    directory: tempfile::TempDir,
    cluster: Arc<Cluster>,
    verbosity: Arc<AtomicU8>,
    address: SocketAddr,
    client: Client,
    certificates: BTreeMap<&'static str, (PathBuf, PathBuf)>,
    run: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.run.abort();
    }
}

impl World {
    async fn start(has_debug: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (clients, proxies, strangers) = (Pki::new("clients"), Pki::new("proxies"), Pki::new("strangers"));
        let certificates = BTreeMap::from([
            (
                "admin",
                clients.write(path, "admin", "admin", &["system:masters"]),
            ),
            ("alice", clients.write(path, "alice", "alice", &["team"])),
            ("proxy", proxies.write(path, "proxy", "front-proxy", &[])),
            ("wrong proxy", proxies.write(path, "wrong", "other", &[])),
            (
                "nobody's",
                strangers.write(path, "nobody", "admin", &["system:masters"]),
            ),
        ]);
        let mut config = ServingConfig {
            profiling: has_debug,
            ..config(CertificateSource::Directory(path.to_owned()))
        };
        config.access.client_ca = Some(clients.write_authority(path));
        config.access.front_proxy = Some(FrontProxyConfig {
            ca: proxies.write_authority(path),
            headers: FrontProxyHeaders {
                allowed_names: vec!["front-proxy".to_owned()],
                username: vec!["x-remote-user".to_owned()],
                uid: vec!["x-remote-uid".to_owned()],
                group: vec!["x-remote-group".to_owned()],
                extra_prefix: vec!["X-Remote-Extra-".to_owned()],
            },
        });
        let (cluster, verbosity) = (Arc::new(Cluster::default()), Arc::new(AtomicU8::new(0)));
        let level = Arc::clone(&verbosity);
        let site = Site::new(
            &config.access,
            SiteParts {
                authorities: Authorities::establish(&config.access, None).await.unwrap(),
                reviews: Some(Arc::clone(&cluster) as Arc<_>),
                pages: Pages {
                    component: "cloud-controller-manager".to_owned(),
                    configz: json!({ "Generic": {} }),
                    flags: vec![("v".to_owned(), "0".to_owned())],
                    ..Pages::default()
                },
                debug: has_debug.then(|| -> bowline_manager::serving::SetVerbosity {
                    Arc::new(move |value| level.store(value, Ordering::SeqCst))
                }),
                ..parts()
            },
        );
        let server = Server::bind(&config, site).unwrap();
        let address = server.local_address().unwrap();
        let run = tokio::spawn(server.run(CancellationToken::new()));
        let client = Client::trusting(&path.join("cloud-controller-manager.crt"), address);
        Self {
            directory,
            cluster,
            verbosity,
            address,
            client,
            certificates,
            run,
        }
    }

    fn with(&self, certificate: &str) -> Client {
        self.client.showing(&self.certificates[certificate])
    }

    async fn get(&self, client: &Client, path: &str, headers: &[(&str, &str)]) -> u16 {
        client.status("GET", path, headers).await.0
    }
}

#[tokio::test]
async fn every_path_has_its_code_for_anonymous_and_for_masters() {
    let world = World::start(true).await;
    let admin = world.with("admin");
    for (path, anonymous, authorized) in [
        ("/healthz", 200, 200),
        ("/healthz?verbose", 200, 200),
        ("/healthz/ping", 403, 200),
        ("/healthz/nope", 403, 404),
        ("/livez", 200, 200),
        ("/livez/ping", 403, 200),
        ("/readyz", 200, 200),
        ("/readyz/ping", 403, 200),
        ("/metrics", 403, 200),
        ("/metrics/slis", 403, 200),
        ("/configz", 403, 200),
        ("/statusz", 403, 200),
        ("/flagz", 403, 200),
        ("/debug/pprof", 403, 302),
        ("/debug/pprof/", 403, 200),
        ("/debug/pprof/cmdline", 403, 200),
        ("/debug/pprof/heap", 403, 501),
        ("/debug/pprof/profile", 403, 501),
        ("/debug/pprof/goroutine", 403, 501),
        ("/debug/pprof/trace", 403, 501),
        ("/debug/pprof/nope", 403, 404),
        ("/debug/flags", 403, 200),
        ("/debug/flags/v", 403, 406),
        ("/", 403, 404),
        ("/version", 403, 404),
        ("/healthzz", 403, 404),
    ] {
        assert_eq!(world.get(&world.client, path, &[]).await, anonymous, "{path}");
        assert_eq!(world.get(&admin, path, &[]).await, authorized, "{path} as admin");
    }
    assert!(
        world
            .cluster
            .reviewed
            .lock()
            .unwrap()
            .iter()
            .all(|(user, _)| user.name == "system:anonymous"),
        "masters are not reviewed"
    );
}

#[tokio::test]
async fn head_is_answered_in_both_protocols() {
    let world = World::start(false).await;
    assert_eq!(
        world.client.head_over_http2("/healthz").await,
        (200, "2".to_owned(), 0)
    );
    let (status, body) = world.client.status("HEAD", "/healthz", &[]).await;
    assert_eq!((status, body.as_str()), (200, ""));
}

#[tokio::test]
async fn without_profiling_nothing_is_below_debug() {
    let world = World::start(false).await;
    let admin = world.with("admin");
    for path in ["/debug/pprof", "/debug/pprof/", "/debug/flags/v"] {
        assert_eq!(world.get(&admin, path, &[]).await, 404, "{path}");
    }
    assert!(!admin.status("GET", "/statusz", &[]).await.1.contains("/debug/"));
}

#[tokio::test]
async fn who_asks_is_told_by_proxy_certificate_token_or_nobody() {
    let world = World::start(true).await;
    let metrics =
        async |client: &Client, headers: &[(&str, &str)]| world.get(client, "/metrics", headers).await;
    let prometheus = ("authorization", "Bearer prometheus");
    let stolen = ("authorization", "Bearer stolen");
    let remote = ("x-remote-user", "proxied");

    let (code, body) = world.client.status("GET", "/metrics", &[]).await;
    assert_eq!(code, 403);
    let status: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        status["message"],
        "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""
    );
    assert_eq!(metrics(&world.client, &[prometheus]).await, 200);
    assert_eq!(
        metrics(&world.client, &[("authorization", "bearer stranger")]).await,
        403
    );
    assert_eq!(metrics(&world.client, &[stolen]).await, 401);
    assert_eq!(
        world.get(&world.client, "/healthz", &[stolen]).await,
        401,
        "also where everybody may read"
    );
    // Headers alone are nobody's word.
    assert_eq!(metrics(&world.client, &[remote]).await, 403);

    assert_eq!(metrics(&world.with("alice"), &[]).await, 200);
    assert_eq!(metrics(&world.with("proxy"), &[remote]).await, 200);
    assert_eq!(
        metrics(&world.with("proxy"), &[]).await,
        401,
        "a proxy that names nobody is no client either"
    );
    assert_eq!(metrics(&world.with("wrong proxy"), &[remote]).await, 401);
    assert_eq!(metrics(&world.with("nobody's"), &[]).await, 401);
    assert_eq!(world.get(&world.with("nobody's"), "/healthz", &[]).await, 401);
    assert_eq!(
        metrics(&world.with("nobody's"), &[prometheus]).await,
        200,
        "a good token makes up for a bad certificate"
    );
    assert_eq!(
        metrics(&world.with("alice"), &[stolen]).await,
        200,
        "the certificate comes first"
    );
}

#[tokio::test]
async fn a_front_proxy_passes_on_all_it_knows_of_a_user() {
    let world = World::start(true).await;
    let headers = [
        ("X-Remote-User", "proxied"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Extra-Example.com%2fScopes", "a"),
        ("X-Remote-Extra-Example.com%2fScopes", "b"),
    ];
    assert_eq!(world.get(&world.with("proxy"), "/metrics", &headers).await, 200);
    let (user, asked) = world.cluster.reviewed.lock().unwrap()[0].clone();
    assert_eq!(asked, "get /metrics");
    assert_eq!(
        user,
        UserInfo {
            name: "proxied".to_owned(),
            uid: "u-1".to_owned(),
            groups: ["dev", "ops", "system:authenticated"].map(str::to_owned).to_vec(),
            extra: BTreeMap::from([(
                "example.com/scopes".to_owned(),
                vec!["a".to_owned(), "b".to_owned()]
            )]),
        }
    );
    let alice = world.with("alice");
    assert_eq!(world.get(&alice, "/configz", &[]).await, 403);
    let (user, _) = world.cluster.reviewed.lock().unwrap()[1].clone();
    assert_eq!(
        (user.name.as_str(), user.groups),
        (
            "alice",
            vec!["team".to_owned(), "system:authenticated".to_owned()]
        )
    );
}

#[tokio::test]
async fn verbosity_is_put_and_nothing_else() {
    let world = World::start(true).await;
    let admin = world.with("admin");
    let put = async |text: &str| admin.ask("PUT", "/debug/flags/v", &[], text).await.1;
    let answer = put("4").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.ends_with("successfully set klog.logging.verbosity to 4\n"),
        "{answer}"
    );
    assert_eq!(world.verbosity.load(Ordering::SeqCst), 4);
    assert!(put("loud").await.starts_with("HTTP/1.1 400 "));
    assert!(put(&"4".repeat(100)).await.starts_with("HTTP/1.1 400 "));
    let anonymous = world.client.ask("PUT", "/debug/flags/v", &[], "9").await.1;
    assert!(anonymous.starts_with("HTTP/1.1 403 "), "{anonymous}");
    assert!(anonymous.contains("cannot put path"), "{anonymous}");
    assert_eq!(admin.status("POST", "/debug/flags/v", &[]).await.0, 406);
    assert_eq!(world.verbosity.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn pages_are_what_their_names_say() {
    let world = World::start(true).await;
    let admin = world.with("admin");
    let get = async |path: &str| admin.status("GET", path, &[]).await.1;
    assert_eq!(
        get("/configz").await,
        r#"{"cloudcontrollermanager.config.k8s.io":{"Generic":{}}}"#
    );
    assert!(get("/flagz").await.ends_with("\nv=0\n"));
    assert!(get("/statusz").await.contains("\nPaths: /configz /debug/flags"));
    assert_eq!(
        admin
            .status("GET", "/statusz", &[("accept", "application/json")])
            .await
            .0,
        406
    );
    get("/healthz").await;
    assert!(
        get("/metrics/slis")
            .await
            .contains("kubernetes_healthchecks_total")
    );
    assert_eq!(
        admin.status("DELETE", "/metrics/slis", &[]).await,
        (200, "metrics reset\n".to_owned())
    );
    assert!(!get("/metrics/slis").await.contains("name=\"ping\""));
    assert_eq!(admin.status("DELETE", "/metrics", &[]).await.0, 405);

    let page = get("/metrics").await;
    for line in [
        "authenticated_user_requests{username=\"admin\"}",
        "authentication_attempts{result=\"success\"}",
        "authentication_duration_seconds_bucket{",
        "authorization_attempts_total{result=\"allowed\"}",
        "authorization_duration_seconds_bucket{",
        "apiserver_client_certificate_expiration_seconds_bucket{",
    ] {
        assert!(
            page.lines().any(|found| found.starts_with(line)),
            "{line} is missing in\n{page}"
        );
    }
}

#[tokio::test]
async fn a_new_authority_in_the_file_is_taken_over() {
    let world = World::start(true).await;
    let renewed = Pki::new("clients");
    let path = world.directory.path();
    renewed.write_authority(path);
    let admin = world
        .client
        .showing(&renewed.write(path, "renewed", "admin", &["system:masters"]));
    assert_eq!(world.get(&admin, "/configz", &[]).await, 401);
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(21)).await;
    tokio::time::resume();
    let begun = tokio::time::Instant::now();
    while world.get(&admin, "/configz", &[]).await != 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(world.get(&world.with("admin"), "/configz", &[]).await, 401);
    assert_eq!(world.address.ip().to_string(), "127.0.0.1");
}
