//! Where the workspace is, and how its tools are called.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

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

    /// The cargo that runs us, to be started in the root.
    pub(crate) fn cargo(&self) -> Command {
        self.tool(&self.cargo)
    }

    /// A program, to be started in the root.
    fn tool(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }
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
