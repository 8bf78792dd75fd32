//! The series of the Kubernetes cloud controller manager that this program has: what dashboards and alerts go by.
//!
//! The facts are those of a scrape of a manager built from `k8s.io/cloud-provider` v0.37, and of the sources of
//! `k8s.io/apiserver`, `k8s.io/component-base` and `k8s.io/client-go` of the same release. What v0.38 added is from its sources.

use super::{Family, described};

const NODE_DELAY: &str = "1 4 16 64 256 1024";
const BALANCER: &str = "1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384";
const QUEUE: &str = "1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1 10";
const REQUEST: &str = "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60";
const LOOKUP: &str = "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30";
const DECISION: &str =
    "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384";
const REVIEW: &str = "0.25 0.5 0.7 1 1.5 3 5 10";
const LIFETIME: &str =
    "0 1800 3600 7200 21600 43200 86400 172800 345600 604800 2.592e+06 7.776e+06 1.5552e+07 3.1104e+07";
const SIZE: &str = "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07";
const AGE: &str = "600 1800 3600 14400 86400 604800 2.592e+06 7.776e+06 1.5552e+07 3.1104e+07 1.24416e+08";

const CALL: &str = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10";
const RECONCILE: &str = "0.01 0.05 0.1 0.5 1 2.5 5 7.5 10 12.5 15 17.5 20 22.5 25 27.5 30 50 75 100 1000";

/// Level, name, type, labels, bounds. A level is empty for series that the Go managers state none for.
#[rustfmt::skip]
const THEIRS: &[(&str, &str, &str, &str, &str)] = &[
    ("ALPHA", "node_controller_cloud_provider_taint_removal_delay_seconds", "histogram", "", NODE_DELAY),
    ("ALPHA", "node_controller_initial_node_sync_delay_seconds", "histogram", "", NODE_DELAY),
    ("ALPHA", "service_controller_loadbalancer_sync_total", "counter", "", ""),
    ("ALPHA", "service_controller_nodesync_error_total", "counter", "", ""),
    ("ALPHA", "service_controller_nodesync_latency_seconds", "histogram", "", BALANCER),
    ("ALPHA", "service_controller_update_loadbalancer_host_latency_seconds", "histogram", "", BALANCER),
    ("ALPHA", "route_controller_route_sync_total", "counter", "outcome trigger", ""),
    ("ALPHA", "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds", "histogram", "", DECISION),
    ("ALPHA", "cloud_node_lifecycle_controller_cloud_provider_calls_total", "counter", "operation result", ""),
    ("ALPHA", "node_ipam_controller_cidrset_cidrs_allocations_total", "counter", "clusterCIDR", ""),
    ("ALPHA", "node_ipam_controller_cidrset_cidrs_releases_total", "counter", "clusterCIDR", ""),
    ("ALPHA", "node_ipam_controller_cirdset_max_cidrs", "gauge", "clusterCIDR", ""),
    ("ALPHA", "node_ipam_controller_cidrset_usage_cidrs", "gauge", "clusterCIDR", ""),
    ("ALPHA", "node_ipam_controller_cidrset_allocation_tries_per_request", "histogram", "clusterCIDR", "1 5 25 125 625"),
    ("BETA", "running_managed_controllers", "gauge", "manager name", ""),
    ("ALPHA", "leader_election_master_status", "gauge", "name", ""),
    ("ALPHA", "leader_election_slowpath_total", "counter", "name", ""),
    ("BETA", "kubernetes_build_info", "gauge",
        "build_date compiler git_commit git_tree_state git_version go_version major minor platform", ""),
    ("", "process_cpu_seconds_total", "counter", "", ""),
    ("", "process_max_fds", "gauge", "", ""),
    ("", "process_network_receive_bytes_total", "counter", "", ""),
    ("", "process_network_transmit_bytes_total", "counter", "", ""),
    ("", "process_open_fds", "gauge", "", ""),
    ("", "process_resident_memory_bytes", "gauge", "", ""),
    ("", "process_start_time_seconds", "gauge", "", ""),
    ("", "process_virtual_memory_bytes", "gauge", "", ""),
    ("", "process_virtual_memory_max_bytes", "gauge", "", ""),
    ("BETA", "workqueue_adds_total", "counter", "name", ""),
    ("BETA", "workqueue_depth", "gauge", "name", ""),
    ("BETA", "workqueue_longest_running_processor_seconds", "gauge", "name", ""),
    ("BETA", "workqueue_queue_duration_seconds", "histogram", "name", QUEUE),
    ("BETA", "workqueue_retries_total", "counter", "name", ""),
    ("BETA", "workqueue_unfinished_work_seconds", "gauge", "name", ""),
    ("BETA", "workqueue_work_duration_seconds", "histogram", "name", QUEUE),
    ("ALPHA", "rest_client_dns_resolution_duration_seconds", "histogram", "host", LOOKUP),
    ("ALPHA", "rest_client_rate_limiter_duration_seconds", "histogram", "host verb", REQUEST),
    ("ALPHA", "rest_client_request_duration_seconds", "histogram", "host verb", REQUEST),
    ("ALPHA", "rest_client_request_size_bytes", "histogram", "host verb", SIZE),
    ("ALPHA", "rest_client_requests_total", "counter", "code host method", ""),
    ("ALPHA", "rest_client_response_size_bytes", "histogram", "host verb", SIZE),
    ("ALPHA", "rest_client_transport_cache_entries", "gauge", "", ""),
    ("ALPHA", "rest_client_transport_create_calls_total", "counter", "result", ""),
    ("ALPHA", "rest_client_transport_cert_rotation_gc_calls_total", "counter", "", ""),
    ("ALPHA", "rest_client_exec_plugin_ttl_seconds", "gauge", "", ""),
    ("ALPHA", "rest_client_exec_plugin_certificate_rotation_age", "histogram", "", AGE),
    ("BETA", "registered_metrics_total", "counter", "deprecated_version stability_level", ""),
    ("BETA", "hidden_metrics_total", "counter", "", ""),
    ("BETA", "disabled_metrics_total", "counter", "", ""),
    ("ALPHA", "cardinality_enforcement_unexpected_categorizations_total", "counter", "", ""),
    ("ALPHA", "authenticated_user_requests", "counter", "username", ""),
    ("ALPHA", "authentication_attempts", "counter", "result", ""),
    ("ALPHA", "authentication_duration_seconds", "histogram", "result", DECISION),
    ("ALPHA", "authorization_attempts_total", "counter", "result", ""),
    ("ALPHA", "authorization_duration_seconds", "histogram", "result", DECISION),
    ("ALPHA", "apiserver_delegated_authn_request_total", "counter", "code", ""),
    ("ALPHA", "apiserver_delegated_authn_request_duration_seconds", "histogram", "code", REVIEW),
    ("ALPHA", "apiserver_delegated_authz_request_total", "counter", "code", ""),
    ("ALPHA", "apiserver_delegated_authz_request_duration_seconds", "histogram", "code", REVIEW),
    ("ALPHA", "apiserver_client_certificate_expiration_seconds", "histogram", "", LIFETIME),
    // Of OpenStack's Go manager alone, v1.36.0.
    ("ALPHA", "openstack_api_request_duration_seconds", "histogram", "request", CALL),
    ("ALPHA", "openstack_api_requests_total", "counter", "request", ""),
    ("ALPHA", "openstack_api_request_errors_total", "counter", "request", ""),
    ("ALPHA", "cloudprovider_openstack_reconcile_duration_seconds", "histogram", "operation", RECONCILE),
    ("ALPHA", "cloudprovider_openstack_reconcile_total", "counter", "operation", ""),
    ("ALPHA", "cloudprovider_openstack_reconcile_errors_total", "counter", "operation", ""),
];

