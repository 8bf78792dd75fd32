//! `cargo xtask arrows`: who may depend on whom, held by machine.
//!
//! Only what is linked into a program counts: normal and build dependencies. Tests may use anything, as long as
//! that makes no cycle. The rules are data, in [`table`].

mod check;
mod graph;
mod table;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use graph::Graph;

/// Reads the workspace and prints each arrow that is not allowed.
///
/// # Errors
///
/// When cargo cannot describe the workspace, or an arrow is not allowed.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let graph = Graph::read(workspace)?;
    let faults = check::faults(&graph);
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        bail!(
            "{} arrows are not allowed; the table is xtask/src/arrows/table.rs",
            faults.len()
        );
    }
    println!("arrows: {} crates keep to the table", graph.ours().count());
    Ok(())
}
