//! `cargo xtask generate`: reference pages that are written from the tables they describe.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arrows;
use crate::workspace::Workspace;

/// One page. To add one, write the function beside the source that it reads, and name it in [`PAGES`].
struct Page {
    /// Relative to the root.
    path: &'static str,
    text: fn(&Workspace) -> Result<String>,
}

/// All generated files of the repository.
const PAGES: &[Page] = &[Page {
    path: "docs/reference/arrows.md",
    text: |_| Ok(arrows::page()),
}];

/// The first line of every page.
const NOTICE: &str =
    "<!-- Written by `cargo xtask generate`. Change the source it is written from, not this file. -->";

/// Writes the pages that are not fresh.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    for page in PAGES {
        let path = workspace.root().join(page.path);
        let text = full(page, workspace)?;
        if fs::read_to_string(&path).is_ok_and(|present| present == text) {
            continue;
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", page.path))?;
        println!("generate: wrote {}", page.path);
    }
    // The other pages come from tables of the program; a tool that linked all of it would be slow to build.
    let status = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "bowline-checks",
            "--bin",
            "reference",
        ])
        .current_dir(workspace.root())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the reference program failed: {status}");
    Ok(())
}

/// Fails when a page is not what would be written now. Those of the reference program are held by its own test.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut stale = Vec::new();
    for page in PAGES {
        let present = fs::read_to_string(workspace.root().join(page.path)).unwrap_or_default();
        if let Some(difference) = difference(&present, &full(page, workspace)?) {
            eprintln!("{}: {difference}", page.path);
            stale.push(page.path);
        }
    }
    if !stale.is_empty() {
        bail!("not fresh: {}; run `cargo xtask generate`", stale.join(", "));
    }
    println!("generate: {} pages are fresh", PAGES.len());
    Ok(())
}

fn full(page: &Page, workspace: &Workspace) -> Result<String> {
    let text = (page.text)(workspace).with_context(|| format!("cannot generate {}", page.path))?;
    Ok(format!("{NOTICE}\n\n{}\n", text.trim_end()))
}

/// The first line in which two texts differ, for a message.
fn difference(present: &str, wanted: &str) -> Option<String> {
    if present == wanted {
        return None;
    }
    if present.is_empty() {
        return Some("is not there".to_owned());
    }
    let same = present
        .lines()
        .zip(wanted.lines())
        .take_while(|(one, other)| one == other)
        .count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(nothing)").to_owned();
    Some(format!(
        "line {}: has {:?}, should have {:?}",
        same + 1,
        line(present),
        line(wanted)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let found = difference("a\nb\n", "a\nc\n").unwrap();
        assert!(
            found.starts_with("line 2: has \"b\", should have \"c\""),
            "{found}"
        );
    }

    #[test]
    fn a_shorter_page_is_not_fresh() {
        let found = difference("a\n", "a\nb\n").unwrap();
        assert!(found.contains("line 2: has \"(nothing)\""), "{found}");
    }

    #[test]
    fn a_page_that_differs_in_its_last_newline_only_is_not_fresh() {
        assert!(difference("a", "a\n").is_some());
    }
}
