//! Watches: a list, then every change after it, for ever.

mod config_map;
mod questions;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::cache::{Cache, NodeCache, ServiceCache};
use crate::client::Kube;
use crate::error::{KubeError, Status};
use crate::exchange::{Call, Rank, segment, transport};
use crate::reads::{Listed, Listing, decode, key_of, read, version_number};

pub use config_map::watch_config_map;

/// How long the API server is asked to keep a watch open, as the Go clients do (5 to 10 min), but not by chance. The two
/// kinds differ, so that their watches do not begin again at the same moment.
const NODES_OPEN: Duration = Duration::from_secs(420);
const SERVICES_OPEN: Duration = Duration::from_secs(480);

/// A watch that shows nothing for so long is taken for dead: the API server sends a bookmark each minute or so.
const SILENCE: Duration = Duration::from_secs(150);

/// A watch that ends sooner than this without having shown anything counts as failed.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// Keeps the cache at what the API server says about Nodes. Never returns; drop it to stop.
pub async fn watch_nodes(kube: Kube, cache: Arc<NodeCache>) {
    watch(kube, cache, NODES_OPEN).await;
}

/// Keeps the cache at what the API server says about Services. Never returns; drop it to stop.
pub async fn watch_services(kube: Kube, cache: Arc<ServiceCache>) {
    watch(kube, cache, SERVICES_OPEN).await;
}

/// The waits after failures: 0.8 s, doubled each time, at most 30 s.
///
/// There is no jitter: a manager has two watches and one or two standby replicas, and a test can replay it.
#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(800);
    const LONGEST: Duration = Duration::from_secs(30);

    fn reset(&mut self) {
        self.failures = 0;
    }

    fn next(&mut self) -> Duration {
        let wait = Self::FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(Self::LONGEST);
        self.failures += 1;
        wait
    }
}

async fn watch<T: Listed>(kube: Kube, cache: Arc<Cache<T>>, open: Duration) {
    tokio::join!(
        feed(&kube, &cache, open),
        questions::ask_about_doubts(&kube, &cache)
    );
}

async fn feed<T: Listed>(kube: &Kube, cache: &Cache<T>, open: Duration) {
    let mut backoff = Backoff::default();
    let mut version: Option<String> = None;
    let mut is_new = false; // whether the version is that of a list
    loop {
        let failure = match version.take() {
            None => match fill(kube, cache).await {
                Ok(listed) => {
                    version = Some(listed);
                    is_new = true;
                    continue;
                }
                Err(error) => error,
            },
            Some(mut position) => {
                match believed(cache, follow(kube, cache, &mut position, open, &mut backoff)).await {
                    Ok(()) => {
                        backoff.reset();
                        version = Some(position);
                        is_new = false;
                        continue;
                    }
                    // What expires at once after a list would only be listed again and again.
                    Err(KubeError::Expired(reason)) if !is_new => {
                        tracing::debug!(kind = T::PLURAL, reason, "Watch expired, listing again");
                        continue;
                    }
                    Err(error) => {
                        // Nothing was missed if only the connection failed. After anything else, begin with a list.
                        version = goes_on(&error).then_some(position);
                        is_new = false;
                        error
                    }
                }
            }
        };
        let wait = backoff.next().max(failure.retry_after().unwrap_or_default());
        let wait_seconds = wait.as_secs_f64();
        if is_refusal(&failure) {
            // Time alone does not mend it, so it is also told by the readiness of the process.
            tracing::error!(kind = T::PLURAL, err = %failure, wait_seconds, "Watch refused");
            cache.set_refusal(Some(failure));
        } else {
            tracing::warn!(kind = T::PLURAL, err = %failure, wait_seconds, "Watch failed");
        }
        tokio::time::sleep(wait).await;
    }
}

fn goes_on(error: &KubeError) -> bool {
    matches!(
        error,
        KubeError::Transport(_) | KubeError::Timeout | KubeError::Throttled { .. }
    )
}

fn is_refusal(error: &KubeError) -> bool {
    matches!(error, KubeError::Forbidden(_) | KubeError::Unauthorized(_))
}

async fn fill<T: Listed>(kube: &Kube, cache: &Cache<T>) -> Result<String, KubeError> {
    let Listing {
        objects,
        unreadable,
        resource_version,
    } = kube.list::<T>().await?;
    let version = version_number(&resource_version).unwrap_or_default();
    cache.refill(objects, &unreadable, version);
    Ok(resource_version)
}

