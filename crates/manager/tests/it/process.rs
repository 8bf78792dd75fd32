//! One manager process after the other, at one API server.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_kube_io::{Kube, KubeOptions, TokioClock};
use bowline_manager::config::{AccessConfig, Config};
use bowline_manager::doctor::{Cloud, Patient};
use bowline_manager::health::{Endpoint, Health};
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::serving::{Authorities, Pages, Site, SiteParts};
use bowline_manager::{End, FencingGate, Identity, KubeReviews, Manager};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clouds::TestInstances;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn api_server() -> KubeApi {
    KubeApi::builder()
        .start_time("2026-01-01T00:00:00Z".parse().unwrap())
        .build()
}

/// A manager that runs. Dropping it is a crash.
pub(crate) struct Process {
    pub(crate) gate: Arc<FencingGate>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) site: Site,
    stop: CancellationToken,
    run: JoinHandle<End>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.run.abort();
    }
}

impl Process {
    pub(crate) fn start(api: &KubeApi, name: &str) -> Self {
        Self::with(api, name, Config::default(), TestInstances::default())
    }

    pub(crate) fn with(api: &KubeApi, name: &str, config: Config, cloud: TestInstances) -> Self {
        let asked = Arc::clone(&cloud.asked);
        Self::with_provider(api, name, config, Arc::new(cloud), asked)
    }

    /// With instances that it can ask about.
    pub(crate) fn busy(api: &KubeApi, name: &str) -> Self {
        Self::with(api, name, Config::default(), instances())
    }

    /// The same with a cloud of another kind, of which `asked` tells how often it was asked.
    pub(crate) fn with_provider(
        api: &KubeApi,
        name: &str,
        config: Config,
        provider: Arc<dyn CloudProvider>,
        asked: Arc<AtomicUsize>,
    ) -> Self {
        let clock = Arc::new(TokioClock::starting_at(api.now()));
        let gate = Arc::new(if config.election.is_some() {
            FencingGate::closed(clock.clone())
        } else {
            FencingGate::open()
        });
        let kube = Kube::with_service(
            api.service(),
            KubeOptions {
                gate: Arc::clone(&gate) as Arc<_>,
                clock,
                ..KubeOptions::new("test")
            },
        );
        let metrics = Arc::new(Metrics::new(Registry::default(), &BuildInfo::default()));
        let health = Arc::new(Health::default());
        let reviews = KubeReviews::new(&kube, &kube, metrics.serving().clone(), 1);
        let site = Site::new(
            &AccessConfig::default(),
            SiteParts {
                health: Arc::clone(&health),
                metrics: Arc::clone(&metrics),
                authorities: Authorities::nobody(),
                reviews: Some(Arc::new(reviews)),
                pages: Pages::default(),
                clock: Arc::clone(kube.clock()),
                debug: None,
            },
        );
        let stop = CancellationToken::new();
        let manager = Manager {
            config,
            kube,
            provider,
            gate: Arc::clone(&gate),
            silences: Default::default(),
            identity: Identity::new(name, "1"),
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            // Two candidates of one seed would always try together.
            seed: name.bytes().map(u64::from).sum(),
        };
        let run = tokio::spawn(manager.run(None, stop.clone()));
        Self {
            gate,
            health,
            metrics,
            asked,
            site,
            stop,
            run,
        }
    }

    /// Asks it to stop and waits for its end.
    pub(crate) async fn stop(&mut self) -> End {
        self.stop.cancel();
        self.end().await
    }

    pub(crate) async fn end(&mut self) -> End {
        tokio::time::timeout(60 * SECOND, &mut self.run)
            .await
            .unwrap()
            .unwrap()
    }

    pub(crate) fn leads(&self) -> bool {
        let line = r#"leader_election_master_status{name="cloud-controller-manager"} 1"#;
        self.metrics.render().unwrap().lines().any(|found| found == line)
    }

    /// Waits until it leads. Gives the time it took.
    pub(crate) async fn leading(&self) -> Duration {
        until("it leads", || self.leads()).await
    }

    /// `/readyz`.
    pub(crate) fn is_ready(&self) -> bool {
        self.health.probe(Endpoint::Ready, false, &[]).passed
    }

    /// `/healthz?verbose`.
    pub(crate) fn healthz(&self) -> String {
        self.health.probe(Endpoint::Health, true, &[]).body
    }

    pub(crate) fn cloud_calls(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// A GET of the secure port: status and body.
    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let mut request = Request::get(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = self
            .site
            .respond(request.body(Empty::<Bytes>::new()).unwrap(), &[])
            .await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

pub(crate) fn instances() -> TestInstances {
    TestInstances {
        has_instances: true,
        ..TestInstances::default()
    }
}

/// A Node that has just registered.
pub(crate) fn new_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "taints": [{
            "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule",
        }] },
    })
}

/// What the commands that look at a cluster are told.
pub(crate) fn patient<'a>(config: &'a Config, api: &KubeApi, cloud: Cloud) -> Patient<'a> {
    let options = KubeOptions {
        clock: Arc::new(TokioClock::starting_at(api.now())),
        ..KubeOptions::new("bowline/test")
    };
    Patient {
        config,
        lookup: None,
        is_manager: false,
        kube: Ok(Kube::with_service(api.service(), options)),
        cloud,
        cloud_clock: Default::default(),
        progress: Default::default(),
        manifests: Default::default(),
        holder: "test".to_owned(),
        follows: None,
    }
}

/// What these requests meet from now on.
pub(crate) fn meets(api: &KubeApi, effect: Effect, verb: &str, resource: &str) {
    api.faults()
        .inject(Fault::new(effect).verb(verb).resource(resource));
}

pub(crate) async fn pass(seconds: u32) {
    tokio::time::sleep(seconds * SECOND).await;
}

/// Waits until something holds, and tells how long that took.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < 120 * SECOND, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    begun.elapsed()
}
