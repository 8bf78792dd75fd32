//! Why the configuration cannot be used.

use bowline_cloud_http::BaseUrlError;

use crate::config::setting::Setting;

/// An option cannot be used, or is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// There is no file and not enough without it.
    #[error(
        "--cloud-config is required, unless both {} and {} are in the environment",
        Setting::ClientId.variable(),
        Setting::ClientSecret.variable()
    )]
    NoFile,
    /// The file cannot be understood. Its contents are never repeated.
    #[error("cannot read cloud config {path}: {reason}")]
    File {
        /// The path.
        path: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// A credential is set nowhere.
    #[error(
        "environment variable {} or `{}` in the cloud config is required: the variable is not set, and the key is {} in \
         {path}{}",
        setting.variable(),
        setting.key(),
        if *is_empty { "empty" } else { "missing" },
        unknown.iter().map(|unknown| format!("; {unknown}")).collect::<String>()
    )]
    Missing {
        /// The credential.
        setting: Setting,
        /// Whether the file has the key, with nothing in it.
        is_empty: bool,
        /// The file.
        path: String,
        /// What is said of keys in the file that are not known: one of them may be this one, misspelt.
        unknown: Vec<String>,
    },
    /// A value cannot be used.
    #[error("{origin} {value}: {reason}{}", of_file(path.as_deref()))]
    Value {
        /// The variable or the key that holds it.
        origin: String,
        /// The file, if it is a key.
        path: Option<String>,
        /// As much of the value as may be shown: it may be a secret that stands in the wrong place.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A URL cannot be used. It is not repeated: it may hold a password.
    #[error("{origin} is {reason}{}", of_file(path.as_deref()))]
    Url {
        /// The flag, the variable or the key that holds it.
        origin: String,
        /// The file, if it is a key.
        path: Option<String>,
        /// What is wrong with it.
        reason: BaseUrlError,
    },
}

fn of_file(path: Option<&str>) -> String {
    path.map_or(String::new(), |path| format!(" (in {path})"))
}
