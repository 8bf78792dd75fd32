//! The results of health checks as series, for `/metrics/slis`.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The results of health checks, as service level indicators. A check that was excluded has no result.
pub struct Slis {
    registry: Registry,
    last: Family<[(&'static str, &'static str); 2], Gauge<i64, AtomicI64>>,
    total: Family<[(&'static str, &'static str); 3], Counter>,
}

impl Default for Slis {
    fn default() -> Self {
        let (last, total) = (Family::default(), Family::default());
        let mut registry = Registry::default();
        registry.register(
            "kubernetes_healthcheck",
            "[STABLE] The last result of a health check, 1 if it passed",
            Family::clone(&last),
        );
        registry.register(
            "kubernetes_healthchecks",
            "[STABLE] Results of health checks",
            Family::clone(&total),
        );
        Self {
            registry,
            last,
            total,
        }
    }
}

impl Slis {
    pub(super) fn note(&self, check: &'static str, endpoint: &'static str, passed: bool) {
        let status = if passed { "success" } else { "error" };
        self.last
            .get_or_create(&[("name", check), ("type", endpoint)])
            .set(i64::from(passed));
        self.total
            .get_or_create(&[("name", check), ("type", endpoint), ("status", status)])
            .inc();
    }

    /// Forgets all results.
    pub fn reset(&self) {
        self.last.clear();
        self.total.clear();
    }

    /// The series as text.
    ///
    /// # Errors
    ///
    /// A series that cannot be written.
    pub fn render(&self) -> Result<String, std::fmt::Error> {
        crate::metrics::page(&self.registry)
    }
}
