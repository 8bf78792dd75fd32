//! What stands in the file and is not known: it has no effect, as upstream, and may be a slip of the pen.

use std::fmt;

use bowline_cloud_http::{meant, shown_name};

use super::sections::options;

/// Sections of programs that read the same file.
const OF_OTHERS: [&str; 1] = ["BlockStorage"];

/// Names of options in `clouds.yaml` and in other clients, and what they are called here.
const OTHER_NAMES: [(&str, &str); 10] = [
    ("project-id", "tenant-id"),
    ("project-name", "tenant-name"),
    ("project-domain-id", "tenant-domain-id"),
    ("project-domain-name", "tenant-domain-name"),
    ("region-name", "region"),
    ("interface", "os-endpoint-type"),
    ("endpoint-type", "os-endpoint-type"),
    ("cacert", "ca-file"),
    ("cert", "cert-file"),
    ("key", "key-file"),
];

/// A section or an option that there is none of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    what: String,
    remedy: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not known and has no effect", self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, ": {remedy}"),
            None => Ok(()),
        }
    }
}

impl Unknown {
    /// A section; `None` if it is another program's. The name may be a password in the wrong place.
    pub(super) fn section(name: &str, subsection: Option<&str>, line: usize) -> Option<Self> {
        if OF_OTHERS.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return None;
        }
        let names = options().map(|(section, _)| section);
        let known = names.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        let remedy = match (known, subsection) {
            (Some(known), None) => format!("it has a name of its own, as in [{known} \"NAME\"]"),
            (Some(known), Some(_)) => format!("it has no name of its own: [{known}]"),
            (None, _) => match meant(name, &names) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the sections are {}", names.join(", ")),
            },
        };
        Some(Self {
            what: format!("section {} (line {line})", shown_name(name)),
            remedy: Some(remedy),
        })
    }

    /// An option in a section that is known.
    pub(super) fn option(name: &str, section: &'static str, line: usize) -> Self {
        Self {
            what: format!("option {} in section {section:?} (line {line})", shown_name(name)),
            remedy: remedy(name, section),
        }
    }
}

fn remedy(name: &str, section: &str) -> Option<String> {
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    let all = options();
    if let Some((other, _)) = all.iter().find(|(_, names)| names.iter().any(is)) {
        return Some(format!("it belongs in section {other:?}"));
    }
    let renamed = OTHER_NAMES
        .iter()
        .find(|(theirs, _)| is(theirs))
        .map(|(_, ours)| *ours);
    let near = |names: &[&'static str]| renamed.filter(|ours| names.contains(ours)).or(meant(name, names));
    let own = all.iter().filter(|(other, _)| *other == section);
    let others = all.iter().filter(|(other, _)| *other != section);
    own.chain(others).find_map(|(other, names)| {
        let near = near(names)?;
        Some(match *other == section {
            true => format!("did you mean {near:?}?"),
            false => format!("did you mean {near:?}, which belongs in section {other:?}?"),
        })
    })
}
