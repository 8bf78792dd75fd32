//! How the API is reached, from the environment and the file of `--cloud-config`.

use bowline_cloud_http::{BaseUrlError, Malformed, Secret, Url, base_url, yaml};
use serde::Deserialize;

// guide: settings
/// The settings. They can be printed: a [`Secret`] shows nothing.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `PAPER_API_URL`, or `apiUrl`: where the API is. Must be given.
    pub url: Url,
    /// `PAPER_TOKEN`, or `token`: who we are. Must be given.
    pub token: Secret,
    /// `routesByAddress`: routes name the addresses of their machine, and are made anew when a Node's addresses change.
    pub routes_by_address: bool,
}
// guide: end

/// What is wrong with the settings. No text repeats a value: it might be the token in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The file is not what it should be.
    #[error(
        "the cloud config is not a YAML mapping with the keys apiUrl, token and routesByAddress only: {0}"
    )]
    File(#[from] Malformed),
    /// A value is needed and not there.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// The base URL is none.
    #[error("PAPER_API_URL is {0}")]
    Url(#[from] BaseUrlError),
}

/// A file that anybody can write wrongly: unknown keys are errors, so that a typing mistake is not a silent default.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct File {
    api_url: Option<String>,
    token: Option<Secret>,
    routes_by_address: bool,
}

/// The keys of the file.
const KEYS: &[&str] = &["apiUrl", "token", "routesByAddress"];

impl Settings {
    /// Reads the settings. The environment comes in as an argument, so that tests need not change their own; a variable
    /// wins over the file, and an empty one counts as not set.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        file: Option<&[u8]>,
    ) -> Result<Self, SettingsError> {
        let file: File = match file {
            Some(bytes) => yaml::document(bytes, KEYS)?,
            None => File::default(),
        };
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let url = set("PAPER_API_URL")
            .or(file.api_url)
            .ok_or(SettingsError::Missing("PAPER_API_URL"))?;
        let url = base_url(&url)?;
        let token = set("PAPER_TOKEN").map(Secret::new).or(file.token);
        Ok(Self {
            url,
            token: token.ok_or(SettingsError::Missing("PAPER_TOKEN"))?,
            routes_by_address: file.routes_by_address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], file: Option<&str>) -> Result<Settings, SettingsError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(variable, file.map(str::as_bytes))
    }

    #[test]
    fn a_variable_wins_over_the_file() {
        let file = "apiUrl: http://file\ntoken: from-file\nroutesByAddress: true";
        let settings = read(&[("PAPER_API_URL", "http://variable")], Some(file)).unwrap();
        assert_eq!(settings.url.as_str(), "http://variable/");
        assert_eq!(
            (settings.token.expose(), settings.routes_by_address),
            ("from-file", true)
        );
    }

    #[test]
    fn nothing_that_is_wrong_is_repeated_in_the_error() {
        let token = ("PAPER_TOKEN", "s3cr3t");
        let table = [
            (read(&[], None), "PAPER_API_URL is not set"),
            (
                read(&[("PAPER_API_URL", "http://a")], None),
                "PAPER_TOKEN is not set",
            ),
            (
                read(&[token, ("PAPER_API_URL", "s3cr3t")], None),
                "PAPER_API_URL is not an absolute URL of http or https: it does not begin with http:// or https://",
            ),
            (
                read(&[], Some("apiUrl: http://a\ns3cr3t: yes")),
                "the cloud config is not a YAML mapping with the keys apiUrl, token and routesByAddress only: \
                 a key is not known here (line 2)",
            ),
            (
                read(&[], Some("s3cr3t")),
                "the cloud config is not a YAML mapping with the keys apiUrl, token and routesByAddress only: \
                 a mapping of keys to values is expected (line 1)",
            ),
        ];
        for (settings, text) in table {
            assert_eq!(settings.unwrap_err().to_string(), text);
        }
        assert!(!format!("{:?}", read(&[token, ("PAPER_API_URL", "http://a")], None)).contains("s3cr3t"));
    }
}
