//! The reference pages, made from the tables that the program itself works with: flags, annotations, events, metrics,
//! RBAC, what the simulators do; and in the charts the rules of RBAC and the admission policies.
//!
//! `cargo xtask generate` writes them; the test below fails while one is stale.

mod annotations;
#[cfg(test)]
mod documents;
mod doubles;
mod events;
mod flags;
mod guide;
mod metrics;
#[cfg(test)]
mod prose;
mod rbac;
#[cfg(test)]
mod remedies;
#[cfg(test)]
mod workflows;

use std::path::Path;

/// A page of the reference.
pub struct Page {
    /// Relative to the repository's root.
    pub path: &'static str,
    /// The whole file.
    pub text: String,
}

/// The first line of every page.
const NOTICE: &str =
    "<!-- Written by `cargo xtask generate`. Change the source it is written from, not this file. -->";

/// All pages.
#[must_use]
pub fn pages() -> Vec<Page> {
    let page = |path, text: String| Page {
        path,
        text: format!("{NOTICE}\n\n{text}"),
    };
    let mut pages = vec![
        page("docs/reference/flags.md", flags::page()),
        page("docs/reference/simulators.md", doubles::page()),
        page("docs/reference/events.md", events::page()),
        page("docs/reference/metrics.md", metrics::page()),
        page("docs/reference/rbac.md", rbac::page()),
    ];
    for (path, name, unset, table) in [
        (
            "docs/reference/cloudscale-annotations.md",
            "cloudscale.ch",
            annotations::NOT_SET,
            bowline_cloudscale::annotation_table(),
        ),
        (
            "docs/reference/phoenixnap-annotations.md",
            "phoenixNAP",
            annotations::EMPTY,
            bowline_phoenixnap::annotation_table(),
        ),
        (
            "docs/reference/cloudstack-annotations.md",
            "Apache CloudStack",
            annotations::EMPTY,
            bowline_cloudstack::annotation_table(),
        ),
        (
            "docs/reference/openstack-annotations.md",
            "OpenStack",
            annotations::EMPTY,
            bowline_openstack::annotation_table(),
        ),
    ] {
        pages.push(page(path, annotations::page(name, unset, table)));
    }
    let rules = rbac::templates().into_iter();
    pages.extend(rules.map(|(path, text)| Page { path, text }));
    pages.push(Page {
        path: crate::admission::TEMPLATE,
        text: crate::admission::template(),
    });
    pages
}

/// Guides whose code is taken out of the source, as they should be.
///
/// # Errors
///
/// A file, or the part of it that a guide shows, is not there; in words.
pub fn guides(root: &Path) -> Result<Vec<Page>, String> {
    let path = "docs/guides/new-provider.md";
    let text = guide::page(root, path).map_err(|error| format!("{path}: {error}"))?;
    Ok(vec![Page { path, text }])
}

/// A text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "\\<")
}

/// A default or a key in backticks; nothing for nothing.
fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_page_is_fresh() {
        let root = crate::root();
        let guides = super::guides(&root).unwrap_or_else(|error| panic!("{error}"));
        for page in super::pages().into_iter().chain(guides) {
            let present = std::fs::read_to_string(root.join(page.path)).unwrap_or_default();
            assert!(
                present == page.text,
                "{} is stale: run `cargo xtask generate`",
                page.path
            );
        }
    }

    fn manual(cloud: &str) -> String {
        let root = crate::root();
        std::fs::read_to_string(root.join(format!("docs/clouds/{cloud}.md"))).unwrap_or_default()
    }

    #[test]
    fn the_manual_of_phoenixnap_has_every_option_and_no_other_variable() {
        use bowline_phoenixnap::{DEBUG_VARIABLE, Setting};
        let manual = manual("phoenixnap");
        for setting in Setting::ALL {
            let names = [setting.key(), setting.variable()].map(super::code);
            let row = |line: &str| line.starts_with("| ") && names.iter().all(|name| line.contains(name));
            assert!(manual.lines().any(row), "{setting:?} is missing");
        }
        let words = manual.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words.filter(|word| word.starts_with("PNAP_")) {
            let is_known = Setting::ALL.iter().any(|setting| setting.variable() == word);
            assert!(is_known || word == DEBUG_VARIABLE, "{word} is no option");
        }
    }

    /// Every option, event, annotation and gauge of a cloud is on its page.
    #[test]
    fn the_manual_of_each_cloud_has_all_that_an_operator_can_meet() {
        let phoenixnap = manual("phoenixnap");
        let reasons = bowline_phoenixnap::EVENTS
            .iter()
            .chain(bowline_phoenixnap::SWEEPER_EVENTS);
        let mut named: Vec<&str> = reasons.map(|event| event.reason).collect();
        named.extend(bowline_phoenixnap::annotation_table().iter().map(|it| it.key));
        named.extend(bowline_phoenixnap::gauge_table().iter().map(|it| it.name));
        for name in named {
            assert!(phoenixnap.contains(name), "phoenixnap: {name} is missing");
        }

        let cloudstack = manual("cloudstack");
        let options = bowline_cloudstack::Setting::ALL.iter().map(|it| it.key());
        let annotations = bowline_cloudstack::annotation_table().iter().map(|it| it.key);
        for key in options.chain(annotations) {
            assert!(
                cloudstack.contains(&format!("| {} |", super::code(key))),
                "cloudstack: {key} is missing"
            );
        }
        let openstack = manual("openstack");
        for option in bowline_openstack::option_names() {
            let name = super::code(option);
            let row = |line: &str| line.starts_with("| ") && line.contains(&name);
            assert!(openstack.lines().any(row), "openstack: {option} is missing");
        }
        for (manual, events) in [
            (cloudstack, bowline_cloudstack::EVENTS),
            (openstack, bowline_openstack::EVENTS),
        ] {
            for event in events {
                assert!(manual.contains(event.reason), "{} is missing", event.reason);
            }
        }
    }
}
