//! The series of `/metrics`, as the registry of a process describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Request, Transport, Url};
use bowline_cloud_provider::ReconcileKind;
use bowline_controllers::metrics::IpamLabels;
use bowline_controllers::queue::{WorkQueue, of_services};
use bowline_kube_io::{ConnectOptions, Kube, KubeMetrics, KubeOptions};
use bowline_manager::KubeReviews;
use bowline_manager::config::AccessConfig;
use bowline_manager::controllers::ControllerName;
use bowline_manager::metrics::process::ProcessCollector;
use bowline_manager::metrics::{BuildInfo, Metrics, gauges};
use bowline_manager::serving::{Authorities, Pages, Site, SiteParts};
use bowline_plan::{Answer, Lane};
use bytes::Bytes;
use http_body_util::Full;
use prometheus_client::registry::Registry;

use crate::reference::{cell, code};

#[cfg(test)]
mod parity;

/// Series of the Go managers that are not here, and why.
const ABSENT: &[(&str, &str)] = &[
    (
        "rest_client_request_retries_total",
        "Requests are not repeated below the controllers: what failed comes back through a queue, see `workqueue_retries_total`.",
    ),
    (
        "rest_client_exec_plugin_call_total",
        "The Kubernetes client runs such plugins without telling, so `rest_client_exec_plugin_ttl_seconds` and \
         `rest_client_exec_plugin_certificate_rotation_age` go, too, where a kubeconfig names one.",
    ),
    (
        "rest_client_transport_ca_reload_total, rest_client_transport_cache_gc_calls_total",
        "Clients live as long as the process: nothing is collected.",
    ),
    (
        "go_*, apiserver_audit_*, apiserver_envelope_*, apiserver_storage_*, apiserver_webhooks_*, aggregator_discovery_*",
        "Parts of the Go runtime and of the API server's library that do not exist here.",
    ),
];

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
        "# Metrics\n\nServed at `/metrics` on the secure port, in Prometheus' text format 0.0.4. The API server decides who may read \
         them. Names, labels and buckets that the Kubernetes cloud controller manager has mean the same here. `[ALPHA]`, `[BETA]` and \
         `[STABLE]` are its levels; a metric without one is ours or the process's. A series appears with its first value.\n\n\
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
    page.push_str("\n## Not here\n\n| series of the Go managers | why |\n| --- | --- |\n");
    for (names, why) in ABSENT {
        let names: Vec<String> = names.split(", ").map(code).collect();
        let _ = writeln!(page, "| {} | {} |", names.join(", "), cell(why));
    }
    page
}

