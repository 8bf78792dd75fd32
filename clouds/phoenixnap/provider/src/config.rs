//! What the operator sets: flag, environment, file, default, in this order.

use bowline_cloud_http::{
    CloudHttpConfig, CredentialsError, CredentialsFile, Malformed, Secret, ShownSetting,
};
use bowline_cloud_provider::{CloudConfig, Environment, Selector, SelectorError};
use bowline_phoenixnap_client::{Credentials, DEFAULT_BASE_URL, DEFAULT_TOKEN_URL, Settings};

use crate::annotations::LOCATION;
use crate::config::file::File;
use crate::config::sources::{Origin, Sources};

mod description;
mod error;
mod file;
mod load_balancing;
mod setting;
mod sources;

pub use description::BlockDescription;
pub use error::OptionsError;
pub use load_balancing::LoadBalancing;
pub use setting::{Given, Setting};

/// Everything that the provider is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the APIs are reached.
    pub settings: Settings,
    /// Whether Services get blocks, and on which network.
    pub load_balancing: LoadBalancing,
    /// What names the network, in words, if something does.
    pub network_source: String,
    /// Where blocks are bought; `None`: each Service says it.
    pub location: Option<String>,
    /// What says so, in words, if something does.
    pub location_source: String,
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
        let (file, path) = match config {
            CloudConfig::Given { path, contents } => {
                let unreadable = |reason| OptionsError::File {
                    path: path.clone(),
                    reason,
                };
                (File::parse(contents).map_err(unreadable)?, path.as_str())
            }
            CloudConfig::Absent if is_set(Setting::ClientId) && is_set(Setting::ClientSecret) => {
                (File::default(), "")
            }
            CloudConfig::Absent => return Err(OptionsError::NoFile),
        };
        let mut sources = Sources {
            given,
            environment,
            file,
            path,
            report: Vec::new(),
        };
        let (client_id, source_of_id) = sources.required(Setting::ClientId)?;
        let (client_secret, source_of_secret) = sources.required(Setting::ClientSecret)?;
        sources.parsed(Setting::ApiServerPort, "0", check_port)?;
        let base = sources.url(Setting::BaseUrl, DEFAULT_BASE_URL)?;
        let token = sources.url(Setting::TokenUrl, DEFAULT_TOKEN_URL)?;
        let credentials = Credentials {
            client_id,
            client_secret: Secret::new(client_secret),
        };
        let source = format!("{source_of_id} and {source_of_secret}");
        let settings = Settings::new(credentials, source, base, token);

        let selector = |text: &str| Selector::parse(text).map_err(|error| not_a_selector(&error));
        let nodes = sources.parsed(Setting::ServiceNodeSelector, "", selector)?;
        let location = sources.text(Setting::Location, "").0;
        let location_source = sources.place_of(Setting::Location);
        let location = Some(location).filter(|location| !location.is_empty());
        let location_annotation = sources.text(Setting::LocationAnnotation, LOCATION.key).0;
        let load_balancing = sources.parsed(Setting::LoadBalancer, "", LoadBalancing::parse)?;
        let network_source = sources.place_of(Setting::LoadBalancer);
        let block_description = sources.parsed(Setting::BlockDescription, "", BlockDescription::parse)?;
        let switch = |text: &str| {
            let switch = text.to_ascii_lowercase().parse::<bool>();
            switch.map_err(|_| "neither true nor false")
        };
        let keeps_kube_vip_annotation = sources.parsed(Setting::KubeVipAnnotation, "false", switch)?;
        let reserved_is_shut_down = sources.parsed(Setting::ReservedIsShutDown, "false", switch)?;
        Ok(Self {
            settings,
            load_balancing,
            network_source,
            location,
            location_source,
            location_annotation,
            nodes,
            block_description,
            keeps_kube_vip_annotation,
            reserved_is_shut_down,
            shows_exchanges: environment
                .value(DEBUG_VARIABLE)
                .is_some_and(|text| text.trim_ascii().eq_ignore_ascii_case("true")),
            warnings: sources.file.warnings(),
            report: sources.report,
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
