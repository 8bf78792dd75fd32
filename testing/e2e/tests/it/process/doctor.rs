//! The word `doctor`.

use bowline_cloudscale_sim::Access;
use serde_json::{Value, json};

use super::cloudstack::Refusing;
use super::cluster::{Cluster, TOKEN};
use super::program::Told;

/// Runs `doctor` beside the servers of this process, and has it show all checks.
async fn doctor(cluster: &Cluster, more: &[&str]) -> Told {
    briefly(cluster, &[more, &["-v=0"]].concat()).await
}

/// The same, as a person runs it.
async fn briefly(cluster: &Cluster, more: &[&str]) -> Told {
    let flags = cluster.arguments(more);
    let flags = flags.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once("doctor").chain(flags).collect();
    cluster.word_with(&words, &cluster.variables()).await
}

/// What it printed, as a snapshot has it.
macro_rules! snapshot {
    ($name:literal, $told:expr) => {
        insta::with_settings!({ filters => filters() }, {
            insta::assert_snapshot!($name, $told.out);
        });
    };
}

fn filters() -> Vec<(&'static str, &'static str)> {
    vec![
        (r"127\.0\.0\.1:\d+", "[address]"),
        (r"--secure-port = \d+", "--secure-port = [port]"),
        (r"= /\S+/kubeconfig", "= [kubeconfig]"),
        (r"in (\d+ ms|\d\.\d s)", "in [time]"),
        (
            r"cloud-controller-manager: \S+_[0-9a-f-]{36}",
            "cloud-controller-manager: [holder]",
        ),
        (r"v\d+\.\d+\.\d+\+bowline\.\d+\.\d+\.\d+", "[version]"),
        (r"renewed \d+ s ago", "renewed [time] ago"),
        (r"Pod kube-system/[^\s:]+", "Pod kube-system/[pod]"),
    ]
}

/// What is written while a manager runs is its own.
fn writes_by_the_doctor(cluster: &Cluster) -> Vec<String> {
    let all = cluster.api.journal().all().into_iter();
    all.filter(|request| request.is_write())
        .map(|request| request.resource)
        .collect()
}

#[tokio::test]
async fn where_a_manager_works_all_is_well() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    cluster.add_service("web");
    let manager = cluster.manager(&["--secure-port=0"]);
    manager
        .until("it works", async || {
            cluster.is_initialized("n1") && cluster.has_address("web")
        })
        .await;
    let holder = cluster.holder().unwrap();
    let (host, _) = holder.rsplit_once('_').unwrap();
    let stranger = format!("`{host}` is neither a Node nor a pod of the manager in kube-system");
    let told = doctor(&cluster, &[]).await;
    assert!(told.out.contains(&stranger), "{}", told.out);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "kube-system", "name": host}, "spec": {"serviceAccountName": "cloud-controller-manager", "containers": [{"name": "manager", "image": "bowline"}]}});
    cluster.apply(pod);
    cluster.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "kube-system", "name": "cloud-controller-manager"}}));
    let told = doctor(&cluster, &[]).await;
    told.says(0, &[]);
    snapshot!("doctor_well", told);
    let told = briefly(&cluster, &[]).await;
    told.says(0, &[]);
    assert_eq!(
        told.out,
        "  ok       configuration (5), kubernetes (6), cloud (4), nodes (5), services (4)\n\
         24 ok, 0 warning, 0 failed, 0 skipped; -v=1 shows all of them\n"
    );
    let told = doctor(&cluster, &["--output=json"]).await;
    let parsed = told.json();
    let checks = parsed["checks"].as_array().unwrap().iter();
    let outcomes: Vec<&Value> = checks.map(|check| &check["outcome"]).collect();
    assert_eq!((told.code, outcomes), (Some(0), vec![&json!("ok"); 24]));

    let explain = async |words: &[&str]| cluster.word(&[&["explain"], words].concat()).await;
    let told = explain(&["service/web", "node/n1"]).await;
    let well = [
        "service/default/web: ok",
        "should be  as it is",
        "node/n1: ok",
        "initialised",
    ];
    told.says(0, &well);
    cluster.sim.set_token(TOKEN, Access::ReadOnly);
    cluster.add_service("refused");
    manager
        .until("the refusal is told", async || {
            let told = explain(&["service/refused", "-n", "default"]).await;
            let text = &told.out;
            told.code == Some(1)
                && text.contains("the last try failed")
                && text.contains("credentials that may write")
        })
        .await;
    let refused = "service/default/refused: no address: the last try failed";
    doctor(&cluster, &[]).await.says(1, &[refused]);
}

#[tokio::test]
async fn with_a_wrong_token_the_cloud_fails_and_nothing_is_written() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    cluster.add_service("web");
    cluster.sim.revoke_token(TOKEN);
    cluster.sim.set_token("another", Access::ReadWrite);
    let told = doctor(&cluster, &[]).await;
    told.says(1, &[]);
    snapshot!("doctor_denied", told);
    let short = briefly(&cluster, &[]).await;
    snapshot!("doctor_denied_short", short);
    assert!(writes_by_the_doctor(&cluster).is_empty());
    assert!(cluster.sim.journal().writes().is_empty());
}