/// Every family that a process registers, by name.
fn described() -> BTreeMap<String, Family> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector::default()));
    let of_clouds = bowline_cloud_http::Metrics::default();
    of_clouds.register(&mut registry);
    let of_openstack = bowline_openstack::Metrics::default();
    of_openstack.register(&mut registry);
    count_once(&of_openstack);
    let of_kube = bowline_kube_io::KubeMetrics::registered(&mut registry);
    let build = BUILD_LABELS.map(|name| (name, String::new())).to_vec();
    let metrics = Arc::new(Metrics::new(registry, &BuildInfo { labels: build }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    if let Ok(runtime) = runtime {
        // A queue tells of itself for as long as it lives.
        let _queue = runtime.block_on(live_for_a_moment(&metrics, of_clouds, of_kube));
        return families(&metrics.render().unwrap_or_default()); // writing to a String does not fail
    }
    BTreeMap::new()
}

/// The series of OpenStack appear with the first call, and with the first load balancer.
fn count_once(metrics: &bowline_openstack::Metrics) {
    let took = std::time::Duration::ZERO;
    bowline_openstack::CallObserver::observe(metrics, "loadbalancer_list", took, true);
    metrics.reconciled(ReconcileKind::Ensure, took, true);
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
async fn live_for_a_moment(
    metrics: &Arc<Metrics>,
    of_clouds: bowline_cloud_http::Metrics,
    of_kube: KubeMetrics,
) -> Arc<WorkQueue<()>> {
    let respond = || {
        tower::service_fn(|_: http::Request<_>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
        })
    };
    let options = || KubeOptions {
        metrics: of_kube.clone(),
        ..KubeOptions::new("reference")
    };
    let kube = Kube::with_service(
        tower::ServiceExt::map_request(respond(), |request: http::Request<bowline_kube_io::Body>| {
            request.map(drop)
        }),
        options(),
    );
    let _ = kube.is_healthy().await;
    let nowhere = ConnectOptions {
        master: Some("127.0.0.1:1".to_owned()),
        ..ConnectOptions::default()
    };
    // Nothing is sent.
    let _ = Kube::connect(&nowhere, options()).await;
    of_kube.looked_up("api.example.com", std::time::Duration::ZERO);
    let mut config = CloudHttpConfig::new("cloudscale", "reference");
    config.metrics = of_clouds;
    // The first request is one too many, and tried again at once.
    let is_asked = Arc::new(AtomicBool::new(false));
    let transport = Transport::memory(tower::service_fn(move |_: http::Request<Full<Bytes>>| {
        let mut answer = http::Response::new(Full::new(Bytes::from_static(b"{}")));
        if !is_asked.swap(true, Ordering::SeqCst) {
            *answer.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
            let now = http::HeaderValue::from_static("0");
            answer.headers_mut().insert(http::header::RETRY_AFTER, now);
        }
        async { Ok::<_, std::convert::Infallible>(answer) }
    }));
    if let Ok(url) = Url::parse("https://cloud.example/v1/servers") {
        let _ = CloudHttp::new(config, transport)
            .send(Request::read(http::Method::GET, "servers.list", url))
            .await;
    }
    let queue = WorkQueue::new("service", of_services(), &metrics.controllers().queues);
    queue.add(());
    queue.done(&queue.next().await);
    metrics.controllers().planned(&Answer::<(), ()>::Settled(()));
    metrics.controllers().synced("ensure", "settled");
    metrics.controllers().route_synced("noop", "periodic");
    metrics.controllers().instance_asked("instance_exists", "success");
    metrics.controllers().node_passed_over("node", "not_owned");
    let counted = bowline_phoenixnap::gauge_table().map(|gauge| gauge.measure("", 0));
    let measurements = &metrics.controllers().measurements;
    measurements.show("reference", counted.to_vec());
    let of_controllers = bowline_controllers::metrics::gauges::table();
    for gauge in of_controllers.into_iter().chain(gauges::table()) {
        let probes = &metrics.controllers().probes;
        probes.probe(gauge, "reference", || Some(vec![("", 0.0)]));
    }
    drop(metrics.controllers().waits_for(&Lane::new("nimbus/volume/7")));
    let ipam = &metrics.controllers().ipam;
    let network = IpamLabels::of(&"10.200.0.0/16");
    ipam.allocations.get_or_create(&network).inc();
    ipam.releases.get_or_create(&network).inc();
    ipam.blocks.get_or_create(&network).set(256);
    ipam.usage.get_or_create(&network).set(0.0);
    ipam.tries.get_or_create(&network).observe(0.0);
    metrics.series().set_leading("cloud-controller-manager", true);
    metrics.series().count_slow_renewal("cloud-controller-manager");
    metrics.series().set_running(ControllerName::Service);
    metrics.series().set_ready(ControllerName::Service, true);
    ask_the_secure_port(metrics, &kube).await;
    queue
}

/// Once with a token and once without, so that each kind of review is asked for.
async fn ask_the_secure_port(metrics: &Arc<Metrics>, kube: &Kube) {
    let parts = SiteParts {
        health: Arc::default(),
        metrics: Arc::clone(metrics),
        authorities: Authorities::nobody(),
        reviews: Some(Arc::new(KubeReviews::new(
            kube,
            kube,
            metrics.serving().clone(),
            1,
        ))),
        pages: Pages::default(),
        clock: Arc::clone(kube.clock()),
        debug: None,
    };
    let site = Site::new(&AccessConfig::default(), parts);
    for authorization in ["Bearer token", ""] {
        let request = http::Request::get("/metrics").header("authorization", authorization);
        if let Ok(request) = request.body(Full::<Bytes>::default()) {
            let _ = site.respond(request, &[]).await;
        }
    }
}
