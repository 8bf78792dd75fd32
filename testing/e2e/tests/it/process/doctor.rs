//! The word `doctor`.

use std::process::Output;

use bowline_cloudscale_sim::Access;
use bowline_cloudstack_sim::CloudstackSim;
use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN};
use super::program::run_as;

/// Runs `doctor` beside the servers of this process, and has it show all checks.
async fn doctor(cluster: &Cluster, more: &[&str]) -> Output {
    briefly(cluster, &[more, &["-v=0"]].concat()).await
}

/// The same, as a person runs it.
async fn briefly(cluster: &Cluster, more: &[&str]) -> Output {
    let mut arguments = vec!["doctor".to_owned()];
    arguments.extend(cluster.arguments(more));
    run(arguments, cluster.variables()).await
}

async fn run(arguments: Vec<String>, variables: Vec<(String, String)>) -> Output {
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        run_as("cloud-controller-manager", &arguments, &variables)
    })
    .await
    .unwrap()
}

/// What it printed, without what differs from run to run, and its status.
fn told(output: &Output) -> (String, Option<i32>) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!all.contains(TOKEN) && !all.contains(&TOKEN[4..]), "{all}");
    (text, output.status.code())
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
    let (text, _) = told(&doctor(&cluster, &[]).await);
    let stranger = format!("`{host}` is neither a Node nor a pod of the manager in kube-system");
    assert!(text.contains(&stranger), "{text}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "kube-system", "name": host}, "spec": {"serviceAccountName": "cloud-controller-manager", "containers": [{"name": "manager", "image": "bowline"}]}});
    cluster.api.apply_json(pod).unwrap();
    cluster.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "kube-system", "name": "cloud-controller-manager"}}));
    let (text, status) = told(&doctor(&cluster, &[]).await);
    assert_eq!(status, Some(0), "{text}");
    insta::with_settings!({ filters => filters() }, {
        insta::assert_snapshot!("doctor_well", text);
    });
    let (text, status) = told(&briefly(&cluster, &[]).await);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(
        text,
        "  ok       configuration (5), kubernetes (6), cloud (4), nodes (5), services (4)\n\
         24 ok, 0 warning, 0 failed, 0 skipped; -v=1 shows all of them\n"
    );
    let (text, status) = told(&doctor(&cluster, &["--output=json"]).await);
    let parsed: Value = serde_json::from_str(&text).unwrap();
    let outcomes: Vec<&Value> = parsed["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["outcome"])
        .collect();
    assert_eq!((status, outcomes), (Some(0), vec![&json!("ok"); 24]));

    let explain = async |words: &[&str]| {
        let mut arguments = vec!["explain".to_owned()];
        arguments.extend(words.iter().map(|it| (*it).to_owned()));
        arguments.extend(cluster.arguments(&[]));
        told(&run(arguments, cluster.variables()).await)
    };
    let (text, status) = explain(&["service/web", "node/n1"]).await;
    assert_eq!(status, Some(0), "{text}");
    for line in [
        "service/default/web: ok",
        "should be  as it is",
        "node/n1: ok",
        "initialised",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    cluster.sim.set_token(TOKEN, Access::ReadOnly);
    cluster.add_service("refused");
    manager
        .until("the refusal is told", async || {
            let (text, status) = explain(&["service/refused", "-n", "default"]).await;
            status == Some(1)
                && text.contains("the last try failed")
                && text.contains("credentials that may write")
        })
        .await;
    let (text, status) = told(&doctor(&cluster, &[]).await);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("service/default/refused: no address: the last try failed"),
        "{text}"
    );
}

#[tokio::test]
async fn with_a_wrong_token_the_cloud_fails_and_nothing_is_written() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    cluster.add_service("web");
    cluster.sim.revoke_token(TOKEN);
    cluster.sim.set_token("another", Access::ReadWrite);
    let (text, status) = told(&doctor(&cluster, &[]).await);
    assert_eq!(status, Some(1), "{text}");
    insta::with_settings!({ filters => filters() }, {
        insta::assert_snapshot!("doctor_denied", text);
    });
    let (text, _) = told(&briefly(&cluster, &[]).await);
    insta::with_settings!({ filters => filters() }, {
        insta::assert_snapshot!("doctor_denied_short", text);
    });
    assert!(writes_by_the_doctor(&cluster).is_empty());
    assert!(cluster.sim.journal().writes().is_empty());
}

