//! What the environment says about the API.

use std::time::Duration;

use bowline_cloud_http::{BaseUrlError, CloudHttpConfig, Secret, ShownSetting, Url, base_url};

/// The API of cloudscale.ch.
const DEFAULT_URL: &str = "https://api.cloudscale.ch/";

/// How long one exchange may take where nothing else is said: reads, as upstream.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a write may take: the API may hold one back until the former one to the same balancer is done, and the
/// vendor's own clients allow 2 minutes.
const DEFAULT_WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// The settings of the cloudscale.ch provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `CLOUDSCALE_ACCESS_TOKEN`: a token with read and write rights.
    pub token: Secret,
    /// `CLOUDSCALE_API_URL`: where request paths are resolved against.
    pub url: Url,
    /// The base URL as it was written, without credentials: for people.
    pub shown_url: String,
    /// How long one exchange of a read may take, its body included.
    pub read_timeout: Duration,
    /// How long one exchange of a write may take, its body included.
    pub write_timeout: Duration,
}

/// The environment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no token.
    #[error("no CLOUDSCALE_ACCESS_TOKEN configured")]
    NoToken,
    /// The base URL is none.
    #[error("bad CLOUDSCALE_API_URL: {0}")]
    Url(#[from] BaseUrlError),
}

impl Settings {
    /// Reads `CLOUDSCALE_ACCESS_TOKEN`, `CLOUDSCALE_API_URL` and `CLOUDSCALE_API_TIMEOUT` from an environment that is
    /// handed in.
    ///
    /// White space around the token and the URL is left out. The timeout is a whole number of seconds above 0 and holds for every
    /// exchange; anything else counts as not set. Not set, reads have 20 s and writes 120 s.
    ///
    /// # Errors
    ///
    /// No token, or a URL that is not one of HTTP.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        // What is made from a file often ends in a line break, which no header may hold.
        let set = |name: &str| {
            let value = lookup(name).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let token = set("CLOUDSCALE_ACCESS_TOKEN").ok_or(SettingsError::NoToken)?;
        let text = set("CLOUDSCALE_API_URL").unwrap_or_else(|| DEFAULT_URL.to_owned());
        let url = base_url(&text)?;
        let timeout = lookup("CLOUDSCALE_API_TIMEOUT")
            .and_then(|text| text.parse::<i64>().ok())
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        Ok(Self {
            token: Secret::new(token),
            shown_url: if text.contains('@') { url.to_string() } else { text },
            url,
            read_timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            write_timeout: timeout.unwrap_or(DEFAULT_WRITE_TIMEOUT),
        })
    }

