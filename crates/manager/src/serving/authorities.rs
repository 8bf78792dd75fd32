//! Who vouches for clients: the authority of client certificates and that of front proxies, from files or from what the
//! cluster publishes, kept up to date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bowline_kube_io::{Kube, KubeError, watch_config_map};
use bowline_transport::pem;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::RELOAD;
use crate::config::{AccessConfig, FrontProxyHeaders, Lookup};

/// Where kube-apiserver publishes what servers like this one need to know.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Why it is not known who vouches for clients.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthoritiesError {
    /// A file cannot be used.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The cluster did not tell.
    #[error("unable to load configmap based request-header-client-ca-file: {0}")]
    Lookup(String),
}

/// Who vouches for clients, now.
pub struct Authorities {
    client_file: Option<PathBuf>,
    proxy_file: Option<(PathBuf, FrontProxyHeaders)>,
    /// The cluster that is asked for what no flag gives.
    cluster: Option<Kube>,
    takes_uids: bool,
    current: RwLock<Current>,
}

/// Each part is replaced as a whole.
#[derive(Default, Clone)]
pub(super) struct Current {
    /// Signs client certificates; `None`: client certificates say nothing.
    pub(super) client: Option<Authority>,
    /// Signs front proxies; `None`: nobody's word about users is believed.
    pub(super) front_proxy: Option<FrontProxy>,
}

/// Certificates that vouch for others.
#[derive(Clone)]
pub(super) struct Authority {
    pem: Arc<[u8]>,
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
}

/// Front proxies that are believed.
#[derive(Clone)]
pub(super) struct FrontProxy {
    pub(super) authority: Authority,
    pub(super) headers: Arc<FrontProxyHeaders>,
}

impl Authorities {
    /// Reads what the flags name, and looks the rest up in this cluster, if there is one to ask.
    ///
    /// # Errors
    ///
    /// A file that cannot be used; a cluster that does not tell although it is required to. That it has nothing to
    /// tell is no error.
    pub async fn establish(config: &AccessConfig, cluster: Option<Kube>) -> Result<Self, AuthoritiesError> {
        let proxy_file = config
            .front_proxy
            .as_ref()
            .map(|proxy| (proxy.ca.clone(), proxy.headers.clone()));
        let lookup = config.lookup_beside_files();
        let this = Self {
            client_file: config.client_ca.clone(),
            proxy_file,
            cluster: cluster.filter(|_| lookup != Lookup::Skipped),
            takes_uids: config.front_proxy_uids,
            current: RwLock::default(),
        };
        if let Some(path) = &this.client_file {
            let authority = Authority::read(path).await?;
            this.change(|current| current.client = Some(authority));
        }
        if let Some((path, headers)) = &this.proxy_file {
            let (authority, headers) = (Authority::read(path).await?, Arc::new(headers.clone()));
            this.change(|current| current.front_proxy = Some(FrontProxy { authority, headers }));
        }
        if let Some(kube) = &this.cluster
            && lookup == Lookup::Required
        {
            match kube.config_map(NAMESPACE, NAME).await {
                Ok(published) => this.take_over(&published.unwrap_or_default()),
                Err(error) => {
                    if matches!(error, KubeError::Forbidden(_)) {
                        tracing::warn!(
                            "A RoleBinding to the Role kube-system/extension-apiserver-authentication-reader is missing"
                        );
                    }
                    return Err(AuthoritiesError::Lookup(error.to_string()));
                }
            }
        }
        Ok(this)
    }

    /// Nobody vouches for anybody: client certificates say nothing.
    pub fn nobody() -> Self {
        Self {
            client_file: None,
            proxy_file: None,
            cluster: None,
            takes_uids: false,
            current: RwLock::default(),
        }
    }

