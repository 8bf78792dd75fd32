//! Two processes, one lease: each way in which the first one can go, and how long that leaves the cluster alone.

#![expect(
    clippy::print_stderr,
    reason = "how long a takeover took is worth reading in the log of a test run"
)]

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::program::Running;
use super::wire::Wire;

/// The times of a process that was given none.
const DEFAULTS: [&str; 4] = [
    "--secure-port=0",
    "--leader-elect-lease-duration=15s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=2s",
];

/// The second one's requests are told apart by its user agent.
const SECOND: &str = "cloudscale-cloud-controller-manager";

/// A leader in the middle of its work, and a follower.
async fn two(cluster: &Cluster, first: Running, flags: &[&str]) -> (Running, Running) {
    first
        .until("it leads", async || {
            cluster.holder().is_some_and(|holder| !holder.is_empty())
        })
        .await;
    let second = Running::start(SECOND, &cluster.arguments(flags), &cluster.variables());
    second.until_logged("Another process leads").await;
    cluster.join("n1");
    cluster.add_service("web");
    first
        .until("it is in the middle", async || !cluster.sim.pools().is_empty())
        .await;
    (first, second)
}

/// Waits until the second one leads and has finished the work, and says when it led.
async fn taken_over(cluster: &Cluster, second: &Running, holder: Option<String>, what: &str) -> Duration {
    let begun = Instant::now();
    second
        .until("it leads", async || {
            cluster
                .holder()
                .is_some_and(|now| !now.is_empty() && Some(now) != holder)
        })
        .await;
    let took = begun.elapsed();
    eprintln!("takeover after {what}: {took:?}");
    second
        .until("it finishes the work", async || {
            cluster.has_address("web") && cluster.is_initialized("n1")
        })
        .await;
    assert_eq!(
        cluster.sim.load_balancers().len(),
        1,
        "what was begun is taken up"
    );
    assert_eq!(cluster.sim.check_invariants(), Vec::<String>::new());
    let lease = cluster
        .api
        .object("Lease", "kube-system", "cloud-controller-manager");
    assert_eq!(lease.unwrap()["spec"]["leaseTransitions"], 1);
    took
}

#[tokio::test]
async fn after_kill_9_the_other_one_leads_within_20_s() {
    let cluster = Cluster::start().await;
    let (mut first, second) = two(&cluster, cluster.manager(&DEFAULTS), &DEFAULTS).await;
    let holder = cluster.holder();
    first.signal(Signal::KILL);
    first.ended().await;
    let took = taken_over(&cluster, &second, holder, "kill -9").await;
    assert!(took <= Duration::from_secs(20), "{took:?}");
    assert!(
        took >= Duration::from_secs(12),
        "the lease was not waited out: {took:?}"
    );
}

#[tokio::test]
async fn after_sigterm_the_other_one_leads_at_once() {
    let cluster = Cluster::start().await;
    let (mut first, second) = two(&cluster, cluster.manager(&DEFAULTS), &DEFAULTS).await;
    let holder = cluster.holder();
    first.signal(Signal::TERM);
    let (status, ended) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{}", first.log().join("\n"));
    assert!(ended < Duration::from_secs(10), "{ended:?}");
    let took = taken_over(&cluster, &second, holder, "SIGTERM, from the end of the process").await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_leader_that_is_cut_off_from_the_api_server_ends_before_the_other_one_leads() {
    let cluster = Cluster::start().await;
    let text = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let server = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("server: http://"))
        .unwrap();
    let wire = Wire::to(server.parse().unwrap()).await;
    let of_first = cluster.kubeconfig.with_file_name("through-the-wire");
    std::fs::write(&of_first, text.replace(server, &wire.address().to_string())).unwrap();
    let flag = format!("--kubeconfig={}", of_first.display());
    let first = cluster.manager(&["--secure-port=0", &flag]);
    let (mut first, second) = two(&cluster, first, &["--secure-port=0"]).await;
    let holder = cluster.holder();

    wire.cut();
    let begun = Instant::now();
    // What was on its way when the wire was cut still arrives.
    let last = cluster.api.now() + jiff::SignedDuration::from_secs(1);
    let (status, ended) = first.ended().await;
    assert_eq!(status.code(), Some(1), "{}", first.log().join("\n"));
    assert_eq!(cluster.holder(), holder, "nobody else led while it ran");
    // The lease lasts 6 s, and is given up for lost 4 s after the renewal that fails first.
    assert!(ended < Duration::from_secs(6), "{ended:?}");
    taken_over(&cluster, &second, holder, "a cut, from the end of the process").await;
    eprintln!("takeover after a cut, and the work: {:?}", begun.elapsed());
    let of_first: Vec<_> = cluster
        .api
        .journal()
        .all()
        .into_iter()
        .filter(|it| it.at > last && it.is_write() && it.user_agent.starts_with("cloud-controller-manager/"))
        .collect();
    assert!(of_first.is_empty(), "{of_first:#?}");
}
