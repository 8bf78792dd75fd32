//! Who leads, and since when.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_kube_api::{Effect, Fault, Permit};
use bowline_manager::End;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Level;

use crate::process::{LEASE, Process, SECOND, api_server, edit_lease, lease, pass, until};

#[tokio::test(start_paused = true)]
async fn the_first_process_leads_at_once_and_says_so() {
    let api = api_server();
    let process = Process::start(&api, "a");
    assert!(until("a leads", || process.leads()).await < SECOND);
    assert!(process.gate.is_open());
    let spec = lease(&api);
    assert_eq!(spec["holderIdentity"], "a_1");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    until("the event is written", || !api.objects("Event").is_empty()).await;
    pass(5).await;
    let events = api.objects("Event");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["reason"], "LeaderElection");
    assert_eq!(events[0]["message"], "a_1 became leader");
    assert_eq!(events[0]["source"]["component"], "cloud-controller-manager");
    assert_eq!(events[0]["involvedObject"]["kind"], "Lease");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_the_lease_over() {
    let api = api_server();
    let mut first = Process::start(&api, "a");
    first.leading().await;
    let second = Process::start(&api, "b");
    pass(60).await;
    assert!(!second.leads() && !second.gate.is_open());
    let begun = Instant::now();
    assert_eq!(first.stop().await, End::Stopped);
    assert!(begun.elapsed() < SECOND, "nothing was under way");
    assert_ne!(lease(&api)["holderIdentity"], "a_1");
    assert!(!first.leads() && !first.gate.is_open());
    let took = second.leading().await;
    assert!(took <= SECOND / 10, "it watches the lease: {took:?}");
    assert_eq!(lease(&api)["holderIdentity"], "b_1");
    assert_eq!(lease(&api)["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_lease_is_waited_out_and_no_longer() {
    let api = api_server();
    let first = Process::start(&api, "a");
    let second = Process::start(&api, "b");
    first.leading().await;
    pass(31).await;
    drop(first);
    let took = second.leading().await;
    assert!(took > 13 * SECOND, "the lease was not waited out: {took:?}");
    assert!(took <= Duration::from_millis(15_000 + 4_400), "{took:?}");
    assert_eq!(lease(&api)["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_overwritten_ends_and_writes_no_more() {
    let (log, _guards) = Log::listen(Level::WARN);
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    edit_lease(
        &api,
        LEASE,
        &json!({ "holderIdentity": "thief", "renewTime": "2036-01-01T00:00:00.000000Z" }),
    );
    let begun = Instant::now();
    assert_eq!(process.end().await, End::LeadershipLost);
    assert!(begun.elapsed() < 3 * SECOND);
    assert!(!process.gate.is_open());
    assert_eq!(
        lease(&api)["holderIdentity"],
        "thief",
        "it is not released either"
    );
    // What would have been an event is no second complaint.
    assert_eq!(
        (log.count("Leadership lost"), log.count("Event")),
        (1, 0),
        "{}",
        log.text()
    );
}

/// As after a time in which this process stood still, and another one led and stopped: what is remembered is of before.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_given_up_by_another_does_not_take_it_again() {
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    edit_lease(
        &api,
        LEASE,
        &json!({ "holderIdentity": "", "leaseTransitions": 2 }),
    );
    assert_eq!(process.end().await, End::LeadershipLost);
    assert_eq!(lease(&api)["leaseTransitions"], 2);
}

#[tokio::test(start_paused = true)]
async fn without_the_api_server_writes_stop_before_the_lease_ends_and_then_the_process() {
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    pass(10).await;
    api.faults().inject(Fault::new(Effect::DropBefore));
    let begun = Instant::now();
    let closed = until("the gate closes", || !process.gate.is_open()).await;
    assert!(closed <= 13 * SECOND, "{closed:?}");
    assert_eq!(process.end().await, End::LeadershipLost);
    assert!(begun.elapsed() < 15 * SECOND, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_short_loss_of_the_api_server_is_survived() {
    let api = api_server();
    let process = Process::start(&api, "a");
    process.leading().await;
    for _ in 0..5 {
        api.faults()
            .inject(Fault::new(Effect::DropBefore).resource("leases"));
        pass(7).await;
        api.faults().clear();
        pass(5).await;
    }
    assert!(process.leads() && process.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_found_again() {
    let api = api_server();
    let process = Process::start(&api, "a");
    process.leading().await;
    let lost = Fault::new(Effect::DropAfter)
        .verb("update")
        .resource("leases")
        .times(1);
    api.faults().inject(lost);
    pass(60).await;
    assert!(process.leads());
    assert_eq!(lease(&api)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn two_candidates_at_once_make_one_leader() {
    let api = api_server();
    let (first, second) = (Process::start(&api, "a"), Process::start(&api, "b"));
    until("somebody leads", || first.leads() || second.leads()).await;
    for _ in 0..600 {
        tokio::time::sleep(SECOND / 10).await;
        assert!(!(first.gate.is_open() && second.gate.is_open()));
    }
    assert!(first.leads() != second.leads());
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_the_api_server_ends_within_ten_seconds() {
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    api.faults().inject(Fault::new(Effect::Delay(3600 * SECOND)));
    let begun = Instant::now();
    assert_eq!(process.stop().await, End::Stopped);
    assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
    assert!(!process.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_may_not_watch_the_lease_reads_it_within_two_point_two_retry_periods() {
    // As the role of the Go managers is; and where nobody may ask about himself, and the watch itself is refused.
    for (permitted, refused, watches, reviews) in [
        (&["get", "create", "update"][..], None, 0, 1),
        (&["*"], Some(("create", "selfsubjectaccessreviews")), 0, 1),
        (&["*"], Some(("watch", "leases")), 1, 1),
    ] {
        let api = api_server();
        let everything_else = ["nodes", "services", "events"];
        api.access()
            .permit(Permit::new("system:anonymous", &["*"], "", &everything_else));
        api.access().permit(Permit::new(
            "system:anonymous",
            permitted,
            "coordination.k8s.io",
            &["leases"],
        ));
        if let Some((verb, resource)) = refused {
            let denied = bowline_kube_api::Status::new(403, "Forbidden", "leases is forbidden");
            api.faults().fail_next(1, verb, resource, denied);
        }
        let mut first = Process::start(&api, "a");
        first.leading().await;
        let second = Process::start(&api, "b");
        pass(60).await;
        let journal = api.journal();
        assert_eq!(journal.of("watch", "leases").len(), watches, "{refused:?}");
        assert_eq!(
            journal.of("create", "selfsubjectaccessreviews").len(),
            reviews,
            "{refused:?}"
        );
        let forbidden = journal.matching(|it| it.status == 403).len();
        assert_eq!(forbidden, usize::from(refused.is_some()), "{refused:?}");
        assert_eq!(first.stop().await, End::Stopped);
        let took = second.leading().await;
        assert!(took <= Duration::from_millis(4400), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_watches_reads_the_lease_no_more() {
    let api = api_server();
    let first = Process::start(&api, "a");
    first.leading().await;
    let second = Process::start(&api, "b");
    pass(5).await;
    let reads = || api.journal().of("get", "leases").len();
    let before = reads();
    pass(120).await;
    assert_eq!(reads(), before);
    assert!(!second.leads());
    // The end of a watch is no end of following.
    api.close_watches();
    pass(10).await;
    assert_eq!(api.journal().of("watch", "leases").len(), 2);
    drop(first);
    let took = second.leading().await;
    assert!(took > 10 * SECOND && took <= 15 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_first_creation_leaves_no_lease_held() {
    let api = api_server();
    // The lease is made, and the answer comes late: in time for the stop, or never.
    for delay in [SECOND, 3_600 * SECOND] {
        for effect in [Effect::Delay(delay), Effect::DropAfter] {
            api.delete("Lease", "kube-system", "cloud-controller-manager");
            let created = Fault::new(effect).verb("create").resource("leases").times(1);
            api.faults().inject(created);
            let mut process = Process::start(&api, "a");
            tokio::time::sleep(SECOND / 10).await;
            let begun = Instant::now();
            assert_eq!(process.stop().await, End::Stopped);
            assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
            let lease = api.object("Lease", "kube-system", "cloud-controller-manager");
            let holder = lease.map(|lease| lease["spec"]["holderIdentity"].clone());
            assert!(
                matches!(holder, None | Some(Value::Null)) || holder == Some(json!("")),
                "{holder:?}"
            );
            assert!(!process.gate.is_open());
            api.faults().clear();
        }
    }
}
