//! `cargo xtask deny`: licences, sources and bans of `deny.toml`, by cargo-deny.

use anyhow::Result;

use crate::workspace::{Workspace, call, on_path};

/// Runs cargo-deny if it is installed, else says so.
///
/// It takes longer to install than all gates take to run, so its absence is no failure, not even in CI: what it bans
/// is checked by the arrows too, and only licences and sources wait for the next one who has it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    if !on_path("cargo-deny") {
        println!("deny: left out, cargo-deny is not installed (cargo install --locked cargo-deny)");
        return Ok(());
    }
    // Advisories need the network and change without a change of ours; they are for the release.
    call(
        workspace
            .cargo()
            .args(["deny", "--all-features", "check", "bans", "licenses", "sources"]),
    )
}
