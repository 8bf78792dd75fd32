//! Waiting for something until a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// Between two looks. The services need hundreds of milliseconds for anything.
const PAUSE: Duration = Duration::from_millis(100);

/// Something did not happen in time.
#[derive(Debug, thiserror::Error)]
#[error("not within {} s: {what}", .within.as_secs())]
pub struct NotInTime {
    /// What was waited for.
    pub what: String,
    /// For how long.
    pub within: Duration,
}

/// Looks until there is something to return, or the look fails, or the time is over.
pub(crate) async fn wait_for<T, E>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<T, E>
where
    E: From<NotInTime>,
{
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            let what = what.to_owned();
            return Err(NotInTime { what, within }.into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_an_error_after_the_deadline() {
        let start = Instant::now();
        let error = wait_for("the moon", Duration::from_secs(3), async || {
            Ok::<Option<()>, NotInTime>(None)
        })
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "not within 3 s: the moon");
        assert!(start.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_late_is_found() {
        let mut looks = 0;
        let found = wait_for("the third look", Duration::from_secs(3), async || {
            looks += 1;
            Ok::<_, NotInTime>((looks == 3).then_some("here"))
        })
        .await
        .unwrap();
        assert_eq!(found, "here");
    }
}
