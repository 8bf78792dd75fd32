//! What is asked about the cluster before the loops start.

use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, ClusterUid};
use bowline_kube_io::{Kube, KubeError};
use tokio::time::{Instant, sleep, timeout_at};

/// How long an API server may take to become healthy, from when its loops could start.
const HEALTHY_WITHIN: Duration = Duration::from_secs(10);

/// Between two questions whether it is.
const HEALTH_PERIOD: Duration = Duration::from_secs(1);

/// The namespace whose UID stands for the cluster: there is one in every cluster, and it is never made anew.
const NAMESPACE: &str = "kube-system";

/// The UID of the cluster, if the provider requires it. An API server that has other troubles than the role is asked
/// again for ten seconds.
///
/// # Errors
///
/// It cannot be read; for people.
pub async fn uid(kube: &Kube, provider: &dyn CloudProvider) -> Result<Option<String>, String> {
    if provider.cluster_uid() == ClusterUid::Unused {
        return Ok(None);
    }
    let deadline = Instant::now() + HEALTHY_WITHIN;
    loop {
        let error = match kube.namespace_uid(NAMESPACE).await {
            Ok(uid) => return Ok(Some(uid)),
            Err(error) => error,
        };
        let hint = match error {
            KubeError::Forbidden(_) => " (the ClusterRole needs the verb get on namespaces/kube-system)",
            KubeError::NotFound(_) | KubeError::Unauthorized(_) => "",
            _ if Instant::now() + HEALTH_PERIOD <= deadline => {
                tracing::warn!(err = %error, namespace = NAMESPACE, "The UID of the cluster could not be read, will retry");
                sleep(HEALTH_PERIOD).await;
                continue;
            }
            _ => "",
        };
        return Err(format!(
            "cloud provider {:?} marks what it makes with the UID of the namespace {NAMESPACE}, which cannot be \
             read{hint}: {error}",
            provider.name()
        ));
    }
}

/// Waits until the API server is healthy, as Kubernetes' cloud-provider library does before it starts its loops.
///
/// A server that hides its health from this process (403, 404) answers, and that is enough.
///
/// # Errors
///
/// It is not within ten seconds; for people.
pub async fn until_healthy(kube: &Kube) -> Result<(), String> {
    let deadline = Instant::now() + HEALTHY_WITHIN;
    let mut last = None;
    loop {
        match timeout_at(deadline, kube.is_healthy()).await {
            Ok(Ok(()) | Err(KubeError::Forbidden(_) | KubeError::NotFound(_))) => return Ok(()),
            Ok(Err(error)) => {
                tracing::warn!(err = %error, "The API server is not healthy");
                last = Some(error);
            }
            Err(_) => {}
        }
        if Instant::now() + HEALTH_PERIOD > deadline {
            let why = last.map_or_else(|| "it does not answer".to_owned(), |error| error.to_string());
            return Err(format!(
                "failed to wait for apiserver being healthy: not within {} s: {why}",
                HEALTHY_WITHIN.as_secs()
            ));
        }
        sleep(HEALTH_PERIOD).await;
    }
}
