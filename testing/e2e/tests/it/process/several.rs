//! Several clouds, one of which refuses the login.

use serde_json::json;

use super::cloudstack::Refusing;
use super::cluster::Cluster;

/// The manager serves the other cloud, so the words tell of it, too.
#[tokio::test]
async fn the_words_go_on_without_a_cloud_that_refuses_the_login_and_say_so() {
    let cluster = Cluster::start().await;
    let cloud = Refusing::start().await;
    let flags = [
        "--cloud-provider=cloudscale,external-cloudstack",
        "--allow-untagged-cloud",
        "--configure-cloud-routes=false",
        &format!("--cloud-config=external-cloudstack={}", cloud.config.display()),
        "--load-balancer-class=external-cloudstack=example.com/stack",
        &cluster.at(),
    ];
    let said = async |words: &[&str]| {
        let words = [words, &flags[..]].concat();
        cluster.word_with(&words, &cluster.variables()).await
    };
    cluster.add_node("n1");
    cluster.add_service("web");
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "stacked", "namespace": "default" },
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": "example.com/stack",
            "ports": [{ "name": "http", "port": 80, "nodePort": 30081, "protocol": "TCP" }],
        },
    }));
    let uid = cluster.add_uid();
    cluster.add_orphan("left", ("k8s-cluster-uid", &uid));

    let told = said(&["plan"]).await;
    told.says(
        1,
        &[
            "default/web",
            "create load balancer",
            "external-cloudstack: ",
            "401",
        ],
    );
    let told = said(&["orphans"]).await;
    told.says(1, &["k8s-service-left", "external-cloudstack", "401"]);
    let told = said(&["explain", "service/web", "node/n1"]).await;
    told.is_silent_on(&["401", "the cloud is not asked"]);
    let told = said(&["explain", "service/stacked"]).await;
    told.says(1, &["external-cloudstack: ", "401"]);

    let told = said(&["doctor", "-v=0"]).await;
    told.says(
        1,
        &[
            "failed   the provider can be built: external-cloudstack: ",
            "ok       instances are listed: ",
            "ok       load balancers are read: the one of Service default/web, ",
            "k8s-service-left",
        ],
    );
    told.is_silent_on(&["there is no provider"]);
}
