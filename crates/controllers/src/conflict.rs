//! How often a write that meets a change of somebody else is tried again.

use std::time::Duration;

use crate::queue::Jitter;

/// Tries of one write, those of Kubernetes' cloud-provider library. After the last one the object goes back to its queue,
/// or waits for the next look.
pub(crate) const TRIES: u32 = 5;

/// The pause between two of them, drawn so that two writers do not keep in step.
pub(crate) async fn pause(jitter: &Jitter) {
    const LEAST: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_millis(200);
    tokio::time::sleep(jitter.between(LEAST, MOST)).await;
}
