//! Everything that the provider is told, from the file and from those that it names.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_cloud_http::{
    ClientCertificate, CloudHttpConfig, CredentialsError, CredentialsFile, Malformed, ShownSetting,
    SocketOptions, TrustedAuthorities, base_url,
};
use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_openstack_client::{Interface, Login, RouterId, Settings};
use ipnet::IpNet;

use super::credentials::{self, Unread};
use super::error::{OptionError, OptionsError};
use super::file::{File, Files};
use super::load_balancer;
use super::sections::{Global, LoadBalancerOptions};
use super::{clouds_yaml, search_order};

/// How long a request may take if the file does not say it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time until a connection stands: the Go manager's for TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether provider IDs name the region.
const REGIONAL: &str = "OS_CCM_REGIONAL";

/// Whether Nodes stay whose servers are gone: a patch of the distributor Deckhouse. Any value but an empty one counts.
const KEEPS_NODES: &str = "SKIP_NODE_DELETION";

/// Everything that the provider is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the APIs are reached.
    pub settings: Settings,
    /// Whom to trust, and who we are.
    pub tls: Tls,
    /// What Nodes get.
    pub nodes: NodeOptions,
    /// What Services get; `None`: nothing.
    pub load_balancer: Option<LoadBalancerOptions>,
    /// The router that gets the routes; `None`: there are no routes.
    pub router: Option<RouterId>,
    /// What has no effect, and what looks like a mistake.
    pub warnings: Vec<String>,
    /// The files that were read for `clouds.yaml`.
    clouds_files: Vec<PathBuf>,
    /// Each option as it is in force, under the heading of its section, for the log.
    pub(super) report: Vec<(String, &'static str, String)>,
    /// Those of them that were not given.
    unset: Vec<(String, &'static str)>,
}

/// How TLS is spoken to all services.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Certificate authorities in place of the system's.
    pub authorities: Option<TrustedAuthorities>,
    /// The certificate that is shown.
    pub certificate: Option<ClientCertificate>,
    /// Whether certificates of services are checked.
    pub verifies_certificates: bool,
}

/// What Nodes get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeOptions {
    /// The region of all Nodes; empty: none.
    pub region: String,
    /// Whether provider IDs name it.
    pub is_regional: bool,
    /// Whether IPv6 addresses are left out.
    pub without_ipv6: bool,
    /// Networks whose addresses are external.
    pub public_networks: Vec<String>,
    /// Networks whose addresses are internal; none is all.
    pub internal_networks: Vec<String>,
    /// Ranges in the order in which addresses stand.
    pub sort_order: Vec<IpNet>,
    /// Whether a Node without provider ID is deleted when no server has its name: `delete-nodes-without-provider-id`.
    pub deletes_by_name: bool,
    /// Whether no Node is deleted because its server is gone: `SKIP_NODE_DELETION`.
    pub keeps_nodes: bool,
    /// Where these options are, for messages.
    pub source: String,
}

impl Options {
    /// Reads the file, and whatever other files it names.
    ///
    /// # Errors
    ///
    /// A file cannot be understood, or something in it is missing or wrong. No secret is ever part of the text.
    pub fn read(
        config: &CloudConfig,
        environment: &Environment,
        files: Files<'_>,
    ) -> Result<Self, OptionsError> {
        let CloudConfig::Given { path, contents } = config else {
            return Err(OptionsError::NoFile);
        };
        let mut file = File::parse(contents).map_err(|reason| OptionsError::File {
            path: path.clone(),
            reason,
        })?;
        let unknown: Vec<String> = file.unknown.iter().map(ToString::to_string).collect();
        let clouds_files = RefCell::default();
        let mut source = path.clone();
        let read = Self::of(&mut file, &mut source, environment, files, &clouds_files);
        let mut options = read.map_err(|reason| OptionsError::Option {
            reason: Box::new(reason),
            place: source,
            unknown: unknown.clone(),
        })?;
        let unknown = unknown.into_iter().map(|unknown| format!("{path}: {unknown}"));
        options.warnings.splice(0..0, unknown);
        options.clouds_files = clouds_files.into_inner();
        Ok(options)
    }

