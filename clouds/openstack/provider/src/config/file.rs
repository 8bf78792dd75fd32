//! The file that `--cloud-config` names.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bowline_cloud_http::{Malformed, meant};
use bowline_gcfg::SyntaxError;
use bowline_openstack_client::Credentials;

use super::sections::{ClassOptions, Global, LoadBalancerOptions, Metadata, Networking, Route, options};
use super::unknown::Unknown;
use super::value::{Section, ValueError};

/// What reads a file.
pub type Files<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// The file cannot be read. The texts begin as those of the Go manager do, and end with the line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file breaks a rule of its language.
    #[error("{told}")]
    Syntax {
        /// Where, and what is wrong.
        error: SyntaxError,
        /// The same in words, with the option of the line.
        told: String,
    },
    /// A value is none of its kind.
    #[error("{source} at section {section:?}, variable {option:?} (line {line})")]
    Value {
        /// The section.
        section: &'static str,
        /// The option.
        option: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with the value.
        source: ValueError,
    },
}

impl FileError {
    /// The same without what the file says, for when it is read again.
    pub(super) fn place(&self) -> Malformed {
        let (what, line) = match self {
            Self::Syntax { error, .. } => ("it breaks a rule of its language", error.line),
            Self::Value { line, .. } => ("a value is none of its kind", *line),
        };
        Malformed {
            what,
            key: None,
            line: Some(line),
        }
    }
}

/// What the file says, and defaults for what it does not say.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) global: Global,
    pub(super) networking: Networking,
    pub(super) load_balancer: LoadBalancerOptions,
    pub(super) classes: BTreeMap<String, ClassOptions>,
    pub(super) route: Route,
    pub(super) metadata: Metadata,
    /// What is unknown, and has no effect.
    pub(super) unknown: Vec<Unknown>,
}

impl File {
    /// Reads the file. Of an option that stands several times the last one counts, unless it is a list; one without a value is not set.
    pub(super) fn parse(contents: &[u8]) -> Result<Self, FileError> {
        let mut file = Self::default();
        let entries = bowline_gcfg::parse(contents).map_err(|error| FileError::Syntax {
            told: error.explained(contents, |written| {
                options().iter().find_map(|(_, names)| meant(written, names))
            }),
            error,
        })?;
        let mut cut = Vec::new();
        for entry in entries {
            let (line, subsection) = (entry.line, entry.subsection.as_deref());
            let Some((section, options)) = file.section(&entry.section, subsection) else {
                if entry.variable.is_none() {
                    file.unknown
                        .extend(Unknown::section(&entry.section, subsection, line));
                }
                continue;
            };
            let Some(variable) = entry.variable else { continue };
            let name = variable.name.to_lowercase();
            cut.retain(|it| *it != name);
            if variable.is_before_comment
                && section == "Global"
                && Credentials::default().names().contains(&&*name)
            {
                cut.push(name);
            }
            if variable.is_empty() && options.unset(&variable.name) {
                continue;
            }
            match options.set(&variable.name, variable.value) {
                Some(Ok(())) => {}
                Some(Err(source)) => {
                    return Err(FileError::Value {
                        section,
                        option: variable.name.to_lowercase(),
                        line,
                        source,
                    });
                }
                None => file.unknown.push(Unknown::option(&variable.name, section, line)),
            }
        }
        file.global.credentials.doubt = bowline_gcfg::cut_short(&cut);
        Ok(file)
    }

    /// A section by its heading; `None` if there is no such section. Letter case does not count, but in the name of a class.
    fn section(&mut self, name: &str, subsection: Option<&str>) -> Option<(&'static str, &mut dyn Section)> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        match subsection {
            None if is("Global") => Some(("Global", &mut self.global)),
            None if is("Networking") => Some(("Networking", &mut self.networking)),
            None if is("LoadBalancer") => Some(("LoadBalancer", &mut self.load_balancer)),
            None if is("Route") => Some(("Route", &mut self.route)),
            None if is("Metadata") => Some(("Metadata", &mut self.metadata)),
            Some(class) if is("LoadBalancerClass") => Some((
                "LoadBalancerClass",
                self.classes.entry(class.to_owned()).or_default(),
            )),
            _ => None,
        }
    }

    /// Each option and its value, as it may be shown, under the heading of its section.
    pub(super) fn shown(&self) -> Vec<(String, &'static str, String)> {
        let sections: [(&str, &dyn Section); 5] = [
            ("Global", &self.global),
            ("Networking", &self.networking),
            ("LoadBalancer", &self.load_balancer),
            ("Route", &self.route),
            ("Metadata", &self.metadata),
        ];
        let classes = self.classes.iter().map(|(name, class)| {
            let class: &dyn Section = class;
            (format!("LoadBalancerClass {name:?}"), class)
        });
        sections
            .into_iter()
            .map(|(heading, section)| (heading.to_owned(), section))
            .chain(classes)
            .flat_map(|(heading, section)| {
                let options = section.shown().into_iter();
                options.map(move |(name, value)| (heading.clone(), name, value))
            })
            .collect()
    }
}
