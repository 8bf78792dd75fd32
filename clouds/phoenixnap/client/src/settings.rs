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
    /// Where the credentials are set, for messages.
    pub source: String,
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

impl Settings {
    /// Settings from URLs as [`bowline_cloud_http::base_url`] reads them. Whether anything answers there is not asked.
    #[must_use]
    pub fn new(credentials: Credentials, source: String, mut base_url: Url, token_url: Url) -> Self {
        // So that relative paths are appended, whatever the path of the base is.
        let path = format!("{}/", base_url.path().trim_end_matches('/'));
        base_url.set_path(&path);
        base_url.set_query(None);
        base_url.set_fragment(None);
        Self {
            credentials,
            source,
            base_url,
            token_url,
        }
    }

    /// Puts the timeouts into the configuration of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        config.read_timeout = TIMEOUT;
        config.write_timeout = TIMEOUT;
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::base_url;

    use super::*;

    fn settings(base: &str) -> Settings {
        let credentials = Credentials {
            client_id: "id".to_owned(),
            client_secret: Secret::new("xJ2-secret"),
        };
        Settings::new(
            credentials,
            "a file".to_owned(),
            base_url(base).unwrap(),
            base_url(DEFAULT_TOKEN_URL).unwrap(),
        )
    }

    #[test]
    fn a_base_keeps_its_path_and_loses_its_slashes_and_query() {
        for (base, expected) in [
            ("https://api.phoenixnap.com", "https://api.phoenixnap.com/"),
            ("https://api.phoenixnap.com//", "https://api.phoenixnap.com/"),
            ("http://sim.test:8080/pnap/", "http://sim.test:8080/pnap/"),
            ("http://sim.test:8080/a/b?x=1#y", "http://sim.test:8080/a/b/"),
        ] {
            assert_eq!(settings(base).base_url.as_str(), expected, "{base}");
        }
    }

    #[test]
    fn settings_do_not_print_the_secret() {
        assert!(!format!("{:?}", settings(DEFAULT_BASE_URL)).contains("xJ2"));
    }
}
