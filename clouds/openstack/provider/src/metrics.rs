//! The series of the Go manager, under its names.

use std::time::Duration;

use bowline_cloud_provider::ReconcileKind;
use bowline_openstack_client::CallObserver;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Prometheus' own.
const CALL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// From an unchanged load balancer to one that never settles.
const RECONCILE_BUCKETS: [f64; 20] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0, 50.0,
    75.0, 100.0,
];

/// The last of them.
const LONGEST: f64 = 1000.0;

/// What a series is of: the name of a label, and its value.
type Of = [(&'static str, &'static str); 1];

/// How many there were of something, how many of these failed, and how long they took.
#[derive(Debug, Clone)]
struct Trio {
    all: Family<Of, Counter>,
    failed: Family<Of, Counter>,
    duration: Family<Of, Histogram, fn() -> Histogram>,
}

impl Trio {
    fn new(duration: fn() -> Histogram) -> Self {
        Self {
            all: Family::default(),
            failed: Family::default(),
            duration: Family::new_with_constructor(duration),
        }
    }

    /// Under these names: the registry appends `_total` to counters and a full stop to texts.
    fn register(&self, registry: &mut Registry, [name, all]: [&str; 2], [long, many, failed]: [&str; 3]) {
        let (duration, errors) = (format!("{name}_duration_seconds"), format!("{name}_errors"));
        registry.register(duration, format!("[ALPHA] {long}"), self.duration.clone());
        registry.register(all, format!("[ALPHA] {many}"), self.all.clone());
        registry.register(errors, format!("[ALPHA] {failed}"), self.failed.clone());
    }

    fn count(&self, of: Of, took: Duration, has_failed: bool) {
        self.all.get_or_create(&of).inc();
        self.duration.get_or_create(&of).observe(took.as_secs_f64());
        if has_failed {
            self.failed.get_or_create(&of).inc();
        }
    }
}

/// What the provider counts. Clones share the series.
#[derive(Debug, Clone)]
pub struct Metrics {
    calls: Trio,
    reconciles: Trio,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: Trio::new(|| Histogram::new(CALL_BUCKETS)),
            reconciles: Trio::new(|| Histogram::new(RECONCILE_BUCKETS.into_iter().chain([LONGEST]))),
        }
    }
}

impl Metrics {
    /// Makes the series visible under their names. Call it once per registry.
    pub fn register(&self, registry: &mut Registry) {
        let names = ["openstack_api_request", "openstack_api_requests"];
        let texts = [
            "Latency of an OpenStack API call",
            "Total number of OpenStack API calls",
            "Total number of errors for an OpenStack API call",
        ];
        self.calls.register(registry, names, texts);
        let name = "cloudprovider_openstack_reconcile";
        let texts = [
            "Time taken by various parts of OpenStack cloud controller manager reconciliation loops",
            "Total number of OpenStack cloud controller manager reconciliations",
            "Total number of OpenStack cloud controller manager reconciliation errors",
        ];
        self.reconciles.register(registry, [name, name], texts);
    }

    /// Counts a reconcile of a load balancer that has ended.
    pub fn reconciled(&self, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let operation = match kind {
            ReconcileKind::Ensure => "loadbalancer_ensure",
            ReconcileKind::Update => "loadbalancer_update",
            ReconcileKind::Delete => "loadbalancer_delete",
        };
        self.reconciles
            .count([("operation", operation)], took, has_failed);
    }
}

impl CallObserver for Metrics {
    fn observe(&self, request: &'static str, took: Duration, has_failed: bool) {
        self.calls.count([("request", request)], took, has_failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_have_the_names_labels_and_buckets_of_the_go_manager() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.observe("loadbalancer_create", Duration::from_millis(30), false);
        metrics.observe("server_get", Duration::from_millis(30), true);
        metrics.reconciled(ReconcileKind::Ensure, Duration::from_secs(8), false);
        metrics.reconciled(ReconcileKind::Delete, Duration::from_secs(200), true);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# HELP openstack_api_requests [ALPHA] Total number of OpenStack API calls.",
            r#"openstack_api_requests_total{request="loadbalancer_create"} 1"#,
            r#"openstack_api_request_errors_total{request="server_get"} 1"#,
            r#"openstack_api_request_duration_seconds_bucket{le="0.025",request="server_get"} 0"#,
            r#"openstack_api_request_duration_seconds_bucket{le="0.05",request="server_get"} 1"#,
            r#"cloudprovider_openstack_reconcile_total{operation="loadbalancer_ensure"} 1"#,
            r#"cloudprovider_openstack_reconcile_errors_total{operation="loadbalancer_delete"} 1"#,
            r#"cloudprovider_openstack_reconcile_duration_seconds_bucket{le="7.5",operation="loadbalancer_ensure"} 0"#,
            r#"cloudprovider_openstack_reconcile_duration_seconds_bucket{le="1000.0",operation="loadbalancer_delete"} 1"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(
            !text.contains(r#"errors_total{request="loadbalancer_create"}"#),
            "{text}"
        );
    }
}
