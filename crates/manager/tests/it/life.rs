//! What runs when, and what the secure port says about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_kube_api::{Permit, User};
use bowline_manager::config::Config;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::time::Instant;

use crate::clouds::TestInstances;
use crate::process::{Process, SECOND, api_server, instances, new_node, pass, until};

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
