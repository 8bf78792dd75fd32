//! The program, built by the Go toolchain, and what is asked of it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bowline_base::go::{BuildError, GoProgram};
use bowline_base::server::or_skip;

/// Set by `cargo xtask monitoring`: then nothing may be left out.
const REQUIRED: &str = "BOWLINE_PROMTOOL";

/// promtool, where it is.
#[derive(Debug, Clone)]
pub struct Promtool {
    program: PathBuf,
}

/// Why it did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PromtoolError {
    /// It could not be started.
    #[error("cannot run promtool")]
    Io(#[from] io::Error),
    /// It said no, in its own words.
    #[error("promtool: {0}")]
    Failed(String),
}

/// promtool, built if the cache does not have it: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
pub fn build() -> Result<Promtool, BuildError> {
    GoProgram::promtool().build()?;
    Ok(Promtool::expected())
}

impl Promtool {
    fn expected() -> Self {
        Self {
            program: GoProgram::promtool().path(),
        }
    }

    /// What a test calls: promtool, or nothing and a line that says what was left out.
    ///
    /// # Panics
    ///
    /// Under `cargo xtask monitoring`, where leaving out is a failure.
    #[must_use]
    pub fn or_skip() -> Option<Self> {
        let expected = Self::expected();
        let found = match expected.program.is_file() {
            true => Ok(expected),
            false => Err("promtool is not built; `cargo xtask monitoring` builds it (needs Go)"),
        };
        or_skip(found, std::env::var_os(REQUIRED).is_some())
    }

    /// Runs it with these words, in a folder.
    ///
    /// # Errors
    ///
    /// When it says no.
    pub fn run(&self, folder: &Path, words: &[&str]) -> Result<String, PromtoolError> {
        let output = Command::new(&self.program)
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(said(&output.stdout))
        } else {
            let words = [said(&output.stdout), said(&output.stderr)].concat();
            Err(PromtoolError::Failed(words))
        }
    }
}
