//! Where the workspace is, and how its tools are called.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

/// The work tree this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// Finds the root from the place of this crate, so that the caller's directory does not matter.
    pub(crate) fn locate() -> Result<Self> {
        // Cargo sets the variable when it runs us; the compiled-in path serves a program that was copied.
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("the crate has no parent directory")?
            .to_path_buf();
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Ok(Self { root, cargo })
    }

    /// The directory of the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target_directory(&self) -> Result<PathBuf> {
        Ok(self.metadata()?.target_directory.into_std_path_buf())
    }

    /// The names of our crates.
    pub(crate) fn members(&self) -> Result<Vec<String>> {
        let metadata = self.metadata()?;
        Ok(metadata
            .workspace_packages()
            .iter()
            .map(|package| package.name.to_string())
            .collect())
    }

    /// The one version that all our crates have.
    ///
    /// # Errors
    ///
    /// When there are several.
    pub(crate) fn version(&self) -> Result<String> {
        let metadata = self.metadata()?;
        let versions: BTreeSet<String> = metadata
            .workspace_packages()
            .iter()
            .map(|package| package.version.to_string())
            .collect();
        let mut versions = versions.into_iter();
        match (versions.next(), versions.next()) {
            (Some(version), None) => Ok(version),
            (first, second) => bail!("the crates have more than one version: {first:?}, {second:?}"),
        }
    }

    /// What cargo knows of our crates.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        MetadataCommand::new()
            .current_dir(&self.root)
            .no_deps()
            .exec()
            .context("cargo metadata")
    }

    /// The cargo that runs us, to be started in the root.
    pub(crate) fn cargo(&self) -> Command {
        self.tool(&self.cargo)
    }

    /// Another program, to be started in the root.
    pub(crate) fn tool(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }
}

/// Whether this runs in continuous integration, where a missing tool is a failure and not a reason to skip.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Whether a program of this name is on the path.
pub(crate) fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Runs a command with our own output streams and fails when it fails.
///
/// # Errors
///
/// When it cannot be started, or does not exit with success.
pub(crate) fn call(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns what it wrote to stdout, without the blanks around it.
///
/// # Errors
///
/// When it cannot be started, does not exit with success, or does not write UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), output.status);
    }
    let text =
        String::from_utf8(output.stdout).with_context(|| format!("{} wrote no UTF-8", shown(command)))?;
    Ok(text.trim().to_owned())
}

/// The command as one would type it, without its directory and environment.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
