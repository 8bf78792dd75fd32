//! What a scrape of a running manager shows.

use std::collections::BTreeMap;

use super::cluster::{Cluster, SCRAPER};

/// The samples of a page: value by name and labels.
fn samples(page: &str) -> BTreeMap<&str, &str> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .collect()
}

#[tokio::test]
async fn a_scrape_shows_every_series_that_dashboards_go_by_and_none_that_the_reference_does_not_name() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&[]);
    cluster.join("n1");
    cluster.add_service("web");
    cluster.addressed(&manager, "web").await;
    // The status is published a moment before the sync is concluded.
    let settled = "load_balancer_settle_duration_seconds_count";
    manager
        .until("the sync has settled", async || {
            let page = cluster.ask_as(Some(SCRAPER), "/metrics").await;
            page.is_some_and(|(_, page)| samples(&page).get(settled).is_some_and(|count| *count != "0"))
        })
        .await;
    let (status, page) = cluster.ask_as(Some(SCRAPER), "/metrics").await.unwrap();
    assert_eq!(status, 200);

    let found = samples(&page);
    for name in ["cloud-node", "cloud-node-lifecycle", "service"] {
        let series =
            format!("running_managed_controllers{{manager=\"cloud-controller-manager\",name=\"{name}\"}}");
        assert_eq!(found.get(series.as_str()), Some(&"1"), "{series}\n{page}");
    }
    for queue in ["Nodes", "service", "node"] {
        for series in [
            format!("workqueue_depth{{name=\"{queue}\"}}"),
            format!("workqueue_adds_total{{name=\"{queue}\"}}"),
            format!("workqueue_retries_total{{name=\"{queue}\"}}"),
            format!("workqueue_queue_duration_seconds_bucket{{name=\"{queue}\",le=\"1e-08\"}}"),
            format!("workqueue_work_duration_seconds_count{{name=\"{queue}\"}}"),
            format!("workqueue_unfinished_work_seconds{{name=\"{queue}\"}}"),
            format!("workqueue_longest_running_processor_seconds{{name=\"{queue}\"}}"),
        ] {
            assert!(found.contains_key(series.as_str()), "no {series} in\n{page}");
        }
    }
    for series in [
        "node_controller_cloud_provider_taint_removal_delay_seconds_bucket{le=\"1024\"}",
        "node_controller_initial_node_sync_delay_seconds_count",
        "service_controller_loadbalancer_sync_total",
        "service_controller_nodesync_error_total",
        "service_controller_nodesync_latency_seconds_bucket{le=\"16384\"}",
        "service_controller_update_loadbalancer_host_latency_seconds_sum",
        "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_bucket{le=\"16.384\"}",
        "leader_election_master_status{name=\"cloud-controller-manager\"}",
        "rest_client_transport_create_calls_total{result=\"miss\"}",
        "load_balancer_plans_total{result=\"settled\"}",
        "load_balancer_syncs_total{operation=\"ensure\",result=\"settled\"}",
        "guard_trips_total{guard=\"node-deletion-frozen\"}",
    ] {
        assert!(found.contains_key(series), "no {series} in\n{page}");
    }
    assert_eq!(
        found.get("node_controller_initial_node_sync_delay_seconds_count"),
        Some(&"1")
    );

    let reference = include_str!("../../../../../docs/reference/metrics.md");
    let types: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    assert!(types.len() > 40, "{page}");
    for (name, kind) in types {
        assert!(
            reference.contains(&format!("| `{name}` | {kind}")),
            "{name} ({kind}) is not in the reference"
        );
    }
}
