//! The demo as a child.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How long the demo may take to its address.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running demo, ended when this is dropped.
pub struct Demo {
    _child: Child,
    url: String,
}

impl Demo {
    /// Starts this program with this cloud.
    ///
    /// # Errors
    ///
    /// If it does not print the address of its page.
    pub async fn start(program: &Path, cloud: &str) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["--seed", "7", "--cloud", cloud])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("it has no output")?;
        let mut lines = BufReader::new(output).lines();
        let url = tokio::time::timeout(PATIENCE, address(&mut lines))
            .await
            .context("the demo does not say where its page is")??;
        // Somebody has to read on, or the demo would wait.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { _child: child, url })
    }

    /// Where its page is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

async fn address(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    while let Some(line) = lines.next_line().await? {
        if let Some((_, url)) = line.split_once("see all this at ") {
            return Ok(url.trim().to_owned());
        }
    }
    anyhow::bail!("the demo has ended")
}
