//! What is counted about the requests to the API server, under the names of the Kubernetes client libraries.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const BYTES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// Ages of a plugin's client certificate when it is replaced, in seconds.
const AGES: [f64; 11] = [
    600.0,
    1800.0,
    3600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// The `code` of a request that got no answer.
const NO_ANSWER: &str = "<error>";

/// The `code` of a request that a namespace refuses because it is being deleted: a 403 that is about no right.
const TERMINATING: &str = "<terminating>";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: Cow<'static, str>,
    method: &'static str,
    host: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
    host: Arc<str>,
}

/// No client is shared, so that none is found made already.
const MISS: [(&str, &str); 1] = [("result", "miss")];

/// For a family that has one series or none.
type NoLabels = [(&'static str, &'static str); 0];
type Histograms<Labels> = Family<Labels, Histogram, fn() -> Histogram>;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn bytes() -> Histogram {
    Histogram::new(BYTES)
}

bowline_plan::series! {
    /// The series `rest_client_*`. Clones share them.
    pub struct KubeMetrics {
        requests: Family<CodeLabels, Counter> = Family::default(),
            "rest_client_requests", "[ALPHA] Requests to the API server by status code, method and host, <error> without an answer, <terminating> for what is refused because its namespace is being deleted";
        duration: Histograms<VerbLabels> = Family::new_with_constructor(seconds),
            "rest_client_request_duration_seconds", "[ALPHA] Time from sending a request to the API server to the end of its answer; of a watch, to its beginning";
        waited: Histograms<VerbLabels> = Family::new_with_constructor(seconds),
            "rest_client_rate_limiter_duration_seconds", "[ALPHA] Time that requests waited for their turn before they were sent";
        sent: Histograms<VerbLabels> = Family::new_with_constructor(bytes),
            "rest_client_request_size_bytes", "[ALPHA] Size of requests to the API server";
        received: Histograms<VerbLabels> = Family::new_with_constructor(bytes),
            "rest_client_response_size_bytes", "[ALPHA] Size of the API server's answers";
        looked_up: Histograms<[(&'static str, String); 1]> =
            Family::new_with_constructor(|| Histogram::new(SECONDS[..11].iter().copied())),
            "rest_client_dns_resolution_duration_seconds", "[ALPHA] Time of looking up the name of the API server, or of the proxy before it; absent where both are addresses";
        transports: Gauge = Gauge::default(),
            "rest_client_transport_cache_entries", "[ALPHA] Clients of API servers that this process has";
        transports_made: Family<[(&'static str, &'static str); 1], Counter> = Family::default(),
            "rest_client_transport_create_calls", "[ALPHA] Clients of API servers that were made; none is shared, so each is a miss";
        given_up: Counter = Counter::default(),
            "rest_client_transport_cert_rotation_gc_calls", "[ALPHA] Watches of client certificates that were given up with their clients; clients live as long as the process";
        /// Without a value while a kubeconfig names a plugin: how long its certificate is valid is not looked into.
        plugin_ttl: Family<NoLabels, Gauge<f64, AtomicU64>> = Family::default(),
            "rest_client_exec_plugin_ttl_seconds", "[ALPHA] Time that the client certificate of a credential plugin is still valid; +Inf without a plugin";
        plugin_ages: Histograms<NoLabels> = Family::new_with_constructor(|| Histogram::new(AGES)),
            "rest_client_exec_plugin_certificate_rotation_age", "[ALPHA] Age of the client certificates of a credential plugin when they were replaced; shown without a plugin only";
    }
}

impl KubeMetrics {
    /// The series, made visible in this registry. Call it once per registry.
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        metrics.register(registry);
        metrics.transports_made.get_or_create(&MISS).inc_by(0);
        metrics
    }

    /// Counts a client with connections of its own, and whether a plugin makes its credentials.
    pub(crate) fn connected(&self, has_plugin: bool) {
        if has_plugin {
            self.plugin_ttl.clear();
            self.plugin_ages.clear();
        } else if self.transports.get() == 0 {
            self.plugin_ttl.get_or_create(&[]).set(f64::INFINITY);
            drop(self.plugin_ages.get_or_create(&[]));
        }
        self.transports.inc();
        self.transports_made.get_or_create(&MISS).inc();
    }

    /// A name was looked up, whatever came of it.
    pub fn looked_up(&self, host: &str, took: Duration) {
        let labels = [("host", host.to_owned())];
        self.looked_up.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn begin(
        &self,
        method: &'static str,
        host: &Arc<str>,
        sent: usize,
        waited: Duration,
    ) -> Measured {
        let verb = VerbLabels {
            verb: method,
            host: Arc::clone(host),
        };
        self.waited.get_or_create(&verb).observe(waited.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a size in bytes for a histogram")]
        self.sent.get_or_create(&verb).observe(sent as f64);
        Measured {
            metrics: self.clone(),
            verb,
            begun: Instant::now(),
            code: Cow::Borrowed(NO_ANSWER),
            received: 0,
        }
    }
}

/// One request under way; counted when it is dropped, so that one whose caller went away is counted as well.
pub(crate) struct Measured {
    metrics: KubeMetrics,
    verb: VerbLabels,
    begun: Instant,
    code: Cow<'static, str>,
    received: usize,
}

impl Measured {
    pub(crate) fn answered(&mut self, status: http::StatusCode) {
        self.code = Cow::Owned(status.as_str().to_owned());
    }

    /// It was refused because the namespace is on its way out.
    pub(crate) fn came_too_late(&mut self) {
        self.code = Cow::Borrowed(TERMINATING);
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let Self {
            metrics,
            verb,
            begun,
            code,
            received,
        } = self;
        let labels = CodeLabels {
            code: code.clone(),
            method: verb.verb,
            host: Arc::clone(&verb.host),
        };
        metrics.requests.get_or_create(&labels).inc();
        metrics
            .duration
            .get_or_create(verb)
            .observe(begun.elapsed().as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a size in bytes for a histogram")]
        metrics.received.get_or_create(verb).observe(*received as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn names_and_labels_are_those_of_the_client_libraries() {
        let mut registry = Registry::default();
        let metrics = KubeMetrics::registered(&mut registry);
        let host: Arc<str> = Arc::from("10.0.0.1:443");
        let mut measured = metrics.begin("PATCH", &host, 100, Duration::ZERO);
        measured.answered(http::StatusCode::OK);
        measured.received(2000);
        drop(measured);
        drop(metrics.begin("GET", &host, 0, Duration::ZERO));
        metrics.connected(false);
        metrics.looked_up("api.example.com", Duration::from_millis(300));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"rest_client_requests_total{code="200",method="PATCH",host="10.0.0.1:443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_request_duration_seconds_count{verb="PATCH",host="10.0.0.1:443"} 1"#,
            r#"rest_client_rate_limiter_duration_seconds_count{verb="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_request_size_bytes_bucket{le="256.0",verb="PATCH",host="10.0.0.1:443"} 1"#,
            r#"rest_client_dns_resolution_duration_seconds_bucket{le="0.25",host="api.example.com"} 0"#,
            r#"rest_client_dns_resolution_duration_seconds_bucket{le="0.5",host="api.example.com"} 1"#,
            r#"rest_client_transport_cache_entries 1"#,
            r#"rest_client_transport_cert_rotation_gc_calls_total 0"#,
            r#"rest_client_exec_plugin_ttl_seconds{} inf"#,
            r#"rest_client_exec_plugin_certificate_rotation_age_count{} 0"#,
            r#"rest_client_transport_create_calls_total{result="miss"} 1"#,
            r#"rest_client_response_size_bytes_bucket{le="1024.0",verb="PATCH",host="10.0.0.1:443"} 0"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(!text.contains(r#"le="60.0",host="api"#), "their longest is 30 s");
        // What a plugin does is not told, and nothing is said instead.
        metrics.connected(true);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(!text.contains("exec_plugin"), "{text}");
    }
}
