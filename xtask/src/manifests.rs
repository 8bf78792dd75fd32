//! `cargo xtask manifests`: the plain manifests, which come out of the chart.

use anyhow::Result;

use crate::workspace::{Workspace, call};

/// Writes those that are not what the chart makes. They are held by the tests of the program that does it.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let words = [
        "run",
        "--quiet",
        "--package",
        "bowline-checks",
        "--bin",
        "chart",
        "--",
        "manifests",
    ];
    call(workspace.cargo().args(words))
}
