//! The series of `/metrics`, as the registry of a process describes them.

use std::collections::BTreeMap;
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

use crate::cell;

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\nServed on `/metrics` of the secure port, to whom the API server allows it. Names of upstream mean what they mean \
         there. Series of a family appear with their first value.\n\n| series | type | meaning |\n| --- | --- | --- |\n",
    );
    for (name, (kind, help)) in described() {
        let name = if kind == "counter" {
            format!("{name}_total")
        } else {
            name
        };
        let _ = writeln!(page, "| `{name}` | {kind} | {} |", cell(&help));
    }
    page
}

/// Type and help of every series that a process registers, by name.
fn described() -> BTreeMap<String, (String, String)> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector::default()));
    let of_clouds = bowline_cloud_http::Metrics::default();
    of_clouds.register(&mut registry);
    let of_kube = bowline_kube_io::KubeMetrics::register(&mut registry);
    let metrics = Metrics::new(
        registry,
        &BuildInfo {
            labels: vec![("major", "1".to_owned())],
        },
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    if let Ok(runtime) = runtime {
        runtime.block_on(live_for_a_moment(&metrics, of_clouds, of_kube));
    }
    let text = metrics.render().unwrap_or_default(); // writing to a String does not fail
    let mut found: BTreeMap<String, (String, String)> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        if let (Some("#"), Some(what), Some(name), Some(rest)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            let entry = found.entry(name.to_owned()).or_default();
            match what {
                "TYPE" => entry.0 = rest.to_owned(),
                "HELP" => entry.1 = rest.to_owned(),
                _ => {}
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
