//! How many Nodes are deleted, over the ends of processes: the lease remembers it.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    AbsenceProof, CloudProvider, FoundBy, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstanceState, InstancesV2, LoadBalancer, NodeName, PowerState,
};
use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_kube_io::DELETIONS;
use bowline_manager::End;
use bowline_manager::config::{Config, ElectionConfig};
use bowline_manager::doctor::{Cloud, Patient, Target, explain};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::process::{Process, SECOND, api_server, lease, meets, pass, patient, until};

const WINDOW: Duration = Duration::from_secs(600);

/// What somebody else makes of the lease.
type Change = fn(&mut Value);

/// A cloud that proves of each instance that it is gone, but for one.
struct Empty;

fn running() -> Instance {
    Instance {
        metadata: InstanceMetadata::default(),
        power: PowerState::On,
        state: InstanceState::new("running", "running", &[]),
        found_by: FoundBy::Id,
    }
}

impl CloudProvider for Empty {
    fn name(&self) -> &'static str {
        "nimbus"
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::new(Self))
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        None
    }
}

impl InstancesV2 for Empty {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        let gone = |query: &InstanceQuery| match query.node.name.as_str() {
            "well" => Ok(InstanceAnswer::Present(Box::new(running()))),
            _ => Ok(InstanceAnswer::Absent(AbsenceProof::new("404"))),
        };
        let answers = queries.iter().map(gone).collect();
        Box::pin(async { answers })
    }
}

fn start(api: &KubeApi, name: &str) -> Process {
    Process::with_provider(api, name, Config::default(), Arc::new(Empty), Arc::default())
}

/// Fifty Nodes whose instances are all gone.
fn fail_all(api: &KubeApi) {
    for n in 0..50 {
        api.apply_json(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": format!("n{n:02}") },
            "spec": { "providerID": format!("nimbus://n{n:02}") },
            "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] },
        }))
        .unwrap();
    }
}

fn deleted(api: &KubeApi) -> usize {
    50 - api.objects("Node").len()
}

fn stored(api: &KubeApi) -> Value {
    let lease = api.object("Lease", "kube-system", "cloud-controller-manager");
    lease.unwrap()
}