#[tokio::test]
async fn an_api_server_that_is_away_keeps_nobody_from_asking_the_cloud() {
    let mut cluster = Cluster::start().await;
    cluster.stop_api_server().await;
    doctor(&cluster, &[]).await.says(
        1,
        &[
            "failed   the API server answers: ",
            "skipped  the manager has its permissions: ",
            "ok       instances are listed: ",
            "ok       load balancers are read: ",
            "skipped  Nodes are read: ",
        ],
    );
}

#[tokio::test]
async fn before_the_installation_nothing_is_asked_of_a_manager() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    let told = doctor(&cluster, &["--pre"]).await;
    // Neither the label of a control plane nor a version is there.
    told.says(2, &[]);
    snapshot!("doctor_before", told);
    let parsed = doctor(&cluster, &["--pre", "--output=json"]).await.json();
    let checks = parsed["checks"].as_array().unwrap().iter();
    let ids: Vec<&str> = checks.filter_map(|it| it["id"].as_str()).collect();
    assert!(
        ids.contains(&"nodes.external") && !ids.contains(&"kubernetes.leader"),
        "{ids:?}"
    );
    let written = writes_by_the_doctor(&cluster);
    assert!(written.iter().all(|it| it.ends_with("reviews")), "{written:?}");
    assert!(cluster.sim.journal().writes().is_empty());
    cluster.apply(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n2" } }));
    let told = doctor(&cluster, &["--pre"]).await;
    told.says(1, &["without the taint and without provider ID: n2"]);
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_told_beside_all_else() {
    let cluster = Cluster::start().await;
    let with = async |flags: &[&str], variables: &[(String, String)]| {
        let at = cluster.at();
        let words = [&["doctor", "-v=0", &at], flags].concat();
        cluster.word_with(&words, variables).await
    };
    let untagged = with(&["--cloud-provider=cloudscale"], &cluster.variables()).await;
    let missing = "warning  the controllers have been told what they need: --allow-untagged-cloud is missing";
    for part in [missing, "ok       instances are listed: "] {
        assert!(untagged.out.contains(part), "{}", untagged.out);
    }
    let allowed = ["--cloud-provider=cloudscale", "--allow-untagged-cloud"];
    for (told, words) in [
        (
            with(&allowed, &[]).await,
            "failed   the cloud's configuration can be used: ",
        ),
        (
            with(&["--cloud-provider=cloudscal"], &cluster.variables()).await,
            "failed   the provider is built in: ",
        ),
    ] {
        told.says(
            1,
            &[
                words,
                "ok       the API server answers: ",
                "skipped  instances are listed: ",
            ],
        );
    }
}

#[tokio::test]
async fn a_file_of_the_secure_port_that_is_missing_is_told() {
    let cluster = Cluster::start().await;
    let missing = [
        "--tls-cert-file=/nowhere/tls.crt",
        "--tls-private-key-file=/nowhere/tls.key",
    ];
    for (flags, file) in [
        (&missing[..], "/nowhere/tls.crt: "),
        (&["--client-ca-file=/nowhere/ca.crt"], "/nowhere/ca.crt: "),
    ] {
        let line = format!("failed   the files of the secure port can be used: {file}");
        doctor(&cluster, flags).await.says(1, &[&line]);
    }
}

#[tokio::test]
async fn a_controller_that_is_switched_off_is_named_where_its_work_is_missing() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    cluster.add_service("web");
    let flag = "--controllers=*,-service-lb-controller,-cloud-node-controller";
    // Nobody leads.
    doctor(&cluster, &[flag]).await.says(
        1,
        &[
            "service-lb-controller does not run",
            "this manager initialises no Nodes: --controllers switches cloud-node-controller off",
            "this manager serves no Services: --controllers switches service-lb-controller off",
        ],
    );
}

/// A cloud that is asked for something before there is a provider.
#[tokio::test]
async fn a_login_that_is_refused_is_no_fault_of_the_file() {
    let cluster = Cluster::start().await;
    let cloud = Refusing::start().await;
    let flags = [
        "doctor",
        "--cloud-provider=external-cloudstack",
        "--allow-untagged-cloud",
        &format!("--cloud-config={}", cloud.config.display()),
        &cluster.at(),
        "-v=0",
    ];
    cluster.word_with(&flags, &[]).await.says(
        1,
        &[
            "ok       the cloud's configuration can be used: ",
            &format!("secret-key = <set> ({})", cloud.config.display()),
            "failed   the provider can be built: ",
            "401",
            "skipped  instances are listed: ",
            "ok       the API server answers: ",
        ],
    );
}

#[tokio::test]
async fn the_cluster_is_also_found_by_the_kubeconfig_variable() {
    let cluster = Cluster::start().await;
    let words = [
        "doctor",
        "-v=0",
        "--cloud-provider=cloudscale",
        "--allow-untagged-cloud",
    ];
    let mut variables = cluster.variables();
    let told = cluster.word_with(&words, &variables).await;
    told.says(1, &["doctor also takes the kubeconfig of $KUBECONFIG"]);
    variables.push(("KUBECONFIG".to_owned(), cluster.kubeconfig.display().to_string()));
    // Nobody leads.
    let told = cluster.word_with(&words, &variables).await;
    told.says(1, &["$KUBECONFIG = "]);
}
