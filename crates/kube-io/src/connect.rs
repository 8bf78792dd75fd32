//! Where the API server is and how to speak to it: kubeconfig file, `--master`, or the pod that we run in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline_cloud_provider::Environment;
use bowline_transport::{Lines, ProxyRules, pem, roots};
use http::Uri;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use percent_encoding::percent_decode_str;
use secrecy::ExposeSecret as _;

use self::credentials::{Credentials, Place, Source};
use self::kubeconfig::{Cluster, User};
use self::plugin::Plugin;
use crate::client::{Kube, KubeOptions};
use crate::exchange::segment;

pub(crate) mod credentials;
mod forms;
mod kubeconfig;
mod plugin;
mod sockets;

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
    #[error("--master{address}: {reason}")]
    Master {
        /// The address as given; empty if it may hold a password.
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
        let reach = reach(target)?;
        let metrics = options.metrics.clone();
        let has_plugin = reach.credentials.plugin.is_some();
        let kube = sockets::connect(reach, target.speaks_for_others, options)?;
        metrics.connected(has_plugin);
        Ok(kube)
    }
}

/// Where the server is and everything that it takes to speak to it.
struct Reach {
    server: Uri,
    /// The name in the server's certificate, if it is another one than the address's.
    server_name: Option<String>,
    /// In whose name requests are made.
    impersonation: HeaderMap,
    credentials: Arc<Credentials>,
    proxies: ProxyRules,
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    system: (Option<PathBuf>, Option<Vec<PathBuf>>),
    /// The connections that are open.
    lines: Lines,
}

fn reach(target: &ConnectOptions) -> Result<Reach, ConnectError> {
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
    let lookup = |name: &str| target.environment.value(name).map(str::to_owned);
    let system = roots::from_env(lookup);
    let mut found = match (kubeconfig, master) {
        (Some(path), master) => {
            let error = |reason: String| ConnectError::Kubeconfig {
                flag: target.kubeconfig_flag,
                path: path.to_owned(),
                reason,
            };
            let (cluster, user) = kubeconfig::read(path).map_err(error)?;
            from_file(cluster, user, master).map_err(error)?
        }
        (None, Some(address)) => Found::at(address),
        (None, None) => from_pod(target)?,
    };
    let credentials = &mut found.credentials;
    if let Some((bare, user, password)) = without_login(&found.server) {
        found.server = bare;
        // As for the Go managers, if nothing else says who we are.
        if credentials.token.is_none() && credentials.plugin.is_none() {
            credentials.token = Some(credentials::password(&user, &password));
        }
    }
    if credentials.authorities.is_none() && !found.is_believed {
        let authorities = roots::load(system.0.as_deref(), system.1.as_deref());
        credentials.authorities = Some(Source::given(authorities));
    }
    let proxies = match found.proxy {
        Some(address) => ProxyRules::always("`proxy-url` of the kubeconfig", &address),
        None => ProxyRules::from_env(lookup),
    };
    let proxies = proxies.map_err(|error| ConnectError::Setup(error.to_string()))?;
    Ok(Reach {
        server: found.server,
        server_name: found.server_name,
        impersonation: found.impersonation,
        credentials: Arc::new(found.credentials),
        proxies,
        system,
        lines: Lines::default(),
    })
}

/// An address without a scheme is plain HTTP, as for the Go managers.
fn master(address: &str) -> Result<Uri, ConnectError> {
    let error = |reason: &str| ConnectError::Master {
        address: if address.contains('@') {
            String::new()
        } else {
            format!(" `{address}`")
        },
        reason: reason.to_owned(),
    };
    let full = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    http_address(&full).map_err(|reason| error(&reason))
}

/// The address of a server. What is wrong is told without the address, which may hold a password.
fn http_address(text: &str) -> Result<Uri, String> {
    let uri: Uri = text
        .parse()
        .map_err(|reason: http::uri::InvalidUri| reason.to_string())?;
    let port = uri
        .authority()
        .and_then(|at| Some(at.as_str().rsplit_once(':')?.1));
    if uri.port_u16().is_none() && port.is_some_and(|port| !port.is_empty() && !port.contains(['@', ']'])) {
        return Err("has a port that is no number".into());
    }
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err("is not an HTTP address".into()),
    }
}

/// The address without the user and the password in it, and these, if there are any.
fn without_login(address: &Uri) -> Option<(Uri, String, String)> {
    let (login, host) = address.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut parts = address.clone().into_parts();
    parts.authority = host.parse::<Authority>().ok();
    parts.path_and_query = parts.path_and_query.or(Some(PathAndQuery::from_static("/")));
    let bare = Uri::from_parts(parts).ok()?;
    Some((bare, decoded(user), decoded(password)))
}

/// What was said about the API server, in a kubeconfig, by `--master`, or in the pod that we run in.
struct Found {
    server: Uri,
    server_name: Option<String>,
    impersonation: HeaderMap,
    credentials: Credentials,
    /// Whoever answers is believed.
    is_believed: bool,
    /// The proxy that the kubeconfig names.
    proxy: Option<String>,
}

