//! Where the API is and what opens it.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::{BaseUrlError, CloudHttpConfig, Url, base_url};
use jiff::Timestamp;

use crate::sign::Keys;
use crate::wire::ProjectId;

/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Tells the wall time, from which signatures get their end.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How the API is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The one URL of the API, e.g. `https://cloud.example.net/client/api`. Nothing is appended to it.
    pub url: Url,
    /// What opens it.
    pub keys: Keys,
    /// The project in which everything happens.
    pub project: Option<Project>,
}

/// A project, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Project {
    /// By its id; `-1` stands for all projects.
    Id(ProjectId),
    /// By its name: the client asks for its id once.
    Name(String),
}

impl Project {
    /// Tells ids from names. An empty text is no project.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" => None,
            "-1" => Some(Self::Id(text.into())),
            text if is_uuid(text) => Some(Self::Id(text.into())),
            text => Some(Self::Name(text.to_owned())),
        }
    }
}

/// Whether a text has the form in which the API writes IDs: 8-4-4-4-12 hexadecimal digits in lower case. Earlier managers took
/// everything else for a name, too.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| {
            group
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
}

/// The URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`api-url` is {0}")]
pub struct SettingsError(#[from] BaseUrlError);

impl Settings {
    /// Settings from texts. Whether anything answers there is not asked.
    ///
    /// # Errors
    ///
    /// The URL is not an absolute one of http or https. The text itself is not repeated: it may hold a password.
    pub fn new(url: &str, keys: Keys, project: Option<Project>) -> Result<Self, SettingsError> {
        let mut url = base_url(url)?;
        url.set_fragment(None);
        Ok(Self { url, keys, project })
    }

    /// Puts the timeouts into the configuration of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        config.read_timeout = TIMEOUT;
        config.write_timeout = TIMEOUT;
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::Secret;

    use super::*;

    fn settings(url: &str) -> Result<Settings, SettingsError> {
        let keys = Keys {
            api_key: Secret::new("xJ2-api"),
            secret_key: Secret::new("xJ2-secret"),
            doubt: String::new(),
        };
        Settings::new(url, keys, None)
    }

    #[test]
    fn a_url_is_kept_as_it_is() {
        for url in [
            "https://cloud.example.net/client/api",
            "http://203.0.113.9:8080/client/api",
            "https://cloud.example.net/client/api/",
        ] {
            assert_eq!(settings(url).unwrap().url.as_str(), url);
        }
    }

    #[test]
    fn a_url_that_is_not_absolute_is_refused_and_not_repeated() {
        for url in [
            "",
            "cloud.example.net/client/api",
            "/client/api",
            "ftp://u:hunter2@h",
            "http://",
        ] {
            let text = settings(url).unwrap_err().to_string();
            assert!(text.starts_with("`api-url` is not an absolute URL"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn settings_do_not_print_the_keys() {
        assert!(!format!("{:?}", settings("http://h/client/api").unwrap()).contains("xJ2"));
    }

    #[test]
    fn a_project_is_an_id_or_a_name() {
        let id = |text: &str| Some(Project::Id(text.into()));
        let name = |text: &str| Some(Project::Name(text.to_owned()));
        assert_eq!(Project::parse(""), None);
        assert_eq!(Project::parse("-1"), id("-1"));
        let text = "5f0c8b1e-7f2a-4f0d-9a55-0d6a3c1f2b10";
        assert_eq!(Project::parse(text), id(text));
        for text in [
            "5F0C8B1E-7F2A-4F0D-9A55-0D6A3C1F2B10",
            "prod",
            "5f0c8b1e-7f2a-4f0d-9a55-0d6a3c1f2b1",
            "5f0c8b1e7f2a4f0d9a550d6a3c1f2b10",
            "5f0c8b1e-7f2a-4f0d-9a55-0d6a3c1f2bxx",
        ] {
            assert_eq!(Project::parse(text), name(text));
        }
    }
}
