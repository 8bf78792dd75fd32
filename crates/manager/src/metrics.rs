//! The series of the process and of the election, and the page that shows all series.

mod exposition;
pub mod gauges;
pub mod process;
mod serving;

use std::sync::atomic::AtomicI64;

use bowline_controllers::metrics::ControllerMetrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::controllers::ControllerName;
pub(crate) use serving::Review;
pub use serving::ServingMetrics;

/// The form of the page: Prometheus' text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<i64, AtomicI64>>;

/// The series of the process, and the registry that all others are in.
pub struct Metrics {
    registry: Registry,
    series: Series,
    controllers: ControllerMetrics,
    serving: ServingMetrics,
}

bowline_cloud_provider::plan::series! {
    /// The series that the manager itself keeps. Clones share them.
    pub struct Series {
        leading: Gauges = Family::default(),
            "leader_election_master_status", "[ALPHA] Whether this process leads, by the name of the lease";
        slow_renewals: Family<Labels, Counter> = Family::default(),
            "leader_election_slowpath", "[ALPHA] Renewals of a lease that needed a read first, by the name of the lease";
        running: Gauges = Family::default(),
            "running_managed_controllers", "[BETA] Whether a controller runs in this process";
        ready: Gauges = Family::default(),
            "controller_ready", "Whether a controller runs and its caches are filled";
    }
}

/// What `kubernetes_build_info` shows.
#[derive(Debug, Clone, Default)]
pub struct BuildInfo {
    /// The labels with their values, such as `git_version`.
    pub labels: Vec<(&'static str, String)>,
}

impl Metrics {
    /// Adds the series of the manager, the controllers and their queues to a registry that holds those of the parts.
    pub fn new(mut registry: Registry, build: &BuildInfo) -> Self {
        let series = Series::default();
        series.register(&mut registry);
        let info = Gauges::default();
        info.get_or_create(&build.labels).set(1);
        registry.register("kubernetes_build_info", "[BETA] The build, as labels", info);
        let controllers = ControllerMetrics::default();
        controllers.register(&mut registry);
        let serving = ServingMetrics::default();
        serving.register(&mut registry);
        Self {
            registry,
            series,
            controllers,
            serving,
        }
    }

    /// The series of the controllers.
    pub fn controllers(&self) -> &ControllerMetrics {
        &self.controllers
    }

    /// The series of the secure port.
    pub fn serving(&self) -> &ServingMetrics {
        &self.serving
    }

    /// The manager's own series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// All series as text.
    ///
    /// # Errors
    ///
    /// A series that cannot be written.
    pub fn render(&self) -> Result<String, std::fmt::Error> {
        exposition::page(&self.registry, true)
    }
}

/// The series of a registry as text.
pub(crate) fn page(registry: &Registry) -> Result<String, std::fmt::Error> {
    exposition::page(registry, false)
}

impl Series {
    /// Says whether this process leads.
    pub fn set_leading(&self, lease: &str, leads: bool) {
        self.leading
            .get_or_create(&vec![("name", lease.to_owned())])
            .set(i64::from(leads));
    }

    /// Counts a renewal that needed a read first.
    pub fn count_slow_renewal(&self, lease: &str) {
        self.slow_renewals
            .get_or_create(&vec![("name", lease.to_owned())])
            .inc();
    }

    /// Says that a controller was started.
    pub fn set_running(&self, one: ControllerName) {
        self.running
            .get_or_create(&vec![
                ("name", one.alias().to_owned()),
                ("manager", "cloud-controller-manager".to_owned()),
            ])
            .set(1);
    }

    /// Says whether a controller has read what it works from.
    pub fn set_ready(&self, one: ControllerName, is_ready: bool) {
        self.ready
            .get_or_create(&vec![("name", one.name().to_owned())])
            .set(i64::from(is_ready));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_of_the_framework() {
        let build = BuildInfo {
            labels: vec![("major", "1".to_owned()), ("minor", "37".to_owned())],
        };
        let metrics = Metrics::new(Registry::default(), &build);
        metrics.series().set_leading("cloud-controller-manager", true);
        metrics.series().set_running(ControllerName::NodeLifecycle);
        metrics.series().set_ready(ControllerName::Service, false);
        metrics.series().count_slow_renewal("cloud-controller-manager");
        let text = metrics.render().unwrap();
        for line in [
            r#"leader_election_master_status{name="cloud-controller-manager"} 1"#,
            r#"leader_election_slowpath_total{name="cloud-controller-manager"} 1"#,
            r#"running_managed_controllers{manager="cloud-controller-manager",name="cloud-node-lifecycle"} 1"#,
            r#"controller_ready{name="service-lb-controller"} 0"#,
            r#"kubernetes_build_info{major="1",minor="37"} 1"#,
            // Two from above, three of the queues, three of these books.
            r#"registered_metrics_total{deprecated_version="",stability_level="BETA"} 8"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in\n{text}"
            );
        }
    }
}
