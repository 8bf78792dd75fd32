//! The `workqueue_*` series, by the names and buckets of the Go managers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// 10 ns to 10 s, each ten times the one before.
const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
}

type Histograms = Family<QueueLabels, Histogram, fn() -> Histogram>;

bowline_plan::series! {
    /// The series of all work queues. Clones share them.
    pub struct QueueMetrics {
        adds: Family<QueueLabels, Counter> = Family::default(),
            "workqueue_adds", "[BETA] Keys that were put into the queue";
        retries: Family<QueueLabels, Counter> = Family::default(),
            "workqueue_retries", "[BETA] Keys that were put back with a delay";
        queue_duration: Histograms = Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            "workqueue_queue_duration_seconds", "[BETA] Time from when a key is due to when it is taken";
        work_duration: Histograms = Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            "workqueue_work_duration_seconds", "[BETA] Time from taking a key to the end of the work on it";
    }
    with {
        probes: Probes;
    }
}

impl QueueMetrics {
    pub(super) fn series(&self, name: &'static str) -> QueueSeries {
        let labels = QueueLabels { name };
        QueueSeries {
            adds: self.adds.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            queue_duration: self.queue_duration.get_or_create_owned(&labels),
            work_duration: self.work_duration.get_or_create_owned(&labels),
        }
    }

    /// Asks a queue for its gauges at each scrape. A queue that is gone answers with none.
    pub(super) fn probe(
        &self,
        name: &'static str,
        probe: impl Fn() -> Option<Gauges> + Send + Sync + 'static,
    ) {
        self.probes
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name, Box::new(probe));
    }
}

/// The series of one queue.
pub(super) struct QueueSeries {
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
}

/// What is worked out at a scrape.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauges {
    pub(super) depth: usize,
    pub(super) unfinished_seconds: f64,
    pub(super) longest_running_seconds: f64,
}

type Probe = Box<dyn Fn() -> Option<Gauges> + Send + Sync>;

#[derive(Clone, Default)]
struct Probes(Arc<Mutex<BTreeMap<&'static str, Probe>>>);

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

impl Probes {
    fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for Probes {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let probes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read: Vec<(&'static str, Gauges)> = probes
            .iter()
            .filter_map(|(name, probe)| Some((*name, probe()?)))
            .collect();
        let mut encode = |metric, help, value: fn(&Gauges) -> f64| {
            let mut family = encoder.encode_descriptor(metric, help, None, MetricType::Gauge)?;
            for (name, gauges) in &read {
                let labels = QueueLabels { name };
                family.encode_family(&labels)?.encode_gauge(&value(gauges))?;
            }
            Ok::<(), fmt::Error>(())
        };
        encode(
            "workqueue_depth",
            "[BETA] Keys that are due and not yet taken.",
            |gauges| f64::from(u32::try_from(gauges.depth).unwrap_or(u32::MAX)),
        )?;
        encode(
            "workqueue_unfinished_work_seconds",
            "[BETA] Sum of the times that the keys under work have been so.",
            |gauges| gauges.unfinished_seconds,
        )?;
        encode(
            "workqueue_longest_running_processor_seconds",
            "[BETA] Time that the key under work for longest has been so.",
            |gauges| gauges.longest_running_seconds,
        )
    }
}
