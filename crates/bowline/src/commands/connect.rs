//! Connections to API servers, from the command line's options.

use std::path::Path;
use std::sync::Arc;

use bowline_kube_io::{ConnectError, ConnectOptions, Kube, KubeMetrics, KubeOptions, Pace, WriteGate};

use super::Surroundings;
use crate::args::Options;

/// The API server that the loops work with.
pub(super) async fn api_server(
    options: &Options,
    surroundings: &Surroundings,
    gate: Arc<dyn WriteGate>,
    metrics: KubeMetrics,
) -> Result<Kube, ConnectError> {
    let mut kube = KubeOptions::new(options.version.user_agent(&options.program));
    kube.gate = gate;
    kube.metrics = metrics;
    kube.pace = options.kube.pace.map(|pace| Pace {
        qps: pace.qps,
        burst: pace.burst,
    });
    let target = ConnectOptions {
        kubeconfig: options.kube.kubeconfig.clone(),
        master: options.kube.master.clone(),
        environment: surroundings.environment.clone(),
        speaks_for_others: options.manager.service_accounts,
        ..ConnectOptions::default()
    };
    Kube::connect(&target, kube).await
}

/// The API server that reviews requests to the secure port: the one of this kubeconfig, else the one of the loops.
pub(super) async fn reviewer(
    options: &Options,
    surroundings: &Surroundings,
    kubeconfig: Option<&Path>,
    of_loops: &Kube,
) -> Result<Kube, ConnectError> {
    let Some(path) = kubeconfig else {
        return Ok(of_loops.clone());
    };
    let target = ConnectOptions {
        kubeconfig: Some(path.to_owned()),
        environment: surroundings.environment.clone(),
        ..ConnectOptions::default()
    };
    Kube::connect(
        &target,
        KubeOptions::new(options.version.user_agent(&options.program)),
    )
    .await
}