    /// Makes sense of what the file says. `source` is told from where options are taken, even if they cannot be used.
    fn of(
        file: &mut File,
        source: &mut String,
        environment: &Environment,
        files: Files<'_>,
        clouds_files: &RefCell<Vec<PathBuf>>,
    ) -> Result<Self, OptionError> {
        let mut warnings = Vec::new();
        if file.global.use_clouds {
            let noting = credentials::noting(files, clouds_files);
            let entry = clouds_yaml::fill(&mut file.global, environment, &noting)?;
            *source = format!("{source} and {entry}");
            tracing::info!(
                %entry,
                "Options that the configuration file leaves empty are taken from clouds.yaml"
            );
        }
        let defaults = File::default().shown();
        let written = file.shown().into_iter();
        let unset = written.filter(|option| defaults.contains(option));
        let unset = unset.map(|(section, name, _)| (section, name)).collect();
        if file.metadata.search_order.is_empty() {
            search_order::DEFAULT.clone_into(&mut file.metadata.search_order);
        }
        search_order::check(&file.metadata.search_order)?;
        let timeouts = [
            file.global.request_timeout,
            file.metadata.request_timeout,
            REQUEST_TIMEOUT,
        ];
        let request_timeout = timeouts
            .into_iter()
            .find(|timeout| !timeout.is_zero())
            .unwrap_or(REQUEST_TIMEOUT);
        // What is in force is what is told.
        file.global.request_timeout = request_timeout;
        file.metadata.request_timeout = request_timeout;
        let settings = settings(&file.global, request_timeout, source.clone())?;
        if settings.region.is_empty() {
            warnings.push(
                "`region` is empty: endpoints of any region are used, and Nodes get no region".to_owned(),
            );
        }
        Ok(Self {
            tls: tls(&file.global, files)?,
            nodes: nodes(file, environment, source.clone(), &mut warnings),
            load_balancer: load_balancer::read(file, environment, &mut warnings)?,
            router: Some(&file.route.router_id)
                .filter(|id| !id.is_empty())
                .map(|id| id.as_str().into()),
            clouds_files: Vec::new(),
            report: file.shown(),
            unset,
            settings,
            warnings,
        })
    }

    /// The login, to be followed while the program runs: in the file, and in those beside it that were read for
    /// `clouds.yaml`. Only the login is read again: a change of another option needs a new start.
    ///
    /// # Errors
    ///
    /// A file is not there any more, or holds no login by now.
    pub fn credentials_file(
        &self,
        config: &CloudConfig,
        environment: &Environment,
    ) -> Result<Option<CredentialsFile<Login>>, CredentialsError> {
        let CloudConfig::Given { path, .. } = config else {
            return Ok(None);
        };
        let (known, environment) = (self.clouds_files.clone(), environment.clone());
        let paths = std::iter::once(PathBuf::from(path))
            .chain(known.iter().cloned())
            .collect();
        let parse = move |contents: &[&[u8]]| {
            let (own, others) = contents
                .split_first()
                .map_or((&[][..], &[][..]), |(own, others)| (*own, others));
            let place = |path: &Path| known.iter().position(|known| known == path);
            let files = |path: &Path| {
                let contents = place(path).and_then(|place| others.get(place));
                contents
                    .map(|contents| contents.to_vec())
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            };
            credentials::login(own, &environment, &files).map_err(|error| match error {
                Unread::Own(reason) => (0, reason),
                Unread::Clouds(OptionError::Yaml { path, reason }) => {
                    (place(Path::new(&path)).map_or(0, |place| place + 1), reason)
                }
                Unread::Clouds(_) => (0, Malformed::because("it names no entry of clouds.yaml")),
            })
        };
        CredentialsFile::open_all(paths, parse).map(Some)
    }

