//! What the operator sets: flag, environment, file, default, in this order.

use bowline_cloud_http::{
    CloudHttpConfig, CredentialsError, CredentialsFile, Malformed, Secret, ShownSetting, base_url,
};
use bowline_cloud_provider::{CloudConfig, Environment, Selector, SelectorError};
use bowline_phoenixnap_client::{Credentials, DEFAULT_BASE_URL, DEFAULT_TOKEN_URL, Settings};

use crate::annotations::LOCATION;
use file::File;
use sources::{Origin, Sources};

mod description;
mod error;
mod file;
mod load_balancing;
mod sources;

pub use description::BlockDescription;
pub use error::OptionsError;
pub use load_balancing::LoadBalancing;

/// Everything that the provider is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the APIs are reached.
    pub settings: Settings,
    /// Whether Services get blocks, and on which network.
    pub load_balancing: LoadBalancing,
    /// Where blocks are bought; `None`: each Service says it.
    pub location: Option<String>,
    /// The annotation by which a Service says it.
    pub location_annotation: String,
    /// Which Nodes take traffic.
    pub nodes: Selector,
    /// What bought blocks are described with; `None`: they get no description, as upstream's.
    pub block_description: Option<BlockDescription>,
    /// Whether kube-vip's own annotation is kept equal to the address.
    pub keeps_kube_vip_annotation: bool,
    /// Whether a server that is kept under a reservation without being in use counts as shut down.
    pub reserved_is_shut_down: bool,
    /// Whether every exchange with the APIs goes to the log, see [`DEBUG_VARIABLE`].
    pub shows_exchanges: bool,
    /// What the file has that is not known, and has no effect.
    pub warnings: Vec<String>,
    /// Where each of them came from, for the log.
    report: Vec<(&'static str, String, Origin)>,
}

/// The environment variable that, set to `true`, has every exchange with the APIs written to the log with its bodies,
/// tokens and secrets left out. It is for a while of looking and no setting, so no file has it.
pub const DEBUG_VARIABLE: &str = "PNAP_DEBUG";

/// What was given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `--base-url`.
    pub base_url: Option<String>,
}

/// The options by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Who asks for tokens.
    ClientId,
    /// The proof of it.
    ClientSecret,
    /// Where blocks are bought.
    Location,
    /// Whether Services get blocks.
    LoadBalancer,
    /// The annotation by which a Service says where.
    LocationAnnotation,
    /// Accepted and without effect, as upstream.
    ApiServerPort,
    /// Where the APIs are.
    BaseUrl,
    /// Where tokens come from.
    TokenUrl,
    /// Which Nodes take traffic.
    ServiceNodeSelector,
    /// What bought blocks are described with.
    BlockDescription,
    /// Whether kube-vip's own annotation is kept.
    KubeVipAnnotation,
    /// Whether reserved servers count as shut down.
    ReservedIsShutDown,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ClientId,
        Self::ClientSecret,
        Self::Location,
        Self::LoadBalancer,
        Self::LocationAnnotation,
        Self::ApiServerPort,
        Self::BaseUrl,
        Self::TokenUrl,
        Self::ServiceNodeSelector,
        Self::BlockDescription,
        Self::KubeVipAnnotation,
        Self::ReservedIsShutDown,
    ];

    /// The environment variable; empty if there is none.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::ClientId => "PNAP_CLIENT_ID",
            Self::ClientSecret => "PNAP_CLIENT_SECRET",
            Self::Location => "PNAP_LOCATION",
            Self::LoadBalancer => "PNAP_LOAD_BALANCER",
            Self::LocationAnnotation => "PNAP_ANNOTATION_IP_LOCATION",
            Self::ApiServerPort => "PNAP_API_SERVER_PORT",
            Self::BaseUrl => "PNAP_BASE_URL",
            Self::TokenUrl => "PNAP_TOKEN_URL",
            Self::ServiceNodeSelector => "",
            Self::BlockDescription => "PNAP_BLOCK_DESCRIPTION",
            Self::KubeVipAnnotation => "PNAP_KUBE_VIP_ANNOTATION",
            Self::ReservedIsShutDown => "PNAP_RESERVED_IS_SHUT_DOWN",
        }
    }

    /// The key in the file, which is read in any letter case.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::ClientId => "clientID",
            Self::ClientSecret => "clientSecret",
            Self::Location => "location",
            Self::LoadBalancer => "loadbalancer",
            Self::LocationAnnotation => "annotationIPLocation",
            Self::ApiServerPort => "apiServerPort",
            Self::BaseUrl => "base-url",
            Self::TokenUrl => "token-url",
            Self::ServiceNodeSelector => "serviceNodeSelector",
            Self::BlockDescription => "blockDescription",
            Self::KubeVipAnnotation => "kubeVipAnnotation",
            Self::ReservedIsShutDown => "reservedIsShutDown",
        }
    }
}

