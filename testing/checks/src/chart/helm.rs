//! The program, and the few of its words that are used here.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bowline_base::go::GoProgram;
use bowline_base::server::{in_ci, or_skip};
use serde_json::Value;

/// Helm, where it is.
#[derive(Debug, Clone)]
pub struct Helm {
    program: PathBuf,
}

/// Nobody has built it yet.
#[derive(Debug, thiserror::Error)]
#[error("Helm is not built; run `cargo run -p bowline-checks --bin chart -- build` (needs Go)")]
pub struct Missing;

/// Why Helm did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// It could not be started, or not be talked to.
    #[error("cannot run helm")]
    Io(#[from] io::Error),
    /// It said no: a fault in the chart or in the values, in its own words.
    #[error("helm refuses: {0}")]
    Refused(String),
    /// What it wrote is no text.
    #[error("helm wrote no UTF-8")]
    NoText(#[from] std::string::FromUtf8Error),
}

/// What is rendered or installed.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    /// The chart's folder.
    pub chart: &'a Path,
    /// The release's name.
    pub name: &'a str,
    /// Where it goes.
    pub namespace: &'a str,
}

impl Helm {
    /// Helm out of the cache.
    ///
    /// # Errors
    ///
    /// When it is not there. Nothing is built here: that takes minutes, and a test should not.
    pub fn find() -> Result<Self, Missing> {
        let expected = Self::expected();
        if expected.program.is_file() {
            Ok(expected)
        } else {
            Err(Missing)
        }
    }

    /// What a test calls: Helm, or nothing and a line that says what was left out.
    ///
    /// # Panics
    ///
    /// In continuous integration, where leaving out is a failure.
    #[must_use]
    pub fn or_skip() -> Option<Self> {
        or_skip(Self::find(), in_ci())
    }

    pub(crate) fn expected() -> Self {
        Self {
            program: GoProgram::helm().path(),
        }
    }

    /// The objects that the chart makes of these values, as YAML.
    ///
    /// # Errors
    ///
    /// When the values are refused, or a template is wrong.
    pub fn template(&self, release: Release<'_>, values: &Value, more: &[&str]) -> Result<String, HelmError> {
        self.with_values("template", release, values, more)
    }

    /// Installs or upgrades a release in the cluster of this kubeconfig. Answers what is told to the person who does it.
    ///
    /// # Errors
    ///
    /// When the values are refused, or the cluster refuses an object.
    pub fn upgrade(
        &self,
        release: Release<'_>,
        values: &Value,
        kubeconfig: &Path,
        more: &[&str],
    ) -> Result<String, HelmError> {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let words = [&["--install", &kubeconfig], more].concat();
        self.with_values("upgrade", release, values, &words)
    }

    /// Runs any other words.
    ///
    /// # Errors
    ///
    /// When they fail.
    pub fn run(&self, words: &[&str]) -> Result<String, HelmError> {
        answer(self.command(words)?.stdin(Stdio::null()).output()?)
    }

    fn with_values(
        &self,
        word: &str,
        release: Release<'_>,
        values: &Value,
        more: &[&str],
    ) -> Result<String, HelmError> {
        let mut child = self
            .command(&[word, release.name])?
            .arg(release.chart)
            .args(["--namespace", release.namespace, "--values=-"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Shorter than a pipe is long; closed when dropped, which is the end of the values.
        if let Some(mut values_in) = child.stdin.take() {
            values_in.write_all(values.to_string().as_bytes())?;
        }
        answer(child.wait_with_output()?)
    }

    /// What its user has configured is not read, and nothing is written where a user would have it.
    fn command(&self, words: &[&str]) -> Result<Command, HelmError> {
        let home = GoProgram::helm().directory().join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = Command::new(&self.program);
        command.args(words).env_clear().env("HOME", &home);
        Ok(command)
    }
}

fn answer(output: Output) -> Result<String, HelmError> {
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(HelmError::Refused(words.trim().to_owned()));
    }
    Ok(String::from_utf8(output.stdout)?)
}
