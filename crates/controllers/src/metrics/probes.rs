//! Gauges that are worked out at a scrape, from what is remembered anyway.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::GaugeSpec;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The series of a gauge at one moment: the values of its label, each one of a few that are known in advance, with what is
/// measured. Without a label there is one series, whose value of the label is empty.
pub type Readings = Vec<(&'static str, f64)>;

type Read = Box<dyn Fn() -> Option<Readings> + Send + Sync>;

/// By the names of gauges and of who is asked.
type Asked = BTreeMap<(&'static str, &'static str), (&'static GaugeSpec, Read)>;

/// Who is asked for a gauge at each scrape. Clones share them.
#[derive(Clone, Default)]
pub struct Probes(Arc<Mutex<Asked>>);

impl Probes {
    /// Asks `who` for series of a gauge at each scrape from now on, in the place of whoever had that name before. While there is
    /// nothing to be read, as after the end of a controller, they are not shown.
    ///
    /// It is called while the page is written, so it must not wait.
    pub fn probe(
        &self,
        gauge: &'static GaugeSpec,
        who: &'static str,
        read: impl Fn() -> Option<Readings> + Send + Sync + 'static,
    ) {
        self.lock().insert((gauge.name, who), (gauge, Box::new(read)));
    }

    /// The same for a gauge of something that may go away: it is shown as long as that is there.
    pub fn probe_weakly<S: Send + Sync + 'static>(
        &self,
        gauge: &'static GaugeSpec,
        subject: &Arc<S>,
        read: fn(&S) -> Readings,
    ) {
        let subject = Arc::downgrade(subject);
        self.probe(gauge, "", move || subject.upgrade().map(|subject| read(&subject)));
    }

    /// Makes them visible. Call it once per registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all of them say now, by gauge.
    fn read(&self) -> BTreeMap<&'static str, (&'static GaugeSpec, Readings)> {
        let mut said: BTreeMap<&'static str, (&'static GaugeSpec, Readings)> = BTreeMap::new();
        for (gauge, read) in self.lock().values() {
            if let Some(readings) = read() {
                let (_, all) = said.entry(gauge.name).or_insert_with(|| (gauge, Vec::new()));
                all.extend(readings);
            }
        }
        said
    }
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

impl Collector for Probes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (gauge, readings) in self.read().into_values() {
            let mut family = encoder.encode_descriptor(gauge.name, gauge.help, None, MetricType::Gauge)?;
            for (of, value) in readings {
                let value = ConstGauge::new(value);
                if gauge.label.is_empty() {
                    value.encode(family)?;
                    break;
                }
                value.encode(family.encode_family(&[(gauge.label, of)])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    static SHEEP: GaugeSpec = GaugeSpec {
        name: "sheep",
        help: "Sheep by colour",
        label: "colour",
    };
    static DOGS: GaugeSpec = GaugeSpec {
        name: "dogs",
        help: "Dogs",
        label: "",
    };

    fn page(probes: &Probes) -> String {
        let mut registry = Registry::default();
        probes.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_gauge_is_read_at_each_scrape_and_gone_with_who_knows_it() {
        let (probes, herd) = (Probes::default(), Arc::new(Mutex::new(2.0)));
        probes.probe_weakly(&SHEEP, &herd, |herd| {
            vec![("white", *herd.lock().unwrap()), ("black", 0.0)]
        });
        probes.probe(&DOGS, "shepherd", || Some(vec![("", 1.5)]));
        probes.probe(&SHEEP, "wolf", || Some(vec![("grey", 9.0)]));
        let dogs = "# HELP dogs Dogs\n# TYPE dogs gauge\ndogs 1.5\n";
        let sheep = |white: &str| {
            format!(
                "{dogs}# HELP sheep Sheep by colour\n# TYPE sheep gauge\n\
                 sheep{{colour=\"white\"}} {white}\nsheep{{colour=\"black\"}} 0.0\n\
                 sheep{{colour=\"grey\"}} 9.0\n# EOF\n"
            )
        };
        assert_eq!(page(&probes), sheep("2.0"));
        *herd.lock().unwrap() = 3.0;
        assert_eq!(page(&probes), sheep("3.0"));
        drop(herd);
        let grey = "# HELP sheep Sheep by colour\n# TYPE sheep gauge\nsheep{colour=\"grey\"} 9.0\n";
        assert_eq!(page(&probes), format!("{dogs}{grey}# EOF\n"));
    }
}
