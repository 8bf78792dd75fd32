//! Two processes and one lease: each way in which the leader can go, and what it leaves to the one that stands by.

#![expect(
    clippy::print_stderr,
    reason = "how long a takeover took is worth reading in the log of a test run"
)]

use std::time::Duration;

use bowline_control_plane::AuditEvent;
use http::Method;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::cloudscale::Site;
use super::rbac::manifest;
use super::site::addresses;
use crate::process::program::Running;
use crate::process::wire::Wire;

/// Shorter than by default, so that a test does not wait for 15 s; the proportions are about the same.
const LEASE: Duration = Duration::from_secs(6);
const TIMES: [&str; 3] = [
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=500ms",
];

/// The same for a leader that goes on if the lease stayed its own.
const RECOVERS: [&str; 4] = [TIMES[0], TIMES[1], TIMES[2], "--leader-recovery-limit=10m"];

const SUSPENDED: &str = "Leadership suspended";

/// Who reads the lease at this pace, and does not watch it, knows of a release after half a minute.
const READS_RARELY: [&str; 3] = [
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=45s",
    "--leader-elect-retry-period=30s",
];

/// What a follower says whose role has no watch on leases.
const UNWATCHED: &str = "The lease cannot be watched";

/// Processes by turns: the name is in the user agent, which tells the requests of two apart.
const NAMES: [&str; 2] = ["cloud-controller-manager", "cloudscale-cloud-controller-manager"];

/// What a busy machine may add to a time.
const TOLERANCE: Duration = Duration::from_secs(4);

/// One of the processes, and its own ways to the API server and to the cloud.
struct Replica {
    name: &'static str,
    process: Running,
    kube: Wire,
    cloud: Wire,
}

impl Replica {
    async fn start(site: &Site, name: &'static str, flags: &[&str]) -> Self {
        let (kube, cloud) = site.wires().await;
        let flags = [&["--cloud-provider=cloudscale"], flags].concat();
        let process = site.replica(name, &kube, &cloud, &flags);
        Self {
            name,
            process,
            kube,
            cloud,
        }
    }

    /// The first one, when it leads.
    async fn leader(site: &Site, flags: &[&str]) -> Self {
        let first = Self::start(site, NAMES[0], flags).await;
        first
            .process
            .until("it leads", async || !site.holder().await.is_empty())
            .await;
        first
    }

    /// Another one, when it stands by.
    async fn standby(&self, site: &Site, flags: &[&str]) -> Self {
        let name = NAMES.into_iter().find(|name| *name != self.name).unwrap();
        let earlier = site.requests().len();
        let other = Self::start(site, name, flags).await;
        other.process.until_logged("Another process leads").await;
        other
            .process
            .until("it watches the lease, or knows that it may not", async || {
                let requests = other.requests(site, earlier);
                let watches = |it: &AuditEvent| it.verb == "watch" && it.uri.contains("/leases");
                requests.iter().any(watches)
                    || other.process.log().iter().any(|line| line.contains(UNWATCHED))
            })
            .await;
        other
    }

    /// What processes of this name asked the API server for, without the first requests of all.
    fn requests(&self, site: &Site, earlier: usize) -> Vec<AuditEvent> {
        let mut requests = site.requests().split_off(earlier);
        requests.retain(|it| {
            it.user_agent
                .split('/')
                .next()
                .is_some_and(|name| name == self.name)
        });
        requests
    }

    /// The writes among them, but for those of the lease that were answered with a conflict.
    fn writes(&self, site: &Site, earlier: usize) -> Vec<AuditEvent> {
        let mut writes = self.requests(site, earlier);
        writes.retain(|it| {
            let is_read = matches!(it.verb.as_str(), "get" | "list" | "watch");
            let is_lost_election = it.uri.contains("/leases") && it.code == Some(409);
            !is_read && !is_lost_election
        });
        writes
    }
}

/// Gives the leader a Service to work at, and comes back when that is half done.
async fn in_the_middle(site: &Site, leader: &Replica, service: &str) {
    let pools = site.cloud.pools().len();
    site.add_service(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": service },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "protocol": "TCP", "port": 80 }] },
    }))
    .await;
    leader
        .process
        .until("it is in the middle", async || site.cloud.pools().len() > pools)
        .await;
}

/// Waits until another process leads and has finished all work; tells when it led.
async fn taken_over(site: &Site, standby: &Replica, holder: &str, transitions: i32) -> Duration {
    let begun = Instant::now();
    standby
        .process
        .until("it leads", async || {
            let now = site.holder().await;
            !now.is_empty() && now != holder
        })
        .await;
    let took = begun.elapsed();
    assert_eq!(site.lease().await.lease_transitions, Some(transitions));
    for service in site.load_balancers().await {
        standby
            .process
            .until("every service has an address", async || {
                !addresses(&site.service(&service).await.unwrap()).is_empty()
            })
            .await;
    }
    nothing_was_written_twice(site).await;
    took
}

