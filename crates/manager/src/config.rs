//! What a manager is told at its start: plain values, checked by whoever reads the command line.

pub(crate) mod tls;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, ServiceClasses};
pub use bowline_controllers::cluster_cidr::CidrListError;
pub use bowline_controllers::node::NodeSettings;
pub use bowline_controllers::node_ipam::ranges::{RangeError, RangeFlags, Ranges};
pub use bowline_controllers::node_lifecycle::NodeLifecycleSettings;
pub use bowline_controllers::ownership::{Ownership, Platforms};
pub use bowline_controllers::route::{RouteSettings, RouteTiming};

use crate::controllers::{ControllerName, ControllerSelection};
use crate::migration::Migration;
pub use tls::{CipherSuites, Groups, UnservableError};

/// Everything a [`Manager`](crate::Manager) has to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The lease that decides who leads; `None`: the controllers start at once and the write gate is always open.
    pub election: Option<ElectionConfig>,
    /// Which controllers wait for a second lease; `None`: all run under the first. Nothing without an election.
    pub migration: Option<Migration>,
    /// Which controllers run.
    pub controllers: ControllerSelection,
    /// The cluster's name, for names and marks in the cloud.
    pub cluster_name: String,
    /// How the controllers run.
    pub settings: ControllerSettings,
    /// Which Services are served, by their class.
    pub service_classes: ServiceClasses,
    /// Whether each controller works under a ServiceAccount of its own (`--use-service-account-credentials`).
    pub service_accounts: bool,
    /// How long running writes may take to end after the signal to stop. The budget of the whole shutdown is 10 s.
    pub drain: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            election: Some(ElectionConfig::default()),
            migration: None,
            controllers: ControllerSelection::all(),
            cluster_name: "kubernetes".to_owned(),
            settings: ControllerSettings::default(),
            service_classes: ServiceClasses::default(),
            service_accounts: false,
            drain: Duration::from_secs(5),
        }
    }
}

/// The lease and its timings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionConfig {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// How long a follower waits after the last change of the record before it takes over.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry_period: Duration,
    /// How long a leader that could not renew in time goes on trying, without writing anything; `None`: it ends at once.
    pub recovery_limit: Option<Duration>,
}

impl Default for ElectionConfig {
    fn default() -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            recovery_limit: None,
        }
    }
}

/// How the controllers run: what the flags give to each of them. The defaults are those of the framework, and our own for the
/// deletion of Nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControllerSettings {
    /// The node controller's.
    pub node: NodeSettings,
    /// The node lifecycle controller's.
    pub node_lifecycle: NodeLifecycleSettings,
    /// Whose Nodes are looked at, where other managers or clouds share the cluster. Without schemes: those of the provider.
    pub ownership: Option<Ownership>,
    /// The route controller's.
    pub routes: RouteSettings,
    /// From which networks Nodes get theirs; `None`: node IPAM is off. What is wrong with the flags matters only where it runs.
    pub node_networks: Option<Result<Ranges, Vec<RangeError>>>,
}

/// Why a configuration does not fit a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The route controller cannot run.
    #[error(
        "--cluster-cidr: {fault}; the route controller of provider {provider} needs the pod networks of the cluster: give them, or switch the controller off by --configure-cloud-routes=false"
    )]
    ClusterCidr {
        /// The provider.
        provider: &'static str,
        /// What is wrong with the flag.
        fault: CidrListError,
    },
    /// The route controller would never rest.
    #[error("--route-reconciliation-period must be greater than zero")]
    RoutePeriod,
    /// Node IPAM cannot run.
    #[error(
        "{}; node-ipam-controller needs this: correct the flags, or leave --allocate-node-cidrs out where another program gives Nodes their pod networks",
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NodeNetworks {
        /// All that is wrong with the flags.
        faults: Vec<RangeError>,
    },
}

impl Config {
    /// Whether node IPAM is to run: it is switched on and, where the provider leaves pod networks to others, named.
    pub fn gives_node_networks(&self, provider: &dyn CloudProvider) -> bool {
        let name = ControllerName::NodeIpam;
        self.settings.node_networks.is_some()
            && self.controllers.includes(name)
            && (!provider.leaves_node_networks() || self.controllers.names(name))
    }

    /// Whether the route controller is to run, if the provider has routes.
    pub fn makes_routes(&self) -> bool {
        self.settings.routes.is_wanted && self.controllers.includes(ControllerName::Route)
    }