fn note(api: &KubeApi) -> Option<String> {
    let lease = stored(api);
    lease["metadata"]["annotations"][DELETIONS]
        .as_str()
        .map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn kills_let_no_more_nodes_go_than_one_leader_may_delete() {
    let api = api_server();
    fail_all(&api);
    let mut process = start(&api, "p0");
    until("three are deleted", || deleted(&api) == 3).await;
    for n in 1..8 {
        drop(std::mem::replace(&mut process, start(&api, &format!("p{n}"))));
        process.leading().await;
        pass(10).await;
        assert_eq!(deleted(&api), 3, "after {n} kills");
    }
    tokio::time::sleep(WINDOW).await;
    assert!(deleted(&api) > 3, "the window of the first leader is over");
    assert!(deleted(&api) <= 12, "{}", deleted(&api));
}

/// The answers to deletions, and the process, are lost at any moment after the deletion was begun.
#[tokio::test(start_paused = true)]
async fn a_deletion_begins_when_the_lease_holds_it() {
    let api = api_server();
    let process = start(&api, "a");
    tokio::time::sleep(2 * WINDOW).await;
    assert_eq!(note(&api), None, "nothing is written while no Node is deleted");
    fail_all(&api);
    let noted = || {
        let note: Value = serde_json::from_str(&note(&api)?).unwrap();
        let counts = note["deleted"].as_object().unwrap().values();
        Some(counts.map(|count| count.as_u64().unwrap()).sum::<u64>())
    };
    meets(&api, Effect::DropBefore, "update", "leases");
    pass(8).await;
    assert_eq!((deleted(&api), noted()), (0, None));
    api.faults().clear();
    until("all that may be deleted are", || deleted(&api) == 9).await;
    assert_eq!(noted(), Some(9));
    // Killed between the two writes: those nine are spent.
    drop(process);
    let second = start(&api, "b");
    second.leading().await;
    pass(300).await;
    assert_eq!((deleted(&api), noted()), (9, Some(9)));
    let before = stored(&api)["metadata"]["annotations"].clone();
    pass(60).await;
    assert_eq!(stored(&api)["metadata"]["annotations"], before);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_deleted_as_soon_as_without_the_note_and_many_share_a_write() {
    let api = api_server();
    let _process = start(&api, "a");
    tokio::time::sleep(2 * WINDOW + SECOND).await;
    api.journal().clear();
    fail_all(&api);
    let took = until("nine are deleted", || deleted(&api) == 9).await;
    assert!(took < 6 * SECOND, "{took:?}");
    let renewals = api.journal().of("update", "leases").len();
    assert!(
        renewals <= 5,
        "three renewals in 6 s, and one for the note: {renewals}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_after_one_that_writes_no_note_begins_with_three() {
    let foreign = |lease: &mut Value| lease["spec"]["leaseTransitions"] = json!(7);
    let odd = |lease: &mut Value| lease["metadata"]["annotations"][DELETIONS] = json!("{\"deleted\": [9]}");
    let stripped = |lease: &mut Value| lease["metadata"]["annotations"] = json!({});
    let undated = |lease: &mut Value| lease["spec"]["renewTime"] = Value::Null;
    let changes: [(&str, Change, usize); 4] = [
        ("somebody else led", foreign, 0),
        ("odd text", odd, 3),
        ("no note", stripped, 3),
        ("no time", undated, 0),
    ];
    for (what, change, more) in changes {
        let api = api_server();
        let mut process = start(&api, "a");
        tokio::time::sleep(WINDOW + SECOND).await;
        fail_all(&api);
        until("nine are deleted", || deleted(&api) == 9).await;
        pass(3).await;
        assert_eq!(process.stop().await, End::Stopped);
        let mut lease = stored(&api);
        change(&mut lease);
        api.apply_json(lease).unwrap();
        let process = start(&api, "b");
        process.leading().await;
        pass(590).await;
        assert_eq!(deleted(&api), 9 + more, "{what}");
        pass(60).await;
        assert!(deleted(&api) > 9 + more, "{what}: the window is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_clock_is_another_counts_the_same() {
    for hours in [-5, 5] {
        let api = api_server();
        let mut process = start(&api, "a");
        tokio::time::sleep(WINDOW + SECOND).await;
        fail_all(&api);
        until("nine are deleted", || deleted(&api) == 9).await;
        assert_eq!(process.stop().await, End::Stopped);
        // As if this process's clock had been wrong all the time.
        let mut found = stored(&api);
        let moved = |seconds: i64| seconds + hours * 3600;
        let renewed: jiff::Timestamp = found["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
        let renewed = jiff::Timestamp::from_second(moved(renewed.as_second())).unwrap();
        found["spec"]["renewTime"] = json!(format!("{renewed:.6}"));
        let mut said: Value = serde_json::from_str(&note(&api).unwrap()).unwrap();
        said["since"] = json!(moved(said["since"].as_i64().unwrap()));
        let times = said["deleted"].as_object().unwrap().iter();
        let times = times.map(|(at, count)| (moved(at.parse().unwrap()).to_string(), count.clone()));
        said["deleted"] = Value::Object(times.collect());
        found["metadata"]["annotations"][DELETIONS] = json!(said.to_string());
        api.apply_json(found).unwrap();
        let process = start(&api, "b");
        process.leading().await;
        pass(540).await;
        assert_eq!(deleted(&api), 9, "{hours}");
        pass(120).await;
        assert!(deleted(&api) > 9, "{hours}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_election_or_a_share_nothing_is_noted() {
    let api = api_server();
    fail_all(&api);
    let mut config = Config::default();
    config.settings.node_lifecycle.node_deletion_share = 0.0;
    let process = Process::with_provider(&api, "a", config, Arc::new(Empty), Arc::default());
    until("all are deleted", || deleted(&api) == 50).await;
    assert_eq!(note(&api), None);
    drop(process);

    let api = api_server();
    fail_all(&api);
    let config = Config {
        election: None,
        ..Config::default()
    };
    let _process = Process::with_provider(&api, "a", config, Arc::new(Empty), Arc::default());
    until("three are deleted", || deleted(&api) == 3).await;
    assert!(api.objects("Lease").is_empty());
}

/// A leader that may go on after an outage begins anew, with what its own lease says.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_suspended_goes_on_counting() {
    let api = api_server();
    fail_all(&api);
    let config = Config {
        election: Some(ElectionConfig {
            recovery_limit: Some(WINDOW),
            ..ElectionConfig::default()
        }),
        ..Config::default()
    };
    let process = Process::with_provider(&api, "a", config, Arc::new(Empty), Arc::default());
    until("three are deleted", || deleted(&api) == 3).await;
    for _ in 0..3 {
        api.faults().inject(Fault::new(Effect::DropBefore));
        until("it leads no more", || !process.leads()).await;
        api.faults().clear();
        until("it leads", || process.leads() && process.gate.is_open()).await;
        pass(10).await;
        assert_eq!(deleted(&api), 3);
    }
    assert_eq!(lease(&api)["leaseTransitions"], 0);
}

/// An admission webhook takes annotations off, or a policy denies them: from the start, or only once the lease has a note.
#[tokio::test(start_paused = true)]
async fn a_lease_that_keeps_no_note_holds_deletions_up_and_an_event_says_why() {
    let strip = Effect::Rewrite(|lease| lease["metadata"]["annotations"] = json!({}));
    let deny = Effect::Deny(|lease| lease["metadata"]["annotations"][DELETIONS].is_string());
    for (effect, before) in [(strip, 0), (deny.clone(), 0), (deny, 3)] {
        let api = api_server();
        let process = start(&api, "a");
        process.leading().await;
        if before > 0 {
            fail_all(&api);
            until("three are deleted", || deleted(&api) == before).await;
        }
        let fault = Fault::new(effect).verb("update").resource("leases");
        api.faults().inject(fault);
        if before == 0 {
            fail_all(&api);
        }
        let is_told = || -> usize {
            let events = api.objects("Event");
            let texts = events.iter().filter_map(|event| event["message"].as_str());
            texts.filter(|text| text.contains(DELETIONS)).count()
        };
        if before == 0 {
            until("three events say so", || is_told() >= 3).await;
        }
        pass(60).await;
        assert!(process.leads(), "it goes on leading");
        assert_eq!(lease(&api)["leaseTransitions"], 0);
        assert_eq!(deleted(&api), before);
        assert!(is_told() <= 50, "once each");
        api.faults().clear();
        until("three are deleted", || deleted(&api) == 3).await;
    }
}

/// Long after the events are gone.
#[tokio::test(start_paused = true)]
async fn what_holds_a_deletion_up_is_explained() {
    let api = api_server();
    let well = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "well" },
        "spec": { "providerID": "nimbus://well" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    api.apply_json(well).unwrap();
    let _process = start(&api, "a");
    fail_all(&api);
    until("three are deleted", || api.objects("Node").len() == 48).await;
    let config = Config::default();
    let patient = Patient {
        is_manager: true,
        ..patient(&config, &api, Cloud::Built(Arc::new(Empty), Duration::ZERO))
    };
    let targets = [Target::Node(NodeName::new("n40"))];
    let causes = async || explain(&patient, &targets).await.unwrap().remove(0).causes;
    let told = causes().await;
    let held = told.iter().find(|it| it.id == "node.throttled");
    let held = &held.unwrap_or_else(|| panic!("{told:?}")).text;
    assert!(held.contains("3 nodes were deleted"), "{held}");
    assert!(held.contains("The next one may go at"), "{held}");
    assert!(!told.iter().any(|it| it.text.contains(DELETIONS)), "{told:?}");
    let strip = Effect::Rewrite(|lease| lease["metadata"]["annotations"] = json!({}));
    meets(&api, strip, "update", "leases");
    let told = causes().await;
    assert!(told.iter().any(|it| it.text.contains(DELETIONS)), "{told:?}");
}
