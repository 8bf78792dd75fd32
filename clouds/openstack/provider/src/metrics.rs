//! The series of the Go manager, under its names.

use std::time::Duration;

use bowline_cloud_provider::ReconcileKind;
use bowline_openstack_client::CallObserver;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

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

type Totals = Family<Of, Counter>;
type Histograms = Family<Of, Histogram, fn() -> Histogram>;

fn reconcile_seconds() -> Histogram {
    Histogram::new(RECONCILE_BUCKETS.into_iter().chain([LONGEST]))
}

bowline_plan::series! {
    /// What the provider counts. Clones share the series.
    pub struct Metrics {
        calls: Totals = Family::default(),
            "openstack_api_requests", "[ALPHA] Total number of OpenStack API calls";
        call_errors: Totals = Family::default(),
            "openstack_api_request_errors", "[ALPHA] Total number of errors for an OpenStack API call";
        call_duration: Histograms = Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS)),
            "openstack_api_request_duration_seconds", "[ALPHA] Latency of an OpenStack API call";
        reconciles: Totals = Family::default(),
            "cloudprovider_openstack_reconcile", "[ALPHA] Total number of OpenStack cloud controller manager reconciliations";
        reconcile_errors: Totals = Family::default(),
            "cloudprovider_openstack_reconcile_errors", "[ALPHA] Total number of OpenStack cloud controller manager reconciliation errors";
        reconcile_duration: Histograms = Family::new_with_constructor(reconcile_seconds),
            "cloudprovider_openstack_reconcile_duration_seconds", "[ALPHA] Time taken by various parts of OpenStack cloud controller manager reconciliation loops";
    }
}

fn count((all, errors, duration): (&Totals, &Totals, &Histograms), of: Of, took: Duration, has_failed: bool) {
    all.get_or_create(&of).inc();
    duration.get_or_create(&of).observe(took.as_secs_f64());
    if has_failed {
        errors.get_or_create(&of).inc();
    }
}

impl Metrics {
    /// Counts a call that has ended.
    pub fn called(&self, request: &'static str, took: Duration, has_failed: bool) {
        let series = (&self.calls, &self.call_errors, &self.call_duration);
        count(series, [("request", request)], took, has_failed);
    }

    /// Counts a reconcile of a load balancer that has ended.
    pub fn reconciled(&self, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let operation = match kind {
            ReconcileKind::Ensure => "loadbalancer_ensure",
            ReconcileKind::Update => "loadbalancer_update",
            ReconcileKind::Delete => "loadbalancer_delete",
        };
        let series = (&self.reconciles, &self.reconcile_errors, &self.reconcile_duration);
        count(series, [("operation", operation)], took, has_failed);
    }
}

impl CallObserver for Metrics {
    fn observe(&self, request: &'static str, took: Duration, has_failed: bool) {
        self.called(request, took, has_failed);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

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
