//! `cargo xtask arrows`: who may depend on whom, held by machine.
//!
//! Only what is linked into a program counts: normal and build dependencies. Tests may use anything, as long as
//! that makes no cycle. The rules are data, in [`table`].

mod check;
mod graph;
mod rooms;
mod table;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use graph::Graph;
use table::{ANYTHING, ARROWS, IMPURE, NOWHERE, PROVIDERS, PURE, WRAPPED};

/// Reads the workspace and prints each arrow that is not allowed.
///
/// # Errors
///
/// When cargo cannot describe the workspace, or an arrow is not allowed.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let graph = Graph::read(workspace)?;
    let mut faults = check::faults(&graph);
    faults.extend(rooms::faults(workspace.root(), PROVIDERS)?);
    let folders = graph.ours().map(|(_, folder, _)| folder);
    let others = folders.filter(|folder| !PROVIDERS.contains(folder));
    faults.extend(rooms::circles_of(workspace.root(), &others.collect::<Vec<_>>())?);
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        bail!(
            "{} arrows are not allowed; the tables are xtask/src/arrows/table.rs and rooms.rs",
            faults.len()
        );
    }
    println!("arrows: {} crates keep to the table", graph.ours().count());
    Ok(())
}

/// The reference page of the table.
pub(crate) fn page() -> String {
    let code = |names: &[&str]| match names {
        [] => "nothing of ours".to_owned(),
        [ANYTHING] => "anything".to_owned(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut page = vec![
        "# Which crate may depend on which".to_owned(),
        String::new(),
        "Crates are named by their folder; `*` is one folder name, and in a cloud's own rows the same cloud on both \
         sides. Tests may use anything that makes no cycle. `cargo xtask arrows` checks it."
            .to_owned(),
        String::new(),
        "| crate | may depend on |".to_owned(),
        "| --- | --- |".to_owned(),
    ];
    page.extend(
        ARROWS
            .iter()
            .map(|(folder, may_use)| format!("| `{folder}` | {} |", code(may_use))),
    );
    page.extend(
        [
            "",
            "## Outside crates with a keeper",
            "",
            "| crate | only in | because |",
            "| --- | --- | --- |",
        ]
        .map(str::to_owned),
    );
    for rule in WRAPPED {
        let only = if rule.only.is_empty() {
            "nobody".to_owned()
        } else {
            code(rule.only)
        };
        page.push(format!("| {} | {only} | {} |", code(rule.names), rule.because));
    }
    page.extend(
        [
            "",
            "Test code and tools are free of these.",
            "",
            "## Pure crates",
            "",
        ]
        .map(str::to_owned),
    );
    page.push(format!(
        "{} link, not even through another crate, none of {}.",
        code(PURE),
        code(IMPURE)
    ));
    page.extend(["", "## Linked nowhere", ""].map(str::to_owned));
    page.push(format!(
        "{}: one TLS stack, and no C library to patch.",
        code(NOWHERE)
    ));
    page.join("\n")
}
