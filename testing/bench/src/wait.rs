//! Waiting for what a manager does in its own time.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

/// The longest that anything here takes: a manager of today needs minutes for a row.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// Polls until there is an answer.
///
/// # Errors
///
/// That of the question, or when patience ends.
pub(crate) async fn until<T>(
    what: &str,
    every: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("not within {} s: {what}", PATIENCE.as_secs());
        }
        tokio::time::sleep(every).await;
    }
}