    /// Puts the times and the trust of this cloud into the configurations of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig, sockets: &mut SocketOptions) {
        self.settings.configure(config);
        config.shows_exchanges |= tracing::enabled!(tracing::Level::TRACE);
        sockets.connect_timeout = CONNECT_TIMEOUT;
        sockets.authorities.clone_from(&self.tls.authorities);
        sockets.certificate.clone_from(&self.tls.certificate);
        sockets.verifies_certificates = self.tls.verifies_certificates;
    }

    /// The options that have a value, for people.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownSetting> {
        let given = self.report.iter().filter(|(_, _, value)| !value.is_empty());
        given
            .map(|option| {
                let (section, name, value) = option;
                let is_unset = |(in_section, one): &(String, &str)| in_section == section && one == name;
                let origin = match self.unset.iter().any(is_unset) {
                    true => "default",
                    false => self.settings.source.as_str(),
                };
                ShownSetting::new(format!("[{section}] {name}"), value, origin)
            })
            .collect()
    }

    /// Writes one line for each option that has a value. Secrets are not shown.
    pub fn log(&self) {
        for (section, option, value) in &self.report {
            if !value.is_empty() {
                tracing::debug!(section, option, value, "Provider option");
            }
        }
    }

    /// What a person should look at, although the configuration can be used.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let open = (!self.tls.verifies_certificates).then(|| {
            "`tls-insecure` is on: whoever answers at an API's address is believed, and can read the requests"
                .to_owned()
        });
        open.into_iter().chain(self.warnings.iter().cloned()).collect()
    }
}

fn settings(global: &Global, request_timeout: Duration, source: String) -> Result<Settings, OptionError> {
    if global.auth_url.0.is_empty() {
        return Err(OptionError::NoAuthUrl);
    }
    let interface = match global.endpoint_type.as_str() {
        "" | "public" => Interface::Public,
        "internal" => Interface::Internal,
        "admin" => Interface::Admin,
        other => return Err(OptionError::EndpointType(other.to_owned())),
    };
    Ok(Settings {
        auth_url: base_url(&global.auth_url.0).map_err(OptionError::AuthUrl)?,
        login: Login::new(&global.credentials)?,
        source,
        region: global.region.clone(),
        interface,
        request_timeout,
    })
}

fn tls(global: &Global, files: Files<'_>) -> Result<Tls, OptionError> {
    let wrong = |option, path: &str, reason: &dyn ToString| OptionError::Certificate {
        option,
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let contents = |option, path: &str| files(Path::new(path)).map_err(|error| wrong(option, path, &error));
    let authorities = if !global.ca_file.is_empty() {
        let path = &global.ca_file;
        let pem = contents("ca-file", path)?;
        Some(TrustedAuthorities::from_pem(&pem).map_err(|reason| wrong("ca-file", path, &reason))?)
    } else if !global.ca_file_contents.is_empty() {
        let read = TrustedAuthorities::from_pem(global.ca_file_contents.as_bytes());
        Some(read.map_err(|reason| wrong("cafilecontents", "in place", &reason))?)
    } else {
        None
    };
    let (chain, key) = (&global.cert_file, &global.key_file);
    let certificate = if chain.is_empty() || key.is_empty() {
        None
    } else {
        let read = ClientCertificate::from_pem(&contents("cert-file", chain)?, &contents("key-file", key)?);
        Some(read.map_err(|reason| wrong("cert-file", chain, &reason))?)
    };
    Ok(Tls {
        authorities,
        certificate,
        verifies_certificates: global.tls_insecure != "true",
    })
}

fn nodes(file: &File, environment: &Environment, source: String, warnings: &mut Vec<String>) -> NodeOptions {
    let words = file.networking.address_sort_order.split([',', ' ', '\t', '\n']);
    let mut sort_order = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match word.parse::<IpNet>() {
            Ok(range) => sort_order.push(range),
            Err(_) => warnings.push(format!(
                "`address-sort-order`: {word:?} is no range and is ignored"
            )),
        }
    }
    let keeps_nodes = environment
        .value(KEEPS_NODES)
        .is_some_and(|value| !value.is_empty());
    if keeps_nodes {
        warnings.push(format!(
            "the environment variable `{KEEPS_NODES}` is set: Nodes whose servers are gone are not deleted"
        ));
    }
    NodeOptions {
        keeps_nodes,
        deletes_by_name: file.global.delete_nodes_without_provider_id,
        region: file.global.region.clone(),
        is_regional: environment.value(REGIONAL) == Some("true"),
        without_ipv6: file.networking.ipv6_support_disabled,
        public_networks: file.networking.public_network_name.clone(),
        internal_networks: file.networking.internal_network_name.clone(),
        sort_order,
        source,
    }
}
