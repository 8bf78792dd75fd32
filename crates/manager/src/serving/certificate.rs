//! The serving certificates: given, found in a directory, or made here; read again when their files change.

mod made;
mod names;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bowline_kube_io::Clock;
use bowline_transport::{end_of_certificate, pem};
use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::Mutex;

use super::RELOAD;
use crate::config::{CertificateSource, ServingConfig};

/// The file names that the Go managers use in `--cert-dir`.
const STEM: &str = "cloud-controller-manager";

/// A certificate with its chain, and its key.
#[derive(Debug)]
struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file could not be read or holds no certificate or key.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not fit.
    #[error("{file}: {source}")]
    Mismatch {
        /// The file of the certificate.
        file: String,
        /// What does not fit.
        source: rustls::Error,
    },
    /// TLS cannot be set up.
    #[error("setting up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// All certificates that are served; the one for a connection is chosen by the name that the client asks for.
pub(super) struct Certificates {
    address: IpAddr,
    clock: Arc<dyn Clock>,
    provider: Arc<CryptoProvider>,
    /// What is served now. Held for moments only.
    served: RwLock<Arc<Served>>,
    /// Where it comes from; one refresh at a time.
    sources: Mutex<Sources>,
}

struct Sources {
    main: Source,
    named: Vec<Named>,
}

enum Source {
    /// Made here, to be made again at this time.
    Made {
        due: Timestamp,
    },
    Files(Files),
}

struct Named {
    files: Files,
    names: Vec<String>,
}

/// A pair of files, and what was last seen in them.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// A sum of the contents that were looked at last, whether they were good or bad; `None` if they could not be read.
    seen: Option<u64>,
}

/// What is served at one time.
#[derive(Clone)]
struct Served {
    main: Arc<CertifiedKey>,
    /// By the place in the list; the earlier one wins where two have a name in common.
    named: Vec<(Vec<String>, Arc<CertifiedKey>)>,
    by_name: BTreeMap<String, Arc<CertifiedKey>>,
}

impl Certificates {
    /// Gets all certificates. Reads and writes files and blocks for it: this is done at start.
    pub(super) fn obtain(config: &ServingConfig, clock: Arc<dyn Clock>) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (main, source) = match &config.certificate {
            CertificateSource::Memory => {
                let now = clock.now();
                let made = made::make(config.address, now)?;
                let due = made::renewal(now);
                (
                    certified(made.pair, Path::new("memory"), &provider)?,
                    Source::Made { due },
                )
            }
            CertificateSource::Files { certificate, key } => {
                let mut files = Files::new(certificate, key);
                (files.load(&provider)?, Source::Files(files))
            }
            CertificateSource::Directory(directory) => {
                let mut files = Files::new(
                    &directory.join(format!("{STEM}.crt")),
                    &directory.join(format!("{STEM}.key")),
                );
                let main = files.load(&provider).or_else(|_| {
                    let made = made::make(config.address, clock.now())?;
                    std::fs::create_dir_all(directory).map_err(|error| fault(directory, error))?;
                    write(&files.certificate, &made.certificate_pem, 0o644)?;
                    write(&files.key, &made.key_pem, 0o600)?;
                    files.load(&provider)
                })?;
                (main, Source::Files(files))
            }
        };
        let mut served = Served {
            main,
            named: Vec::new(),
            by_name: BTreeMap::new(),
        };
        let mut named = Vec::new();
        for one in &config.named_certificates {
            let mut files = Files::new(&one.certificate, &one.key);
            let key = files.load(&provider)?;
            served.named.push((names::of(&one.names, &key), key));
            named.push(Named {
                files,
                names: one.names.clone(),
            });
        }
        served.index();
        Ok(Self {
            address: config.address,
            clock,
            provider,
            served: RwLock::new(Arc::new(served)),
            sources: Mutex::new(Sources { main: source, named }),
        })
    }

    /// Reads the files that are named, as [`Self::obtain`] would. What would be made here is not.
    pub(super) fn check(config: &ServingConfig) -> Result<(), CertificateError> {
        let provider = rustls::crypto::ring::default_provider();
        let main = match &config.certificate {
            CertificateSource::Files { certificate, key } => Some((certificate, key)),
            CertificateSource::Memory | CertificateSource::Directory(_) => None,
        };
        let named = config.named_certificates.iter();
        let named = named.map(|one| (&one.certificate, &one.key));
        main.into_iter()
            .chain(named)
            .try_for_each(|(certificate, key)| Files::new(certificate, key).load(&provider).map(drop))
    }

    /// Looks for new certificates now and then. Never returns.
    pub(super) async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(RELOAD).await;
            self.refresh().await;
        }
    }

    /// Takes over what is new and good. What is new and bad is logged once, and the certificate before stays.
    pub(super) async fn refresh(&self) {
        let mut sources = self.sources.lock().await;
        let Sources { main, named } = &mut *sources;
        let mut next = Served::clone(&self.served());
        let mut is_new = false;
        match main {
            Source::Made { due } if self.clock.now() >= *due => {
                let now = self.clock.now();
                let made = made::make(self.address, now)
                    .map_err(CertificateError::from)
                    .and_then(|made| certified(made.pair, Path::new("memory"), &self.provider));
                match made {
                    Ok(key) => {
                        tracing::info!("Serving certificate renewed");
                        next.main = key;
                        *due = made::renewal(now);
                        is_new = true;
                    }
                    Err(error) => {
                        tracing::error!(err = %error, "Serving certificate could not be renewed, the old one stays");
                    }
                }
            }
            Source::Made { .. } => {}
            Source::Files(files) => {
                if let Some(key) = files.reload(&self.provider).await {
                    next.main = key;
                    is_new = true;
                }
            }
        }
        for (one, served) in named.iter_mut().zip(&mut next.named) {
            if let Some(key) = one.files.reload(&self.provider).await {
                *served = (names::of(&one.names, &key), key);
                is_new = true;
            }
        }
        if is_new {
            next.index();
            *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        }
    }

    fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When the first of them ends, in seconds since 1970.
    pub(super) fn first_end(&self) -> Option<i64> {
        let served = self.served();
        let named = served.named.iter().map(|(_, key)| key);
        let all = std::iter::once(&served.main).chain(named);
        all.filter_map(|key| end_of_certificate(key.cert.first()?)).min()
    }

    /// The certificate for a client that asks for this name, or for none.
    fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let served = self.served();
        let named = name.and_then(|name| {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            served.by_name.get(&name).or_else(|| {
                let (_, domain) = name.split_once('.')?;
                served.by_name.get(&format!("*.{domain}"))
            })
        });
        Arc::clone(named.unwrap_or(&served.main))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.choose(hello.server_name()))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Served {
    fn index(&mut self) {
        self.by_name.clear();
        for (names, key) in &self.named {
            for name in names {
                self.by_name
                    .entry(name.clone())
                    .or_insert_with(|| Arc::clone(key));
            }
        }
    }
}

