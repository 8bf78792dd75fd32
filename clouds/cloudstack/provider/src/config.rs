//! What the operator sets, in the file that `--cloud-config` names.

pub(crate) mod file;
pub(crate) mod start;

use bowline_cloud_http::{
    CloudHttpConfig, CredentialsError, CredentialsFile, Malformed, Secret, ShownSetting, SocketOptions,
    glimpse,
};
use bowline_cloud_provider::CloudConfig;
use bowline_cloudstack_client::{Keys, Project, Settings};
use std::time::Duration;

use self::file::{File, Setting};
use crate::version::Version;

/// How long a connection may take, as in the Go manager.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything that the provider is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the API is reached.
    pub settings: Settings,
    /// Whether the API's certificate is checked.
    pub verifies_certificates: bool,
    /// What Nodes get.
    pub nodes: NodeOptions,
    /// The server's version, so that it is not asked for.
    pub version: Option<Version>,
    /// What is unknown in the file, where the file says that it is to be let pass.
    pub ignored: Vec<String>,
    /// What is set, without the keys.
    in_force: Vec<(Setting, String)>,
}

/// What Nodes get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeOptions {
    /// The region of all Nodes; `None`: the zone of each is its region.
    pub region: Option<String>,
    /// Whether the instance type keeps all characters that a label may have.
    pub full_instance_types: bool,
    /// Whether provider IDs and labels are those of Leaseweb's manager.
    pub leaseweb: bool,
    /// Whether the IPv6 address of the default interface is an internal address too.
    pub ipv6_addresses: bool,
}

/// The file cannot be used, or something is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// There is no file.
    #[error("no cloud provider config given: --cloud-config names no file")]
    NoFile,
    /// What opens the API is not set.
    #[error(
        "no cloud provider config given: {} missing or empty in {path}",
        missing(settings)
    )]
    Missing {
        /// What is not set.
        settings: Vec<Setting>,
        /// The path.
        path: String,
    },
    /// The file says something that means nothing.
    #[error("could not parse cloud provider config: {reason} (in {path})")]
    Unusable {
        /// What is wrong, and where. No secret is ever part of it.
        reason: String,
        /// The path.
        path: String,
    },
}

impl Options {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be understood, or something in it is missing or wrong. No secret is ever part of the text.
    pub fn read(config: &CloudConfig) -> Result<Self, OptionsError> {
        let CloudConfig::Given { path, contents } = config else {
            return Err(OptionsError::NoFile);
        };
        let unusable = |reason: String| OptionsError::Unusable {
            reason,
            path: path.clone(),
        };
        let file = File::parse(contents).map_err(|error| unusable(error.to_string()))?;
        let [url, api_key, secret_key] = required(
            &file,
            [Setting::ApiUrl, Setting::ApiKey, Setting::SecretKey],
            path,
        )?;
        let project = Project::parse(file.text(Setting::ProjectId));
        let settings = Settings::new(url, keys(api_key, secret_key, file.doubt()), project)
            .map_err(|error| unusable(error.to_string()))?;
        let version = match file.text(Setting::Version) {
            "" => None,
            text => Some(Version::parse(text).map_err(|_| {
                let value = glimpse(text);
                unusable(format!(
                    "`version`: {value} is no version of CloudStack; one is 4.20.1.0"
                ))
            })?),
        };
        let in_force = file.shown().into_iter().map(|(setting, text)| match setting {
            Setting::ApiUrl => (setting, settings.url.to_string()), // without a login
            _ => (setting, text),
        });
        Ok(Self {
            in_force: in_force.collect(),
            verifies_certificates: !file.is_on(Setting::SslNoVerify),
            nodes: NodeOptions {
                region: Some(file.text(Setting::Region).to_owned()).filter(|text| !text.is_empty()),
                leaseweb: match file.text(Setting::CompatibleWith) {
                    "" | "apache" => false,
                    "leaseweb" => true,
                    other => {
                        let value = glimpse(other);
                        return Err(unusable(format!(
                            "`compatible-with` is {value}; it can be apache or leaseweb"
                        )));
                    }
                },
                full_instance_types: file.is_on(Setting::FullInstanceTypes),
                ipv6_addresses: file.is_on(Setting::Ipv6Addresses),
            },
            version,
            ignored: file.ignored,
            settings,
        })
    }

