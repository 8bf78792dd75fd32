//! Named stages with their durations, so that a slow or failed one is found at a glance.

#![expect(
    clippy::disallowed_types,
    reason = "measures how long other programs take; there is no runtime and no clock to stop"
)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Runs stages one after the other; talks on stderr, because stdout belongs to the tools.
#[derive(Default)]
pub(crate) struct Stages {
    done: Vec<(&'static str, Duration)>,
}

impl Stages {
    /// Runs one stage; answers what it has made.
    ///
    /// # Errors
    ///
    /// The stage's own, with its name in front.
    pub(crate) fn stage<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("==> {name}");
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        self.done.push((name, took));
        eprintln!(
            "==> {name}: {} in {:.1} s",
            if result.is_ok() { "ok" } else { "FAILED" },
            took.as_secs_f64()
        );
        result.with_context(|| format!("stage {name}"))
    }

    /// Prints how long each stage took.
    pub(crate) fn summary(&self) {
        let total: Duration = self.done.iter().map(|(_, took)| *took).sum();
        for (name, took) in &self.done {
            eprintln!("    {:>7.1} s  {name}", took.as_secs_f64());
        }
        eprintln!("    {:>7.1} s  in all", total.as_secs_f64());
    }
}
