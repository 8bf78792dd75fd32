//! What is asked about the cluster before the controllers start.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, ClusterFacts, ClusterUid};
use bowline_kube_io::{Kube, KubeError};
use tokio::time::{Instant, sleep, timeout_at};

/// How long an API server may take to become healthy, from when the controllers could start.
const HEALTHY_WITHIN: Duration = Duration::from_secs(10);

/// Between two questions whether it is.
const HEALTH_PERIOD: Duration = Duration::from_secs(1);

/// The namespace whose UID stands for the cluster: there is one in every cluster, and it is never made anew.
const NAMESPACE: &str = "kube-system";

/// How long the API server's version, and a try for the cluster's UID, may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The facts about the cluster, once it is healthy.
///
/// # Errors
///
/// Why the controllers cannot run; for people.
pub(crate) async fn facts(
    kube: &Kube,
    name: &str,
    holder: &str,
    provider: &dyn CloudProvider,
) -> Result<Arc<ClusterFacts>, String> {
    until_healthy(kube).await?;
    let version = tokio::time::timeout(VERSION_TIMEOUT, kube.server_version()).await;
    let server_version = match version {
        Ok(Ok(version)) => Some(version),
        Ok(Err(error)) => {
            tracing::warn!(err = %error, "The API server's version could not be read");
            None
        }
        Err(_) => {
            tracing::warn!("The API server's version could not be read in time");
            None
        }
    };
    Ok(Arc::new(ClusterFacts {
        name: name.to_owned(),
        uid: uid(&kube.with_timeout(VERSION_TIMEOUT), provider).await?,
        server_version,
        holder: holder.to_owned(),
    }))
}

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
    let is_final = |error: &KubeError| {
        matches!(
            error,
            KubeError::Forbidden(_) | KubeError::NotFound(_) | KubeError::Unauthorized(_)
        )
    };
    let trouble = "The UID of the cluster could not be read, will retry";
    let error = match answered(|| kube.namespace_uid(NAMESPACE), is_final, trouble).await {
        Ok(uid) => return Ok(Some(uid)),
        Err(error) => error,
    };
    let hint = match error {
        Some(KubeError::Forbidden(_)) => " (the ClusterRole needs the verb get on namespaces/kube-system)",
        _ => "",
    };
    Err(format!(
        "cloud provider {:?} marks what it makes with the UID of the namespace {NAMESPACE}, which cannot be \
         read{hint}: {}",
        provider.name(),
        why(error.as_ref())
    ))
}

/// Waits until the API server is healthy, as Kubernetes' cloud-provider library does before it starts its controllers.
///
/// A server that hides its health from this process (403, 404) answers, and that is enough.
///
/// # Errors
///
/// It is not within ten seconds; for people.
pub async fn until_healthy(kube: &Kube) -> Result<(), String> {
    let is_hidden = |error: &KubeError| matches!(error, KubeError::Forbidden(_) | KubeError::NotFound(_));
    match answered(|| kube.is_healthy(), is_hidden, "The API server is not healthy").await {
        Err(Some(error)) if is_hidden(&error) => Ok(()),
        answer => answer.map_err(|last| {
            format!(
                "failed to wait for apiserver being healthy: not within {} s: {}",
                HEALTHY_WITHIN.as_secs(),
                why(last.as_ref())
            )
        }),
    }
}

/// Asks the API server once a second, for ten seconds, until it has answered, or with an error that is final. Each other
/// error is logged as `trouble`.
///
/// # Errors
///
/// The last one; `None` if there was no answer at all.
async fn answered<T, F: Future<Output = Result<T, KubeError>>>(
    question: impl Fn() -> F,
    is_final: impl Fn(&KubeError) -> bool,
    trouble: &'static str,
) -> Result<T, Option<KubeError>> {
    let deadline = Instant::now() + HEALTHY_WITHIN;
    let mut last = None;
    loop {
        match timeout_at(deadline, question()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) if is_final(&error) => return Err(Some(error)),
            Ok(Err(error)) => {
                tracing::warn!(err = %error, "{trouble}");
                last = Some(error);
            }
            Err(_) => {}
        }
        if Instant::now() + HEALTH_PERIOD > deadline {
            return Err(last);
        }
        sleep(HEALTH_PERIOD).await;
    }
}

/// Why a question has no answer.
fn why(last: Option<&KubeError>) -> String {
    last.map_or_else(|| "it does not answer".to_owned(), ToString::to_string)
}
