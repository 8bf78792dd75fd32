//! One ConfigMap, by name: for settings that a cluster publishes for whoever serves in it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::{Lines, SILENCE, TOO_SHORT, WireEvent};
use crate::client::Kube;
use crate::error::{KubeError, Status};
use crate::exchange::{Call, Rank, segment};
use crate::reads::read;

/// How long the API server is asked to keep the watch open; not as long as those of Nodes and Services.
const OPEN: Duration = Duration::from_secs(540);

/// The waits after failures: 1 s, doubled each time. What is watched changes once a year, and not being allowed to watch
/// it is a state that can last, so they grow long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Kube {
    /// The texts of a ConfigMap by their keys; none if there is no such ConfigMap.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] unless the role grants `get` on it.
    pub async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, KubeError> {
        let path = format!(
            "/api/v1/namespaces/{}/configmaps/{}",
            segment(namespace),
            segment(name)
        );
        match self.exchange(Call::get(path)).await {
            Ok(body) => Ok(Some(read::<ConfigMap>(&body)?.data)),
            Err(KubeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Tells the texts of a ConfigMap as they are, and again with each change. A ConfigMap that is deleted is no change.
/// Never returns; drop it to stop.
///
/// A watch that names no version begins with the object as it is, so nothing has to be listed, and nothing is missed
/// between two watches.
pub async fn watch_config_map(
    kube: Kube,
    namespace: &str,
    name: &str,
    mut tell: impl FnMut(BTreeMap<String, String>),
) {
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds={}\
         &fieldSelector=metadata.name%3D{}",
        segment(namespace),
        OPEN.as_secs(),
        segment(name),
    );
    let mut wait = FIRST_WAIT;
    loop {
        let mut has_shown = false;
        let failure = follow(&kube, &path, |data| {
            has_shown = true;
            tell(data);
        })
        .await;
        if has_shown {
            wait = FIRST_WAIT;
        }
        if let Err(error) = failure {
            let pause = wait.max(error.retry_after().unwrap_or_default());
            tracing::warn!(
                namespace,
                name,
                err = %error,
                wait_seconds = pause.as_secs_f64(),
                "Watch of a ConfigMap failed"
            );
            tokio::time::sleep(pause).await;
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
    }
}

async fn follow(
    kube: &Kube,
    path: &str,
    mut tell: impl FnMut(BTreeMap<String, String>),
) -> Result<(), KubeError> {
    let begun = Instant::now();
    let mut lines = Lines::new(kube.open(Call::get(path).ranked(Rank::Watch)).await?.into_body());
    while let Some(line) = tokio::time::timeout(SILENCE, lines.next())
        .await
        .unwrap_or(Ok(None))?
    {
        let event: WireEvent<'_> = read(line)?;
        let object = event.object.get().as_bytes();
        match event.kind {
            "ADDED" | "MODIFIED" => tell(read::<ConfigMap>(object)?.data),
            "ERROR" => return Err(KubeError::from_status(read::<Status>(object)?, None)),
            _ => {}
        }
    }
    if begun.elapsed() < TOO_SHORT {
        return Err(KubeError::Transport("the watch ended at once".into()));
    }
    Ok(())
}