/// Each thing was made once, and none was removed to be made again.
async fn nothing_was_written_twice(site: &Site) {
    let services = site.load_balancers().await.len();
    let sim = &site.cloud;
    assert_eq!(sim.load_balancers().len(), services);
    assert_eq!(
        (
            sim.pools().len(),
            sim.members().len(),
            sim.listeners().len(),
            sim.health_monitors().len()
        ),
        (services, services, services, services)
    );
    let done = |method: Method| {
        let entries = sim.journal().entries().into_iter();
        entries
            .filter(|it| it.method == method && it.handled.is_some_and(|status| status < 300))
            .count()
    };
    assert_eq!(done(Method::POST), 5 * services);
    assert_eq!(done(Method::DELETE), 0);
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

/// Kill -9: nobody gives the lease up.
async fn killed(site: &Site, mut leader: Replica) -> Replica {
    let standby = leader.standby(site, &TIMES).await;
    in_the_middle(site, &leader, "at-kill").await;
    let (holder, transitions) = term(site).await;
    leader.process.signal(Signal::KILL);
    leader.process.ended().await;
    let took = taken_over(site, &standby, &holder, transitions + 1).await;
    eprintln!("takeover after kill -9: {took:?} of a lease of {LEASE:?}");
    assert!(took <= LEASE + TOLERANCE, "{took:?}");
    assert!(
        took >= LEASE - Duration::from_millis(2_500),
        "the lease was not waited out: {took:?}"
    );
    standby
}

/// SIGSTOP past the end of the lease, then SIGCONT.
async fn paused(site: &Site, mut leader: Replica) -> Replica {
    let standby = leader.standby(site, &TIMES).await;
    in_the_middle(site, &leader, "at-stop").await;
    let (holder, transitions) = term(site).await;
    leader.process.signal(Signal::STOP);
    let took = taken_over(site, &standby, &holder, transitions + 1).await;
    eprintln!("takeover after SIGSTOP: {took:?} of a lease of {LEASE:?}");
    assert!(took <= LEASE + TOLERANCE, "{took:?}");

    let (sent, earlier) = (leader.cloud.sent(), site.requests().len());
    assert!(sent > 0, "its way to the cloud is not the wire");
    leader.process.signal(Signal::CONT);
    let (status, _) = leader.process.ended().await;
    assert_eq!(status.code(), Some(1), "{}", leader.process.log().join("\n"));
    assert_eq!(leader.cloud.sent(), sent, "it asked the cloud after it woke");
    // Its renewal of the lease is answered with a conflict.
    let writes = leader.writes(site, earlier);
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(site.lease().await.lease_transitions, Some(transitions + 1));
    nothing_was_written_twice(site).await;
    standby
}

/// The leader does not reach the API server any more.
async fn cut_off(site: &Site, mut leader: Replica) -> Replica {
    let standby = leader.standby(site, &TIMES).await;
    in_the_middle(site, &leader, "at-cut").await;
    let (holder, transitions) = term(site).await;
    leader.kube.cut();
    let begun = Instant::now();
    let (status, _) = leader.process.ended().await;
    assert_eq!(status.code(), Some(1), "{}", leader.process.log().join("\n"));
    assert_eq!(site.holder().await, holder, "the other one led while it ran");
    assert!(begun.elapsed() <= LEASE, "{:?}", begun.elapsed());
    taken_over(site, &standby, &holder, transitions + 1).await;
    eprintln!("takeover and work done after a cut: {:?}", begun.elapsed());
    standby
}

/// SIGTERM: the lease is given up, and a watch tells the other one.
async fn asked_to_stop(site: &Site, mut leader: Replica) -> Replica {
    let standby = leader.standby(site, &READS_RARELY).await;
    in_the_middle(site, &leader, "at-term").await;
    let (holder, transitions) = term(site).await;
    leader.process.signal(Signal::TERM);
    let (status, _) = leader.process.ended().await;
    assert_eq!(status.code(), Some(0), "{}", leader.process.log().join("\n"));
    let took = taken_over(site, &standby, &holder, transitions + 1).await;
    eprintln!("takeover after SIGTERM, from the end of the process: {took:?}");
    assert!(took <= Duration::from_secs(5), "{took:?}");
    standby
}

/// Who leads, and the how many-eth leader that is, from 0.
async fn term(site: &Site) -> (String, i32) {
    let lease = site.lease().await;
    (lease.holder_identity.unwrap(), lease.lease_transitions.unwrap())
}

#[tokio::test]
async fn however_a_leader_goes_the_other_one_takes_over_and_nothing_is_written_twice() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    // Time enough to be interrupted.
    site.cloud
        .set_behaviour(|it| it.lb_write_time = Duration::from_millis(200));
    site.join("n1").await;
    let mut leader = Replica::leader(&site, &TIMES).await;
    site.initialised(&leader.process, "n1").await;
    leader = killed(&site, leader).await;
    leader = paused(&site, leader).await;
    leader = cut_off(&site, leader).await;
    asked_to_stop(&site, leader).await;
    site.assert_nothing_forbidden();
}

