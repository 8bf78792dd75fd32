//! Over real sockets of this machine, so with the real clock.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{Effect, Fault, KubeApi, User};
use bowline_kube_io::{ConnectOptions, Kube, KubeError, KubeOptions};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::{node, server};

#[tokio::test]
async fn a_kubeconfig_with_a_plain_http_server_works() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = api.serve(listener).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, KubeApi::kubeconfig(server.address())).unwrap();
    let target = ConnectOptions {
        kubeconfig: Some(path),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, KubeOptions::new("ccm/1.2 (linux/amd64)"))
        .await
        .unwrap();
    kube.node(&NodeName::new("a")).await.unwrap();
    assert_eq!(api.journal().all()[0].user_agent, "ccm/1.2 (linux/amd64)");
    server.stop().await;
}

#[tokio::test]
async fn credentials_of_the_kubeconfig_go_to_the_master_that_is_given() {
    let api = KubeApi::builder()
        .token("secret", User::new("ccm", &["system:masters"]))
        .build();
    api.apply_json(node("a")).unwrap();
    let server = api
        .serve(TcpListener::bind("127.0.0.1:0").await.unwrap())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let kubeconfig = KubeApi::kubeconfig(nowhere).replace("user: {}", "user: {token: secret}");
    std::fs::write(&path, kubeconfig).unwrap();
    let master = Some(server.address().to_string());
    let mut target = ConnectOptions {
        kubeconfig: Some(path),
        master,
        ..ConnectOptions::default()
    };
    let name = NodeName::new("a");
    let kube = Kube::connect(&target, KubeOptions::new("t")).await.unwrap();
    kube.node(&name).await.unwrap();

    target.kubeconfig = None;
    let kube = Kube::connect(&target, KubeOptions::new("t")).await.unwrap();
    let error = kube.node(&name).await.unwrap_err();
    assert!(matches!(error, KubeError::Unauthorized(_)), "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_pod_trusts_its_authority_and_shows_its_token() {
    let account = User::service_account("kube-system", "ccm", "1");
    let api = KubeApi::builder().token("secret", account).build();
    api.apply_json(node("a")).unwrap();
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let server = api
        .serve_tls(TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(tls))
        .unwrap();

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "secret").unwrap();
    std::fs::write(folder.path().join("ca.crt"), issued.cert.pem()).unwrap();
    let port = server.address().port().to_string();
    let environment = [
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", port.as_str()),
    ];
    let target = ConnectOptions {
        environment: environment.into_iter().collect(),
        service_account: folder.path().to_owned(),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, KubeOptions::new("t")).await.unwrap();
    kube.node(&NodeName::new("a")).await.unwrap();
    assert_eq!(
        api.journal().all()[0].user,
        "system:serviceaccount:kube-system:ccm"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_by_the_cause() {
    let target = ConnectOptions {
        master: Some("http://127.0.0.1:1".into()),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, KubeOptions::new("t")).await.unwrap();
    let error = kube.is_healthy().await.unwrap_err();
    let KubeError::Transport(text) = error else {
        panic!("{error:?}")
    };
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
}

#[tokio::test]
async fn many_requests_share_a_few_sockets() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let delay = Duration::from_millis(50);
    api.faults().inject(Fault::new(Effect::Delay(delay)).verb("get"));
    let server = api
        .serve(TcpListener::bind("127.0.0.1:0").await.unwrap())
        .unwrap();
    let target = ConnectOptions {
        master: Some(server.address().to_string()),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, KubeOptions::new("t")).await.unwrap();
    let name = NodeName::new("a");
    let begun = Instant::now();
    let reads: Vec<_> = (0..52).map(|_| kube.node(&name)).collect();
    for read in futures::future::join_all(reads).await {
        read.unwrap();
    }
    // 10 at a time: the other sockets are for watches and leases.
    assert!(begun.elapsed() >= 6 * delay, "{:?}", begun.elapsed());
    server.stop().await;
}
