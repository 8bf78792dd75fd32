//! `clouds.yaml`, as every OpenStack client reads it (openstacksdk documentation, "Configuration").

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bowline_cloud_http::{Malformed, Secret, meant, yaml};
use bowline_cloud_provider::Environment;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::OptionError;
use super::file::Files;
use super::sections::Global;

/// The variable that names the file.
const CONFIG_FILE: &str = "OS_CLIENT_CONFIG_FILE";
/// The variable that names the entry.
const CLOUD: &str = "OS_CLOUD";

#[derive(Default, Deserialize)]
struct Clouds {
    #[serde(default)]
    clouds: BTreeMap<String, Cloud>,
}

#[derive(Default, Deserialize)]
struct PublicClouds {
    #[serde(rename = "public-clouds", default)]
    clouds: BTreeMap<String, Cloud>,
}

/// Defines what is read of an entry: kind, key, and the option of `[Global]` that it fills.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident {
        $($key:ident: $kind:ty $(=> $($option:tt).+)?,)*
    } $(with $part:ident: $of:ty)?;)*) => {
        /// All keys that are read, for messages.
        const KEYS: &[&str] = &["clouds", "public-clouds", $($(stringify!($part),)? $(stringify!($key),)*)*];

        $($(#[$doc])*
        #[derive(Default, Deserialize)]
        struct $name {
            $($key: Option<$kind>,)*
            $(#[serde(default)] $part: $of,)?
        }

        impl $name {
            /// This one, and what it does not say from another one. An empty value says nothing.
            fn over(mut self, base: Self) -> Self {
                $(self.$key = self.$key.take().filter(Text::is_set).or(base.$key);)*
                $(self.$part = self.$part.over(base.$part);)?
                self
            }

            fn fill(self, global: &mut Global) {
                $($(self.$key.into_iter().for_each(|value| value.fill(&mut global.$($option).+));)?)*
                $(self.$part.fill(global);)?
            }
        })*
    };
}

entries! {
    /// An entry. What is not taken over is not read.
    Cloud {
        profile: String,
        cloud: String,
        region_name: String => region,
        interface: String => endpoint_type,
        endpoint_type: String => endpoint_type,
        cacert: String => ca_file,
        cert: String => cert_file,
        key: String => key_file,
    } with auth: Auth;
    /// Who logs in.
    Auth {
        auth_url: String => auth_url.0,
        username: String => credentials.username,
        user_id: String => credentials.user_id,
        password: Secret => credentials.password,
        project_id: String => credentials.tenant_id,
        project_name: String => credentials.tenant_name,
        domain_id: String => credentials.domain_id,
        domain_name: String => credentials.domain_name,
        project_domain_id: String => credentials.tenant_domain_id,
        project_domain_name: String => credentials.tenant_domain_name,
        user_domain_id: String => credentials.user_domain_id,
        user_domain_name: String => credentials.user_domain_name,
        application_credential_id: String => credentials.application_credential_id,
        application_credential_name: String => credentials.application_credential_name,
        application_credential_secret: Secret => credentials.application_credential_secret,
        token: Secret => credentials.token,
    };
}

/// A value of the file.
trait Text {
    /// What it fills.
    type Option;

    /// Whether it says something.
    fn is_set(&self) -> bool;

    /// Fills what is empty.
    fn fill(self, option: &mut Self::Option);
}

impl Text for String {
    type Option = Self;

    fn is_set(&self) -> bool {
        !self.trim().is_empty()
    }

    fn fill(self, option: &mut Self) {
        if option.is_empty() {
            *option = self;
        }
    }
}

impl Text for Secret {
    type Option = Option<Self>;

    fn is_set(&self) -> bool {
        !self.expose().is_empty()
    }

    fn fill(self, option: &mut Option<Self>) {
        option.get_or_insert(self);
    }
}

/// Fills each option of `[Global]` that is empty from the chosen entry, and says which entry of which file that was.
///
/// # Errors
///
/// There is no such file or entry, or the file cannot be read.
pub(super) fn fill(
    global: &mut Global,
    environment: &Environment,
    files: Files<'_>,
) -> Result<String, OptionError> {
    let (source, cloud) = chosen(global, environment, files)?;
    cloud.fill(global);
    Ok(source)
}

fn chosen(
    global: &Global,
    environment: &Environment,
    files: Files<'_>,
) -> Result<(String, Cloud), OptionError> {
    let named = Some(global.clouds_file.as_str())
        .filter(|path| !path.is_empty())
        .or(environment.value(CONFIG_FILE).filter(|path| !path.is_empty()));
    let places = Places { environment, files };
    let named = named.map(Path::new);
    let (path, mut clouds): (String, Clouds) = match named.map(|path| (path, (files)(path))) {
        Some((path, Ok(contents))) => (path.display().to_string(), parse(path, &contents)?),
        // One that may not be read is a mistake; one that is not there leaves the other places, as for every client.
        Some((path, Err(error))) if error.kind() != io::ErrorKind::NotFound => {
            return Err(OptionError::Unreadable {
                path: path.display().to_string(),
                reason: error.to_string(),
            });
        }
        _ => places
            .find("clouds")?
            .ok_or_else(|| places.missing("clouds", named))?,
    };
    let wanted = Some(global.cloud.as_str())
        .filter(|name| !name.is_empty())
        .or(environment.value(CLOUD).filter(|name| !name.is_empty()));
    let name = match (wanted, clouds.clouds.len()) {
        (Some(name), _) => name.to_owned(),
        (None, 1) => clouds.clouds.keys().next().cloned().unwrap_or_default(),
        (None, _) => return Err(OptionError::NoCloudChosen { path }),
    };
    let mut cloud = take(&mut clouds.clouds, &name, &path)?.over(Cloud::default());
    if let Some(profile) = cloud.profile.clone().or(cloud.cloud.clone()) {
        let (path, mut public): (String, PublicClouds) = places
            .find("clouds-public")?
            .ok_or_else(|| places.missing("clouds-public", None))?;
        let public = take(&mut public.clouds, &profile, &path)?.over(Cloud::default());
        cloud = cloud.over(public);
    }
    let secure: Option<(String, Clouds)> = places.find("secure")?;
    if let Some(secure) = secure.and_then(|(_, mut secure)| secure.clouds.remove(&name)) {
        cloud = secure.over(cloud);
    }
    Ok((format!("the entry {name:?} of {path}"), cloud))
}

/// The entry of this name, out of the file of this path.
fn take(clouds: &mut BTreeMap<String, Cloud>, name: &str, path: &str) -> Result<Cloud, OptionError> {
    clouds.remove(name).ok_or_else(|| {
        let names: Vec<&str> = clouds.keys().map(String::as_str).collect();
        OptionError::NoSuchCloud {
            name: name.to_owned(),
            path: path.to_owned(),
            near: meant(name, &names).map(str::to_owned),
        }
    })
}

/// Where files are looked for.
struct Places<'a> {
    environment: &'a Environment,
    files: Files<'a>,
}