    pub(super) fn current(&self) -> Current {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes over what changes in the files and in the cluster. Never returns.
    pub(super) async fn keep_fresh(&self) {
        tokio::join!(self.follow_files(), self.follow_cluster());
    }

    async fn follow_files(&self) {
        loop {
            tokio::time::sleep(RELOAD).await;
            self.refresh_files().await;
        }
    }

    async fn refresh_files(&self) {
        let Current { client, front_proxy } = self.current();
        if let Some((path, known)) = self.client_file.as_ref().zip(client)
            && let Some(authority) = known.reread(path).await
        {
            self.change(|current| current.client = Some(authority));
        }
        if let Some(((path, _), known)) = self.proxy_file.as_ref().zip(front_proxy)
            && let Some(authority) = known.authority.reread(path).await
        {
            let headers = known.headers;
            self.change(|current| current.front_proxy = Some(FrontProxy { authority, headers }));
        }
    }

    async fn follow_cluster(&self) {
        if let Some(kube) = &self.cluster {
            watch_config_map(kube.clone(), NAMESPACE, NAME, |published| {
                self.take_over(&published)
            })
            .await;
        }
    }

    /// Takes over what the cluster publishes, where no flag says otherwise. What is new and bad is logged, and what was
    /// known before stays.
    fn take_over(&self, published: &BTreeMap<String, String>) {
        let current = self.current();
        if self.client_file.is_none()
            && let Some(authority) = changed(published, "client-ca-file", current.client.as_ref())
        {
            tracing::info!("Authority of client certificates looked up");
            self.change(|current| current.client = Some(authority));
        }
        if self.proxy_file.is_some() || !published.contains_key("requestheader-client-ca-file") {
            return;
        }
        let headers = match self.headers(published) {
            Ok(headers) => Arc::new(headers),
            Err(reason) => {
                tracing::error!(
                    name = NAME,
                    reason,
                    "Settings of front proxies cannot be understood, the old ones stay"
                );
                return;
            }
        };
        let known = current.front_proxy.as_ref().map(|proxy| &proxy.authority);
        let authority = changed(published, "requestheader-client-ca-file", known).or_else(|| known.cloned());
        if let Some(authority) = authority {
            self.change(|current| current.front_proxy = Some(FrontProxy { authority, headers }));
        }
    }

    fn headers(&self, published: &BTreeMap<String, String>) -> Result<FrontProxyHeaders, String> {
        let list = |key: &str| match published.get(key) {
            Some(text) if !text.is_empty() => serde_json::from_slice::<Vec<String>>(text.as_bytes())
                .map_err(|error| format!("{key}: {error}")),
            _ => Ok(Vec::new()),
        };
        Ok(FrontProxyHeaders {
            allowed_names: list("requestheader-allowed-names")?,
            username: list("requestheader-username-headers")?,
            uid: if self.takes_uids {
                list("requestheader-uid-headers")?
            } else {
                Vec::new()
            },
            group: list("requestheader-group-headers")?,
            extra_prefix: list("requestheader-extra-headers-prefix")?,
        })
    }

    fn change(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.current.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The published authority, if it is another one than that known.
fn changed(published: &BTreeMap<String, String>, key: &str, known: Option<&Authority>) -> Option<Authority> {
    let pem = published.get(key).filter(|pem| !pem.is_empty())?.as_bytes();
    if known.is_some_and(|known| *known.pem == *pem) {
        return None;
    }
    Authority::parse(pem)
        .inspect_err(|reason| {
            tracing::error!(
                name = NAME,
                key,
                reason,
                "Authority cannot be used, the old one stays"
            );
        })
        .ok()
}

impl Authority {
    /// The certificates as they were read: another piece of memory after each change.
    pub(super) fn pem(&self) -> &Arc<[u8]> {
        &self.pem
    }

    fn parse(pem: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in pem::certificates(pem).map_err(|error| error.to_string())? {
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            pem: Arc::from(pem),
            verifier,
        })
    }

    async fn read(path: &Path) -> Result<Self, AuthoritiesError> {
        let fault = |reason: String| AuthoritiesError::File {
            file: path.display().to_string(),
            reason,
        };
        let pem = tokio::fs::read(path)
            .await
            .map_err(|error| fault(error.to_string()))?;
        Self::parse(&pem).map_err(fault)
    }

    /// The authority in the file, if it is another one by now.
    async fn reread(&self, path: &Path) -> Option<Self> {
        let file = path.display();
        let pem = match tokio::fs::read(path).await {
            Ok(pem) if *self.pem == *pem => return None,
            Ok(pem) => pem,
            Err(error) => {
                tracing::error!(%file, err = %error, "Authority could not be reloaded, the old one stays");
                return None;
            }
        };
        match Self::parse(&pem) {
            Ok(authority) => {
                tracing::info!(%file, "Authority reloaded");
                Some(authority)
            }
            Err(reason) => {
                tracing::error!(%file, reason, "Authority could not be reloaded, the old one stays");
                None
            }
        }
    }
}
