//! `cargo xtask monitoring`: the alerts under the real promtool.

use anyhow::{Context as _, Result};

use crate::workspace::{Workspace, call};

/// Builds promtool unless the cache has it, which takes minutes, and runs what `cargo xtask test` leaves out without it.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let cargo = |words: &str| {
        let mut command = workspace.cargo();
        command
            .args(words.split_whitespace())
            .env("BOWLINE_PROMTOOL", "required");
        command
    };
    call(&mut cargo(
        "run --quiet --package bowline-checks --bin monitoring -- build",
    ))
    .context("building promtool")?;
    call(&mut cargo("test --package bowline-checks --test it monitoring::"))?;
    call(&mut cargo(
        "test --package bowline-e2e --test it system::incidents",
    ))
}