#[tokio::test]
async fn a_role_without_a_watch_on_leases_is_enough_and_a_release_is_noticed_within_2_2_retry_periods() {
    const RETRY: Duration = Duration::from_secs(1);
    const FLAGS: [&str; 3] = [
        "--leader-elect-lease-duration=60s",
        "--leader-elect-renew-deadline=45s",
        "--leader-elect-retry-period=1s",
    ];
    let Some(site) = Site::start().await else {
        return;
    };
    site.join("n1").await;
    let mut leader = Replica::leader(&site, &FLAGS).await;
    let standby = leader.standby(&site, &FLAGS).await;
    let of_leases = |verb: &str| {
        let mut requests = standby.requests(&site, 0);
        // A watch is logged at its start as well.
        requests.retain(|it| it.verb == verb && it.uri.contains("/leases") && it.complete);
        requests
    };
    standby
        .process
        .until("it has read the lease several times", async || {
            of_leases("get").len() > 3
        })
        .await;
    let (holder, transitions) = term(&site).await;
    leader.process.signal(Signal::TERM);
    leader
        .process
        .until("the lease is given up", async || site.holder().await != holder)
        .await;
    let took = taken_over(&site, &standby, &holder, transitions + 1).await;
    eprintln!("takeover after a release, by reading: {took:?} with a retry period of {RETRY:?}");
    assert!(took <= RETRY.mul_f64(2.2) + Duration::from_secs(1), "{took:?}");
    assert_eq!(leader.process.ended().await.0.code(), Some(0));

    let watched = of_leases("watch");
    assert!(watched.is_empty(), "{watched:#?}");
    site.assert_nothing_forbidden();
    let said = standby.process.log();
    let said = said.iter().filter(|line| line.contains(UNWATCHED));
    assert_eq!(said.count(), 1);
}

/// The leader has lost the API server for the so many-eth time. What it was sending to the cloud has ended, and it sends nothing else.
async fn suspended(site: &Site, leader: &Replica, times: usize) {
    logged(leader, SUSPENDED, times).await;
    site.unchanged(|| leader.cloud.sent()).await;
}

/// Waits until a line of the log has come so many times.
async fn logged(leader: &Replica, text: &str, times: usize) {
    let count = || leader.process.log().iter().filter(|it| it.contains(text)).count();
    leader.process.until(text, async || count() == times).await;
}

#[tokio::test]
async fn a_leader_whose_lease_stayed_its_own_goes_on_where_the_api_server_left_it() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.cloud
        .set_behaviour(|it| it.lb_write_time = Duration::from_millis(200));
    site.join("n1").await;
    let leader = Replica::leader(&site, &RECOVERS).await;
    site.initialised(&leader.process, "n1").await;
    let before = term(&site).await;
    type Change = fn(&Site, &Replica);
    let ways: [(&str, Change, Change); 2] = [
        (
            "at-stop",
            |site, _| site.suspend(true),
            |site, _| site.suspend(false),
        ),
        (
            "at-cut",
            |_, leader| leader.kube.cut(),
            |_, leader| leader.kube.mend(),
        ),
    ];
    for (times, (service, lose, find)) in (1..).zip(ways) {
        in_the_middle(&site, &leader, service).await;
        lose(&site, &leader);
        suspended(&site, &leader, times).await;
        find(&site, &leader);
        logged(&leader, "Leadership resumed", times).await;
        site.served(&leader.process, service).await;
        nothing_was_written_twice(&site).await;
        assert_eq!(term(&site).await, before, "{service}: it never lost the lease");
    }
    site.assert_nothing_forbidden();
}

#[tokio::test]
async fn a_leader_that_comes_back_to_a_lease_of_another_process_ends() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.cloud
        .set_behaviour(|it| it.lb_write_time = Duration::from_millis(200));
    site.join("n1").await;
    let mut leader = Replica::leader(&site, &RECOVERS).await;
    site.initialised(&leader.process, "n1").await;
    let standby = leader.standby(&site, &RECOVERS).await;
    in_the_middle(&site, &leader, "web").await;
    let (holder, transitions) = term(&site).await;
    leader.kube.cut();
    leader.process.until_logged(SUSPENDED).await;
    taken_over(&site, &standby, &holder, transitions + 1).await;
    let sent = leader.cloud.sent();
    leader.kube.mend();
    let (status, _) = leader.process.ended().await;
    assert_eq!(status.code(), Some(1), "{}", leader.process.log().join("\n"));
    assert_eq!(
        leader.cloud.sent(),
        sent,
        "it asked the cloud after it was replaced"
    );
    assert_eq!(site.lease().await.lease_transitions, Some(transitions + 1));
    nothing_was_written_twice(&site).await;
}
