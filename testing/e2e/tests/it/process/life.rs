//! From the start to each kind of end.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_cloudscale_sim::kit::Fault;
use rustix::process::Signal;
use serde_json::json;
use tokio::net::TcpListener;

use super::cluster::{Cluster, SCRAPER, TOKEN};
use super::program::Running;

/// Work and health as an operator sees them.
async fn works(cluster: &Cluster, manager: &Running) {
    cluster.join("n1");
    cluster.add_service("web");
    manager
        .until("it is healthy", async || {
            cluster.ask("/healthz").await == Some((200, "ok".to_owned()))
        })
        .await;
    cluster.initialized(manager, "n1").await;
    cluster.addressed(manager, "web").await;
}

#[tokio::test]
async fn it_serves_health_to_everybody_and_metrics_to_whoever_may_read_them() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&[]);
    works(&cluster, &manager).await;
    for path in ["/livez", "/readyz"] {
        manager
            .until(path, async || {
                cluster.ask(path).await == Some((200, "ok".to_owned()))
            })
            .await;
    }
    let (status, body) = cluster.ask("/healthz?verbose").await.unwrap();
    assert_eq!(status, 200);
    for check in [
        "leaderElection",
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "service-lb-controller",
    ] {
        assert!(body.contains(&format!("[+]{check} ok\n")), "{body}");
    }
    assert!(
        !body.contains("node-route-controller") && body.ends_with("healthz check passed\n"),
        "{body}"
    );

    let (status, body) = cluster.ask("/metrics").await.unwrap();
    assert_eq!(status, 403);
    let refusal: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(refusal["kind"], "Status");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("system:anonymous") && message.contains("/metrics"),
        "{message}"
    );

    let (status, page) = cluster.ask_as(Some(SCRAPER), "/metrics").await.unwrap();
    assert_eq!(status, 200);
    for series in [
        "leader_election_master_status{name=\"cloud-controller-manager\"} 1",
        "cloud_api_requests_total{",
        "running_managed_controllers{",
        "workqueue_depth{",
        "kubernetes_build_info{",
        "process_resident_memory_bytes",
    ] {
        assert!(page.contains(series), "no {series} in\n{page}");
    }
    assert!(!page.contains(&TOKEN[4..]));
    let reviews = |resource| cluster.api.journal().of("create", resource).len();
    let asked = reviews("tokenreviews") + reviews("subjectaccessreviews");
    cluster.ask_as(Some(SCRAPER), "/metrics").await.unwrap();
    assert_eq!(
        reviews("tokenreviews") + reviews("subjectaccessreviews"),
        asked,
        "the answer is remembered"
    );
}

#[tokio::test]
async fn a_signal_ends_it_in_seconds_with_status_0_and_the_lease_released() {
    for signal in [Signal::TERM, Signal::INT] {
        let cluster = Cluster::start().await;
        let mut manager = cluster.manager(&[]);
        works(&cluster, &manager).await;
        assert!(cluster.holder().is_some_and(|holder| !holder.is_empty()));
        manager.signal(signal);
        let (status, took) = manager.ended().await;
        assert_eq!(status.code(), Some(0), "{signal:?}\n{}", manager.log().join("\n"));
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_eq!(cluster.holder().as_deref(), Some(""), "{signal:?}");
    }
}

