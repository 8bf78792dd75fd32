//! How many Nodes are deleted, over the ends of processes: the lease remembers it.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{Effect, KubeApi};
use bowline_kube_io::DELETIONS;
use bowline_manager::End;
use bowline_manager::config::Config;
use bowline_manager::doctor::{Cloud, Patient, Target, explain};
use serde_json::{Value, json};

use crate::clouds::Empty;
use crate::process::{Process, SECOND, api_server, meets, pass, patient, until};

const WINDOW: Duration = Duration::from_secs(600);

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
