//! `cargo xtask test`: all gates of a change, in the order in which they fail soonest.

use anyhow::Result;

use crate::arrows;
use crate::stages::Stages;
use crate::workspace::{Workspace, call};

/// Runs the gates and stops at the first that fails.
pub(crate) fn run_gates(workspace: &Workspace, quick: bool, stages: &mut Stages) -> Result<()> {
    stages.stage("format", || {
        call(workspace.cargo().args(["fmt", "--all", "--check"]))
    })?;
    stages.stage("arrows", || arrows::run(workspace))?;
    stages.stage("clippy", || {
        call(
            workspace
                .cargo()
                .args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        )
    })?;
    if quick {
        return stages.stage("tests", || {
            call(
                workspace
                    .cargo()
                    .args(["test", "--workspace", "--lib", "--bins", "--tests"]),
            )
        });
    }
    stages.stage("documents", || {
        // Set, not added to: the flags a person has exported must not decide what passes.
        call(
            workspace
                .cargo()
                .env("RUSTDOCFLAGS", "-D warnings")
                .args(["doc", "--workspace", "--no-deps"]),
        )
    })?;
    // Built in one go with the tests, so that a fault in the code shows before a fault in its behaviour;
    // the next stage finds everything compiled.
    stages.stage("build", || {
        call(workspace.cargo().args(["test", "--workspace", "--no-run"]))
    })?;
    stages.stage("tests", || call(workspace.cargo().args(["test", "--workspace"])))
}

/// Runs the gates and prints the durations, whatever the outcome.
pub(crate) fn run(workspace: &Workspace, quick: bool) -> Result<()> {
    let mut stages = Stages::default();
    let result = run_gates(workspace, quick, &mut stages);
    stages.summary();
    result
}
