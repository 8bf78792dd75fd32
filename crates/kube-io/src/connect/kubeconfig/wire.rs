//! The kubeconfig as it stands in the file, as far as it is read; other keys are passed over, as by the Go managers. None of
//! these types can be printed, because most of them hold secrets.
//!
//! Source: `k8s.io/client-go/tools/clientcmd/api/v1/types.go`, v0.37.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// One document.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Kubeconfig {
    pub(super) kind: Option<String>,
    #[serde(rename = "apiVersion")]
    pub(super) api_version: Option<String>,
    pub(super) current_context: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) contexts: Vec<NamedContext>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) clusters: Vec<NamedCluster>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) users: Vec<NamedUser>,
}

#[derive(Deserialize)]
pub(super) struct NamedContext {
    pub(super) name: String,
    pub(super) context: Option<Context>,
}

#[derive(Deserialize)]
pub(super) struct NamedCluster {
    pub(super) name: String,
    pub(super) cluster: Option<Cluster>,
}

#[derive(Deserialize)]
pub(super) struct NamedUser {
    pub(super) name: String,
    pub(super) user: Option<User>,
}

/// Which cluster and which user belong together.
#[derive(Deserialize)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: Option<String>,
}

/// Where the API server is and how it proves who it is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(in crate::connect) struct Cluster {
    pub(in crate::connect) server: Option<String>,
    pub(in crate::connect) tls_server_name: Option<String>,
    pub(in crate::connect) insecure_skip_tls_verify: Option<bool>,
    pub(in crate::connect) certificate_authority: Option<String>,
    pub(in crate::connect) certificate_authority_data: Option<String>,
    pub(in crate::connect) proxy_url: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) extensions: Vec<Extension>,
}

/// What others keep in the file. One name is for the credential plugin.
#[derive(Deserialize)]
pub(super) struct Extension {
    pub(super) name: String,
    #[serde(default)]
    pub(super) extension: serde_json::Value,
}

/// Who we are.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(in crate::connect) struct User {
    pub(in crate::connect) client_certificate: Option<String>,
    pub(in crate::connect) client_certificate_data: Option<String>,
    pub(in crate::connect) client_key: Option<String>,
    pub(in crate::connect) client_key_data: Option<SecretString>,
    pub(in crate::connect) token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    pub(in crate::connect) token_file: Option<String>,
    pub(in crate::connect) username: Option<String>,
    pub(in crate::connect) password: Option<SecretString>,
    pub(in crate::connect) exec: Option<Exec>,
    /// Only whether it is there: Kubernetes has given it up.
    pub(in crate::connect) auth_provider: Option<IgnoredAny>,
    /// In whose name requests are made.
    #[serde(rename = "as")]
    pub(in crate::connect) as_user: Option<String>,
    pub(in crate::connect) as_uid: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(in crate::connect) as_groups: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(in crate::connect) as_user_extra: BTreeMap<String, Vec<String>>,
}

/// The credential plugin.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::connect) struct Exec {
    pub(in crate::connect) api_version: Option<String>,
    pub(in crate::connect) command: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(in crate::connect) args: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(in crate::connect) env: Vec<Variable>,
    pub(super) provide_cluster_info: Option<bool>,
    /// Read so that a wrong word is told; nobody sits before a manager, whatever it says.
    #[serde(rename = "interactiveMode")]
    _interactive_mode: Option<InteractiveMode>,
    /// What the plugin is told of the cluster, if it is to be told.
    #[serde(skip)]
    pub(in crate::connect) cluster: Option<serde_json::Value>,
}

/// A variable for the plugin's environment.
#[derive(Deserialize)]
pub(in crate::connect) struct Variable {
    pub(in crate::connect) name: String,
    #[serde(default)]
    pub(in crate::connect) value: SecretString,
}

#[derive(Deserialize)]
enum InteractiveMode {
    Never,
    IfAvailable,
    Always,
}

/// A key without a value is like none.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
