//! Where the API server is and how to speak to it: kubeconfig file, `--master`, or the pod that we run in.

use std::path::{Path, PathBuf};

use bowline_cloud_provider::Environment;
use http::Uri;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::client::{Kube, KubeOptions};

mod sockets;
mod token_file;

pub use sockets::MAX_SOCKETS;

/// Where Kubernetes puts the credentials of a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the operator said about the API server.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The kubeconfig: server and credentials.
    pub kubeconfig: Option<PathBuf>,
    /// The flag that names it, such as `--kubeconfig`; for errors.
    pub kubeconfig_flag: &'static str,
    /// `--master`: the server's address, in place of the one in the kubeconfig. Alone it means: no credentials.
    pub master: Option<String>,
    /// The process's environment: the pod's API server, and the proxy variables.
    pub environment: Environment,
    /// The folder with `token` and `ca.crt` of the pod's service account. The token is read again as it is rotated.
    pub service_account: PathBuf,
    /// Whether there will be requests [under the names of other accounts](Kube::as_service_account): they need connections
    /// of their own, without our credentials.
    pub speaks_for_others: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            kubeconfig_flag: "--kubeconfig",
            master: None,
            environment: Environment::default(),
            service_account: PathBuf::from(SERVICE_ACCOUNT),
            speaks_for_others: false,
        }
    }
}

/// Why there is nothing to connect to. That the API server does not answer is no such error: nothing is sent yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No flag was given and this is no pod.
    #[error(
        "no API server is configured: give --kubeconfig or --master, or run in a pod \
         (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set)"
    )]
    NotConfigured,
    /// The kubeconfig cannot be read or used.
    #[error("{flag} `{}`: {reason}", path.display())]
    Kubeconfig {
        /// The flag that names it.
        flag: &'static str,
        /// The path as given.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The address is none.
    #[error("--master `{address}`: {reason}")]
    Master {
        /// The address as given.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// This is a pod, but its service account cannot be used.
    #[error("service account `{}`: {reason}", path.display())]
    ServiceAccount {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Certificates, keys or the proxy cannot be used.
    #[error("cannot prepare connections to the API server: {0}")]
    Setup(String),
}

impl Kube {
    /// Prepares connections to the API server; nothing is sent yet. Call it inside the runtime.
    ///
    /// # Errors
    ///
    /// If it is not said where the API server is, or the credentials cannot be read.
    pub async fn connect(target: &ConnectOptions, options: KubeOptions) -> Result<Self, ConnectError> {
        let (config, proxy) = configuration(target).await?;
        let metrics = options.metrics.clone();
        let kube = sockets::connect(&config, proxy.as_ref(), target.speaks_for_others, options)?;
        metrics.connected(config.auth_info.exec.is_some());
        Ok(kube)
    }
}

/// Server and credentials, and the proxy that the kubeconfig or the environment names.
async fn configuration(target: &ConnectOptions) -> Result<(Config, Option<sockets::Proxy>), ConnectError> {
    let master = target
        .master
        .as_deref()
        .filter(|address| !address.is_empty())
        .map(master)
        .transpose()?;
    let kubeconfig = target
        .kubeconfig
        .as_deref()
        .filter(|path| !path.as_os_str().is_empty());
    let (mut config, named_proxy) = match (kubeconfig, &master) {
        (Some(path), _) => from_file(target.kubeconfig_flag, path).await?,
        (None, Some(address)) => (Config::new(address.clone()), None),
        (None, None) => (from_pod(target)?, None),
    };
    if let Some(address) = master {
        config.cluster_url = address;
    }
    config.default_retry = false; // the loops have their own schedule
    config.proxy_url = None; // set from the process's environment by the library; ours is an argument
    let proxy = match named_proxy {
        Some(address) => Some(sockets::Proxy::at(&address)?),
        None => sockets::Proxy::from_environment(&target.environment, &config.cluster_url)?,
    };
    Ok((config, proxy))
}

/// An address without a scheme is plain HTTP, as for the Go managers.
fn master(address: &str) -> Result<Uri, ConnectError> {
    let error = |reason: String| ConnectError::Master {
        address: address.to_owned(),
        reason,
    };
    let full = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let uri: Uri = full
        .parse()
        .map_err(|reason: http::uri::InvalidUri| error(reason.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() => Ok(uri),
        _ => Err(error("is not an HTTP address".into())),
    }
}

async fn from_file(flag: &'static str, path: &Path) -> Result<(Config, Option<String>), ConnectError> {
    let error = |reason: String| ConnectError::Kubeconfig {
        flag,
        path: path.to_owned(),
        reason,
    };
    // Looked at first, for an error in the operator's words.
    std::fs::metadata(path).map_err(|reason| error(reason.to_string()))?;
    let kubeconfig = Kubeconfig::read_from(path).map_err(|reason| error(reason.to_string()))?;
    let proxy = named_proxy(&kubeconfig);
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|reason| error(reason.to_string()))?;
    Ok((config, proxy))
}

/// The proxy of the current context's cluster.
fn named_proxy(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == *current)?
        .context
        .as_ref()?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)?
        .cluster
        .as_ref()?;
    cluster.proxy_url.clone().filter(|address| !address.is_empty())
}

fn from_pod(target: &ConnectOptions) -> Result<Config, ConnectError> {
    let variable = |name| target.environment.value(name).filter(|value| !value.is_empty());
    let (Some(host), Some(port)) = (
        variable("KUBERNETES_SERVICE_HOST"),
        variable("KUBERNETES_SERVICE_PORT"),
    ) else {
        return Err(ConnectError::NotConfigured);
    };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let error = |path: &Path, reason: String| ConnectError::ServiceAccount {
        path: path.to_owned(),
        reason,
    };
    let address = format!("https://{host}:{port}");
    let address = address.parse().map_err(|reason| {
        error(
            Path::new("KUBERNETES_SERVICE_HOST"),
            format!("`{address}`: {reason}"),
        )
    })?;

    let token = target.service_account.join("token");
    let ca = target.service_account.join("ca.crt");
    for path in [&token, &ca] {
        std::fs::metadata(path).map_err(|reason| error(path, reason.to_string()))?;
    }
    let mut config = Config::new(address);
    config.auth_info.token_file = Some(token.to_string_lossy().into_owned());
    config.root_cert_file = Some(ca);
    Ok(config)
}

#[cfg(test)]
mod tests;
