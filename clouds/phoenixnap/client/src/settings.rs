//! Where the APIs are and what opens them.

use std::time::Duration;

use bowline_cloud_http::{CloudHttpConfig, Secret, Url};

/// The vendor's APIs.
pub const DEFAULT_BASE_URL: &str = "https://api.phoenixnap.com";

/// The vendor's token endpoint.
pub const DEFAULT_TOKEN_URL: &str =
    "https://auth.phoenixnap.com/auth/realms/BMC/protocol/openid-connect/token";

/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How the APIs are reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What opens them.
    pub credentials: Credentials,
    /// The roots of the four APIs are below it; its path, if it has one, is kept.
    pub base_url: Url,
    /// Where tokens come from.
    pub token_url: Url,
}

/// What is exchanged for a token.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Who asks.
    pub client_id: String,
    /// The proof of it.
    pub client_secret: Secret,
}

/// A URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an absolute URL of http or https: {reason}")]
pub struct SettingsError {
    /// The setting.
    pub name: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Settings {
    /// Settings from texts. Whether anything answers there is not asked.
    ///
    /// # Errors
    ///
    /// A URL is not an absolute one of http or https. The text itself is not repeated: it may hold a password.
    pub fn new(credentials: Credentials, base_url: &str, token_url: &str) -> Result<Self, SettingsError> {
        let mut base_url = absolute("base-url", base_url)?;
        // So that relative paths are appended, whatever the path of the base is.
        let path = format!("{}/", base_url.path().trim_end_matches('/'));
        base_url.set_path(&path);
        base_url.set_query(None);
        base_url.set_fragment(None);
        Ok(Self {
            credentials,
            base_url,
            token_url: absolute("token-url", token_url)?,
        })
    }

    /// Puts the timeouts into the configuration of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        config.read_timeout = TIMEOUT;
        config.write_timeout = TIMEOUT;
    }
}

fn absolute(name: &'static str, text: &str) -> Result<Url, SettingsError> {
    let wrong = |reason: String| SettingsError { name, reason };
    let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    // Nothing is opened by them here, and they would show in messages. Both fail only for a URL without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("its scheme is `{}`", url.scheme())));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(base: &str) -> Result<Settings, SettingsError> {
        let credentials = Credentials {
            client_id: "id".to_owned(),
            client_secret: Secret::new("xJ2-secret"),
        };
        Settings::new(credentials, base, DEFAULT_TOKEN_URL)
    }

    #[test]
    fn a_base_keeps_its_path_and_loses_its_slashes_and_query() {
        for (base, expected) in [
            ("https://api.phoenixnap.com", "https://api.phoenixnap.com/"),
            ("https://api.phoenixnap.com//", "https://api.phoenixnap.com/"),
            ("http://sim.test:8080/pnap/", "http://sim.test:8080/pnap/"),
            ("http://sim.test:8080/a/b?x=1#y", "http://sim.test:8080/a/b/"),
        ] {
            assert_eq!(settings(base).unwrap().base_url.as_str(), expected, "{base}");
        }
    }

    #[test]
    fn a_base_that_is_no_absolute_url_is_named_and_not_repeated() {
        for base in [
            "",
            "api.phoenixnap.com",
            "/bmc",
            "ftp://user:hunter2@host",
            "http://",
        ] {
            let text = settings(base).unwrap_err().to_string();
            assert!(text.starts_with("`base-url` is not an absolute URL"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn settings_do_not_print_the_secret() {
        assert!(!format!("{:?}", settings(DEFAULT_BASE_URL).unwrap()).contains("xJ2"));
    }
}
