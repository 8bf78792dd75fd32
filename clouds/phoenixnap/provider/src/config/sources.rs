//! Where the value of an option comes from: flag, environment, file, in this order.

use std::fmt;

use bowline_cloud_http::glimpse;
use bowline_cloud_provider::Environment;

use super::file::File;
use super::{Given, OptionsError, Setting};

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        })
    }
}

/// What is given, by setting.
pub(super) struct Sources<'a> {
    pub(super) given: &'a Given,
    pub(super) environment: &'a Environment,
    pub(super) file: File,
    /// The file's path; empty if there is none.
    pub(super) path: &'a str,
}

impl Sources<'_> {
    /// The value of a setting without the white space around it, and where it came from; `None` if it is set nowhere. An
    /// empty variable counts as not set, so the environment cannot blank out the file.
    pub(super) fn find(&self, setting: Setting) -> Option<(String, Origin)> {
        let flag = match setting {
            Setting::BaseUrl => self.given.base_url.as_deref(),
            _ => None,
        };
        let variable = self.environment.value(setting.variable());
        let port = self.file.port().map(|port| port.to_string());
        let in_file = match setting {
            Setting::ApiServerPort => port.as_deref(),
            _ => self.file.text(setting),
        };
        [
            (flag, Origin::Flag),
            (variable, Origin::Environment),
            (in_file, Origin::File),
        ]
        .into_iter()
        .find_map(|(text, origin)| {
            let text = text?.trim_ascii();
            (!text.is_empty()).then(|| (text.to_owned(), origin))
        })
    }

    /// How a person would name the place of a value.
    pub(super) fn name(setting: Setting, origin: Origin) -> String {
        match origin {
            Origin::Flag => format!("--{}", setting.key()),
            Origin::Environment => setting.variable().to_owned(),
            Origin::File | Origin::Default => setting.key().to_owned(),
        }
    }

    /// The file, where a value is from there.
    pub(super) fn path(&self, origin: Origin) -> Option<String> {
        (origin == Origin::File).then(|| self.path.to_owned())
    }

    /// A value that cannot be used.
    pub(super) fn wrong(
        &self,
        setting: Setting,
        origin: Origin,
        value: &str,
        reason: impl Into<String>,
    ) -> OptionsError {
        OptionsError::Value {
            origin: Self::name(setting, origin),
            path: self.path(origin),
            value: glimpse(value),
            reason: reason.into(),
        }
    }

    /// One of the credentials, and where it is set.
    pub(super) fn required(
        &self,
        setting: Setting,
        (text, origin): (String, Origin),
    ) -> Result<(String, String), OptionsError> {
        if text.is_empty() {
            return Err(OptionsError::Missing {
                setting,
                is_empty: self.file.has(setting),
                path: self.path.to_owned(),
                unknown: self.file.warnings(),
            });
        }
        let source = match origin {
            Origin::Environment => format!("the variable {}", setting.variable()),
            _ => format!("`{}` in {}", setting.key(), self.path),
        };
        Ok((text, source))
    }
}