    /// Puts the timeouts into the configuration of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        config.read_timeout = self.read_timeout;
        config.write_timeout = self.write_timeout;
    }

    /// The settings in force, for people.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownSetting> {
        let origin = |is_default| if is_default { "default" } else { "environment" };
        let timeout = format!("{} s", self.read_timeout.as_secs());
        vec![
            ShownSetting::secret("CLOUDSCALE_ACCESS_TOKEN", origin(false)),
            ShownSetting::new(
                "CLOUDSCALE_API_URL",
                &self.shown_url,
                origin(self.shown_url == DEFAULT_URL),
            ),
            ShownSetting::new(
                "CLOUDSCALE_API_TIMEOUT",
                timeout,
                // One that is given holds for both.
                origin(self.read_timeout != self.write_timeout),
            ),
        ]
    }

    /// Writes the line that says which API is used with which token; upstream writes the same.
    pub fn log(&self) {
        tracing::info!(
            url = %self.shown_url,
            token = %self.token.masked(),
            timeout = self.read_timeout.as_secs(),
            "cloudscale API client"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(environment: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_env(|name| {
            environment
                .iter()
                .find(|(found, _)| *found == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    const TOKEN: (&str, &str) = ("CLOUDSCALE_ACCESS_TOKEN", "Qv7tMz0aLk42sXbR9eYcU");

    #[test]
    fn settings_are_shown_with_their_origin_and_without_the_token() {
        let told = |environment: &[(&str, &str)]| -> Vec<String> {
            let shown = settings(environment).unwrap().shown().into_iter();
            shown.map(|it| format!("{} {}", it.value, it.origin)).collect()
        };
        assert_eq!(
            told(&[TOKEN]),
            [
                "<set> environment",
                "https://api.cloudscale.ch/ default",
                "20 s default"
            ]
        );
        let given = [
            TOKEN,
            ("CLOUDSCALE_API_URL", "http://h:1"),
            ("CLOUDSCALE_API_TIMEOUT", "20"),
        ];
        assert_eq!(
            told(&given),
            ["<set> environment", "http://h:1 environment", "20 s environment"]
        );
    }

    #[test]
    fn a_missing_or_empty_token_is_refused_with_upstreams_text() {
        for environment in [
            &[][..],
            &[("CLOUDSCALE_ACCESS_TOKEN", "")],
            &[("CLOUDSCALE_ACCESS_TOKEN", " \n")],
            &[("CLOUDSCALE_API_TOKEN", "x")],
        ] {
            let error = settings(environment).unwrap_err();
            assert_eq!(error.to_string(), "no CLOUDSCALE_ACCESS_TOKEN configured");
        }
    }

    #[test]
    fn a_line_break_behind_the_token_is_not_the_token() {
        let (name, token) = TOKEN;
        let settings = settings(&[(name, &format!("{token}\n"))]).unwrap();
        assert_eq!(settings.token.expose(), token);
    }

    #[test]
    fn a_missing_or_empty_url_is_the_vendors() {
        for environment in [
            &[TOKEN][..],
            &[TOKEN, ("CLOUDSCALE_API_URL", "")],
            &[TOKEN, ("CLOUDSCALE_API_URL", " \n")],
        ] {
            assert_eq!(
                settings(environment).unwrap().url.as_str(),
                "https://api.cloudscale.ch/"
            );
        }
        let error = settings(&[TOKEN, ("CLOUDSCALE_API_URL", "api.example")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "bad CLOUDSCALE_API_URL: not an absolute URL of http or https: it does not begin with http:// or https://"
        );
        assert!(settings(&[TOKEN, ("CLOUDSCALE_API_URL", "ftp://api.example")]).is_err());
    }

    #[test]
    fn only_a_whole_number_above_zero_is_a_timeout() {
        let table = [
            ("", 20, 120),
            ("0", 20, 120),
            ("-5", 20, 120),
            ("ten", 20, 120),
            ("1.5", 20, 120),
            (" 5", 20, 120),
            ("5s", 20, 120),
            ("5", 5, 5),
            ("+7", 7, 7),
            ("300", 300, 300),
        ];
        for (text, read, write) in table {
            let settings = settings(&[TOKEN, ("CLOUDSCALE_API_TIMEOUT", text)]).unwrap();
            let found = (settings.read_timeout.as_secs(), settings.write_timeout.as_secs());
            assert_eq!(found, (read, write), "{text:?}");
            let mut config = CloudHttpConfig::new("cloudscale", "test");
            settings.configure(&mut config);
            assert_eq!(
                (config.read_timeout.as_secs(), config.write_timeout.as_secs()),
                (read, write)
            );
        }
        assert_eq!(settings(&[TOKEN]).unwrap().write_timeout.as_secs(), 120);
    }

    #[test]
    fn nothing_that_is_shown_holds_the_token_or_the_urls_password() {
        let settings =
            settings(&[TOKEN, ("CLOUDSCALE_API_URL", "https://anna:hunter2@api.example/")]).unwrap();
        assert_eq!(settings.shown_url, "https://api.example/");
        let plain = self::settings(&[TOKEN, ("CLOUDSCALE_API_URL", "https://api.example")]).unwrap();
        assert_eq!(plain.shown_url, "https://api.example");
        assert_eq!(settings.token.masked(), "Qv7t*****************");
        assert!(!format!("{:?}", settings.token).contains("Mz0aLk"));
    }
}
