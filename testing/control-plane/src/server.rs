//! One control plane: an etcd and a kube-apiserver.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bowline_base::server::{Process, ProcessError, free_ports};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::audit::{self, AuditEvent, AuditLog, AuditLogError};
use crate::binaries::{Binaries, Missing, binaries};
use crate::certificates::{Authority, CertificateError, Identity, TokenKeys};
use crate::client::{self, ClientError};
use crate::kubeconfig::{Endpoint, Kubeconfig, write_private};
use bowline_base::go::Version;

/// Two seconds on a quiet machine; a busy one with two cores may take many times that.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// A free port can be taken by another between our look and the server's bind.
const ATTEMPTS: usize = 3;

/// How a control plane is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which Kubernetes.
    pub version: Version,
    /// Keep an audit log; see [`ControlPlane::audit_events`].
    pub audit: bool,
    /// More flags for kube-apiserver, after ours: the last one of a kind wins.
    pub apiserver_flags: Vec<String>,
}

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The programs are not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// No certificates.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The files of the control plane could not be written.
    #[error("cannot prepare the files of the control plane")]
    Files(#[from] io::Error),
    /// No client for it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A server gave up; its log ends like this.
    #[error("{server} ended while starting; its last words:\n{last_words}")]
    Ended {
        /// Which.
        server: &'static str,
        /// The end of its log.
        last_words: String,
    },
    /// A server did not get ready in time; its log ends like this.
    #[error("{server} is not ready after {seconds} s; its last words:\n{last_words}", seconds = START_DEADLINE.as_secs())]
    NotReady {
        /// Which.
        server: &'static str,
        /// The end of its log.
        last_words: String,
    },
}

/// A running API server with its etcd. Both are killed, and their files removed, when this is dropped.
///
/// Authorization is RBAC, with the roles that kube-apiserver creates by itself. The admission plug-ins are the
/// server's defaults but for two: `ServiceAccount` (pods would need accounts that no controller makes) and
/// `TaintNodesByCondition` (it taints each new node `not-ready`, and there is no controller to take that off).
pub struct ControlPlane {
    // Fields drop in this order: the API server first, or it would complain about its store; the files last.
    apiserver: Process,
    etcd: Process,
    client: kube::Client,
    admin: Kubeconfig,
    authority: Authority,
    url: String,
    version: Version,
    audit_log: Option<AuditLog>,
    directory: TempDir,
}

