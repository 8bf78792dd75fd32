//! `cargo xtask page`: the demo's page in a real browser, which also makes the pictures of the guide.

use anyhow::{Result, bail};

use crate::stages::Stages;
use crate::workspace::{Workspace, call, on_path};

/// The browser, as Debian calls program and package. `$CHROMIUM` names another program.
const BROWSER: &str = "chromium";

/// What makes its pictures small, called the same.
const PALETTE: &str = "pngquant";

/// Where the pictures are.
const PICTURES: &str = "docs/pictures";

/// Builds the demo, installs what is missing, presses each button, and writes the pictures.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut stages = Stages::default();
    stages.stage("browser", || install(workspace))?;
    stages.stage("build", || {
        let packages = ["--package", "bowline-demo", "--package", "bowline-checks"];
        call(workspace.cargo().arg("build").args(packages))
    })?;
    stages.stage("page", || {
        let programs = workspace.target_directory()?.join("debug");
        let mut page = workspace.tool(programs.join("page"));
        call(
            page.arg(programs.join("demo"))
                .arg(workspace.root().join(PICTURES)),
        )
    })?;
    stages.summary();
    Ok(())
}

fn install(workspace: &Workspace) -> Result<()> {
    let has_browser = std::env::var_os("CHROMIUM").is_some() || on_path(BROWSER);
    let missing = [(BROWSER, has_browser), (PALETTE, on_path(PALETTE))];
    let missing: Vec<&str> = missing
        .iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") {
        bail!(
            "missing: {}; install them, or name a Chromium in $CHROMIUM",
            missing.join(", ")
        );
    }
    let apt = |words: &[&str]| {
        let mut command = workspace.tool("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args(words);
        command
    };
    call(&mut apt(&["update", "-q"]))?;
    call(apt(&["install", "-y", "-q", "--no-install-recommends"]).args(missing))
}