    /// The file of keys, to be followed while the program runs. Only the keys are read again: a change of another option
    /// needs a new start.
    ///
    /// # Errors
    ///
    /// The file is not there any more.
    pub fn credentials_file(config: &CloudConfig) -> Result<Option<CredentialsFile<Keys>>, CredentialsError> {
        let CloudConfig::Given { path, .. } = config else {
            return Ok(None);
        };
        let shown = path.clone();
        let parse = move |contents: &[u8]| {
            let file = File::parse(contents).map_err(|error| error.place)?;
            required(&file, [Setting::ApiKey, Setting::SecretKey], &shown)
                .map(|[api_key, secret_key]| keys(api_key, secret_key, file.doubt()))
                .map_err(|_| Malformed::because("`api-key` or `secret-key` is missing or empty"))
        };
        CredentialsFile::open(path, parse).map(Some)
    }

    /// Puts the times of this cloud into the configurations of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig, sockets: &mut SocketOptions) {
        self.settings.configure(config);
        sockets.connect_timeout = CONNECT_TIMEOUT;
        sockets.verifies_certificates = self.verifies_certificates;
    }

    /// The options in force, for people. What is not in the file has no value.
    #[must_use]
    pub fn shown(&self, config: &CloudConfig) -> Vec<ShownSetting> {
        let path = match config {
            CloudConfig::Given { path, .. } => path,
            CloudConfig::Absent => "",
        };
        let keys = [Setting::ApiKey, Setting::SecretKey];
        let keys = keys.map(|setting| ShownSetting::secret(setting.key(), path));
        let given = self.in_force.iter().map(|(setting, value)| {
            let has_effect = *setting != Setting::Zone;
            let effect = if has_effect { "" } else { ", no effect" };
            ShownSetting::new(setting.key(), value, format!("{path}{effect}"))
        });
        keys.into_iter().chain(given).collect()
    }

    /// What a person should look at, although the configuration can be used.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let open = (!self.verifies_certificates).then(|| {
            "`ssl-no-verify` is on: whoever answers at the API's address is believed, and can read the requests"
                .to_owned()
        });
        let ignored = self.ignored.iter();
        let ignored = ignored.map(|unknown| format!("{unknown}; it has no effect"));
        open.into_iter().chain(ignored).collect()
    }

    /// Writes one line for each option that is in force. Keys are not shown.
    pub fn log(&self) {
        for (setting, value) in &self.in_force {
            tracing::info!(option = setting.key(), value, "Provider option");
            if *setting == Setting::Zone {
                tracing::info!("`zone` has no effect: the zone of each node is that of its virtual machine");
            }
        }
    }
}

fn keys(api_key: &str, secret_key: &str, doubt: String) -> Keys {
    Keys {
        api_key: Secret::new(api_key),
        secret_key: Secret::new(secret_key),
        doubt,
    }
}

/// The texts of settings; all that are missing are told at once.
fn required<'a, const N: usize>(
    file: &'a File,
    settings: [Setting; N],
    path: &str,
) -> Result<[&'a str; N], OptionsError> {
    let is_missing = |setting: &Setting| file.text(*setting).is_empty();
    let missing: Vec<Setting> = settings.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(settings.map(|setting| file.text(setting)));
    }
    Err(OptionsError::Missing {
        settings: missing,
        path: path.to_owned(),
    })
}

/// The subject and the verb of the sentence.
fn missing(settings: &[Setting]) -> String {
    let name = |setting: &Setting| format!("`{}`", setting.key());
    let names: Vec<String> = settings.iter().map(name).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

#[cfg(test)]
mod tests;