impl Files {
    fn new(certificate: &Path, key: &Path) -> Self {
        Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            seen: None,
        }
    }

    fn load(&mut self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, CertificateError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| fault(path, error));
        let contents = (read(&self.certificate)?, read(&self.key)?);
        self.seen = Some(sum(&contents));
        self.parse(&contents, provider)
    }

    /// The pair, if the files are not what they were and are good.
    async fn reload(&mut self, provider: &CryptoProvider) -> Option<Arc<CertifiedKey>> {
        let contents = async {
            let certificate = tokio::fs::read(&self.certificate)
                .await
                .map_err(|error| fault(&self.certificate, error))?;
            let key = tokio::fs::read(&self.key)
                .await
                .map_err(|error| fault(&self.key, error))?;
            Ok((certificate, key))
        };
        let contents = contents.await;
        let seen = contents.as_ref().ok().map(sum);
        if seen == self.seen {
            return None;
        }
        self.seen = seen;
        match contents.and_then(|contents| self.parse(&contents, provider)) {
            Ok(key) => {
                tracing::info!(file = %self.certificate.display(), "Serving certificate reloaded");
                Some(key)
            }
            Err(error) => {
                tracing::error!(err = %error, "Serving certificate could not be reloaded, the old one stays");
                None
            }
        }
    }

    fn parse(
        &self,
        (certificate, key): &(Vec<u8>, Vec<u8>),
        provider: &CryptoProvider,
    ) -> Result<Arc<CertifiedKey>, CertificateError> {
        let chain = pem::certificates(certificate).map_err(|error| fault(&self.certificate, error))?;
        let key = pem::private_key(key).map_err(|error| fault(&self.key, error))?;
        certified(Pair { chain, key }, &self.certificate, provider)
    }
}

/// Checks that the key is the certificate's.
fn certified(
    Pair { chain, key }: Pair,
    file: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, CertificateError> {
    CertifiedKey::from_der(chain, key, provider)
        .map(Arc::new)
        .map_err(|source| CertificateError::Mismatch {
            file: file.display().to_string(),
            source,
        })
}

fn sum(contents: &(Vec<u8>, Vec<u8>)) -> u64 {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    hasher.finish()
}

fn write(path: &Path, contents: &str, mode: u32) -> Result<(), CertificateError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(contents.as_bytes()))
        .map_err(|error| fault(path, error))
}

fn fault(path: &Path, reason: impl ToString) -> CertificateError {
    CertificateError::File {
        file: path.display().to_string(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests;
