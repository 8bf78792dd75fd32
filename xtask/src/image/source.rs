//! Where the sources of an image are, and which of them it was built from.

use crate::workspace::{Workspace, on_path, output};

/// The commit that is checked out.
pub(super) struct Checkout {
    commit: String,
    /// Whether the files are those of the commit.
    is_clean: bool,
}

impl Checkout {
    /// Asks git. Nothing for sources that came without it.
    pub(super) fn of(workspace: &Workspace) -> Option<Self> {
        if !on_path("git") {
            return None;
        }
        let git = |words: &[&str]| output(workspace.tool("git").args(words)).ok();
        Some(Self {
            commit: git(&["rev-parse", "HEAD"])?,
            is_clean: git(&["status", "--porcelain"])?.is_empty(),
        })
    }

    /// The variables from which the program takes what `--version=raw` says of its build.
    pub(super) fn environment(&self) -> [(&'static str, &str); 2] {
        let state = if self.is_clean { "clean" } else { "dirty" };
        [
            ("BOWLINE_GIT_COMMIT", &self.commit),
            ("BOWLINE_GIT_TREE_STATE", state),
        ]
    }
}

/// The variable from which the program takes where its documentation is.
pub(super) const DOCUMENTATION: &str = "BOWLINE_DOCUMENTATION_URL";

/// Where that is: what the environment says, else with the sources of this version.
pub(super) fn documentation(version: &str, source: Option<&str>, told: Option<String>) -> Option<String> {
    let beside = || Some(format!("{}/blob/v{version}/", source?.trim_end_matches('/')));
    told.filter(|url| !url.is_empty()).or_else(beside)
}

/// The labels of the image, by the names of the OCI image specification 1.1 (annotations.md).
///
/// No time is among them, so that two builds of one commit are equal. A commit is named only if the files are those of
/// the commit.
pub(super) fn labels(
    version: &str,
    source: Option<&str>,
    checkout: Option<&Checkout>,
) -> Vec<(&'static str, String)> {
    let commit = checkout.filter(|it| it.is_clean).map(|it| it.commit.as_str());
    let known = [
        ("org.opencontainers.image.title", Some("bowline")),
        (
            "org.opencontainers.image.description",
            Some("Kubernetes cloud controller manager for several clouds"),
        ),
        ("org.opencontainers.image.version", Some(version)),
        (
            "org.opencontainers.image.licenses",
            Some(env!("CARGO_PKG_LICENSE")),
        ),
        ("org.opencontainers.image.source", source),
        ("org.opencontainers.image.revision", commit),
    ];
    let labels = known.into_iter();
    labels
        .filter_map(|(key, value)| Some((key, value?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(labels: &[(&'static str, String)], name: &str) -> Option<String> {
        let key = format!("org.opencontainers.image.{name}");
        let mut found = labels.iter().filter(|(it, _)| *it == key);
        found.next().map(|(_, value)| value.clone())
    }

    #[test]
    fn an_image_names_its_version_its_licence_and_its_sources() {
        let checkout = Checkout {
            commit: "4c1d".to_owned(),
            is_clean: true,
        };
        let labels = labels("1.2.3", Some("https://example.org/bowline"), Some(&checkout));
        assert_eq!(label(&labels, "title").as_deref(), Some("bowline"));
        assert_eq!(label(&labels, "version").as_deref(), Some("1.2.3"));
        assert_eq!(label(&labels, "licenses").as_deref(), Some("Apache-2.0"));
        assert_eq!(
            label(&labels, "source").as_deref(),
            Some("https://example.org/bowline")
        );
        assert_eq!(label(&labels, "revision").as_deref(), Some("4c1d"));
    }

    #[test]
    fn the_pages_are_those_of_the_version_unless_they_are_said_to_be_elsewhere() {
        let pages = |source, told: &str| documentation("1.2.3", source, Some(told.to_owned()));
        let beside = Some("https://example.org/bowline/blob/v1.2.3/".to_owned());
        assert_eq!(pages(Some("https://example.org/bowline/"), ""), beside);
        assert_eq!(
            pages(Some("https://example.org/x"), "https://docs.example/"),
            Some("https://docs.example/".to_owned())
        );
        assert_eq!(documentation("1.2.3", None, None), None);
    }

    #[test]
    fn a_commit_is_not_named_for_files_that_were_changed_since() {
        let checkout = Checkout {
            commit: "4c1d".to_owned(),
            is_clean: false,
        };
        assert_eq!(label(&labels("1.2.3", None, Some(&checkout)), "revision"), None);
        assert_eq!(label(&labels("1.2.3", None, None), "source"), None);
        assert_eq!(
            checkout.environment(),
            [
                ("BOWLINE_GIT_COMMIT", "4c1d"),
                ("BOWLINE_GIT_TREE_STATE", "dirty")
            ]
        );
    }
}
