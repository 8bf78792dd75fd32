//! The word `orphans`.

use std::process::Output;

use bowline_cloudscale_sim::Tags;
use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN};

/// Runs `orphans` beside the servers of this process, where nobody sits at a terminal.
async fn orphans(cluster: &Cluster, words: &[&str]) -> Output {
    let mut arguments = vec!["orphans".to_owned(), "--cloud-provider=cloudscale".to_owned()];
    arguments.extend(words.iter().map(|it| (*it).to_owned()));
    let variables = cluster.variables();
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        super::program::run_as("cloud-controller-manager", &arguments, &variables)
    })
    .await
    .unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = format!("{}--- stderr\n{}", text(&output.stdout), text(&output.stderr));
    assert!(!told.contains(TOKEN));
    told
}

fn add(cluster: &Cluster, name: &str, uid: &str, of: (&str, &str)) {
    let (key, value) = of;
    let tags = [
        ("k8s-service-uid", uid),
        ("k8s-service-name", "shop/gone"),
        (key, value),
    ];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
    cluster.sim.add_load_balancer(name, Tags::from(tags));
}

/// A cluster whose UID the cloud knows, with one orphan and others' load balancers.
async fn with_orphan() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kubernetes", "namespace": "default" },
        "spec": { "type": "ClusterIP", "ports": [{ "port": 443 }] },
    }));
    let uid = cluster.api.object("Service", "default", "kubernetes").unwrap();
    let uid = uid["metadata"]["uid"].as_str().unwrap().to_owned();
    add(&cluster, "k8s-service-left", "left", ("k8s-cluster-uid", &uid));
    add(
        &cluster,
        "k8s-service-theirs",
        "theirs",
        ("k8s-cluster-uid", "another"),
    );
    add(&cluster, "k8s-service-old", "old", ("k8s-cluster-name", "old"));
    cluster.sim.add_load_balancer("k8s-service-unsaid", Tags::new());
    cluster
}

fn names(cluster: &Cluster) -> Vec<String> {
    let mut names: Vec<String> = cluster
        .sim
        .load_balancers()
        .into_iter()
        .map(|it| it.name)
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn orphans_are_listed_with_what_stays_and_deleted_only_when_that_is_said() {
    let cluster = with_orphan().await;
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig.display());
    let all = names(&cluster);
    let listed = orphans(&cluster, &[&kubeconfig]).await;
    assert_eq!(listed.status.code(), Some(2), "{}", told(&listed));
    let text = told(&listed);
    for expected in [
        "Orphans of cluster kubernetes (UID ",
        "  load balancer k8s-service-left (",
        "its tags name Service shop/gone, uid left, which does not exist, and this cluster, with the UID ",
        "      - delete-resource(",
        "Never touched: 3\n",
        "its tags name another cluster, with the UID another\n",
        "note: nothing was deleted: --delete asks, and deletes the orphans",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let json = orphans(&cluster, &[&kubeconfig, "--output=json"]).await;
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["orphans"][0]["objects"][0]["name"], "k8s-service-left");
    assert_eq!(value["untouched"].as_array().unwrap().len(), 3);

    // Nobody is there to be asked.
    let refused = orphans(&cluster, &[&kubeconfig, "--delete"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        told(&refused).contains("--yes deletes without a question"),
        "{}",
        told(&refused)
    );
    assert_eq!(names(&cluster), all);

    let deleted = orphans(&cluster, &[&kubeconfig, "--delete", "--yes"]).await;
    assert_eq!(deleted.status.code(), Some(0), "{}", told(&deleted));
    assert!(
        told(&deleted).contains("deleted: load balancer k8s-service-left"),
        "{}",
        told(&deleted)
    );
    assert_eq!(
        names(&cluster),
        ["k8s-service-old", "k8s-service-theirs", "k8s-service-unsaid"]
    );
    // A person has to look at what has no tags.
    let none = orphans(&cluster, &[&kubeconfig]).await;
    assert_eq!(none.status.code(), Some(2), "{}", told(&none));
    assert!(
        told(&none).contains("; 1 unclear item is listed below\n"),
        "{}",
        told(&none)
    );
    assert!(cluster.api.journal().writes().is_empty());
}

#[tokio::test]
async fn orphans_of_a_cluster_that_is_gone_are_found_by_its_name_alone() {
    let cluster = with_orphan().await;
    let listed = orphans(&cluster, &["--cluster-name=old"]).await;
    assert_eq!(listed.status.code(), Some(2), "{}", told(&listed));
    assert!(
        told(&listed).contains("Orphans of cluster old: 1"),
        "{}",
        told(&listed)
    );
    // Without a name nobody knows which cluster is meant.
    let unsaid = orphans(&cluster, &["--gone"]).await;
    assert_eq!(unsaid.status.code(), Some(1));
    assert!(
        told(&unsaid).contains("say which cluster is gone"),
        "{}",
        told(&unsaid)
    );
    let deleted = orphans(&cluster, &["--cluster-name=old", "--gone", "--delete", "--yes"]).await;
    assert_eq!(deleted.status.code(), Some(0), "{}", told(&deleted));
    assert!(!names(&cluster).contains(&"k8s-service-old".to_owned()));
    assert_eq!(names(&cluster).len(), 3);
}