fn words<'a>(all: impl IntoIterator<Item = &'a String>) -> String {
    all.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_series_have_the_go_managers_names_types_labels_and_buckets() {
    let ours = described();
    for (level, name, kind, labels, bounds) in THEIRS {
        let Family {
            kind: our_kind,
            help,
            labels: our_labels,
            bounds: our_bounds,
        } = ours.get(*name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(our_kind, kind, "{name}");
        assert_eq!(words(our_labels), *labels, "{name}");
        assert_eq!(words(our_bounds), *bounds, "{name}");
        let begins = if level.is_empty() {
            !help.starts_with('[')
        } else {
            help.starts_with(&format!("[{level}] "))
        };
        assert!(begins, "{name}: {help}");
    }
}

/// A level is a promise of the Go managers: what they do not have carries none.
#[test]
fn only_the_go_managers_series_have_a_level() {
    for (name, family) in described() {
        // That of KEP-5778 is theirs to be.
        let is_theirs = name == "cloudprovider_node_ownership_skipped_total"
            || THEIRS.iter().any(|(_, theirs, ..)| *theirs == name);
        assert!(is_theirs || !family.help.starts_with('['), "{name}");
    }
}

#[test]
fn every_series_has_a_type_and_a_meaning() {
    for (name, family) in described() {
        assert!(
            ["counter", "gauge", "histogram"].contains(&family.kind.as_str()),
            "{name}"
        );
        assert!(!family.help.is_empty(), "{name}");
        assert_eq!(family.kind == "histogram", !family.bounds.is_empty(), "{name}");
    }
}