impl Found {
    fn at(server: Uri) -> Self {
        Self {
            server,
            server_name: None,
            impersonation: HeaderMap::new(),
            credentials: Credentials::default(),
            is_believed: false,
            proxy: None,
        }
    }
}

fn from_file(cluster: Cluster, mut user: User, master: Option<Uri>) -> Result<Found, String> {
    let server = cluster.server.filter(|server| !server.is_empty());
    let address = match (master, server) {
        (Some(master), _) => master,
        (None, Some(server)) => http_address(&server).map_err(|reason| format!("`server` {reason}"))?,
        (None, None) => return Err("`server` of the current cluster is not set".to_owned()),
    };
    let is_set = |text: &String| !text.is_empty();
    let place = |key: &str, data: Option<String>, file: Option<String>| {
        let decoded = |data: String| {
            pem::from_base64(&data)
                .map(Place::Contents)
                .map_err(|reason| format!("`{key}-data`: {reason}"))
        };
        match (data.filter(is_set), file.filter(is_set)) {
            (Some(data), _) => decoded(data).map(Some),
            (None, file) => Ok(file.map(|path| Place::File(path.into()))),
        }
    };
    let is_believed = cluster.insecure_skip_tls_verify.unwrap_or(false);
    let authority = place(
        "certificate-authority",
        cluster.certificate_authority_data,
        cluster.certificate_authority,
    )?;
    let authorities = match authority {
        Some(place) if !is_believed => Some(credentials::authorities(place)?),
        _ => None,
    };
    let certificate = place(
        "client-certificate",
        user.client_certificate_data.take(),
        user.client_certificate.take(),
    )?;
    let data = user
        .client_key_data
        .take()
        .map(|data| data.expose_secret().to_owned());
    let key = place("client-key", data, user.client_key.take())?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(credentials::identity(certificate, key)?),
        (None, None) => None,
        (Some(_), None) => return Err("`client-certificate` is set and `client-key` is not".to_owned()),
        (None, Some(_)) => return Err("`client-key` is set and `client-certificate` is not".to_owned()),
    };
    // The file comes first.
    let file = user.token_file.take().filter(is_set);
    let token = user
        .token
        .take()
        .filter(|token| !token.expose_secret().is_empty());
    let token = match (file, token) {
        (Some(path), _) => Some(credentials::token_file(Path::new(&path))?),
        (None, Some(token)) => Some(credentials::token(token.expose_secret())?),
        (None, None) => None,
    };
    let login = user.username.take().filter(is_set).zip(user.password.take());
    let login = login.map(|(user, password)| credentials::password(&user, password.expose_secret()));
    if user.auth_provider.is_some() {
        return Err("`auth-provider` is not supported, Kubernetes has given it up; use `exec`".to_owned());
    }
    Ok(Found {
        server: address,
        server_name: cluster.tls_server_name.filter(is_set),
        impersonation: impersonation(&user)?,
        credentials: Credentials {
            token: token.or(login),
            identity,
            plugin: user.exec.map(Plugin::new),
            authorities,
        },
        is_believed,
        proxy: cluster.proxy_url.filter(is_set),
    })
}

/// The headers that say in whose name a request is made.
///
/// Source: <https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>.
fn impersonation(user: &User) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let mut add = |key: &str, name: &str, value: &str| {
        let odd = || format!("`{key}` holds characters that no header has");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd())?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| odd())?);
        Ok::<_, String>(())
    };
    let names = [
        ("as", "impersonate-user", &user.as_user),
        ("as-uid", "impersonate-uid", &user.as_uid),
    ];
    for (key, name, value) in names {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            add(key, name, value)?;
        }
    }
    for group in &user.as_groups {
        add("as-groups", "impersonate-group", group)?;
    }
    for (key, values) in &user.as_user_extra {
        let name = format!("impersonate-extra-{}", segment(key));
        for value in values {
            add("as-user-extra", &name, value)?;
        }
    }
    Ok(headers)
}

fn from_pod(target: &ConnectOptions) -> Result<Found, ConnectError> {
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
    let address = http_address(&address).map_err(|reason| {
        error(
            Path::new("KUBERNETES_SERVICE_HOST"),
            format!("with KUBERNETES_SERVICE_PORT it makes no address: {reason}"),
        )
    })?;

    let token = target.service_account.join("token");
    let ca = target.service_account.join("ca.crt");
    let credentials = Credentials {
        token: Some(credentials::token_file(&token).map_err(|reason| error(&token, reason))?),
        identity: None,
        plugin: None,
        authorities: Some(
            credentials::authorities(Place::File(ca.clone())).map_err(|reason| error(&ca, reason))?,
        ),
    };
    Ok(Found {
        credentials,
        ..Found::at(address)
    })
}

#[cfg(test)]
mod tests;
