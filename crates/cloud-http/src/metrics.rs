//! What is counted about the calls to clouds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// From a fast read (10 ms) to a write that the cloud held back (2 min).
const BUCKETS: [f64; 12] = [
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];

/// The `code` of an exchange that got no answer, or only the beginning of one.
const NO_ANSWER: &str = "<error>";

/// The `code` of an exchange whose caller went away before its end: another call that it belongs with may have failed.
const GIVEN_UP: &str = "<cancelled>";
/// The code of an exchange that was answered by somebody else than the API.
const PAGE: &str = "<page>";

/// The `code` of an exchange whose status is good, and whose answer is none to the question.
const UNREADABLE: &str = "<unreadable>";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    provider: &'static str,
    operation: &'static str,
    code: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    provider: &'static str,
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: &'static str,
}

bowline_plan::series! {
    /// The series of all clouds. Clones share them.
    ///
    /// An exchange is one request that was handed to the transport: a call that was tried three times counts three times,
    /// because that is what the cloud sees.
    pub struct Metrics {
        requests: Family<CodeLabels, Counter> = Family::default(),
            "cloud_api_requests", "Requests sent to a cloud's API by operation and HTTP status, <error> without a whole answer, <page> with one for people, such as that of a proxy, <unreadable> with a good status and JSON of another kind, <cancelled> where nobody waited for it any more";
        duration: Family<OperationLabels, Histogram, fn() -> Histogram> = Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            "cloud_api_request_duration_seconds", "Time from sending a request to a cloud's API to the end of its answer";
        in_flight: Family<ProviderLabels, Gauge> = Family::default(),
            "cloud_api_requests_in_flight", "Requests to a cloud's API that are waiting for the end of their answer";
        throttled: Family<ProviderLabels, Counter> = Family::default(),
            "cloud_api_throttled", "Answers of a cloud's API that refused a request because of its rate";
        budget_left: Family<ProviderLabels, Gauge> = Family::default(),
            "cloud_api_budget_left", "Requests to a cloud's API that could begin at once";
    }
    with {
        good_reads: GoodReads;
    }
}