impl Options {
    /// Reads the options. The order of the checks is upstream's.
    ///
    /// # Errors
    ///
    /// The first thing that is missing or cannot be used.
    pub fn read(
        given: &Given,
        environment: &Environment,
        config: &CloudConfig,
    ) -> Result<Self, OptionsError> {
        let is_set = |setting: Setting| {
            environment
                .value(setting.variable())
                .is_some_and(|text| !text.trim_ascii().is_empty())
        };
        let file = match config {
            CloudConfig::Given { path, contents } => {
                File::parse(contents).map_err(|reason| OptionsError::File {
                    path: path.clone(),
                    reason,
                })?
            }
            CloudConfig::Absent if is_set(Setting::ClientId) && is_set(Setting::ClientSecret) => {
                File::default()
            }
            CloudConfig::Absent => return Err(OptionsError::NoFile),
        };
        let path = match config {
            CloudConfig::Given { path, .. } => path,
            CloudConfig::Absent => "",
        };
        let sources = Sources {
            given,
            environment,
            file,
            path,
        };
        let mut report = Vec::new();
        let mut text = |setting: Setting, default: &str| {
            let (text, origin) = sources
                .find(setting)
                .unwrap_or_else(|| (default.to_owned(), Origin::Default));
            let shown = match setting {
                Setting::ClientSecret => "(set)",
                // Told from what was parsed, which holds no password.
                Setting::BaseUrl | Setting::TokenUrl | Setting::LoadBalancer => "",
                _ => &text,
            };
            report.push((setting.key(), shown.to_owned(), origin));
            (text, origin)
        };
        let mut required = |setting| sources.required(setting, text(setting, ""));
        let (client_id, source_of_id) = required(Setting::ClientId)?;
        let (client_secret, source_of_secret) = required(Setting::ClientSecret)?;

        let (port, origin) = text(Setting::ApiServerPort, "0");
        check_port(&port).map_err(|reason| sources.wrong(Setting::ApiServerPort, origin, &port, reason))?;

        let mut url = |setting, default| {
            let (text, origin) = text(setting, default);
            base_url(&text).map_err(|reason| OptionsError::Url {
                origin: Sources::name(setting, origin),
                path: sources.path(origin),
                reason,
            })
        };
        let base = url(Setting::BaseUrl, DEFAULT_BASE_URL)?;
        let token = url(Setting::TokenUrl, DEFAULT_TOKEN_URL)?;
        let credentials = Credentials {
            client_id,
            client_secret: Secret::new(client_secret),
        };
        let source = format!("{source_of_id} and {source_of_secret}");
        let settings = Settings::new(credentials, source, base, token);

        let (selector, origin) = text(Setting::ServiceNodeSelector, "");
        let nodes = Selector::parse(&selector).map_err(|error| {
            sources.wrong(
                Setting::ServiceNodeSelector,
                origin,
                &selector,
                not_a_selector(&error),
            )
        })?;
        let location = Some(text(Setting::Location, "").0).filter(|location| !location.is_empty());
        let location_annotation = text(Setting::LocationAnnotation, LOCATION.key).0;
        let (balancing, origin) = text(Setting::LoadBalancer, "");
        let load_balancing = LoadBalancing::parse(&balancing)
            .map_err(|reason| sources.wrong(Setting::LoadBalancer, origin, &balancing, reason))?;
        let (description, origin) = text(Setting::BlockDescription, "");
        let block_description = BlockDescription::parse(&description)
            .map_err(|reason| sources.wrong(Setting::BlockDescription, origin, &description, reason))?;
        let mut switch = |setting| {
            let (value, origin) = text(setting, "false");
            value
                .to_ascii_lowercase()
                .parse::<bool>()
                .map_err(|_| sources.wrong(setting, origin, &value, "neither true nor false"))
        };
        let keeps_kube_vip_annotation = switch(Setting::KubeVipAnnotation)?;
        let reserved_is_shut_down = switch(Setting::ReservedIsShutDown)?;
        Ok(Self {
            settings,
            load_balancing,
            location,
            location_annotation,
            nodes,
            block_description,
            keeps_kube_vip_annotation,
            reserved_is_shut_down,
            shows_exchanges: environment
                .value(DEBUG_VARIABLE)
                .is_some_and(|text| text.trim_ascii().eq_ignore_ascii_case("true")),
            warnings: sources.file.warnings(),
            report,
        })
    }

