//! What is asked about the cluster before the loops start.

use bowline_cloud_provider::{CloudProvider, ClusterUid};
use bowline_kube_io::Kube;

/// The namespace whose UID stands for the cluster: there is one in every cluster, and it is never made anew.
const NAMESPACE: &str = "kube-system";

/// The UID of the cluster, if the provider requires it.
///
/// # Errors
///
/// It cannot be read; for people.
pub async fn uid(kube: &Kube, provider: &dyn CloudProvider) -> Result<Option<String>, String> {
    match provider.cluster_uid() {
        ClusterUid::Unused => Ok(None),
        ClusterUid::Required => kube.namespace_uid(NAMESPACE).await.map(Some).map_err(|error| {
            format!(
                "cloud provider {:?} marks what it makes with the UID of the namespace {NAMESPACE}, which cannot be \
                 read (the ClusterRole needs the verb get on namespaces/{NAMESPACE}): {error}",
                provider.name()
            )
        }),
    }
}