/// When a read of a provider's API has succeeded for the last time; until one has, when the first request was sent.
#[derive(Debug, Clone, Default)]
struct GoodReads(Arc<Mutex<BTreeMap<&'static str, Instant>>>);

impl GoodReads {
    fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    fn asked(&self, provider: &'static str) {
        self.change(|reads| {
            reads.entry(provider).or_insert_with(Instant::now);
        });
    }

    fn read(&self, provider: &'static str) {
        self.change(|reads| {
            reads.insert(provider, Instant::now());
        });
    }

    fn change<R>(&self, change: impl FnOnce(&mut BTreeMap<&'static str, Instant>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Collector for GoodReads {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let reads = self.change(|reads| reads.clone());
        let mut family = encoder.encode_descriptor(
            "cloud_api_last_good_read_age_seconds",
            "Time since a read of a cloud's API has succeeded for the last time; until one has, since the first request as the leader",
            None,
            MetricType::Gauge,
        )?;
        for (provider, read) in reads {
            let age = ConstGauge::new(read.elapsed().as_secs_f64());
            age.encode(family.encode_family(&ProviderLabels { provider })?)?;
        }
        Ok(())
    }
}

impl Metrics {
    /// The same series, but for the age of the last good read, which is left alone.
    pub(crate) fn without_good_reads(&self) -> Self {
        Self {
            good_reads: GoodReads::default(),
            ..self.clone()
        }
    }

    pub(crate) fn throttled(&self, provider: &'static str) {
        self.throttled.get_or_create(&ProviderLabels { provider }).inc();
    }

    pub(crate) fn budget_left(&self, provider: &'static str, left: usize) {
        self.budget_left
            .get_or_create(&ProviderLabels { provider })
            .set(i64::try_from(left).unwrap_or(i64::MAX));
    }

    /// Counts an exchange from now on until the guard is finished, or dropped without an answer.
    pub(crate) fn begin(&self, provider: &'static str, operation: &'static str) -> Exchange {
        self.good_reads.asked(provider);
        self.in_flight.get_or_create(&ProviderLabels { provider }).inc();
        Exchange {
            metrics: self.clone(),
            provider,
            operation,
            begun: Instant::now(),
            code: Cow::Borrowed(GIVEN_UP),
            is_good_read: false,
            has_ended: false,
        }
    }
}

/// One exchange under way, and after its end what is thought of its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    metrics: Metrics,
    provider: &'static str,
    operation: &'static str,
    begun: Instant,
    code: Cow<'static, str>,
    is_good_read: bool,
    has_ended: bool,
}

impl Exchange {
    pub(crate) fn answered(&mut self, status: http::StatusCode) {
        self.code = Cow::Owned(status.as_str().to_owned());
    }

    /// The status is good, but the answer is none of an API.
    pub(crate) fn was_page(&mut self) {
        self.code = Cow::Borrowed(PAGE);
    }

    pub(crate) fn failed(&mut self) {
        self.code = Cow::Borrowed(NO_ANSWER);
    }

    /// It has read something of the cloud, and its answer has come whole. Who reads that answer may yet find that it is none.
    pub(crate) fn was_good_read(&mut self) {
        self.is_good_read = true;
    }

    /// Its status is good, and its answer cannot be used: nothing of the cloud has been read.
    pub(crate) fn was_unreadable(&mut self) {
        self.is_good_read = false;
        // Of what is no answer of the API's own, more is known.
        if ![PAGE, NO_ANSWER].contains(&&*self.code) {
            self.code = Cow::Borrowed(UNREADABLE);
        }
    }

    /// Its status is good, and its answer says that it is refused.
    pub(crate) fn was_refused(&mut self, code: http::StatusCode) {
        self.is_good_read = false;
        self.answered(code);
    }

    /// Its answer is there, and somebody has still to read it.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let Self {
            metrics,
            provider,
            operation,
            ..
        } = &*self;
        metrics
            .in_flight
            .get_or_create(&ProviderLabels { provider })
            .dec();
        // What has no end tells how long somebody waited, and not how fast the cloud is.
        if self.code != NO_ANSWER && self.code != GIVEN_UP {
            metrics
                .duration
                .get_or_create(&OperationLabels { provider, operation })
                .observe(self.begun.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Exchange {
    // In drop, so that an exchange whose caller went away is counted as well, and one that was answered once its answer is read.
    fn drop(&mut self) {
        self.end();
        let labels = CodeLabels {
            provider: self.provider,
            operation: self.operation,
            code: self.code.clone(),
        };
        self.metrics.requests.get_or_create(&labels).inc();
        if self.is_good_read {
            self.metrics.good_reads.read(self.provider);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_the_documented_ones() {
        let metrics = Metrics::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            metrics
                .begin("nimbus", "servers.list")
                .answered(http::StatusCode::OK);
            drop(metrics.begin("nimbus", "servers.list"));
            metrics.begin("nimbus", "servers.list").failed();
            let mut unreadable = metrics.begin("nimbus", "servers.list");
            unreadable.answered(http::StatusCode::OK);
            unreadable.was_unreadable();
            drop(unreadable);
            metrics.throttled("nimbus");
            metrics.budget_left("nimbus", 16);
        });
        let text = shown(&metrics);
        for line in [
            r#"cloud_api_requests_total{provider="nimbus",operation="servers.list",code="200"} 1"#,
            r#"cloud_api_requests_total{provider="nimbus",operation="servers.list",code="<error>"} 1"#,
            r#"cloud_api_requests_total{provider="nimbus",operation="servers.list",code="<cancelled>"} 1"#,
            r#"cloud_api_requests_total{provider="nimbus",operation="servers.list",code="<unreadable>"} 1"#,
            r#"cloud_api_request_duration_seconds_count{provider="nimbus",operation="servers.list"} 2"#,
            r#"cloud_api_requests_in_flight{provider="nimbus"} 0"#,
            r#"cloud_api_throttled_total{provider="nimbus"} 1"#,
            r#"cloud_api_budget_left{provider="nimbus"} 16"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in\n{text}"
            );
        }
    }

    fn shown(metrics: &Metrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn age(metrics: &Metrics) -> Option<String> {
        let start = "cloud_api_last_good_read_age_seconds{provider=\"nimbus\"} ";
        let text = shown(metrics);
        let age = text.lines().find_map(|line| line.strip_prefix(start));
        age.map(str::to_owned)
    }

    #[tokio::test(start_paused = true)]
    async fn the_age_of_the_last_good_read_grows_until_a_read_succeeds() {
        let metrics = Metrics::default();
        assert_eq!(age(&metrics), None, "nothing was asked");
        drop(metrics.begin("nimbus", "servers.list"));
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert_eq!(age(&metrics).as_deref(), Some("60.0"), "since the first request");
        metrics.begin("nimbus", "servers.list").was_good_read();
        assert_eq!(age(&metrics).as_deref(), Some("0.0"));
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        assert_eq!(age(&metrics).as_deref(), Some("5.0"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_has_only_asked_at_its_start_shows_no_age_of_a_last_good_read() {
        let metrics = Metrics::default();
        let mut of_work = crate::CloudHttpConfig::new("nimbus", "bowline");
        of_work.metrics = metrics.clone();
        let at_start = of_work.for_questions().metrics;
        at_start.begin("nimbus", "versions.list").was_good_read();
        assert_eq!(age(&metrics), None);
        assert!(
            shown(&metrics).contains("versions.list"),
            "it is counted all the same"
        );
        of_work.metrics.begin("nimbus", "servers.list").was_good_read();
        assert_eq!(age(&metrics).as_deref(), Some("0.0"), "it leads");
    }
}