impl Places<'_> {
    /// A file and its path, by its name without an ending, in the first place that has it.
    fn find<T: DeserializeOwned>(&self, name: &str) -> Result<Option<(String, T)>, OptionError> {
        for path in self.paths(name) {
            if let Ok(contents) = (self.files)(&path) {
                let clouds = parse(&path, &contents)?;
                return Ok(Some((path.display().to_string(), clouds)));
            }
        }
        Ok(None)
    }

    /// Where a file may be, by its name without an ending: `.yaml` in all places, then `.yml`.
    fn paths(&self, name: &str) -> Vec<PathBuf> {
        let home = self
            .environment
            .value("HOME")
            .map(|home| Path::new(home).join(".config/openstack"));
        let places: Vec<PathBuf> = [Some(PathBuf::new()), home, Some(PathBuf::from("/etc/openstack"))]
            .into_iter()
            .flatten()
            .collect();
        ["yaml", "yml"]
            .into_iter()
            .flat_map(|ending| {
                places
                    .iter()
                    .map(move |place| place.join(format!("{name}.{ending}")))
            })
            .collect()
    }

    /// That a file is in none of its places, with each of them. `named` is the one that somebody named.
    fn missing(&self, name: &str, named: Option<&Path>) -> OptionError {
        let named = named.map(|path| format!("{} (by its name)", path.display()));
        let paths = self.paths(name).into_iter().map(|path| {
            let place = match path.is_relative() {
                true => format!("{} in the working directory", path.display()),
                false => path.display().to_string(),
            };
            match (self.files)(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => format!("{place} ({error})"),
                _ => place,
            }
        });
        let home = self.environment.value("HOME").is_none();
        let home = home.then(|| "not in a home directory, because HOME is not set".to_owned());
        OptionError::NoCloudsFile {
            name: format!("{name}.yaml"),
            looked_for: named
                .into_iter()
                .chain(paths)
                .chain(home)
                .collect::<Vec<String>>()
                .join(", "),
        }
    }
}

fn parse<T: DeserializeOwned>(path: &Path, contents: &[u8]) -> Result<T, OptionError> {
    yaml::document(contents, KEYS).map_err(|reason: Malformed| OptionError::Yaml {
        path: path.display().to_string(),
        reason,
    })
}
