//! The word `plan`.

use std::process::Output;

use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN};

/// Runs `plan` beside the servers of this process.
async fn plan(cluster: &Cluster, more: &[&str]) -> Output {
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig.display());
    let flags: Vec<&str> = more.iter().copied().chain([kubeconfig.as_str()]).collect();
    plan_with(cluster, &flags, &[]).await
}

/// The same without a flag that says where the cluster is, and with these variables.
async fn plan_with(cluster: &Cluster, more: &[&str], more_variables: &[(&str, String)]) -> Output {
    let mut arguments = vec![
        "plan".to_owned(),
        "--cloud-provider=cloudscale".to_owned(),
        "--allow-untagged-cloud".to_owned(),
    ];
    arguments.extend(more.iter().map(|it| (*it).to_owned()));
    let mut variables = cluster.variables();
    variables.extend(
        more_variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        super::program::run_as("cloud-controller-manager", &arguments, &variables)
    })
    .await
    .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn node(cluster: &Cluster, name: &str) {
    use bowline_cloudscale_sim::{InterfaceSpec, ServerSpec};
    let server = cluster.sim.add_server(ServerSpec {
        interfaces: vec![InterfaceSpec::Private],
        ..ServerSpec::new(name)
    });
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "providerID": format!("cloudscale://{server}") },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }));
}

fn service(cluster: &Cluster, annotations: Value) {
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "default", "annotations": annotations },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP" }] },
    }));
}

#[tokio::test]
async fn a_plan_with_changes_is_told_as_text_and_json_with_status_2_and_nothing_is_written() {
    let cluster = Cluster::start().await;
    node(&cluster, "n1");
    node(&cluster, "n2");
    service(&cluster, json!({}));
    let shown = plan(&cluster, &[]).await;
    assert_eq!(shown.status.code(), Some(2), "{shown:?}");
    let filters = vec![
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[uuid]",
        ),
        (r"http://127\.0\.0\.1:\d+", "[cloud]"),
    ];
    insta::with_settings!({ filters => filters.clone() }, {
        insta::assert_snapshot!("plan_text", text(&shown));
    });

    let shown = plan(&cluster, &["--output=json", "--service=default/web"]).await;
    assert_eq!(shown.status.code(), Some(2));
    let parsed: Value = serde_json::from_str(&text(&shown)).unwrap();
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!("plan_json", serde_json::to_string_pretty(&parsed).unwrap());
    });
    assert!(cluster.sim.journal().writes().is_empty());
    assert!(cluster.api.journal().writes().is_empty());
}

#[tokio::test]
async fn a_plan_without_changes_has_status_0() {
    let cluster = Cluster::start().await;
    node(&cluster, "n1");
    service(&cluster, json!({}));
    let manager = cluster.manager(&["--secure-port=0"]);
    manager
        .until("the service has an address", async || cluster.has_address("web"))
        .await;
    drop(manager);
    let shown = plan(&cluster, &[]).await;
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    insta::assert_snapshot!("plan_idle", text(&shown));
}

#[tokio::test]
async fn a_plan_that_cannot_be_made_has_status_1_and_says_why() {
    let cluster = Cluster::start().await;
    node(&cluster, "n1");
    service(
        &cluster,
        json!({ "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "fastest" }),
    );
    let refused = plan(&cluster, &[]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("pool-algorithm"), "{}", text(&refused));
    assert!(!text(&refused).contains("no changes"), "{}", text(&refused));

    let absent = plan(&cluster, &["--service=default/nowhere"]).await;
    assert_eq!(absent.status.code(), Some(1));
    assert!(
        text(&absent).contains("there is no such Service"),
        "{}",
        text(&absent)
    );
    assert!(!text(&absent).contains("no changes"), "{}", text(&absent));
    let absent = plan(&cluster, &["--service=default/nowhere", "--output=json"]).await;
    let parsed: Value = serde_json::from_str(&text(&absent)).unwrap();
    let outcome = json!({ "state": "failed", "error": "there is no such Service" });
    assert_eq!(
        (absent.status.code(), &parsed["plans"][0]["outcome"]),
        (Some(1), &outcome)
    );

    cluster.sim.revoke_token(TOKEN);
    cluster
        .sim
        .set_token("another", bowline_cloudscale_sim::Access::ReadWrite);
    service(&cluster, json!({}));
    let denied = plan(&cluster, &[]).await;
    assert_eq!(denied.status.code(), Some(1));
    let all = format!("{}{}", text(&denied), String::from_utf8_lossy(&denied.stderr));
    assert!(all.contains("401") && !all.contains(&TOKEN[4..]), "{all}");
}

#[tokio::test]
async fn a_plan_finds_the_cluster_by_kubeconfig_variable_and_says_nothing_else() {
    let cluster = Cluster::start().await;
    node(&cluster, "n1");
    service(&cluster, json!({}));
    let there = cluster.kubeconfig.display();
    let by_flag = plan(&cluster, &[]).await;
    for value in [format!("{there}"), format!("/nowhere/kubeconfig::{there}")] {
        let shown = plan_with(&cluster, &[], &[("KUBECONFIG", value)]).await;
        assert_eq!(shown.status.code(), Some(2), "{shown:?}");
        assert_eq!(text(&shown), text(&by_flag));
        assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    }
    let shown = plan(&cluster, &["-v=0"]).await;
    let log = String::from_utf8_lossy(&shown.stderr);
    assert!(log.contains("cloudscale API client"), "{log}");
    // Of several files that are there, the first one counts.
    let several = format!("{there}:{there}");
    let shown = plan_with(&cluster, &[], &[("KUBECONFIG", several)]).await;
    let log = String::from_utf8_lossy(&shown.stderr);
    assert!(
        log.contains("only the first one is read") && log.lines().count() == 1,
        "{log}"
    );
}

#[tokio::test]
async fn what_is_printed_is_what_is_then_done_in_that_order() {
    let cluster = Cluster::start().await;
    node(&cluster, "n1");
    node(&cluster, "n2");
    service(&cluster, json!({}));
    let shown = plan(&cluster, &["--output=json"]).await;
    let parsed: Value = serde_json::from_str(&text(&shown)).unwrap();
    let printed: Vec<String> = parsed["plans"][0]["waves"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|wave| wave["steps"].as_array().unwrap())
        .map(|step| {
            step["label"]
                .as_str()
                .unwrap()
                .split('(')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();

    let manager = cluster.manager(&["--secure-port=0"]);
    manager
        .until("the service has an address", async || cluster.has_address("web"))
        .await;
    let mut done: Vec<String> = Vec::new();
    for call in cluster.sim.journal().writes() {
        assert_eq!(call.method, http::Method::POST);
        let kind = match call.path.trim_start_matches("/v1/load-balancers") {
            "" => "create-lb",
            "/pools" => "create-pool",
            "/listeners" => "create-listener",
            "/health-monitors" => "create-monitor",
            path if path.ends_with("/members") => "create-pool-member",
            path => panic!("{path}"),
        };
        done.push(kind.to_owned());
    }
    done.push("annotate-service".to_owned());
    assert_eq!(printed, done);
}
