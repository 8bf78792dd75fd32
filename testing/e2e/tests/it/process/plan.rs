//! The word `plan`.

use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN};
use super::program::Told;

/// Runs `plan` beside the servers of this process.
async fn plan(cluster: &Cluster, more: &[&str]) -> Told {
    cluster.word(&[&["plan"], more].concat()).await
}

/// The same with this variable instead of the flag that says where the cluster is.
async fn plan_at(cluster: &Cluster, kubeconfig: String) -> Told {
    let mut variables = cluster.variables();
    variables.push(("KUBECONFIG".to_owned(), kubeconfig));
    let words = ["plan", "--cloud-provider=cloudscale", "--allow-untagged-cloud"];
    cluster.word_with(&words, &variables).await
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
    cluster.add_node("n1");
    cluster.add_node("n2");
    service(&cluster, json!({}));
    let shown = plan(&cluster, &[]).await;
    assert_eq!(shown.code, Some(2), "{shown:?}");
    let filters = vec![
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[uuid]",
        ),
        (r"http://127\.0\.0\.1:\d+", "[cloud]"),
    ];
    insta::with_settings!({ filters => filters.clone() }, {
        insta::assert_snapshot!("plan_text", shown.out);
    });

    let shown = plan(&cluster, &["--output=json", "--service=default/web"]).await;
    assert_eq!(shown.code, Some(2));
    let parsed = shown.json();
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!("plan_json", serde_json::to_string_pretty(&parsed).unwrap());
    });
    assert!(cluster.sim.journal().writes().is_empty());
    assert!(cluster.api.journal().writes().is_empty());
}

#[tokio::test]
async fn a_plan_without_changes_has_status_0() {
    let cluster = Cluster::start().await;
    cluster.add_node("n1");
    service(&cluster, json!({}));
    let manager = cluster.manager(&["--secure-port=0"]);
    cluster.addressed(&manager, "web").await;
    drop(manager);
    let shown = plan(&cluster, &[]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.out);
    insta::assert_snapshot!("plan_idle", shown.out);
}

#[tokio::test]
async fn a_plan_that_cannot_be_made_has_status_1_and_says_why() {
    let cluster = Cluster::start().await;
    cluster.add_node("n1");
    service(
        &cluster,
        json!({ "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "fastest" }),
    );
    let refused = plan(&cluster, &[]).await;
    refused.says(1, &["pool-algorithm"]);
    refused.is_silent_on(&["no changes"]);

    let absent = plan(&cluster, &["--service=default/nowhere"]).await;
    absent.says(1, &["there is no such Service"]);
    absent.is_silent_on(&["no changes"]);
    let absent = plan(&cluster, &["--service=default/nowhere", "--output=json"]).await;
    let outcome = json!({ "state": "failed", "error": "there is no such Service" });
    assert_eq!(
        (absent.code, &absent.json()["plans"][0]["outcome"]),
        (Some(1), &outcome)
    );

    cluster.sim.revoke_token(TOKEN);
    let access = bowline_cloudscale_sim::Access::ReadWrite;
    cluster.sim.set_token("another", access);
    service(&cluster, json!({}));
    plan(&cluster, &[]).await.says(1, &["401"]);
}

#[tokio::test]
async fn a_plan_finds_the_cluster_by_kubeconfig_variable_and_says_nothing_else() {
    let cluster = Cluster::start().await;
    cluster.add_node("n1");
    service(&cluster, json!({}));
    let there = cluster.kubeconfig.display();
    let by_flag = plan(&cluster, &[]).await;
    for value in [format!("{there}"), format!("/nowhere/kubeconfig::{there}")] {
        let shown = plan_at(&cluster, value).await;
        let expected = (Some(2), by_flag.out.as_str(), "");
        assert_eq!((shown.code, shown.out.as_str(), shown.err.as_str()), expected);
    }
    let shown = plan(&cluster, &["-v=0"]).await;
    assert!(shown.err.contains("cloudscale API client"), "{}", shown.err);
    // Of several files that are there, the first one counts.
    let log = plan_at(&cluster, format!("{there}:{there}")).await.err;
    assert!(
        log.contains("only the first one is read") && log.lines().count() == 1,
        "{log}"
    );
}

#[tokio::test]
async fn what_is_printed_is_what_is_then_done_in_that_order() {
    let cluster = Cluster::start().await;
    cluster.add_node("n1");
    cluster.add_node("n2");
    service(&cluster, json!({}));
    let shown = plan(&cluster, &["--output=json"]).await;
    let parsed = shown.json();
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
    cluster.addressed(&manager, "web").await;
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
