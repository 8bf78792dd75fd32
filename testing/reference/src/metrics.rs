//! The series of `/metrics`, as the registry of a process describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Request, Transport, Url};
use bowline_controllers::queue::{Backoff, WorkQueue};
use bowline_kube_io::{Kube, KubeMetrics, KubeOptions};
use bowline_manager::loops::Loop;
use bowline_manager::metrics::process::ProcessCollector;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bytes::Bytes;
use http_body_util::Full;
use prometheus_client::registry::Registry;

use crate::{cell, code};

/// A family of series as a scrape shows it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    kind: String,
    help: String,
    /// By name, without the bound of a bucket.
    labels: BTreeSet<String>,
    /// The bounds of a histogram's buckets, without the last one.
    bounds: Vec<String>,
}

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\nServed on `/metrics` of the secure port, to whom the API server allows it, in Prometheus' text format 0.0.4. \
         Names, labels and buckets of the Kubernetes cloud controller manager mean what they mean there; `[ALPHA]`, `[BETA]` and \
         `[STABLE]` are its levels, and what has none is ours or the process's. Series of a family appear with their first value.\n\n\
         | series | type | labels | meaning |\n| --- | --- | --- | --- |\n",
    );
    for (name, family) in described() {
        let Family {
            kind,
            help,
            labels,
            bounds,
        } = family;
        let labels: Vec<String> = labels.iter().map(|label| code(label)).collect();
        let buckets = if bounds.is_empty() {
            String::new()
        } else {
            format!(": {}", bounds.join(", "))
        };
        let _ = writeln!(
            page,
            "| `{name}` | {kind}{buckets} | {} | {} |",
            labels.join(", "),
            cell(&help)
        );
    }
    page
}

/// Every family that a process registers, by name.
fn described() -> BTreeMap<String, Family> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector::default()));
    let of_clouds = bowline_cloud_http::Metrics::default();
    of_clouds.register(&mut registry);
    let of_kube = bowline_kube_io::KubeMetrics::register(&mut registry);
    let build = BUILD_LABELS.map(|name| (name, String::new())).to_vec();
    let metrics = Metrics::new(registry, &BuildInfo { labels: build });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    if let Ok(runtime) = runtime {
        runtime.block_on(live_for_a_moment(&metrics, of_clouds, of_kube));
    }
    families(&metrics.render().unwrap_or_default()) // writing to a String does not fail
}

/// What `kubernetes_build_info` says of a build.
const BUILD_LABELS: [&str; 9] = [
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
];

/// Reads a page as a scraper does.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# ") {
            let mut words = head.splitn(3, ' ');
            if let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) {
                name.clone_into(&mut current);
                let family = found.entry(current.clone()).or_default();
                match what {
                    "TYPE" => rest.clone_into(&mut family.kind),
                    _ => rest.clone_into(&mut family.help),
                }
            }
            continue;
        }
        let Some(family) = found.get_mut(&current) else {
            continue;
        };
        let labels = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
        // No value of a label has a comma between quotes here.
        for (name, value) in labels
            .iter()
            .flat_map(|(labels, _)| labels.split("\","))
            .filter_map(|label| label.split_once("=\""))
        {
            let value = value.trim_end_matches('"');
            if name != "le" {
                family.labels.insert(name.to_owned());
            } else if value != "+Inf" && !family.bounds.iter().any(|bound| bound == value) {
                family.bounds.push(value.to_owned());
            }
        }
    }
    found
}

/// A family is described only once it has a value: so everything happens once, in memory.
async fn live_for_a_moment(metrics: &Metrics, of_clouds: bowline_cloud_http::Metrics, of_kube: KubeMetrics) {
    let respond = || {
        tower::service_fn(|_: http::Request<_>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
        })
    };
    let kube = Kube::with_service(
        tower::ServiceExt::map_request(respond(), |request: http::Request<bowline_kube_io::Body>| {
            request.map(drop)
        }),
        KubeOptions {
            metrics: of_kube,
            ..KubeOptions::new("reference")
        },
    );
    let _ = kube.is_healthy().await;
    let mut config = CloudHttpConfig::new("cloudscale", "reference");
    config.metrics = of_clouds;
    let transport = Transport::memory(tower::ServiceExt::map_request(
        respond(),
        |request: http::Request<Full<Bytes>>| request.map(drop),
    ));
    if let Ok(url) = Url::parse("https://cloud.example/v1/servers") {
        let _ = CloudHttp::new(config, transport)
            .send(Request::read(http::Method::GET, "servers.list", url))
            .await;
    }
    let queue = WorkQueue::new("service", Backoff::service(), metrics.queues());
    queue.add(());
    queue.done(&queue.next().await);
    metrics.series().set_leading("cloud-controller-manager", true);
    metrics.series().count_slow_renewal("cloud-controller-manager");
    metrics.series().set_running(Loop::Service);
    metrics.series().set_ready(Loop::Service, true);
}
