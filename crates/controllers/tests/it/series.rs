//! What the controllers count, sample by sample: the series that Kubernetes 1.37 brought.

use bowline_cloud_provider::{CloudError, ErrorKind, InstanceAnswer, InstanceMetadata, PowerState};
use bowline_controllers::node_lifecycle::NodeLifecycleSettings;
use bowline_controllers::route::RouteTiming;

use crate::cluster::{Cluster, SECOND, node_of};
use crate::instances::present;
use crate::route::{PERIODIC, node, start};

const ROUTE_SYNCS: &str = "route_controller_route_sync_total";
const CALLS: &str = "cloud_node_lifecycle_controller_cloud_provider_calls_total";
const PASSES: &str = "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_count";

#[tokio::test(start_paused = true)]
async fn a_route_reconciliation_is_counted_at_its_end_with_its_outcome_and_its_trigger() {
    let (cluster, table) = start(PERIODIC);
    let counted = || cluster.series(ROUTE_SYNCS);
    table.latency(SECOND);
    cluster.pass(SECOND / 2).await;
    assert_eq!(counted(), [""; 0], "the first one is under way");
    cluster.pass(SECOND).await;
    assert_eq!(counted(), [r#"{outcome="noop",trigger="periodic"} 1"#]);
    table.latency(SECOND / 100);

    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.pass(SECOND * 2).await;
    let created = r#"{outcome="changed",trigger="node_change"} 1"#;
    assert_eq!(counted(), [created, r#"{outcome="noop",trigger="periodic"} 1"#]);

    // A route that nobody asked for is found at the next period.
    table.put("", "10.200.9.0/24", false);
    cluster.pass(SECOND * 21).await;
    let repaired = r#"{outcome="changed",trigger="periodic"} 1"#;
    assert_eq!(
        counted(),
        [created, repaired, r#"{outcome="noop",trigger="periodic"} 2"#]
    );
}

#[tokio::test(start_paused = true)]
async fn routes_that_cannot_be_read_are_the_only_error_of_a_reconciliation() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    table.fail("create", Some(CloudError::other("quota exceeded")));
    cluster.pass(SECOND * 5).await;
    let first = r#"{outcome="noop",trigger="node_change"} 1"#;
    assert_eq!(
        cluster.series(ROUTE_SYNCS),
        [first],
        "a route that cannot be made is no error of the whole"
    );

    table.fail("create", None);
    table.fail("list", Some(CloudError::transient("bad gateway")));
    cluster.put(node("n2", &["10.200.2.0/24"]));
    cluster.pass(SECOND * 8).await;
    let error = r#"{outcome="error",trigger="node_change"} 1"#;
    assert_eq!(cluster.series(ROUTE_SYNCS), [error, first]);

    // As upstream: the key goes back to the queue, so what is made late counts as the work of that change.
    table.fail("list", None);
    cluster.pass(SECOND * 12).await;
    let late = r#"{outcome="changed",trigger="node_change"} 1"#;
    assert_eq!(cluster.series(ROUTE_SYNCS), [late, error, first]);
}

#[tokio::test(start_paused = true)]
async fn what_is_learned_of_the_instance_of_a_lost_node_is_counted_by_upstreams_questions() {
    let error = |kind| Err(CloudError::new(kind, "no"));
    for (answer, counted) in [
        (
            present(InstanceMetadata::default(), PowerState::Off),
            &[
                r#"{operation="instance_exists",result="success"} 1"#,
                r#"{operation="instance_shutdown",result="success"} 1"#,
            ][..],
        ),
        (Ok(InstanceAnswer::Foreign), &[]),
        (
            error(ErrorKind::NotFound),
            &[r#"{operation="instance_exists",result="instance_not_found"} 1"#],
        ),
        (
            error(ErrorKind::NotSupported),
            &[r#"{operation="instance_exists",result="not_implemented"} 1"#],
        ),
        (
            error(ErrorKind::Denied),
            &[r#"{operation="instance_exists",result="error"} 1"#],
        ),
    ] {
        let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings::default());
        cluster.instances.set("n1", answer.clone());
        cluster.put(node_of("n1", Some("Unknown")));
        // Nobody asks for a Node that is ready.
        cluster.put(node_of("n2", Some("True")));
        cluster.pass(SECOND).await;
        assert_eq!(cluster.series(CALLS), counted, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_of_absence_is_counted_and_what_witnesses_say_is_not() {
    let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings::default());
    cluster.instances.remove("n1");
    cluster.instances.run("n2", InstanceMetadata::default());
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.put(node_of("n2", Some("True")));
    cluster.gone("n1").await;
    assert_eq!(
        cluster.series(CALLS),
        [r#"{operation="instance_exists",result="instance_not_found"} 2"#]
    );
}

#[tokio::test(start_paused = true)]
async fn passes_over_the_nodes_are_counted_also_while_there_is_nothing_to_do() {
    let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings::default());
    cluster.put(node_of("n1", Some("True")));
    cluster.pass(SECOND * 61).await;
    assert_eq!(cluster.series(PASSES), ["12"], "one in --node-monitor-period");
    assert!(cluster.questions() == 0);

    cluster.instances.latency(SECOND * 2);
    cluster.instances.run("n2", InstanceMetadata::default());
    cluster.put(node_of("n2", Some("Unknown")));
    cluster.pass(SECOND * 3).await;
    assert_eq!(cluster.series(PASSES), ["13"]);
    let bucket = |bound: &str| {
        let samples = cluster.series("cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_bucket");
        let sample = samples
            .iter()
            .find(|sample| sample.starts_with(&format!("{{le=\"{bound}\"}}")));
        sample
            .and_then(|sample| sample.rsplit_once(' '))
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(
        (bucket("0.001"), bucket("1.024"), bucket("2.048")),
        ("12".into(), "12".into(), "13".into())
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_route_controller_has_failed_at_is_shown_until_it_is_done() {
    let (cluster, table) = start(PERIODIC);
    let failing = || -> Vec<String> {
        let all = cluster.series("routes_failing");
        all.into_iter().filter(|line| !line.ends_with(" 0.0")).collect()
    };
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.series("routes_failing").len(), 4);
    assert_eq!(failing(), [""; 0]);
    table.fail("create", Some(CloudError::other("no router")));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.put(node("n2", &["10.200.2.0/24"]));
    cluster.pass(SECOND * 5).await;
    assert_eq!(failing(), [r#"{operation="create"} 2.0"#]);
    table.fail("list", Some(CloudError::transient("bad gateway")));
    cluster.pass(SECOND * 60).await;
    assert_eq!(
        failing(),
        [r#"{operation="create"} 2.0"#, r#"{operation="list"} 1.0"#]
    );
    table.fail("list", None);
    table.fail("create", None);
    cluster.pass(SECOND * 400).await;
    assert_eq!(failing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_wait_for_their_instance_are_shown_with_the_age_of_the_oldest() {
    let cluster = crate::node::cluster();
    let shown = || {
        [
            cluster.series("nodes_uninitialized"),
            cluster.series("nodes_uninitialized_oldest_seconds"),
        ]
        .concat()
    };
    cluster.join("well").await;
    assert_eq!(shown(), ["0.0", "0.0"]);
    cluster.put(crate::cluster::new_node("first"));
    cluster.pass(SECOND * 100).await;
    cluster.put(crate::cluster::new_node("second"));
    cluster.pass(SECOND * 20).await;
    let [count, oldest] = shown().try_into().unwrap();
    assert_eq!(count, "2.0");
    assert!(oldest.parse::<f64>().unwrap() >= 119.0, "{oldest}");
    cluster
        .instances
        .run("first", crate::instances::metadata(&["10.1.0.2"]));
    cluster
        .instances
        .run("second", crate::instances::metadata(&["10.1.0.3"]));
    cluster.pass(SECOND * 400).await;
    assert_eq!(shown(), ["0.0", "0.0"]);
}