    /// Looks for what only shows when the provider is known.
    ///
    /// # Errors
    ///
    /// A controller that is to run has not been told what it needs.
    pub fn check(&self, provider: &dyn CloudProvider) -> Result<(), ConfigError> {
        let routes = &self.settings.routes;
        let runs = self.makes_routes() && provider.routes().is_some();
        if runs && routes.timing == RouteTiming::Periodic(Duration::ZERO) {
            return Err(ConfigError::RoutePeriod);
        }
        if let (true, Some(Err(faults))) = (self.gives_node_networks(provider), &self.settings.node_networks)
        {
            let faults = faults.clone();
            return Err(ConfigError::NodeNetworks { faults });
        }
        match &routes.cluster_cidrs {
            Err(fault) if runs => Err(ConfigError::ClusterCidr {
                provider: provider.name(),
                fault: fault.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// The secure port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingConfig {
    /// The address to listen on.
    pub address: IpAddr,
    /// The port; zero lets the system choose one.
    pub port: u16,
    /// Whether several processes may listen on the port (`SO_REUSEPORT`).
    pub shares_port: bool,
    /// Where the certificate comes from.
    pub certificate: CertificateSource,
    /// Further certificates for certain names; of two that fit, the first is served.
    pub named_certificates: Vec<NamedCertificate>,
    /// Which TLS is spoken.
    pub tls: TlsConfig,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// Requests under way on one HTTP/2 connection; `None` for the default.
    pub http2_streams: Option<u32>,
    /// Whether `/debug/` is served.
    pub profiling: bool,
    /// Who may read what.
    pub access: AccessConfig,
}

impl Default for ServingConfig {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: 10258,
            shares_port: false,
            certificate: CertificateSource::Memory,
            named_certificates: Vec::new(),
            tls: TlsConfig::default(),
            http2: true,
            http2_streams: None,
            profiling: true,
            access: AccessConfig::default(),
        }
    }
}

/// Which TLS is spoken. The default is that of the TLS library: 1.2 and 1.3 with all it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Whether only TLS 1.3 is spoken.
    pub requires_tls13: bool,
    /// The cipher suites; `None` for the default.
    pub cipher_suites: Option<CipherSuites>,
    /// The key exchange groups; `None` for the default.
    pub groups: Option<Groups>,
}

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// Made at start, signed by itself, kept in memory, and made anew when most of its life is over.
    Memory,
    /// Read from these files, and again when they change.
    Files {
        /// The certificate and its chain, as PEM.
        certificate: PathBuf,
        /// The private key, as PEM.
        key: PathBuf,
    },
    /// `cloud-controller-manager.crt` and `.key` in this directory, made if they cannot be read; read again when they
    /// change.
    Directory(PathBuf),
}

/// A certificate for clients that ask for certain names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The certificate and its chain, as PEM.
    pub certificate: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
    /// The names, also as `*.domain`; none: those that are in the certificate.
    pub names: Vec<String>,
}

/// Who may read what on the secure port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessConfig {
    /// Paths that everybody may read; a prefix if it ends in `*`.
    pub always_allowed: Vec<String>,
    /// How long the result of a token review is cached.
    pub token_ttl: Duration,
    /// How long a granted access is cached.
    pub granted_ttl: Duration,
    /// How long a refused access is cached.
    pub refused_ttl: Duration,
    /// Certificates that client certificates must be signed by, as PEM; `None`: as the cluster says.
    pub client_ca: Option<PathBuf>,
    /// The front proxies whose word about users is believed; `None`: as the cluster says.
    pub front_proxy: Option<FrontProxyConfig>,
    /// Whether what is not given here is looked up in the cluster.
    pub lookup: Lookup,
    /// Whether front proxies may name the UID of a user (feature gate `RemoteRequestHeaderUID`).
    pub front_proxy_uids: bool,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            always_allowed: ["/healthz", "/readyz", "/livez"].map(str::to_owned).to_vec(),
            token_ttl: Duration::from_secs(10),
            granted_ttl: Duration::from_secs(10),
            refused_ttl: Duration::from_secs(10),
            client_ca: None,
            front_proxy: None,
            lookup: Lookup::Required,
            front_proxy_uids: true,
        }
    }
}

impl AccessConfig {
    /// What is left to look up beside the files: nothing if they tell all, and nothing that the start must wait for if they
    /// tell about front proxies.
    pub fn lookup_beside_files(&self) -> Lookup {
        match (self.lookup, &self.front_proxy, &self.client_ca) {
            (_, Some(_), Some(_)) => Lookup::Skipped,
            (Lookup::Required, Some(_), None) => Lookup::Tolerated,
            (lookup, ..) => lookup,
        }
    }
}

/// Whether settings that no flag gives are looked up in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Yes, and not to get an answer is fatal at start.
    Required,
    /// Yes, and as long as there is no answer there are no such settings.
    Tolerated,
    /// No.
    Skipped,
}

/// Front proxies that are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontProxyConfig {
    /// What their certificates must be signed by, as PEM.
    pub ca: PathBuf,
    /// What they say, and how.
    pub headers: FrontProxyHeaders,
}

/// Which headers of a front proxy name the user, and which common names the proxy may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontProxyHeaders {
    /// Common names of the proxies; none: any.
    pub allowed_names: Vec<String>,
    /// Headers with the user's name; the first one that is there counts.
    pub username: Vec<String>,
    /// Headers with the user's UID; the first one that is there counts.
    pub uid: Vec<String>,
    /// Headers with a group each.
    pub group: Vec<String>,
    /// How headers with further facts begin.
    pub extra_prefix: Vec<String>,
}