/// Follows a watch as long as nothing shows that it, or the list before it, is untrue.
async fn believed<T: Listed>(
    cache: &Cache<T>,
    follow: impl Future<Output = Result<(), KubeError>>,
) -> Result<(), KubeError> {
    tokio::select! {
        biased;
        () = cache.disproved() => Err(KubeError::Decode(format!(
            "{} were said to be gone, which the API server denies. Look for a proxy that answers for it.",
            T::PLURAL
        ))),
        followed = follow => followed,
    }
}

/// Applies changes until the watch ends in good order. The position moves on with each change, so that a watch that
/// broke goes on where it was.
async fn follow<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    position: &mut String,
    open: Duration,
    backoff: &mut Backoff,
) -> Result<(), KubeError> {
    let path = format!(
        "/api/v1/{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
        T::PLURAL,
        open.as_secs(),
        segment(position),
    );
    let begun = Instant::now();
    let mut lines = Lines::new(kube.open(Call::get(path).ranked(Rank::Watch)).await?.into_body());
    cache.set_refusal(None);
    let mut has_shown = false;
    // A silence ends the watch in good order: if the API server is gone, the next one will tell.
    while let Some(line) = tokio::time::timeout(SILENCE, lines.next())
        .await
        .unwrap_or(Ok(None))?
    {
        let event: WireEvent<'_> = read(line)?;
        if let Some(version) = apply(kube, cache, &event)? {
            *position = version;
        }
        has_shown = true;
        backoff.reset();
    }
    if !has_shown && begun.elapsed() < TOO_SHORT {
        return Err(KubeError::Transport("the watch ended at once".into()));
    }
    Ok(())
}

/// One line of a watch.
#[derive(Deserialize)]
pub(crate) struct WireEvent<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: VersionMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionMeta {
    resource_version: String,
}

/// Applies one event; gives the version that the watch has reached.
fn apply<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    event: &WireEvent<'_>,
) -> Result<Option<String>, KubeError> {
    let object = event.object.get().as_bytes();
    match event.kind {
        "ADDED" | "MODIFIED" => match decode::<T>(object, kube) {
            Ok(object) => {
                let version = object.resource_version().to_owned();
                cache.observe(object);
                return Ok(Some(version));
            }
            Err(error) => {
                tracing::warn!(kind = T::PLURAL, object = ?key_of::<T>(object), err = %error, "Object cannot be understood");
            }
        },
        "DELETED" => {
            let unnamed =
                || KubeError::Decode(format!("one of the {} was deleted, without a name", T::PLURAL));
            let key = key_of::<T>(object).ok_or_else(unnamed)?;
            let version = read::<Versioned>(object)?.metadata.resource_version;
            if cache.get(&key).is_some() {
                cache.doubt(key, version_number(&version).unwrap_or_default());
            }
            return Ok(Some(version));
        }
        "BOOKMARK" => {}
        "ERROR" => {
            let status: Status = read(object)?;
            return Err(KubeError::from_status(status, None));
        }
        kind => tracing::debug!(kind, "Watch event of an unknown type"),
    }
    Ok(read::<Versioned>(object)
        .ok()
        .map(|object| object.metadata.resource_version))
}

/// The lines of a body, whatever pieces it comes in.
pub(crate) struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// The length of the line that was given last, with its end; removed before the next is looked for.
    given: usize,
    /// Up to here there is no end of a line.
    searched: usize,
}

/// A buffer that one huge line has made larger than this is not kept.
const KEPT_BUFFER: usize = 64 * 1024;

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            given: 0,
            searched: 0,
        }
    }

    /// The next line; none at the end. A last line without an end was cut off and is not given.
    ///
    /// # Cancellation
    ///
    /// May be dropped and called again: what has come is kept.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, KubeError> {
        self.buffer.drain(..self.given);
        self.given = 0;
        self.searched = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        loop {
            if let Some(end) = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                self.given = self.searched + end + 1;
                return Ok(Some(&self.buffer[..self.given - 1]));
            }
            self.searched = self.buffer.len();
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(|error| transport(&error))?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_800_ms_to_30_s() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(waits, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(), Backoff::FIRST);
    }
}
