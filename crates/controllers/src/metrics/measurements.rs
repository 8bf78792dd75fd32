//! What the provider counts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::Measurement;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The numbers of a provider's background work: there while they are known, and gone with who knows them. A process that
/// follows shows none, so that no sum over all replicas counts anything twice. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    /// By the name of the work.
    known: Arc<Mutex<BTreeMap<&'static str, Vec<Measurement>>>>,
}

/// Lets everything be shown no longer than it lives.
pub(crate) struct ShownForNow(Measurements);

impl Measurements {
    /// Shows what a work counted, in the place of what it counted before.
    pub fn show(&self, work: &'static str, measured: Vec<Measurement>) {
        self.known().insert(work, measured);
    }

    /// Shows nothing of a work any more.
    pub fn hide(&self, work: &'static str) {
        self.known().remove(work);
    }

    /// Hides everything when the answer is dropped, however a controller ends.
    pub(crate) fn shown_for_now(&self) -> ShownForNow {
        ShownForNow(self.clone())
    }

    /// Makes them visible. Call it once per registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<&'static str, Vec<Measurement>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ShownForNow {
    fn drop(&mut self) {
        self.0.known().clear();
    }
}

impl Collector for Measurements {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let known = self.known();
        let mut families: BTreeMap<&str, Vec<Measurement>> = BTreeMap::new();
        for measurement in known.values().flatten() {
            families
                .entry(measurement.gauge.name)
                .or_default()
                .push(*measurement);
        }
        for (name, series) in families {
            let Some(gauge) = series.first().map(|one| one.gauge) else {
                continue;
            };
            let mut family = encoder.encode_descriptor(name, gauge.help, None, MetricType::Gauge)?;
            if gauge.label.is_empty() {
                value(series.iter().map(|one| one.count).sum()).encode(family)?;
                continue;
            }
            for Measurement { of, count, .. } in series {
                value(count).encode(family.encode_family(&[(gauge.label, of)])?)?;
            }
        }
        Ok(())
    }
}

fn value(count: usize) -> ConstGauge {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::GaugeSpec;
    use prometheus_client::encoding::text::encode;

    use super::*;

    static VOLUMES: GaugeSpec = GaugeSpec {
        name: "nimbus_volumes",
        help: "Volumes by state",
        label: "state",
    };
    static LOST: GaugeSpec = GaugeSpec {
        name: "nimbus_lost",
        help: "Volumes that nobody knows",
        label: "",
    };

    fn page(measurements: &Measurements) -> String {
        let mut registry = Registry::default();
        measurements.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_gauge_has_one_family_whoever_counts_and_stands_with_its_label() {
        let measurements = Measurements::default();
        measurements.show("one", vec![VOLUMES.measure("used", 3), LOST.measure("", 1)]);
        measurements.show("two", vec![VOLUMES.measure("free", 0)]);
        assert_eq!(
            page(&measurements),
            "# HELP nimbus_lost Volumes that nobody knows\n\
             # TYPE nimbus_lost gauge\n\
             nimbus_lost 1\n\
             # HELP nimbus_volumes Volumes by state\n\
             # TYPE nimbus_volumes gauge\n\
             nimbus_volumes{state=\"used\"} 3\n\
             nimbus_volumes{state=\"free\"} 0\n\
             # EOF\n"
        );
    }

    #[test]
    fn what_is_not_known_any_more_is_not_shown() {
        let measurements = Measurements::default();
        let while_it_runs = measurements.shown_for_now();
        measurements.show("one", vec![LOST.measure("", 1)]);
        measurements.show("one", vec![LOST.measure("", 2)]);
        assert!(page(&measurements).contains("nimbus_lost 2"));
        measurements.hide("one");
        assert_eq!(page(&measurements), "# EOF\n");
        measurements.show("one", vec![LOST.measure("", 3)]);
        drop(while_it_runs);
        assert_eq!(page(&measurements), "# EOF\n");
    }
}
