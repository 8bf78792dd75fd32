//! A leader that loses the API server for a while and is told to go on (`--leader-recovery-limit`).

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::time::Duration;

use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_manager::End;
use bowline_manager::config::{Config, ElectionConfig};
use serde_json::json;
use tokio::time::Instant;

use crate::clouds::TestInstances;
use crate::process::{LEASE, Process, SECOND, api_server, edit_lease, lease, pass, until};

const LIMIT: Duration = Duration::from_secs(600);

fn recovering_config() -> Config {
    Config {
        election: Some(ElectionConfig {
            recovery_limit: Some(LIMIT),
            ..ElectionConfig::default()
        }),
        ..Config::default()
    }
}

fn recovering(api: &KubeApi, name: &str) -> Process {
    let cloud = TestInstances {
        has_instances: true,
        ..TestInstances::default()
    };
    Process::with(api, name, recovering_config(), cloud)
}

/// A Node that waits for its cloud, which knows nothing of it: it is asked about time and again.
fn put_node(api: &KubeApi, name: &str) {
    api.apply_json(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name },
        "spec": { "taints": [{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" }] },
    }))
    .unwrap();
}

/// A leader whose controllers work, and that the API server leaves.
async fn suspended(api: &KubeApi) -> Process {
    put_node(api, "n1");
    let process = recovering(api, "a");
    until("the cloud is asked", || process.cloud_calls() > 0).await;
    api.faults().inject(Fault::new(Effect::DropBefore));
    let closed = until("the gate closes", || !process.gate.is_open()).await;
    assert!(closed <= 13 * SECOND, "{closed:?}");
    until("it leads no more", || !process.leads()).await;
    process
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_stayed_its_own_leads_again_as_after_a_take_over() {
    let api = api_server();
    let process = suspended(&api).await;
    pass(10).await; // what was under way has ended
    let asked = process.cloud_calls();
    put_node(&api, "n2");
    pass(500).await;
    assert_eq!(process.cloud_calls(), asked, "it leads nobody and asks nothing");
    let health = process.healthz();
    assert!(!health.contains("[-]"), "{health}");
    api.journal().clear();
    api.faults().clear();
    let took = until("it leads", || process.leads() && process.gate.is_open()).await;
    assert!(took <= 3 * SECOND, "{took:?}");
    assert_eq!(lease(&api)["holderIdentity"], "a_1");
    assert_eq!(lease(&api)["leaseTransitions"], 0);
    until("the controllers work", || process.cloud_calls() > asked).await;
    for kind in ["nodes", "services"] {
        assert!(
            !api.journal().of("list", kind).is_empty(),
            "{kind} are listed anew"
        );
    }
    assert!(process.healthz().contains("[+]cloud-node-controller ok"));
    let resumed = || {
        api.objects("Event")
            .iter()
            .any(|event| event["message"] == "a_1 resumed leading")
    };
    until("the event is written", resumed).await;
    // It happens again.
    api.faults().inject(Fault::new(Effect::DropBefore));
    until("it leads no more", || !process.leads()).await;
    api.faults().clear();
    until("it leads", || process.leads() && process.gate.is_open()).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changed_hands_meanwhile_is_lost_also_if_it_was_given_up_since() {
    for holder in ["b_1", "", "a_1"] {
        let api = api_server();
        let mut process = suspended(&api).await;
        edit_lease(
            &api,
            LEASE,
            &json!({ "holderIdentity": holder, "leaseTransitions": 2 }),
        );
        api.journal().clear();
        api.faults().clear();
        assert_eq!(process.end().await, End::LeadershipLost, "{holder}");
        assert!(!process.gate.is_open());
        assert_eq!(lease(&api)["holderIdentity"], holder);
        assert!(api.journal().of("update", "leases").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_is_not_made_again() {
    let api = api_server();
    let mut process = suspended(&api).await;
    api.delete("Lease", "kube-system", "cloud-controller-manager");
    api.faults().clear();
    assert_eq!(process.end().await, End::LeadershipLost);
    assert!(
        api.object("Lease", "kube-system", "cloud-controller-manager")
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_its_time_is_up_and_when_it_is_told_to() {
    let api = api_server();
    let mut process = suspended(&api).await;
    let begun = Instant::now();
    tokio::time::sleep(LIMIT - 30 * SECOND).await;
    assert_eq!(process.end().await, End::LeadershipLost);
    assert!(begun.elapsed() <= LIMIT, "{:?}", begun.elapsed());

    let api = api_server();
    let mut process = suspended(&api).await;
    let begun = Instant::now();
    assert_eq!(process.stop().await, End::Stopped);
    assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
}

/// The gate must not stay shut when there was nothing to stop.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_suspended_before_its_controllers_run_leads_too() {
    let api = api_server();
    put_node(&api, "n1");
    // The cluster becomes known 15 s after the process leads; meanwhile the lease cannot be renewed for 13 s.
    let unknown = |resource| Fault::new(Effect::DropBefore).verb("get").resource(resource);
    let cut = Fault::new(Effect::DropBefore).verb("update").resource("leases");
    api.faults().inject(unknown(""));
    api.faults().inject(unknown("namespaces"));
    let cloud = TestInstances {
        needs_uid: true,
        has_instances: true,
        ..TestInstances::default()
    };
    let process = Process::with(&api, "a", recovering_config(), cloud);
    process.leading().await;
    api.faults().inject(cut.clone());
    pass(8).await;
    api.faults().clear();
    api.faults().inject(unknown("namespaces"));
    api.faults().inject(cut);
    until("it leads no more", || !process.leads()).await;
    api.faults().clear();
    api.faults().inject(unknown("namespaces"));
    process.leading().await;
    assert_eq!(process.cloud_calls(), 0, "the cluster is not known yet");
    api.faults().clear();
    process.running().await;
    until("the gate opens", || process.gate.is_open()).await;
    until("the cloud is asked", || process.cloud_calls() > 0).await;
}