    /// Puts what concerns the HTTP stack into its configuration.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        self.settings.configure(config);
        config.shows_exchanges = self.shows_exchanges;
    }

    /// The file of credentials, to be followed while the program runs; `None` if both of them are in the environment.
    ///
    /// What the environment says has precedence at every look. Only the credentials are read again: a change of another
    /// option needs a new start.
    ///
    /// # Errors
    ///
    /// The file is not there any more.
    pub fn credentials_file(
        &self,
        environment: &Environment,
        config: &CloudConfig,
    ) -> Result<Option<CredentialsFile<Credentials>>, CredentialsError> {
        let CloudConfig::Given { path, .. } = config else {
            return Ok(None);
        };
        let variable =
            |setting: Setting| Some(environment.value(setting.variable())?.trim_ascii().to_owned());
        let [id, secret] = [Setting::ClientId, Setting::ClientSecret]
            .map(|setting| variable(setting).filter(|text| !text.is_empty()));
        if id.is_some() && secret.is_some() {
            return Ok(None);
        }
        CredentialsFile::open(path, move |contents| {
            let file = File::parse(contents)
                .map_err(|_| Malformed::because("it is not one JSON object of options"))?;
            let one = |variable: &Option<String>, setting, lacking| {
                variable
                    .clone()
                    .or_else(|| Some(file.text(setting)?.trim_ascii().to_owned()))
                    .filter(|text| !text.is_empty())
                    .ok_or(Malformed::because(lacking))
            };
            Ok(Credentials {
                client_id: one(&id, Setting::ClientId, "no `clientID`")?,
                client_secret: Secret::new(one(&secret, Setting::ClientSecret, "no `clientSecret`")?),
            })
        })
        .map(Some)
    }

    /// Each option with its value in force, and where it came from.
    fn in_force(&self) -> impl Iterator<Item = (&'static str, String, Origin)> {
        self.report.iter().map(|(option, value, origin)| {
            let value = match *option {
                "base-url" => self.settings.base_url.to_string(),
                "token-url" => self.settings.token_url.to_string(),
                "loadbalancer" => self.load_balancing.to_string(),
                _ => value.clone(),
            };
            (*option, value, *origin)
        })
    }

    /// The options that have a value, for people.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownSetting> {
        let given = self.in_force().filter(|(_, value, _)| !value.is_empty());
        given
            .map(
                |(option, value, origin)| match option == Setting::ClientSecret.key() {
                    true => ShownSetting::secret(option, origin.to_string()),
                    false => ShownSetting::new(option, value, origin.to_string()),
                },
            )
            .collect()
    }

    /// Writes one line for each option: its value in force, and where it came from. The secret is not shown.
    pub fn log(&self) {
        for (option, value, origin) in self.in_force() {
            tracing::info!(option, value, origin = %origin, "Provider option");
        }
        if self.load_balancing == LoadBalancing::Off {
            tracing::info!("Load balancing is disabled");
        }
    }

    /// What a person should look at, although the configuration can be used.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let of_type = match &self.load_balancing {
            LoadBalancing::UnknownType(kind) => Some(format!(
                "load balancing is disabled: the load balancer type is not known, kube-vip is the only one, not {kind:?}"
            )),
            LoadBalancing::Off | LoadBalancing::KubeVip { .. } => None,
        };
        self.warnings.iter().cloned().chain(of_type).collect()
    }
}

/// What is wrong with a selector, without the part of it that is wrong.
fn not_a_selector(error: &SelectorError) -> &'static str {
    match error {
        SelectorError::Key(_) => "it has a name that no label can have",
        SelectorError::Value(_) => "it has a value that no label can have",
        SelectorError::Number(_) => "it compares with something that is not a whole number",
        _ => "not a label selector, the form is a=b,c!=d,e in (f,g),h,!i",
    }
}

/// The port has no effect; it is checked so that a wrong one is not taken for a right one.
fn check_port(text: &str) -> Result<(), &'static str> {
    match text.parse::<i64>() {
        Ok(port) if (0..=65535).contains(&port) => Ok(()),
        Ok(_) => Err("a port is between 0 and 65535"),
        Err(_) => Err("not a whole number"),
    }
}

#[cfg(test)]
mod tests;
