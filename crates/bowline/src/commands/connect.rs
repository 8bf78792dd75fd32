//! Connections to API servers, from the command line's options.

use std::path::Path;
use std::sync::Arc;

use bowline_kube_io::{ConnectError, ConnectOptions, Gate, Kube, KubeMetrics, KubeOptions, Rate};

use super::Surroundings;
use crate::args::Options;

/// The API server that the controllers work with.
pub(super) async fn api_server(
    options: &Options,
    surroundings: &Surroundings,
    gate: Arc<dyn Gate>,
    metrics: KubeMetrics,
) -> Result<Kube, ConnectError> {
    let mut kube = KubeOptions::new(options.version.user_agent(&options.program));
    kube.gate = gate;
    kube.metrics = metrics;
    kube.pace = options.kube.pace.map(|pace| Rate {
        per_second: pace.qps,
        burst: pace.burst,
    });
    let target = ConnectOptions {
        kubeconfig: options.kube.kubeconfig.clone(),
        kubeconfig_flag: options.kube.kubeconfig_source,
        master: options.kube.master.clone(),
        environment: surroundings.environment.clone(),
        speaks_for_others: options.manager.service_accounts,
        ..ConnectOptions::default()
    };
    Kube::connect(&target, kube).await
}

/// The API server that the secure port asks about its clients.
pub(super) struct Delegate {
    /// The API server.
    pub(super) kube: Kube,
    /// Whether the operator or the pod names it; else it is only the one that the controllers use.
    pub(super) is_named: bool,
}

/// The API server of the kubeconfig that a flag names; else, in a pod, the one of the pod's cluster; else the one of the controllers.
///
/// The Go managers ask nobody in the last case. Here, who may read the cluster's metrics may read the manager's there,
/// too; but nothing is looked up, and nothing can fail at start.
pub(super) async fn delegate(
    options: &Options,
    surroundings: &Surroundings,
    (flag, kubeconfig): (&'static str, Option<&Path>),
    of_loops: &Kube,
) -> Result<Delegate, ConnectError> {
    let target = ConnectOptions {
        kubeconfig: kubeconfig.map(Path::to_owned),
        kubeconfig_flag: flag,
        environment: surroundings.environment.clone(),
        ..ConnectOptions::default()
    };
    let is_pod_of_loops = options.kube.kubeconfig.is_none() && options.kube.master.is_none();
    if kubeconfig.is_none() && is_pod_of_loops {
        return Ok(Delegate {
            kube: of_loops.clone(),
            is_named: true,
        });
    }
    let kube = KubeOptions::new(options.version.user_agent(&options.program));
    match Kube::connect(&target, kube).await {
        Ok(kube) => Ok(Delegate { kube, is_named: true }),
        Err(error) if kubeconfig.is_some() => Err(error),
        // This is no pod.
        Err(_) => Ok(Delegate {
            kube: of_loops.clone(),
            is_named: false,
        }),
    }
}