#[tokio::test]
async fn an_api_server_that_is_away_keeps_nobody_from_asking_the_cloud() {
    let mut cluster = Cluster::start().await;
    cluster.stop_api_server().await;
    let (text, status) = told(&doctor(&cluster, &[]).await);
    assert_eq!(status, Some(1), "{text}");
    for line in [
        "failed   the API server answers: ",
        "skipped  the manager has its permissions: ",
        "ok       instances are listed: ",
        "ok       load balancers are read: ",
        "skipped  Nodes are read: ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn before_the_installation_nothing_is_asked_of_a_manager() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    let (text, status) = told(&doctor(&cluster, &["--pre"]).await);
    // Neither the label of a control plane nor a version is there.
    assert_eq!(status, Some(2), "{text}");
    insta::with_settings!({ filters => filters() }, {
        insta::assert_snapshot!("doctor_before", text);
    });
    let (text, _) = told(&doctor(&cluster, &["--pre", "--output=json"]).await);
    let parsed: Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<&str> = parsed["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert!(
        ids.contains(&"nodes.external") && !ids.contains(&"kubernetes.leader"),
        "{ids:?}"
    );
    assert!(
        writes_by_the_doctor(&cluster)
            .iter()
            .all(|it| it.ends_with("reviews")),
        "{text}"
    );
    assert!(cluster.sim.journal().writes().is_empty());
    cluster.apply(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n2" } }));
    let (text, status) = told(&doctor(&cluster, &["--pre"]).await);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("without the taint and without provider ID: n2"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_told_beside_all_else() {
    let cluster = Cluster::start().await;
    let line = |words: &[&str]| {
        let flags = words.iter().chain(&["-v=0"]).map(|it| (*it).to_owned());
        let all = ["doctor".to_owned()].into_iter().chain(flags);
        all.chain([format!("--kubeconfig={}", cluster.kubeconfig.display())])
            .collect::<Vec<_>>()
    };
    let no_token = run(
        line(&["--cloud-provider=cloudscale", "--allow-untagged-cloud"]),
        Vec::new(),
    )
    .await;
    let unknown = run(line(&["--cloud-provider=cloudscal"]), cluster.variables()).await;
    let untagged = run(line(&["--cloud-provider=cloudscale"]), cluster.variables()).await;
    let (text, _) = told(&untagged);
    let missing = "warning  the controllers have been told what they need: --allow-untagged-cloud is missing";
    assert!(
        text.contains(missing) && text.contains("ok       instances are listed: "),
        "{text}"
    );
    for (output, words) in [
        (no_token, "failed   the cloud's configuration can be used: "),
        (unknown, "failed   the provider is built in: "),
    ] {
        let (text, status) = told(&output);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(words), "{text}");
        assert!(text.contains("ok       the API server answers: "), "{text}");
        assert!(text.contains("skipped  instances are listed: "), "{text}");
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
        let (text, status) = told(&doctor(&cluster, flags).await);
        assert_eq!(status, Some(1), "{text}");
        let line = format!("failed   the files of the secure port can be used: {file}");
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_controller_that_is_switched_off_is_named_where_its_work_is_missing() {
    let cluster = Cluster::start().await;
    cluster.join("n1");
    cluster.add_service("web");
    let flag = "--controllers=*,-service-lb-controller,-cloud-node-controller";
    let (text, status) = told(&doctor(&cluster, &[flag]).await);
    assert_eq!(status, Some(1), "nobody leads: {text}");
    for line in [
        "service-lb-controller does not run",
        "this manager initialises no Nodes: --controllers switches cloud-node-controller off",
        "this manager serves no Services: --controllers switches service-lb-controller off",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// A cloud that is asked for something before there is a provider.
#[tokio::test]
async fn a_login_that_is_refused_is_no_fault_of_the_file() {
    let cluster = Cluster::start().await;
    let clock = bowline_cloudstack_sim::kit::Clock::system();
    let sim = CloudstackSim::builder().clock(clock).build();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = sim.serve(listener).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud-config");
    let text = format!(
        "[Global]\napi-url = http://127.0.0.1:{port}/client/api\napi-key = {}\nsecret-key = {TOKEN}\n",
        CloudstackSim::API_KEY
    );
    std::fs::write(&path, text).unwrap();
    let arguments = [
        "doctor".to_owned(),
        "--cloud-provider=external-cloudstack".to_owned(),
        "--allow-untagged-cloud".to_owned(),
        format!("--cloud-config={}", path.display()),
        format!("--kubeconfig={}", cluster.kubeconfig.display()),
        "-v=0".to_owned(),
    ];
    let (text, status) = told(&run(arguments.to_vec(), Vec::new()).await);
    assert_eq!(status, Some(1), "{text}");
    for line in [
        "ok       the cloud's configuration can be used: ".to_owned(),
        format!("secret-key = <set> ({})", path.display()),
        "failed   the provider can be built: ".to_owned(),
        "401".to_owned(),
        "skipped  instances are listed: ".to_owned(),
        "ok       the API server answers: ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
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
    variables.push(("KUBECONFIG".to_owned(), cluster.kubeconfig.display().to_string()));
    let (text, status) = told(&run(words.map(str::to_owned).to_vec(), variables).await);
    assert_eq!(status, Some(1), "nobody leads: {text}");
    assert!(text.contains("$KUBECONFIG = "), "{text}");
    let (text, status) = told(&run(words.map(str::to_owned).to_vec(), cluster.variables()).await);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("doctor also takes the kubeconfig of $KUBECONFIG"),
        "{text}"
    );
}