#[tokio::test]
async fn a_follower_ends_as_well_and_leaves_the_lease_alone() {
    let cluster = Cluster::start().await;
    let leader = cluster.manager(&["--secure-port=0"]);
    leader
        .until("it leads", async || {
            cluster.holder().is_some_and(|holder| !holder.is_empty())
        })
        .await;
    let holder = cluster.holder();
    let mut follower = cluster.manager(&[]);
    follower.until_logged("Another process leads").await;
    follower
        .until("it is healthy", async || {
            cluster.ask("/healthz").await == Some((200, "ok".to_owned()))
        })
        .await;
    let (_, body) = cluster.ask("/healthz?verbose").await.unwrap();
    assert!(
        body.contains("[+]leaderElection ok\n") && !body.contains("controller"),
        "{body}"
    );
    follower.signal(Signal::TERM);
    assert_eq!(follower.ended().await.0.code(), Some(0));
    assert_eq!(cluster.holder(), holder);
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_work() {
    let cluster = Cluster::start().await;
    cluster.sim.faults().add(Fault::write().always().hang_before());
    let mut manager = cluster.manager(&[]);
    cluster.join("n1");
    cluster.add_service("web");
    manager
        .until("a write is under way", async || {
            !cluster.sim.journal().writes().is_empty()
        })
        .await;
    manager.signal(Signal::TERM);
    manager.until_logged("Asked to stop").await;
    manager.signal(Signal::TERM);
    let (status, took) = manager.ended().await;
    assert_eq!(status.code(), Some(1), "{}", manager.log().join("\n"));
    assert!(took < Duration::from_secs(4), "{took:?}: it waited for the write");
    assert!(
        manager
            .log()
            .iter()
            .any(|line| line.contains("Asked to stop at once"))
    );
}

#[tokio::test]
async fn a_port_that_is_taken_ends_the_start_with_status_1_and_says_so() {
    let cluster = Cluster::start().await;
    let taken = TcpListener::bind(("127.0.0.1", cluster.port)).await.unwrap();
    let mut manager = cluster.manager(&[]);
    let (status, _) = manager.ended().await;
    drop(taken);
    assert_eq!(status.code(), Some(1));
    let log = manager.log().join("\n");
    assert!(log.contains(&format!("127.0.0.1:{}", cluster.port)), "{log}");
    assert!(log.to_lowercase().contains("in use"), "{log}");
    assert_eq!(cluster.holder(), None, "it must not stand for election then");
}

#[tokio::test]
async fn a_stolen_lease_ends_it_with_status_1() {
    let cluster = Cluster::start().await;
    let mut manager = cluster.manager(&[]);
    works(&cluster, &manager).await;
    let mut lease = cluster
        .api
        .object("Lease", "kube-system", "cloud-controller-manager")
        .unwrap();
    lease["spec"]["holderIdentity"] = json!("somebody-else");
    lease["spec"]["leaseDurationSeconds"] = json!(3_600);
    cluster.apply(lease);
    let (status, took) = manager.ended().await;
    assert_eq!(status.code(), Some(1));
    assert!(took < Duration::from_secs(15), "{took:?}");
    let log = manager.log().join("\n");
    assert!(log.contains("leaderelection lost"), "{log}");
    assert_eq!(cluster.holder().as_deref(), Some("somebody-else"));
}

#[tokio::test]
async fn port_0_serves_nothing_and_the_loops_run() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&["--secure-port=0"]);
    cluster.join("n1");
    cluster.initialized(&manager, "n1").await;
    assert_eq!(cluster.ask("/healthz").await, None);
    assert!(!manager.log().iter().any(|line| line.contains("Serving securely")));
}

#[tokio::test]
async fn only_the_loops_that_are_named_run() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&["--controllers=cloud-node"]);
    cluster.join("n1");
    cluster.add_service("web");
    cluster.initialized(&manager, "n1").await;
    let (_, body) = cluster.ask("/healthz?verbose").await.unwrap();
    assert!(
        body.contains("cloud-node-controller") && !body.contains("service-lb-controller"),
        "{body}"
    );
    assert!(cluster.sim.journal().writes().is_empty());
}

#[tokio::test]
async fn by_the_name_of_the_go_manager_it_needs_no_provider_flag() {
    let cluster = Cluster::start().await;
    let mut arguments = cluster.arguments(&["--secure-port=0"]);
    arguments.retain(|word| !word.starts_with("--cloud-provider"));
    let manager = Running::start(
        "cloudscale-cloud-controller-manager",
        &arguments,
        &cluster.variables(),
    );
    cluster.join("n1");
    cluster.initialized(&manager, "n1").await;
    assert!(cluster.api.journal().all().iter().any(|request| {
        request
            .user_agent
            .starts_with("cloudscale-cloud-controller-manager/")
    }));
}

#[tokio::test]
async fn an_api_server_that_goes_away_ends_it_with_status_1() {
    let mut cluster = Cluster::start().await;
    let mut manager = cluster.manager(&[]);
    works(&cluster, &manager).await;
    cluster.stop_api_server().await;
    let (status, took) = manager.ended().await;
    assert_eq!(status.code(), Some(1), "{}", manager.log().join("\n"));
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(
        manager
            .log()
            .iter()
            .any(|line| line.contains("leaderelection lost"))
    );
}

#[tokio::test]
async fn it_waits_for_an_api_server_that_is_not_there_yet() {
    let cluster = Cluster::start().await;
    let address = cluster.point_at_nobody();
    let manager = cluster.manager(&[]);
    works_from(&cluster, &manager, address).await;
}

/// As in a pod.
#[tokio::test]
async fn one_that_must_look_up_who_vouches_for_clients_ends_without_an_api_server_as_the_pages_say() {
    const LAST_WORDS: &str = "unable to load configmap based request-header-client-ca-file";
    let cluster = Cluster::start().await;
    let address = cluster.point_at_nobody();
    let looks_up = format!("--authentication-kubeconfig={}", cluster.kubeconfig.display());

    let mut manager = cluster.manager(&[&looks_up]);
    let (status, _) = manager.ended().await;
    let log = manager.log().join("\n");
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains(LAST_WORDS), "{log}");
    for page in ["guides/troubleshoot.md", "runbooks/BowlineNotWorking.md"] {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(LAST_WORDS), "{page}");
    }

    let manager = cluster.manager(&[&looks_up, "--authentication-tolerate-lookup-failure"]);
    works_from(&cluster, &manager, address).await;
}

/// It waits for the API server, which comes up at this address, and then works.
async fn works_from(cluster: &Cluster, manager: &Running, address: SocketAddr) {
    manager
        .until_logged("The lease could not be read or written")
        .await;
    let listener = TcpListener::bind(address).await.unwrap();
    let _server = cluster.api.serve(listener).unwrap();
    works(cluster, manager).await;
}
