//! What is asked of the API server through its own API.

use std::io;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Api, Client, Config};

use crate::certificates::CertificateError;
use crate::kubeconfig::Kubeconfig;

/// The field manager of what tests apply.
const MANAGER: &str = "control-plane-test";

/// Why something asked of a running control plane was not done.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No certificate for the user.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The kubeconfig's file could not be written.
    #[error("cannot write a kubeconfig")]
    File(#[from] io::Error),
    /// The kubeconfig could not be read back.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The API server said no, or nothing.
    #[error("asking the API server")]
    Api(#[from] kube::Error),
    /// It granted a token without a token.
    #[error("the API server made no token")]
    NoToken,
    /// A manifest is not YAML, or not an object.
    #[error("a manifest cannot be read")]
    Manifest(#[from] serde_saphyr::Error),
    /// A manifest lacks what every object has.
    #[error("a manifest has no {0}")]
    Incomplete(&'static str),
}

/// A client for a kubeconfig of ours.
pub(crate) async fn connect(kubeconfig: &Kubeconfig) -> Result<Client, ClientError> {
    let parsed = kube::config::Kubeconfig::from_yaml(kubeconfig.text())?;
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Whether the server serves, its own roles are there, and so are the namespaces that every cluster has.
pub(crate) async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    if client.request_text(request).await.is_err() {
        return false;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["default", "kube-system"] {
        if !matches!(namespaces.get_opt(name).await, Ok(Some(_))) {
            return false;
        }
    }
    true
}

/// A token for a service account, as the kubelet would ask for it.
pub(crate) async fn service_account_token(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<String, ClientError> {
    let manifest = serde_json::json!([
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } },
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } },
    ]);
    for object in manifest.as_array().into_iter().flatten() {
        apply(client, &object.to_string()).await?;
    }
    let request = TokenRequest {
        // An hour outlives any test; no audience means the server's own.
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(3600),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await?;
    answer
        .status
        .and_then(|status| status.token)
        .ok_or(ClientError::NoToken)
}

/// Server-side apply of every document, in their order.
pub(crate) async fn apply(client: &Client, manifests: &str) -> Result<(), ClientError> {
    let objects: Vec<Option<DynamicObject>> = serde_saphyr::from_multiple(manifests)?;
    for object in objects.into_iter().flatten() {
        let types = object
            .types
            .as_ref()
            .ok_or(ClientError::Incomplete("apiVersion and kind"))?;
        let name = object
            .metadata
            .name
            .as_deref()
            .ok_or(ClientError::Incomplete("name"))?;
        let (group, version) = types
            .api_version
            .split_once('/')
            .unwrap_or(("", &types.api_version));
        let kind = GroupVersionKind::gvk(group, version, &types.kind);
        let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
        let api: Api<DynamicObject> = match (capabilities.scope, object.metadata.namespace.as_deref()) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        };
        api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
            .await?;
    }
    Ok(())
}
