//! What runs when, and what the secure port says about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_kube_api::{Effect, Fault, Permit, Status, User};
use bowline_manager::End;
use bowline_manager::config::Config;
use bowline_manager::controllers::ControllerSelection;
use bowline_manager::health::Endpoint;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;
use tokio::time::Instant;

use crate::clouds::TestInstances;
use crate::process::{
    LEASE, Process, SECOND, api_server, edit_lease, instances, lease, new_node, pass, until,
};

fn without_election() -> Config {
    Config {
        election: None,
        ..Config::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_runs_its_loops_and_a_standby_calls_no_cloud() {
    let api = api_server();
    let leader = Process::busy(&api, "a");
    leader.leading().await;
    let standby = Process::busy(&api, "b");
    api.apply_json(new_node("node-1")).unwrap();
    pass(30).await;
    assert_eq!(
        leader.healthz(),
        "[+]leaderElection ok\n[+]cloud-node-controller ok\n[+]cloud-node-lifecycle-controller ok\n\
         healthz check passed\n"
    );
    assert!(leader.cloud_calls() > 0);
    assert_eq!(standby.healthz(), "[+]leaderElection ok\nhealthz check passed\n");
    assert_eq!(standby.cloud_calls(), 0);
    assert!(standby.is_ready());
}

#[tokio::test(start_paused = true)]
async fn only_selected_loops_are_shown() {
    let api = api_server();
    let config = Config {
        controllers: ControllerSelection::parse(["cloud-node"]).unwrap(),
        ..Config::default()
    };
    let process = Process::with(&api, "a", config, instances());
    let running = || process.metrics.render().unwrap();
    until("the controller runs", || {
        running().contains("running_managed_controllers{")
    })
    .await;
    assert_eq!(
        process.healthz(),
        "[+]leaderElection ok\n[+]cloud-node-controller ok\nhealthz check passed\n"
    );
    let series: Vec<String> = running()
        .lines()
        .filter(|line| line.starts_with("running_managed_controllers{"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        series,
        [r#"running_managed_controllers{manager="cloud-controller-manager",name="cloud-node"} 1"#]
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_election_the_loops_start_at_once_and_there_is_no_lease() {
    let api = api_server();
    let mut process = Process::with(&api, "a", without_election(), instances());
    process.running().await;
    assert!(process.gate.is_open());
    assert!(api.objects("Lease").is_empty());
    assert!(!process.healthz().contains("leaderElection"));
    assert_eq!(process.stop().await, End::Stopped);
}

#[tokio::test(start_paused = true)]
async fn health_names_a_loop_that_is_blocked_for_ten_minutes() {
    let api = api_server();
    let cloud = TestInstances {
        hangs: true,
        ..instances()
    };
    let process = Process::with(&api, "a", Config::default(), cloud);
    api.apply_json(new_node("node-1")).unwrap();
    until("the cloud is asked", || process.cloud_calls() > 0).await;
    pass(7 * 60).await;
    assert_eq!(process.get("/healthz", None).await, (200, "ok".to_owned()));
    pass(3 * 60).await;
    let (code, body) = process.get("/healthz", None).await;
    assert_eq!(code, 500);
    assert!(
        body.contains("[-]cloud-node-controller failed: reason withheld\n"),
        "{body}"
    );
    assert!(body.contains("[+]leaderElection ok\n"), "{body}");
    assert_eq!(process.get("/livez", None).await.0, 500);
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_ready_when_its_caches_are() {
    let api = api_server();
    let forbidden = bowline_kube_api::Status::new(403, "Forbidden", "not yet");
    api.faults().fail_next(5, "list", "nodes", forbidden);
    let process = Process::start(&api, "a");
    process.leading().await;
    let is_ready = || process.is_ready();
    assert!(!is_ready());
    until("the caches are read", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_may_not_read_is_not_ready_either() {
    let api = api_server();
    let _leader = Process::start(&api, "a");
    until("somebody leads", || !api.objects("Lease").is_empty()).await;
    api.access().permit(Permit::new(
        "system:anonymous",
        &["*"],
        "coordination.k8s.io",
        &["leases"],
    ));
    let follower = Process::start(&api, "b");
    let is_ready = || follower.is_ready();
    until("it tells", || !is_ready()).await;
    assert!(
        follower.health.probe(Endpoint::Live, false, &[]).passed,
        "a restart would not help"
    );
    api.access().allow_everything();
    until("it may read", is_ready).await;
    assert!(!follower.leads());
}

#[tokio::test(start_paused = true)]
async fn each_loop_works_under_an_account_of_its_own_if_asked_to() {
    let api = api_server();
    let config = Config {
        service_accounts: true,
        ..Config::default()
    };
    let process = Process::with(&api, "a", config, instances());
    api.apply_json(new_node("node-1")).unwrap();
    until("the controller has written an event", || {
        !api.journal().of("create", "events").is_empty() && process.leads()
    })
    .await;
    until("about the node", || {
        let events = api.journal().of("create", "events");
        events.iter().any(|it| it.namespace == "default")
    })
    .await;
    for exchange in api.journal().all() {
        let of_loop = exchange.resource == "events" && exchange.namespace == "default";
        let user = if of_loop {
            "system:serviceaccount:kube-system:node-controller"
        } else {
            "system:anonymous"
        };
        assert_eq!(exchange.user, user, "{exchange:?}");
        let part = match exchange.resource.as_str() {
            "nodes" | "services" => "shared-informers",
            "leases" => "leader-election",
            "events" if of_loop => "node-controller",
            "serviceaccounts" => continue, // on behalf of the controller
            _ => "cloud-controller-manager",
        };
        assert_eq!(exchange.user_agent, format!("test/{part}"), "{exchange:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_before_a_stop_is_written_under_the_account_of_its_controller() {
    let api = api_server();
    let slow = Fault::new(Effect::Delay(SECOND / 5))
        .verb("create")
        .resource("events");
    api.faults().inject(slow);
    let config = Config {
        service_accounts: true,
        ..Config::default()
    };
    let mut process = Process::with(&api, "a", config, instances());
    api.apply_json(new_node("node-1")).unwrap();
    until("the controller has tried the node", || process.cloud_calls() > 0).await;
    let about_the_node = || {
        let events = api.journal().of("create", "events");
        let mut about = events.iter().filter(|it| it.namespace == "default");
        about.next().map(|it| it.user.clone())
    };
    assert_eq!(
        about_the_node(),
        None,
        "the event still waits when the stop comes"
    );
    assert_eq!(process.stop().await, End::Stopped);
    let controller = "system:serviceaccount:kube-system:node-controller";
    assert_eq!(about_the_node().as_deref(), Some(controller));
}

#[tokio::test(start_paused = true)]
async fn the_cluster_s_uid_is_read_for_a_provider_that_asks_for_it() {
    for asks in [true, false] {
        let api = api_server();
        let process = Process::with(
            &api,
            "a",
            Config::default(),
            TestInstances {
                needs_uid: asks,
                ..instances()
            },
        );
        process.running().await;
        assert_eq!(api.journal().of("get", "namespaces").len(), usize::from(asks));
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_uid_of_the_cluster_is_required_and_cannot_be_read_nothing_starts() {
    let api = api_server();
    let refused = bowline_kube_api::Status::new(403, "Forbidden", "no");
    api.faults().fail_next(1, "get", "namespaces", refused);
    let asked = Arc::<AtomicUsize>::default();
    let mut process = Process::with(
        &api,
        "a",
        Config::default(),
        TestInstances {
            needs_uid: true,
            asked: Arc::clone(&asked),
            ..instances()
        },
    );
    let End::CannotStart { reason } = process.end().await else {
        panic!("it runs")
    };
    assert!(
        reason.contains("the verb get on namespaces/kube-system"),
        "{reason}"
    );
    assert_eq!(api.journal().of("get", "namespaces").len(), 1, "asked once");
    assert_eq!(
        lease(&api)["holderIdentity"],
        "",
        "another replica may lead at once"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0, "the cloud was not called");
}

#[tokio::test(start_paused = true)]
async fn the_uid_of_the_cluster_is_asked_for_again_while_the_api_server_has_troubles_of_its_own() {
    let needing = || TestInstances {
        needs_uid: true,
        ..instances()
    };
    let api = api_server();
    let trouble = || Status::new(500, "InternalError", "etcd failed");
    api.faults().fail_next(3, "get", "namespaces", trouble());
    let process = Process::with(&api, "a", without_election(), needing());
    process.running().await;
    assert_eq!(api.journal().of("get", "namespaces").len(), 4);

    let api = api_server();
    api.faults().fail_next(1_000, "get", "namespaces", trouble());
    let begun = Instant::now();
    let mut process = Process::with(&api, "a", without_election(), needing());
    let End::CannotStart { reason } = process.end().await else {
        panic!("it runs")
    };
    assert!(
        reason.contains("etcd failed") && !reason.contains("the verb get"),
        "{reason}"
    );
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history() {
    async fn history() -> Vec<String> {
        let api = api_server();
        let first = Process::busy(&api, "a");
        let _second = Process::busy(&api, "b");
        api.apply_json(new_node("node-1")).unwrap();
        pass(20).await;
        drop(first);
        pass(40).await;
        let exchanges = api.journal().all();
        exchanges
            .iter()
            .map(|exchange| format!("{} {} {}", exchange.at, exchange.verb, exchange.path))
            .collect()
    }
    let first = history().await;
    assert!(first.len() > 30);
    assert_eq!(first, history().await);
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_those_whom_the_api_server_allows() {
    let api = api_server();
    let process = Process::start(&api, "a");
    api.access()
        .add_token("good", User::service_account("monitoring", "prometheus", "u-1"));
    api.access()
        .add_token("poor", User::service_account("default", "default", "u-2"));
    // The manager itself comes without a token here.
    let reviews = [
        "tokenreviews",
        "subjectaccessreviews",
        "nodes",
        "services",
        "leases",
        "events",
    ];
    let mut of_manager = Permit::new("system:anonymous", &["*"], "*", &reviews);
    of_manager.groups = vec!["*".to_owned()];
    api.access().permit(of_manager);
    let prometheus = "system:serviceaccount:monitoring:prometheus";
    api.access()
        .permit(Permit::new(prometheus, &["get"], "", &["/metrics"]));

    let (code, body) = process.get("/metrics", None).await;
    let status: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 403);
    assert_eq!(status["kind"], "Status");
    assert_eq!(
        status["message"],
        "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""
    );
    assert_eq!(process.get("/healthz", None).await, (200, "ok".to_owned()));
    assert_eq!(process.get("/metrics", Some("stolen")).await.0, 401);
    assert_eq!(process.get("/metrics", Some("poor")).await.0, 403);
    let reviewed = api.journal().of("create", "subjectaccessreviews").len();
    assert_eq!(process.get("/metrics", Some("good")).await.0, 200);
    assert_eq!(process.get("/metrics", Some("good")).await.0, 200);
    assert_eq!(
        api.journal().of("create", "subjectaccessreviews").len(),
        reviewed + 1
    );
    assert_eq!(process.get("/healthz/leaderElection", None).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_checks_are_not_found_for_those_who_may_look() {
    let api = api_server();
    let process = Process::start(&api, "a");
    assert_eq!(
        process.get("/healthz/leaderElection", None).await,
        (200, "ok".to_owned())
    );
    assert_eq!(process.get("/healthz/nope", None).await.0, 404);
    assert_eq!(
        process.get("/nope", None).await,
        (404, "404 page not found\n".to_owned())
    );
    let (code, text) = process.get("/metrics", None).await;
    assert_eq!(code, 200);
    assert!(text.contains("leader_election_master_status"), "{text}");
    let (code, body) = process.get("/healthz?verbose&exclude=leaderElection", None).await;
    assert_eq!(
        (code, body.as_str()),
        (200, "[+]leaderElection excluded: ok\nhealthz check passed\n")
    );
}

fn unhealthy(status: u16) -> Fault {
    Fault::new(Effect::Answer(Status::new(
        status,
        "InternalError",
        "etcd failed",
    )))
    .verb("get")
    .resource("")
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_api_server_is_waited_for() {
    let api = api_server();
    api.faults().inject(unhealthy(500).times(3));
    let begun = Instant::now();
    let process = Process::with(&api, "a", without_election(), instances());
    process.running().await;
    assert_eq!(begun.elapsed().as_secs(), 3, "it is asked every second");
}

#[tokio::test(start_paused = true)]
async fn without_a_healthy_api_server_it_ends_after_ten_seconds() {
    let api = api_server();
    api.faults().inject(unhealthy(500));
    let begun = Instant::now();
    let mut process = Process::with(&api, "a", without_election(), instances());
    let End::CannotStart { reason } = process.end().await else {
        panic!("it started");
    };
    assert!(
        reason.starts_with("failed to wait for apiserver being healthy: not within 10 s: ")
            && reason.contains("etcd failed"),
        "{reason}"
    );
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(process.cloud_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_the_lease_is_seen_at_once_also_while_the_cluster_is_asked_about() {
    let api = api_server();
    api.faults()
        .inject(Fault::new(Effect::Silence).verb("get").resource(""));
    let mut process = Process::busy(&api, "a");
    process.leading().await;
    edit_lease(&api, LEASE, &json!({ "holderIdentity": "other" }));
    let begun = Instant::now();
    assert_eq!(process.end().await, End::LeadershipLost);
    assert!(begun.elapsed() < 3 * SECOND, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_see_the_api_servers_health_works_without() {
    let api = api_server();
    api.faults().inject(unhealthy(403));
    let process = Process::with(&api, "a", without_election(), instances());
    process.running().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_request_carries_is_read_though_nobody_wants_it_but_not_for_ever() {
    let api = api_server();
    let process = Process::start(&api, "a");
    let frame = || Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"3")));
    // How many frames of a body are read, and how long that takes.
    let read = async |path: &str, frames: usize, then_stalls: bool| {
        let (count, begun) = (Arc::<AtomicUsize>::default(), Instant::now());
        let counter = Arc::clone(&count);
        let sent = stream::iter(0..frames).map(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            frame()
        });
        let rest = if then_stalls {
            stream::pending().left_stream()
        } else {
            stream::empty().right_stream()
        };
        let body = StreamBody::new(sent.chain(rest));
        let request = Request::post(path).body(body).unwrap();
        drop(process.site.respond(request, &[]).await);
        (count.load(Ordering::SeqCst), begun.elapsed())
    };
    for path in ["/healthz", "/metrics", "/debug/flags/v", "/nope"] {
        assert_eq!(read(path, 3, false).await, (3, Duration::ZERO), "{path}");
    }
    assert_eq!(read("/healthz", 100_000, false).await.0, 64 * 1024);
    assert_eq!(read("/healthz", 3, true).await, (3, SECOND));
}
