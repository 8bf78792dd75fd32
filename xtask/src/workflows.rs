//! `cargo xtask workflows`: the form of the files in `.github/workflows`, by actionlint.

use anyhow::{Result, bail};

use crate::workspace::{Workspace, call, in_ci, on_path};

/// A Go module; `go run` builds it once and keeps it in Go's own cache.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// Checks the workflows. Their shell is not looked at: it is a few lines, and runs where it is used.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    if !on_path("go") {
        if in_ci() {
            bail!("Go is needed to check the workflows, and is not on the path");
        }
        println!("workflows: not checked, there is no Go here");
        return Ok(());
    }
    call(
        workspace
            .tool("go")
            .args(["run", ACTIONLINT, "-shellcheck=", "-pyflakes="])
            .env("GOFLAGS", ""),
    )
}
