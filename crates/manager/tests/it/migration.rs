//! Leader migration: two leases in one process.

use bowline_kube_api::KubeApi;
use bowline_manager::End;
use bowline_manager::config::Config;
use bowline_manager::migration::Migration;
use serde_json::{Value, json};

use crate::clouds::TestInstances;
use crate::process::{Process, SECOND, api_server, edit_lease, lease, pass, until};

const MIGRATION: &str = "cloud-provider-extraction-migration";

fn start(api: &KubeApi, name: &str, migration: Migration) -> Process {
    let config = Config {
        migration: Some(migration),
        ..Config::default()
    };
    let cloud = TestInstances {
        has_instances: true,
        ..TestInstances::default()
    };
    Process::with(api, name, config, cloud)
}

fn holder(api: &KubeApi, lease: &str) -> Option<String> {
    let lease = api.object("Lease", "kube-system", lease)?;
    lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
}

/// The migration lease, as kube-controller-manager holds it or gives it up.
fn of_other(holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": MIGRATION, "namespace": "kube-system" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 3_600 },
    })
}

/// The aliases of the controllers that run.
fn running(process: &Process) -> Vec<String> {
    let page = process.metrics.render().unwrap_or_default();
    page.lines()
        .filter(|line| line.starts_with("running_managed_controllers{"))
        .filter_map(|line| line.split("name=\"").nth(1)?.split('"').next())
        .map(str::to_owned)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_loops_of_the_built_in_list_run_under_the_second_lease() {
    let api = api_server();
    api.apply_json(of_other("kube-controller-manager")).unwrap();
    let process = start(&api, "a", Migration::built_in());
    process.leading().await;
    pass(60).await;
    assert_eq!(running(&process), ["cloud-node"], "the others wait");
    assert!(process.gate.is_open(), "what runs may write");
    let status = |lease: &str| {
        let line = format!("leader_election_master_status{{name=\"{lease}\"}} ");
        let page = process.metrics.render().unwrap_or_default();
        page.lines()
            .find_map(|found| found.strip_prefix(&line).map(str::to_owned))
    };
    assert_eq!(status("cloud-controller-manager").as_deref(), Some("1"));
    assert_eq!(status(MIGRATION).as_deref(), Some("0"));

    api.apply_json(of_other("")).unwrap();
    let took = until("the others run", || running(&process).len() == 2).await;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(running(&process), ["cloud-node", "cloud-node-lifecycle"]);
    assert_eq!(status(MIGRATION).as_deref(), Some("1"));
    assert_eq!(holder(&api, MIGRATION).as_deref(), Some("a_1"));
    assert_eq!(lease(&api)["holderIdentity"], "a_1");
    assert_eq!(
        process.healthz(),
        "[+]leaderElection ok\n[+]cloud-node-controller ok\n[+]leaderMigration ok\n\
         [+]cloud-node-lifecycle-controller ok\nhealthz check passed\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_another_component_does_not_run_under_either_lease() {
    let api = api_server();
    let entries = [("cloud-node-lifecycle", "kube-controller-manager")];
    let process = start(&api, "a", Migration::new("moving", entries).unwrap());
    until("both are held", || {
        holder(&api, "moving").as_deref() == Some("a_1")
    })
    .await;
    pass(30).await;
    assert_eq!(running(&process), ["cloud-node"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_releases_both_leases_and_the_next_process_takes_both() {
    let api = api_server();
    let mut first = start(&api, "a", Migration::built_in());
    until("both are held", || running(&first).len() == 2).await;
    assert_eq!(first.stop().await, End::Stopped);
    assert!(!first.gate.is_open());
    for name in ["cloud-controller-manager", MIGRATION] {
        assert_eq!(holder(&api, name).as_deref(), Some(""), "{name}");
    }
    let second = start(&api, "b", Migration::built_in());
    let took = until("both are held", || running(&second).len() == 2).await;
    assert!(took < SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_either_lease_ends_the_process() {
    for name in ["cloud-controller-manager", MIGRATION] {
        let api = api_server();
        let mut process = start(&api, "a", Migration::built_in());
        until("both are held", || running(&process).len() == 2).await;
        edit_lease(
            &api,
            name,
            &json!({ "holderIdentity": "thief", "leaseDurationSeconds": 3_600 }),
        );
        assert_eq!(process.end().await, End::LeadershipLost, "{name}");
        assert!(!process.gate.is_open(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_election_there_is_no_migration() {
    let api = api_server();
    let config = Config {
        election: None,
        migration: Some(Migration::built_in()),
        ..Config::default()
    };
    let cloud = TestInstances {
        has_instances: true,
        ..TestInstances::default()
    };
    let process = Process::with(&api, "a", config, cloud);
    until("all controllers run", || running(&process).len() == 2).await;
    assert!(api.objects("Lease").is_empty());
}
