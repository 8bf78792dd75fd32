//! The word `orphans`.

use bowline_cloudscale_sim::Tags;

use super::cluster::Cluster;
use super::program::Told;

/// Runs `orphans` beside the servers of this process, where nobody sits at a terminal.
async fn orphans(cluster: &Cluster, words: &[&str]) -> Told {
    let words = [&["orphans", "--cloud-provider=cloudscale"], words].concat();
    cluster.word_with(&words, &cluster.variables()).await
}

/// A cluster whose UID the cloud knows, with one orphan and others' load balancers.
async fn with_orphan() -> Cluster {
    let cluster = Cluster::start().await;
    let uid = cluster.add_uid();
    cluster.add_orphan("left", ("k8s-cluster-uid", &uid));
    cluster.add_orphan("theirs", ("k8s-cluster-uid", "another"));
    cluster.add_orphan("old", ("k8s-cluster-name", "old"));
    cluster.sim.add_load_balancer("k8s-service-unsaid", Tags::new());
    cluster
}

fn names(cluster: &Cluster) -> Vec<String> {
    let all = cluster.sim.load_balancers().into_iter();
    let mut names: Vec<String> = all.map(|it| it.name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn orphans_are_listed_with_what_stays_and_deleted_only_when_that_is_said() {
    let cluster = with_orphan().await;
    let (at, all) = (cluster.at(), names(&cluster));
    let listed = orphans(&cluster, &[&at]).await;
    listed.says(
        2,
        &[
            "Orphans of cluster kubernetes (UID ",
            "  load balancer k8s-service-left (",
            "its tags name Service shop/gone, uid left, which does not exist, and this cluster, with the UID ",
            "      - delete resource ",
            "Never touched: 3\n",
            "its tags name another cluster, with the UID another\n",
            "note: nothing was deleted: --delete asks, and deletes the orphans",
        ],
    );
    let value = orphans(&cluster, &[&at, "--output=json"]).await.json();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["orphans"][0]["objects"][0]["name"], "k8s-service-left");
    assert_eq!(value["untouched"].as_array().unwrap().len(), 3);

    // Nobody is there to be asked.
    let refused = orphans(&cluster, &[&at, "--delete"]).await;
    refused.says(1, &["--yes deletes without a question"]);
    assert_eq!(names(&cluster), all);

    let deleted = orphans(&cluster, &[&at, "--delete", "--yes"]).await;
    deleted.says(0, &["deleted: load balancer k8s-service-left"]);
    let left = ["k8s-service-old", "k8s-service-theirs", "k8s-service-unsaid"];
    assert_eq!(names(&cluster), left);
    // A person has to look at what has no tags.
    let none = orphans(&cluster, &[&at]).await;
    none.says(2, &["; 1 unclear item is listed below\n"]);
    assert!(cluster.api.journal().writes().is_empty());
}

#[tokio::test]
async fn orphans_of_a_cluster_that_is_gone_are_found_by_its_name_alone() {
    let cluster = with_orphan().await;
    let listed = orphans(&cluster, &["--cluster-name=old"]).await;
    listed.says(2, &["Orphans of cluster old: 1"]);
    // Without a name nobody knows which cluster is meant.
    let unsaid = orphans(&cluster, &["--gone"]).await;
    unsaid.says(1, &["say which cluster is gone"]);
    let deleted = orphans(&cluster, &["--cluster-name=old", "--gone", "--delete", "--yes"]).await;
    deleted.says(0, &[]);
    assert!(!names(&cluster).contains(&"k8s-service-old".to_owned()));
    assert_eq!(names(&cluster).len(), 3);
}
