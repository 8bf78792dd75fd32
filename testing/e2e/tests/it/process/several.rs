//! Several clouds, one of which refuses the login.

use std::net::Ipv4Addr;
use std::process::Output;

use bowline_cloudscale_sim::{ServerSpec, Tags};
use bowline_cloudstack_sim::CloudstackSim;
use serde_json::json;

use super::cluster::{Cluster, TOKEN};
use super::program::run_as;

async fn run(arguments: Vec<String>, variables: Vec<(String, String)>) -> Output {
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        run_as("cloud-controller-manager", &arguments, &variables)
    })
    .await
    .unwrap()
}

/// The manager serves the other cloud, so the words tell of it, too.
#[tokio::test]
async fn the_words_go_on_without_a_cloud_that_refuses_the_login_and_say_so() {
    let cluster = Cluster::start().await;
    let clock = bowline_cloudstack_sim::kit::Clock::system();
    let refusing = CloudstackSim::builder().clock(clock).build();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = refusing.serve(listener).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud-config");
    let text = format!(
        "[Global]\napi-url = http://127.0.0.1:{port}/client/api\napi-key = {}\nsecret-key = {TOKEN}\n",
        CloudstackSim::API_KEY
    );
    std::fs::write(&path, text).unwrap();
    let flags = [
        "--cloud-provider=cloudscale,external-cloudstack".to_owned(),
        "--allow-untagged-cloud".to_owned(),
        "--configure-cloud-routes=false".to_owned(),
        format!("--cloud-config=external-cloudstack={}", path.display()),
        "--load-balancer-class=external-cloudstack=example.com/stack".to_owned(),
        format!("--kubeconfig={}", cluster.kubeconfig.display()),
    ];
    let said = async |words: &[&str]| {
        let words = words.iter().map(|it| (*it).to_owned());
        let output = run(words.chain(flags.clone()).collect(), cluster.variables()).await;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (
            output.status.code(),
            format!("{}{}", text(&output.stdout), text(&output.stderr)),
        )
    };
    let server = cluster.sim.add_server(ServerSpec::new("n1"));
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "spec": { "providerID": format!("cloudscale://{server}") },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }));
    cluster.add_service("web");
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "stacked", "namespace": "default" },
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": "example.com/stack",
            "ports": [{ "name": "http", "port": 80, "nodePort": 30081, "protocol": "TCP" }],
        },
    }));
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kubernetes", "namespace": "default" },
        "spec": { "type": "ClusterIP", "ports": [{ "port": 443 }] },
    }));
    let uid = cluster.api.object("Service", "default", "kubernetes").unwrap();
    let uid = uid["metadata"]["uid"].as_str().unwrap().to_owned();
    let tags = [
        ("k8s-service-uid", "left"),
        ("k8s-service-name", "shop/gone"),
        ("k8s-cluster-uid", &uid),
    ];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
    cluster
        .sim
        .add_load_balancer("k8s-service-left", Tags::from(tags));

    let (status, text) = said(&["plan"]).await;
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("default/web") && text.contains("create load balancer"),
        "{text}"
    );
    assert!(
        text.contains("external-cloudstack: ") && text.contains("401"),
        "{text}"
    );

    let (status, text) = said(&["orphans"]).await;
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("k8s-service-left"), "{text}");
    assert!(
        text.contains("external-cloudstack") && text.contains("401"),
        "{text}"
    );

    let (_, text) = said(&["explain", "service/web", "node/n1"]).await;
    assert!(
        !text.contains("401") && !text.contains("the cloud is not asked"),
        "{text}"
    );
    let (status, text) = said(&["explain", "service/stacked"]).await;
    assert!(
        status == Some(1) && text.contains("external-cloudstack: ") && text.contains("401"),
        "{text}"
    );

    let (status, text) = said(&["doctor", "-v=0"]).await;
    assert_eq!(status, Some(1), "{text}");
    for line in [
        "failed   the provider can be built: external-cloudstack: ",
        "ok       instances are listed: ",
        "ok       load balancers are read: the one of Service default/web, ",
        "k8s-service-left",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("there is no provider"), "{text}");
}
