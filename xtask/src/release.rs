//! `cargo xtask release --check`: holds the tree against the list in `docs/releasing.md`.
//!
//! The list is for people. A step that ends in "(checked: `name`)" is checked here, in the order of the list; a name
//! without a check, and a check without a step, are faults of the list.

mod versions;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{Workspace, output};
use crate::{deny, generate, image, test};

const LIST: &str = "docs/releasing.md";

/// One check under the name that the list gives it.
struct Check {
    name: &'static str,
    run: fn(&Workspace) -> Result<()>,
}

/// All checks. Add one here and its step to the list.
const CHECKS: &[Check] = &[
    Check {
        name: "clean",
        run: clean,
    },
    Check {
        name: "version",
        run: |workspace| workspace.version().map(drop),
    },
    Check {
        name: "tag",
        run: tag,
    },
    Check {
        name: "changelog",
        run: changelog,
    },
    Check {
        name: "manifests",
        run: manifests,
    },
    Check {
        name: "generated",
        run: generate::check,
    },
    Check {
        name: "deny",
        run: deny::run,
    },
    Check {
        name: "gates",
        run: |workspace| {
            test::run(
                workspace,
                &test::Options {
                    quick: false,
                    kubernetes: None,
                },
            )
        },
    },
    Check {
        name: "image",
        run: |workspace| image::run(workspace, &image::Options::default()),
    },
];

/// Runs all checks, so that one look shows all that is missing.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let list =
        fs::read_to_string(workspace.root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let names = names_in(&list);
    agree(&names)?;
    let mut failed = Vec::new();
    for check in names
        .iter()
        .filter_map(|name| CHECKS.iter().find(|check| check.name == *name))
    {
        match (check.run)(workspace) {
            Ok(()) => println!("ok      {}", check.name),
            Err(error) => {
                println!("FAILED  {}: {error:#}", check.name);
                failed.push(check.name);
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "not ready for a release: {}",
        failed.join(", ")
    );
    println!("ready; the steps of {LIST} without a check are yours");
    Ok(())
}

/// The checks that the list names, in its order.
fn names_in(list: &str) -> Vec<&str> {
    list.split("(checked: `")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("`)")?.0))
        .collect()
}

fn agree(names: &[&str]) -> Result<()> {
    let listed: BTreeSet<&str> = names.iter().copied().collect();
    let known: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    let unlisted: Vec<_> = known.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&known).collect();
    ensure!(unlisted.is_empty(), "{LIST} has no step for {unlisted:?}");
    ensure!(
        unknown.is_empty(),
        "{LIST} names {unknown:?}, which nobody checks"
    );
    Ok(())
}

fn clean(workspace: &Workspace) -> Result<()> {
    let changes = output(workspace.tool("git").args(["status", "--porcelain"]))?;
    ensure!(changes.is_empty(), "the work tree has changes:\n{changes}");
    Ok(())
}

fn tag(workspace: &Workspace) -> Result<()> {
    let tag = format!("v{}", workspace.version()?);
    let there = output(workspace.tool("git").args(["tag", "--list", &tag]))?;
    ensure!(
        there.is_empty(),
        "the tag {tag} exists already; raise the version"
    );
    Ok(())
}

fn changelog(workspace: &Workspace) -> Result<()> {
    let text =
        fs::read_to_string(workspace.root().join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    versions::changelog_entry(&text, &workspace.version()?)
}

fn manifests(workspace: &Workspace) -> Result<()> {
    let version = workspace.version()?;
    let files = output(workspace.tool("git").args(["ls-files", "deploy"]))?;
    let mut images = 0;
    let mut wrong = Vec::new();
    for file in files
        .lines()
        .filter(|file| file.ends_with(".yaml") || file.ends_with(".yml"))
    {
        let text =
            fs::read_to_string(workspace.root().join(file)).with_context(|| format!("cannot read {file}"))?;
        for image in versions::our_images(&text) {
            images += 1;
            if !versions::has_tag(image, &version) {
                wrong.push(format!("{file}: {image}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("not version {version}:\n{}", wrong.join("\n"));
    }
    ensure!(images > 0, "no manifest under deploy names our image");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_and_the_checks_agree() {
        let list = fs::read_to_string(Workspace::locate().unwrap().root().join(LIST)).unwrap();
        agree(&names_in(&list)).unwrap();
    }

    #[test]
    fn a_step_that_nobody_checks_is_a_fault_of_the_list() {
        let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        names.push("moon");
        assert!(agree(&names).unwrap_err().to_string().contains("moon"));
        assert!(agree(&["clean"]).unwrap_err().to_string().contains("changelog"));
    }
}
