//! The file's one section and its variables.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_http::{Malformed, glimpse, meant, shown_name};
use bowline_gcfg::Variable;

/// The one section. Letter case does not count.
const SECTION: &str = "Global";

/// What a variable holds.
enum Kind {
    Text,
    /// A text that is never shown.
    Secret,
    /// On or off; its name alone turns it on.
    Switch,
}

macro_rules! settings {
    ($($name:ident = $kind:ident $key:literal, $meaning:literal;)*) => {
        /// The variables by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Setting {
            $(#[doc = $meaning] $name,)*
        }

        impl Setting {
            /// All of them.
            pub const ALL: [Self; 12] = [$(Self::$name),*];

            /// The name in the file.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)*
                }
            }

            fn kind(self) -> Kind {
                match self {
                    $(Self::$name => Kind::$kind,)*
                }
            }
        }
    };
}

settings! {
    ApiUrl = Text "api-url", "Where the API is.";
    ApiKey = Secret "api-key", "Who asks.";
    SecretKey = Secret "secret-key", "The proof of it.";
    SslNoVerify = Switch "ssl-no-verify", "Whether the API's certificate is left unchecked.";
    ProjectId = Text "project-id", "The project in which everything happens: its ID or its name.";
    Zone = Text "zone", "The zone that the manager is in. Without effect, as upstream.";
    Region = Text "region", "The region of all Nodes.";
    Version = Text "version", "The server's version, where it cannot be asked for.";
    FullInstanceTypes = Switch "full-instance-types", "Whether the instance type keeps all characters that a label may have.";
    Ipv6Addresses = Switch "ipv6-addresses", "Whether Nodes get an IPv6 address too.";
    CompatibleWith = Text "compatible-with", "Whose manager Nodes look alike to: `apache` or `leaseweb`.";
    IgnoreUnknown = Switch "ignore-unknown", "Whether what is unknown in the file is reported and not refused.";
}

impl Setting {
    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|setting| setting.key().eq_ignore_ascii_case(name))
    }
}

/// The file says something that means nothing. The texts begin as those of the Go manager do, and end with the line.
#[derive(Debug, thiserror::Error)]
#[error("{told}")]
pub(super) struct FileError {
    told: String,
    /// The same without what the file says, for when it is read again.
    pub(super) place: Malformed,
}

/// The text of a switch that is on. That of one that is off is empty.
const ON: &str = "true";

/// The values of the file.
#[derive(Default)]
pub(super) struct File {
    texts: BTreeMap<Setting, String>,
    /// The keys and the project, where a comment follows their value.
    cut: BTreeSet<Setting>,
    /// What is unknown and was let pass.
    pub(super) ignored: Vec<String>,
}

impl File {
    /// Reads the file. Of a variable that stands several times the last one counts.
    pub(super) fn parse(contents: &[u8]) -> Result<Self, FileError> {
        let mut file = Self::default();
        let mut unknown = Vec::new();
        let entries = bowline_gcfg::parse(contents).map_err(|error| FileError {
            told: error.explained(contents, |written| {
                meant(written, &Setting::ALL.map(Setting::key))
            }),
            place: Malformed {
                line: Some(error.line),
                ..Malformed::because("it breaks a rule of its language")
            },
        })?;
        for entry in entries {
            // Each name may be a key of the API in the wrong place.
            let (section, line) = (shown_name(&entry.section), entry.line);
            let is_known = entry.section.eq_ignore_ascii_case(SECTION) && entry.subsection.is_none();
            match entry.variable {
                None if !is_known => {
                    let subsection = entry.subsection.as_deref().map(shown_name);
                    let subsection = subsection.map(|name| format!(", subsection {name}"));
                    let subsection = subsection.unwrap_or_default();
                    unknown.push(format!(
                        "can't store data at section {section}{subsection} (line {line})"
                    ));
                }
                Some(Variable {
                    name,
                    value,
                    is_before_comment,
                }) if is_known => match Setting::named(&name) {
                    Some(setting) => {
                        file.set(setting, value, line)?;
                        match is_before_comment {
                            true => file.cut.insert(setting),
                            false => file.cut.remove(&setting),
                        };
                    }
                    None => {
                        // Without an equals sign it may be a value whose name is missing.
                        let near = meant(&name, &Setting::ALL.map(Setting::key));
                        let near = near.map(|near| format!(": did you mean {near:?}?"));
                        let name = value.map_or_else(|| glimpse(&name), |_| shown_name(&name));
                        unknown.push(format!(
                            "can't store data at section {section}, variable {name} (line {line}){}",
                            near.unwrap_or_default()
                        ));
                    }
                },
                // Of an unknown section its own line tells.
                _ => {}
            }
        }
        if unknown.is_empty() || file.is_on(Setting::IgnoreUnknown) {
            file.ignored = unknown;
            return Ok(file);
        }
        // A typo would turn an option off, so it is refused, unless the file itself says that it is not to be.
        Err(FileError {
            told: format!(
                "{}; the one section is [{SECTION}], with the variables {}",
                unknown.join("; "),
                Setting::ALL.map(Setting::key).join(", ")
            ),
            place: Malformed::because("it has sections or variables that are not known"),
        })
    }

    fn set(&mut self, setting: Setting, value: Option<String>, line: usize) -> Result<(), FileError> {
        let key = setting.key();
        let wrong = |what, told: &str, then: &str| FileError {
            told: format!("{told} at section {SECTION:?}, variable {key:?} (line {line}){then}"),
            place: Malformed {
                what,
                key: Some(key),
                line: Some(line),
            },
        };
        let text = match (value, setting.kind()) {
            // Not set, whatever a line above it says.
            (Some(text), _) if text.is_empty() => text,
            (value, Kind::Switch) => match bowline_gcfg::switch(value.as_deref()) {
                Some(true) => ON.to_owned(),
                Some(false) => String::new(),
                None => {
                    let told = format!("failed to parse bool {}", glimpse(&value.unwrap_or_default()));
                    let words = ": it is one of true, yes, on, 1, false, no, off, 0";
                    return Err(wrong("neither true nor false is its value", &told, words));
                }
            },
            (Some(text), _) => text,
            // A text without an equals sign.
            (None, _) => {
                let told = "blank value not supported for type string";
                return Err(wrong("there is no value", told, ""));
            }
        };
        self.texts.insert(setting, text);
        Ok(())
    }

    /// The settings in force, without the secrets. What is not in the file has no value.
    pub(super) fn shown(&self) -> Vec<(Setting, String)> {
        let given = self.texts.iter().filter(|(_, text)| !text.is_empty());
        let open = given.filter(|(setting, _)| !matches!(setting.kind(), Kind::Secret));
        open.map(|(setting, text)| (*setting, text.clone())).collect()
    }

    /// What may be wrong with the keys and the project, where the server does not take them; mostly empty.
    pub(super) fn doubt(&self) -> String {
        let of_login = [Setting::ApiKey, Setting::SecretKey, Setting::ProjectId];
        let cut = of_login.into_iter().filter(|setting| self.cut.contains(setting));
        bowline_gcfg::cut_short(&cut.map(|setting| setting.key().to_owned()).collect::<Vec<_>>())
    }

    /// The text of a setting; empty if it is not there.
    pub(super) fn text(&self, setting: Setting) -> &str {
        self.texts.get(&setting).map(String::as_str).unwrap_or_default()
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, setting: Setting) -> bool {
        self.text(setting) == ON
    }
}
