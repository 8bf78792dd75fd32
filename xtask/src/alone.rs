//! `cargo xtask alone`: each crate compiles without the features that its neighbours ask for.

use anyhow::{Result, bail};

use crate::workspace::{Workspace, call};

/// Checks one crate after the other and names all that fail. Not among the gates of a change: it compiles the
/// dependencies once per set of features.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut failed = Vec::new();
    for name in workspace.members()? {
        eprintln!("==> {name}");
        if call(workspace.cargo().args(["check", "--quiet", "--package", &name])).is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("not alone: {}", failed.join(", "));
    }
    Ok(())
}
