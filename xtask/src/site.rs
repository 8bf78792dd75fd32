//! `cargo xtask site`: the documentation as a site, built strictly.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, call, in_ci, on_path};

/// The folder with the site's configuration.
const FOLDER: &str = "site";

/// Builds the site into the target directory.
///
/// # Errors
///
/// When a link or an anchor leads nowhere, a page is in no list, or what builds it cannot be installed.
pub(crate) fn run(workspace: &Workspace, source: Option<&str>) -> Result<()> {
    let program = mkdocs(workspace)?;
    let mut command = workspace.tool(program);
    let to = workspace.target_directory()?.join("site");
    command
        .args(["build", "--quiet", "--strict", "--config-file"])
        .arg(Path::new(FOLDER).join("mkdocs.yml"))
        .arg("--site-dir")
        .arg(&to)
        // What its makers announce about their next products.
        .env("NO_MKDOCS_2_WARNING", "1");
    match source {
        Some(source) => command.env("SOURCE_URL", source),
        None => command.env_remove("SOURCE_URL"),
    };
    call(&mut command)?;
    println!("site: {}", to.join("index.html").display());
    Ok(())
}

/// The same as a gate: where Python is missing, a person's machine does without.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    if on_path("python3") {
        return run(workspace, None);
    }
    if in_ci() {
        bail!("Python is needed to build the site, and python3 is not on the path");
    }
    println!("site: not built, there is no python3 here");
    Ok(())
}

/// MkDocs in a virtual environment of its own, installed if the cache does not have it as it is pinned.
fn mkdocs(workspace: &Workspace) -> Result<PathBuf> {
    let pins = workspace.root().join(FOLDER).join("requirements.txt");
    let wanted = fs::read_to_string(&pins).with_context(|| format!("reading {}", pins.display()))?;
    let cache = workspace.root().join(".cache").join("site");
    let program = cache.join("bin").join("mkdocs");
    // Written last, so that what a killed installation leaves is no installation.
    let stamp = cache.join("installed.txt");
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    call(
        workspace
            .tool("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&cache),
    )
    .context("on Debian the package python3-venv brings what is missing")?;
    call(
        workspace
            .tool(cache.join("bin").join("python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--requirement",
            ])
            .arg(&pins),
    )?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(program)
}
