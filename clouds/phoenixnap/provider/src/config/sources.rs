//! Where the value of an option comes from: flag, environment, file, in this order.

use std::fmt;

use bowline_cloud_http::{Url, base_url, glimpse};
use bowline_cloud_provider::Environment;

use crate::config::error::OptionsError;
use crate::config::file::File;
use crate::config::setting::{Given, Setting};

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
    /// Each option that was asked for, with its value and where it came from.
    pub(super) report: Vec<(&'static str, String, Origin)>,
}

impl Sources<'_> {
    /// The value of a setting without the white space around it, and where it came from; `None` if it is set nowhere. An
    /// empty variable counts as not set, so the environment cannot blank out the file.
    fn find(&self, setting: Setting) -> Option<(String, Origin)> {
        let flag = match setting {
            Setting::BaseUrl => self.given.base_url.as_deref(),
            _ => None,
        };
        let variable = self.environment.value(setting.variable());
        let in_file = self.file.text(setting);
        [
            (flag, Origin::Flag),
            (variable, Origin::Environment),
            (in_file.as_deref(), Origin::File),
        ]
        .into_iter()
        .find_map(|(text, origin)| {
            let text = text?.trim_ascii();
            (!text.is_empty()).then(|| (text.to_owned(), origin))
        })
    }

    /// How a person would name the place of a value.
    fn name(setting: Setting, origin: Origin) -> String {
        match origin {
            Origin::Flag => format!("--{}", setting.key()),
            Origin::Environment => setting.variable().to_owned(),
            Origin::File | Origin::Default => setting.key().to_owned(),
        }
    }

    /// The file, where a value is from there.
    fn path(&self, origin: Origin) -> Option<String> {
        (origin == Origin::File).then(|| self.path.to_owned())
    }

    /// The value of a setting, or its default, noted for the report.
    pub(super) fn text(&mut self, setting: Setting, default: &str) -> (String, Origin) {
        let found = self.find(setting);
        let (text, origin) = found.unwrap_or_else(|| (default.to_owned(), Origin::Default));
        let shown = match setting {
            Setting::ClientSecret => "(set)",
            // Told from what was parsed, which holds no password.
            Setting::BaseUrl | Setting::TokenUrl | Setting::LoadBalancer => "",
            _ => &text,
        };
        self.report.push((setting.key(), shown.to_owned(), origin));
        (text, origin)
    }

    /// What a value means.
    pub(super) fn parsed<T, E: Into<String>>(
        &mut self,
        setting: Setting,
        default: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, OptionsError> {
        let (text, origin) = self.text(setting, default);
        parse(&text).map_err(|reason| OptionsError::Value {
            origin: Self::name(setting, origin),
            path: self.path(origin),
            value: glimpse(&text),
            reason: reason.into(),
        })
    }

    /// A base URL.
    pub(super) fn url(&mut self, setting: Setting, default: &str) -> Result<Url, OptionsError> {
        let (text, origin) = self.text(setting, default);
        base_url(&text).map_err(|reason| OptionsError::Url {
            origin: Self::name(setting, origin),
            path: self.path(origin),
            reason,
        })
    }

    /// One of the credentials, and where it is set.
    pub(super) fn required(&mut self, setting: Setting) -> Result<(String, String), OptionsError> {
        let (text, origin) = self.text(setting, "");
        if text.is_empty() {
            return Err(OptionsError::Missing {
                setting,
                is_empty: self.file.has(setting),
                path: self.path.to_owned(),
                unknown: self.file.warnings(),
            });
        }
        let source = self.place(setting, origin);
        Ok((text, source))
    }

    /// Where a setting has its value from, in words.
    pub(super) fn place_of(&self, setting: Setting) -> String {
        let origin = self.find(setting).map_or(Origin::Default, |(_, origin)| origin);
        self.place(setting, origin)
    }

    /// Where a value is set, in words: one that is set somewhere, and not by a flag.
    pub(super) fn place(&self, setting: Setting, origin: Origin) -> String {
        match origin {
            Origin::Environment => format!("the variable {}", setting.variable()),
            _ => format!("`{}` in {}", setting.key(), self.path),
        }
    }
}
