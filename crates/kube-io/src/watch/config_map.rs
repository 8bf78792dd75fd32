//! One ConfigMap, by name: for settings that a cluster publishes for whoever serves in it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::begin::goes_on;
use super::event::WireEvent;
use super::open::{Ended, Next, OpenWatch};
use super::silence;
use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, object_path, segment};
use crate::shape::{names, read};
use crate::waits::Waits;

/// How long the API server is asked to keep the watch open, for the reasons of those of Nodes and Services.
const OPEN: Duration = Duration::from_secs(30);

/// The waits after failures: 1 s, doubled each time. What is watched changes once a year, and not being allowed to watch
/// it is a state that can last, so they grow long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
struct ConfigMap {
    data: Option<BTreeMap<String, Value>>,
}

/// The texts of a ConfigMap; what else is among them is left out.
fn texts(object: &[u8]) -> Result<BTreeMap<String, String>, KubeError> {
    let data = read::<ConfigMap>(object)?.data.unwrap_or_default();
    let text = |(key, value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    };
    Ok(data.into_iter().filter_map(text).collect())
}

impl Kube {
    /// The texts of a ConfigMap by their keys; `None` if there is no such ConfigMap. An API server that is busy, and says so, is
    /// asked again for a minute: without these settings nobody is served.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] unless the role grants `get` on it.
    pub async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, KubeError> {
        let path = object_path("api/v1", namespace, "configmaps", name);
        let is_busy = |error: &KubeError| error.retry_after().is_some();
        match self.read_patiently(|| Call::get(&*path), is_busy).await {
            Ok(body) => texts(&body).map(Some),
            Err(KubeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Tells the texts of a ConfigMap as they are, and again with each change. A ConfigMap that is deleted is no change.
/// Never returns; drop it to stop.
///
/// A watch that names no version begins with the object as it is, so nothing has to be listed.
pub async fn watch_config_map(
    kube: Kube,
    namespace: &str,
    name: &str,
    mut tell: impl FnMut(BTreeMap<String, String>),
) {
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?fieldSelector=metadata.name%3D{}",
        segment(namespace),
        segment(name),
    );
    let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
    let mut position = None;
    loop {
        let failure = match follow(&kube, &path, &mut position, &mut tell).await {
            Ok(Ended::InOrder | Ended::Mute) => {
                waits.reset();
                continue;
            }
            Ok(Ended::Silent) => {
                position = None;
                silence(OPEN)
            }
            Err(error) => {
                position.take_if(|_| !goes_on(&error));
                error
            }
        };
        let wait = waits.after(&failure);
        tracing::warn!(
            namespace,
            name,
            err = %failure,
            wait_seconds = wait.as_secs_f64(),
            "Watch of a ConfigMap failed"
        );
        tokio::time::sleep(wait).await;
    }
}

async fn follow(
    kube: &Kube,
    path: &str,
    position: &mut Option<String>,
    tell: &mut impl FnMut(BTreeMap<String, String>),
) -> Result<Ended, KubeError> {
    let mut path = path.to_owned();
    if let Some(version) = position {
        path.push_str("&resourceVersion=");
        path.push_str(&segment(version));
    }
    let mut watch = OpenWatch::begin(kube, path, OPEN).await?;
    loop {
        let line = match watch.next().await? {
            Next::Line(line) => line,
            Next::Ended(ended) => return Ok(ended),
        };
        let event = WireEvent::read(line)?;
        let object = event.object;
        // What has no version is no ConfigMap, so it is not told.
        let version = names(object).resource_version;
        if version.is_empty() {
            return Err(KubeError::missing("metadata.resourceVersion"));
        }
        if let "ADDED" | "MODIFIED" = event.kind {
            match texts(object) {
                Ok(texts) => tell(texts),
                Err(error) => {
                    tracing::warn!(err = %error, "A ConfigMap cannot be understood, its last known state stays in force");
                }
            }
        }
        *position = Some(version);
    }
}