impl ControlPlane {
    /// Starts one and returns when it is ready to be used.
    ///
    /// # Errors
    ///
    /// When the programs are missing (see [`crate::build`]), or a server does not get ready.
    ///
    /// # Cancellation
    ///
    /// Leaves nothing behind.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let programs = binaries(options.version)?;
        let mut attempt = 1;
        loop {
            match Self::attempt(&programs, &options).await {
                Err(StartError::Ended { last_words, .. })
                    if attempt < ATTEMPTS && last_words.contains("address already in use") =>
                {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    async fn attempt(programs: &Binaries, options: &Options) -> Result<Self, StartError> {
        let directory = tempfile::Builder::new().prefix("control-plane-").tempdir()?;
        let [client_port, peer_port, secure_port] = free_ports()?;
        let files = Files::write(directory.path(), options)?;
        let url = format!("https://127.0.0.1:{secure_port}");
        let endpoint = Endpoint {
            url: &url,
            authority: files.authority.pem(),
        };
        let identity = files.authority.client("admin", Some("system:masters"))?;
        let admin =
            Kubeconfig::with_certificate(directory.path().join("admin.kubeconfig"), &endpoint, &identity)?;
        let client = client::connect(&admin).await?;

        let mut etcd = Command::new(&programs.etcd);
        etcd.args(etcd_flags(directory.path(), client_port, peer_port));
        let etcd = Process::start("etcd", &etcd, directory.path().join("etcd.log"))?;
        let mut apiserver = Command::new(&programs.kube_apiserver);
        apiserver
            .args(files.apiserver_flags(client_port, secure_port, options))
            // It lives for seconds: less often collected it takes a tenth less of the processor, and 60 MiB more.
            .env("GOGC", "300");
        let log = directory.path().join("kube-apiserver.log");
        let apiserver = Process::start("kube-apiserver", &apiserver, log)?;

        let Files {
            authority, audit_log, ..
        } = files;
        let version = options.version;
        let mut plane = Self {
            apiserver,
            etcd,
            client,
            admin,
            authority,
            url,
            version,
            audit_log,
            directory,
        };
        plane.wait_until_ready().await?;
        Ok(plane)
    }

    async fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let deadline = Instant::now() + START_DEADLINE;
        while !client::is_ready(&self.client).await {
            for server in [&mut self.etcd, &mut self.apiserver] {
                if server.has_ended() {
                    return Err(StartError::Ended {
                        server: server.name(),
                        last_words: server.last_words(),
                    });
                }
            }
            if Instant::now() > deadline {
                let last_words = self.apiserver.last_words();
                return Err(StartError::NotReady {
                    server: self.apiserver.name(),
                    last_words,
                });
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        Ok(())
    }

    /// Where the API server listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Which Kubernetes was asked for. (With `KUBEBUILDER_ASSETS` it may be another that runs.)
    pub fn version(&self) -> Version {
        self.version
    }

    /// The authority that signed the server's certificate, PEM.
    pub fn authority(&self) -> &str {
        self.authority.pem()
    }

    /// A kubeconfig that may do everything.
    pub fn admin(&self) -> &Kubeconfig {
        &self.admin
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A kubeconfig for a user, who may do what RBAC gives to that name or group.
    ///
    /// # Errors
    ///
    /// When no certificate can be made or the file cannot be written.
    pub fn kubeconfig_for_user(&self, user: &str, group: Option<&str>) -> Result<Kubeconfig, ClientError> {
        let identity = self.authority.client(user, group)?;
        Ok(Kubeconfig::with_certificate(
            self.file_for(user),
            &self.endpoint(),
            &identity,
        )?)
    }

    /// A kubeconfig with a token for a service account, which is created, with its namespace, if it is not there.
    ///
    /// It may do what RBAC gives to it; load roles and bindings with [`Self::apply`].
    ///
    /// # Errors
    ///
    /// When the API server refuses, or the file cannot be written.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Kubeconfig, ClientError> {
        let token = client::service_account_token(&self.client, namespace, name).await?;
        Ok(Kubeconfig::with_token(
            self.file_for(&format!("{namespace}-{name}")),
            &self.endpoint(),
            token,
        )?)
    }

    /// Applies manifests (YAML, any number of documents) as `kubectl apply --server-side` would.
    ///
    /// # Errors
    ///
    /// When the text cannot be read, or the API server does not know a kind or refuses an object.
    pub async fn apply(&self, manifests: &str) -> Result<(), ClientError> {
        client::apply(&self.client, manifests).await
    }

    /// All requests since the start, in the order of their ends. The server writes before it answers.
    ///
    /// # Errors
    ///
    /// When no audit log was asked for, or it cannot be read.
    pub fn audit_events(&self) -> Result<Vec<AuditEvent>, AuditLogError> {
        self.audit_log.as_ref().ok_or(AuditLogError::NotKept)?.events()
    }

    /// The requests that authorization refused. A manager that runs under its role has none.
    ///
    /// # Errors
    ///
    /// As [`Self::audit_events`].
    pub fn forbidden(&self) -> Result<Vec<AuditEvent>, AuditLogError> {
        Ok(self
            .audit_events()?
            .into_iter()
            .filter(|event| event.forbidden)
            .collect())
    }

    /// The process ids of the API server and of etcd.
    pub fn process_ids(&self) -> [u32; 2] {
        [self.apiserver.id(), self.etcd.id()]
    }

    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            url: &self.url,
            authority: self.authority.pem(),
        }
    }

    fn file_for(&self, who: &str) -> PathBuf {
        let safe: String = who
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        self.directory.path().join(format!("{safe}.kubeconfig"))
    }
}

/// The files that kube-apiserver is started with.
struct Files {
    directory: PathBuf,
    authority: Authority,
    audit_log: Option<AuditLog>,
}

impl Files {
    fn write(directory: &Path, options: &Options) -> Result<Self, StartError> {
        let authority = Authority::new("test-ca")?;
        let front_proxy = Authority::new("test-front-proxy-ca")?;
        let names = [
            "127.0.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let Identity { certificate, key } = authority.server(&names)?;
        let tokens = TokenKeys::new()?;
        for (name, text) in [
            ("ca.crt", authority.pem()),
            ("front-proxy-ca.crt", front_proxy.pem()),
            ("apiserver.crt", &certificate),
            ("apiserver.key", &key),
            ("sa.pub", &tokens.public),
            ("sa.key", &tokens.private),
            ("audit-policy.json", audit::POLICY),
        ] {
            write_private(&directory.join(name), text)?;
        }
        let audit_log = options.audit.then(|| AuditLog::new(directory.join("audit.log")));
        Ok(Self {
            directory: directory.to_path_buf(),
            authority,
            audit_log,
        })
    }

    fn apiserver_flags(&self, etcd_port: u16, secure_port: u16, options: &Options) -> Vec<String> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // Nobody reaches it through the Service `kubernetes`, and from 1.37 on an address of the loopback is refused as
            // an endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={secure_port}"),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            // With these and the client CA the server publishes extension-apiserver-authentication, which a manager
            // reads to guard its own port.
            format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt")),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if let Some(log) = &self.audit_log {
            flags.push(format!("--audit-policy-file={}", file("audit-policy.json")));
            flags.push(format!("--audit-log-path={}", log.path().display()));
            flags.push("--audit-log-mode=blocking".to_owned());
        }
        flags.extend(options.apiserver_flags.iter().cloned());
        flags
    }
}

fn etcd_flags(directory: &Path, client_port: u16, peer_port: u16) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    vec![
        format!("--data-dir={}", directory.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // The data is thrown away in any case; waiting for the disk is most of the time of a write.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}
