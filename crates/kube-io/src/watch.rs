//! Watches: a list, then every change after it, for ever.

mod config_map;
mod open;
mod questions;
mod told;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::cache::{Cache, CacheKey, NodeCache, ServiceCache};
use crate::client::Kube;
use crate::error::{KubeError, Status};
use crate::exchange::segment;
use crate::reads::{Listed, Listing, about, key_of, read, version_number};
use crate::waits::{FIRST_WAIT, LONGEST_WAIT, Waits};
use open::{Ended, Next, OpenWatch, TOO_SHORT};
use told::Told;

pub use config_map::watch_config_map;
pub(crate) use open::Lines;

/// How long the API server is asked to keep a watch open. It sends a bookmark 2 s before the end, and then ends the watch:
/// so a watch says something in this time even if nothing changes, and its position is never older. Go clients ask for 5 to
/// 10 min and do not notice before that a watch has died. To begin again costs the API server no more than a request: it
/// goes on where it was. The two kinds differ, so that their watches do not begin again at the same moment.
const NODES_OPEN: Duration = Duration::from_secs(30);
const SERVICES_OPEN: Duration = Duration::from_secs(28);

/// How much sooner than asked for a watch may end and still counts: clocks differ, and a server may count in whole seconds.
const EARLIER: Duration = Duration::from_secs(2);

/// A watch that follows another one which failed is asked to end sooner: so that the cache is heard of as long after the last
/// time as if there had been one watch, but not sooner than this.
const SHORTEST_OPEN: Duration = Duration::from_secs(12);

/// A cache that was not heard of for so long is listed where its watch fails, for the watch may have been dead for all that
/// time. Together with a watch that is opened just before and falls silent: 20 s, and 12 s until its end, and 10 s of grace.
const STALE: Duration = Duration::from_secs(20);

/// Objects that cannot be understood are told once in this time: each of their changes comes along here. So are failures.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How long lists may be older than what is known before nothing is believed to be known any more. Whoever answers for the API
/// server from a cache is no reason to end; an etcd that was restored from a backup stays as it is.
const BACKWARDS: Duration = Duration::from_secs(30);

/// Keeps the cache at what the API server says about Nodes. Drop it to stop. Returns when the API server has gone back in time, as
/// where etcd was restored from a backup: then nothing that is known can be compared with what it says, and only a new process
/// begins with nothing.
pub async fn watch_nodes(kube: Kube, cache: Arc<NodeCache>) {
    watch(kube, cache, NODES_OPEN).await;
}

/// Keeps the cache at what the API server says about Services, as [`watch_nodes`] does.
pub async fn watch_services(kube: Kube, cache: Arc<ServiceCache>) {
    watch(kube, cache, SERVICES_OPEN).await;
}

async fn watch<T: Listed>(kube: Kube, cache: Arc<Cache<T>>, open: Duration) {
    let for_watches = kube.for_watches();
    tokio::select! {
        BackInTime = feed_anew(&for_watches, &cache, open) => {}
        () = questions::ask_about_doubts(&kube, &cache) => {} // never
    }
}

/// The API server has gone back in time.
struct BackInTime;

/// Feeds the cache, and begins with a list again whenever somebody asks for that.
async fn feed_anew<T: Listed>(kube: &Kube, cache: &Cache<T>, open: Duration) -> BackInTime {
    let mut since = None;
    loop {
        let asked = cache.asked();
        tokio::select! {
            biased;
            () = cache.asked_again(asked) => {}
            end = feed(kube, cache, open, asked, &mut since) => return end,
        }
    }
}

/// A list, then every change after it; `asked` is which filling of the cache the lists are.
///
/// Where watches fail, lists are the fallback: whatever a watch did, the next attempt begins with a list once the cache has
/// not been heard of for [`STALE`]. `backwards` is since when lists have been older than what is known.
async fn feed<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    open: Duration,
    asked: u64,
    backwards: &mut Option<Instant>,
) -> BackInTime {
    let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
    let mut told = Told::default();
    let mut told_object = None;
    let mut position: Option<String> = None;
    let mut is_new = false; // whether the position is that of a list
    let mut is_doubtful = false; // whether a list is wanted although there is a position
    loop {
        is_doubtful |= unheard(cache) >= STALE;
        let from = match position.take() {
            Some(from) if !is_doubtful => Ok(from),
            known => match (fill(kube, cache, asked).await, known) {
                (Ok(Filled::At(listed)), _) => {
                    (is_new, *backwards) = (true, None);
                    Ok(listed)
                }
                (Ok(Filled::Not { listed, known }), _) => {
                    if backwards.get_or_insert_with(Instant::now).elapsed() >= BACKWARDS {
                        tracing::error!(
                            kind = T::PLURAL,
                            listed,
                            known,
                            "The API server's data is older than what it has shown before. Was etcd restored from a backup? Starting anew"
                        );
                        return BackInTime;
                    }
                    Err(KubeError::Decode(format!(
                        "a list of {} has version {listed}, and an object was known in version {known}: it is older, and is not believed",
                        T::PLURAL
                    )))
                }
                // A watch may be had where a list is not. A list that came and is not believed comes first all the same.
                (Err(error), Some(known)) if !matches!(error, KubeError::Decode(_)) => {
                    told.failure(T::PLURAL, &error, Duration::ZERO);
                    Ok(known)
                }
                (Err(error), _) => Err(error),
            },
        };
        is_doubtful = false;
        let failure = match from {
            Err(error) => error,
            Ok(mut from) => {
                let begun = Instant::now();
                let lasts = open.saturating_sub(unheard(cache)).max(SHORTEST_OPEN);
                let follow = follow(kube, cache, &mut from, (lasts, open), &mut told_object);
                let followed = believed(cache, follow).await;
                let was_new = std::mem::take(&mut is_new);
                match followed {
                    Ok(Ended::InOrder) => {
                        waits.reset();
                        told.end();
                        position = Some(from);
                        continue;
                    }
                    // Its server may have died, or its position may be no good. What the watch took is wait enough.
                    Ok(Ended::Silent) => {
                        waits.reset();
                        told.silence(T::PLURAL, lasts);
                        (position, is_doubtful) = (Some(from), true);
                        continue;
                    }
                    // What expires at once after a list would only be listed again and again.
                    Err(KubeError::Expired(reason)) if !was_new => {
                        tracing::debug!(kind = T::PLURAL, reason, "Watch expired, listing again");
                        continue;
                    }
                    Err(error) => {
                        // Nothing was missed if only the connection failed. After anything else, begin with a list.
                        if goes_on(&error) {
                            position = Some(from);
                            let was_open = error != KubeError::Timeout;
                            if was_open && begun.elapsed() >= TOO_SHORT {
                                waits.reset();
                            }
                        }
                        error
                    }
                }
            }
        };
        let wait = waits.after(&failure);
        told.failure(T::PLURAL, &failure, wait);
        if is_refusal(&failure) {
            // Time alone does not mend it, so it is also told by the readiness of the process.
            cache.set_refusal(Some(failure));
        } else if cache.refusal().as_ref().is_some_and(is_refusal) {
            cache.set_refusal(None); // what fails now is something else
        }
        tokio::time::sleep(wait).await;
    }
}

/// For how long the API server has not shown that the cache is as it should be.
fn unheard<T: CacheKey>(cache: &Cache<T>) -> Duration {
    cache.heard().map_or(Duration::MAX, |heard| heard.elapsed())
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

fn silence(open: Duration) -> KubeError {
    KubeError::Transport(format!(
        "the watch fell silent: the API server was asked to end it after {} s and did not",
        open.as_secs()
    ))
}

/// What came of a list.
enum Filled {
    /// The cache is filled as of this version.
    At(String),
    /// The list is older than what was known.
    Not { listed: u64, known: u64 },
}

async fn fill<T: Listed>(kube: &Kube, cache: &Cache<T>, asked: u64) -> Result<Filled, KubeError> {
    let Listing {
        objects,
        mut unreadable,
        resource_version,
    } = kube.list::<T>(!cache.is_synced()).await?;
    let version = version_number(&resource_version).unwrap_or_default();
    let known = cache.newest_version();
    if version < known {
        return Ok(Filled::Not {
            listed: version,
            known,
        });
    }
    let unknown = cache.refill(objects, &mut unreadable, version, asked);
    if let Some(error) = unknown.and_then(|key| unreadable.remove(&key)) {
        // Time alone does not mend it, so it is also told by the readiness of the process.
        let why = match error {
            KubeError::Decode(why) => why,
            other => other.to_string(),
        };
        let error = KubeError::Decode(format!("{why} Nothing is changed before it can be read."));
        cache.set_refusal(Some(error.clone()));
        return Err(error);
    }
    if matches!(cache.refusal(), Some(KubeError::Decode(_))) {
        cache.set_refusal(None);
    }
    if let Some((key, error)) = unreadable.first_key_value() {
        // One of them is told: a proxy that spoils one spoils a thousand.
        let count = unreadable.len();
        tracing::warn!(kind = T::PLURAL, object = ?key, count, err = %error, "Objects of a list cannot be understood, their last known state stays in force");
    }
    Ok(Filled::At(resource_version))
}

/// Follows a watch as long as nothing shows that it, or the list before it, is untrue.
async fn believed<T: Listed, E>(
    cache: &Cache<T>,
    follow: impl Future<Output = Result<E, KubeError>>,
) -> Result<E, KubeError> {
    tokio::select! {
        biased;
        () = cache.disproved() => Err(KubeError::Decode(format!(
            "what it showed of {} was late or is not true, as a question about one of them by its name found out. If this comes often, look for a proxy that answers for the API server.",
            T::PLURAL
        ))),
        followed = follow => followed,
    }
}

/// Applies changes until the watch ends in good order or falls silent. The position moves on with each change, so that a
/// watch that broke goes on where it was.
async fn follow<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    position: &mut String,
    (lasts, usual): (Duration, Duration),
    told: &mut Option<Instant>,
) -> Result<Ended, KubeError> {
    let path = format!("/api/v1/{}?resourceVersion={}", T::PLURAL, segment(position));
    let mut watch = OpenWatch::begin(kube, path, lasts).await?;
    cache.set_refusal(None);
    loop {
        let line = match watch.next().await? {
            Next::Line(line) => line,
            Next::Ended(ended) => {
                // One that is ended sooner may have been dead all the time.
                if ended == Ended::InOrder && watch.age() + EARLIER >= usual {
                    cache.hear();
                }
                return Ok(ended);
            }
        };
        let event = WireEvent::read(line)?;
        let mut is_news = false;
        if let Some(version) = apply(kube, cache, &event, told)? {
            is_news = version_number(&version) > version_number(position);
            *position = version;
        }
        // The same beginning of a watch, shown again and again, tells nothing.
        if is_news || watch.age() >= TOO_SHORT {
            cache.hear();
        }
    }
}

/// One line of a watch.
pub(crate) struct WireEvent<'a> {
    pub(crate) kind: &'a str,
    /// JSON, or what will be found to be none.
    pub(crate) object: &'a [u8],
}

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<'a> WireEvent<'a> {
    /// Reads the line. One that says why the watch ends is that error.
    pub(crate) fn read(line: &'a [u8]) -> Result<Self, KubeError> {
        let event = match Self::as_api_servers_write(line) {
            Some(event) => event,
            None => Self::of(read(line)?),
        };
        match event.kind {
            "ERROR" => Err(KubeError::from_status(read::<Status>(event.object)?, None)),
            _ => Ok(event),
        }
    }

    fn of(WireLine { kind, object }: WireLine<'a>) -> Self {
        let object = object.get().as_bytes();
        Self { kind, object }
    }

    /// The two parts of `{"type":"MODIFIED","object":{...}}`, in this order and without blanks, as every API server writes them.
    /// So the object, which is most of the line, is read once: by whoever knows what it is.
    fn as_api_servers_write(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let (kind, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'"')?)?;
        let object = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
        let kind = str::from_utf8(kind).ok().filter(|kind| !kind.contains('\\'))?;
        Some(Self { kind, object })
    }
}

#[derive(Deserialize)]
struct Versioned {
    metadata: VersionMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionMeta {
    uid: Option<String>,
    resource_version: String,
}

/// Applies one event; gives the version that the watch has reached.
fn apply<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    event: &WireEvent<'_>,
    told: &mut Option<Instant>,
) -> Result<Option<String>, KubeError> {
    let object = event.object;
    match event.kind {
        "ADDED" | "MODIFIED" => {
            let understood = T::decode(object, kube).and_then(|object| {
                let version = object.resource_version().to_owned();
                cache.observe(object).map(|()| version)
            });
            let error = match understood {
                Ok(version) => return Ok(Some(version)),
                Err(error) => error,
            };
            // A list may show it better. If the last one did not, the next one would not either.
            let Some(key) = key_of::<T>(object) else {
                return Err(error.about("object of the watch", "without a name"));
            };
            if !cache.is_unreadable(&key) {
                return Err(about::<T>(error, &key));
            }
            let now = Instant::now();
            if told.is_none_or(|told| now >= told + TOLD_EVERY) {
                tracing::warn!(kind = T::PLURAL, object = ?key, err = %error, "An object cannot be understood, its last known state stays in force");
                *told = Some(now);
            }
        }
        "DELETED" => {
            let unnamed =
                || KubeError::Decode(format!("one of the {} was deleted, without a name", T::PLURAL));
            let key = key_of::<T>(object).ok_or_else(unnamed)?;
            let VersionMeta {
                uid,
                resource_version,
            } = read::<Versioned>(object)?.metadata;
            let version = version_number(&resource_version).unwrap_or_default();
            // That a predecessor went is no news of the one that has its name since.
            let is_late = |known: Arc<T>| {
                let known_since = version_number(known.resource_version()).unwrap_or_default();
                uid.as_deref().is_some_and(|uid| uid != known.uid()) && version < known_since
            };
            if cache.get(&key).is_some_and(|known| !is_late(known)) {
                cache.doubt(key, version);
            }
            return Ok(Some(resource_version));
        }
        "BOOKMARK" => {}
        kind => tracing::debug!(kind, "Watch event of an unknown type"),
    }
    Ok(read::<Versioned>(object)
        .ok()
        .map(|object| object.metadata.resource_version))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_line_is_read_alike_in_whatever_form_it_comes() {
        for line in [
            r#"{"type":"MODIFIED","object":{"kind":"Node","a":{"b":"}\""}}}"#,
            r#"{"type": "MODIFIED", "object":{"kind":"Node","a":{"b":"}\""}} }"#,
            r#"{"object":{"kind":"Node","a":{"b":"}\""}},"type":"MODIFIED"}"#,
        ] {
            let event = WireEvent::read(line.as_bytes()).unwrap();
            let object = str::from_utf8(event.object).unwrap();
            assert_eq!(
                (event.kind, object),
                ("MODIFIED", r#"{"kind":"Node","a":{"b":"}\""}}"#),
                "{line}"
            );
        }
        for cut in [
            r#"{"type":"MODIFIED","#,
            r#"{"type":"MODIFIED","object":{}"#,
            r#"{"type":"#,
        ] {
            let object = WireEvent::read(cut.as_bytes()).map(|event| event.object.to_vec());
            let read = object.and_then(|object| read::<serde::de::IgnoredAny>(&object));
            assert!(matches!(read, Err(KubeError::Decode(_))), "{cut}");
        }
        let refused = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(WireEvent::read(refused), Err(KubeError::Expired(_))));
    }

    #[tokio::test]
    async fn the_late_end_of_a_predecessor_raises_no_doubt() {
        let nobody = tower::service_fn(|_: http::Request<crate::Body>| async {
            Ok::<_, Infallible>(http::Response::new(crate::Body::empty()))
        });
        let kube = Kube::with_service(nobody, crate::client::KubeOptions::new("test/1"));
        let object = |uid: &str, version: u64| {
            let meta = serde_json::json!({"name": "a", "uid": uid, "resourceVersion": version.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z"});
            serde_json::json!({"metadata": meta, "spec": {}, "status": {}}).to_string()
        };
        for (uid, version, is_doubted) in [("old", 5, false), ("new", 9, true), ("other", 9, true)] {
            let cache = NodeCache::new();
            let tell = |kind, object: String| {
                let event = WireEvent {
                    kind,
                    object: object.as_bytes(),
                };
                apply::<bowline_cloud_provider::Node>(&kube, &cache, &event, &mut None).unwrap();
            };
            tell("ADDED", object("new", 7));
            tell("DELETED", object(uid, version));
            assert_eq!(cache.is_certain(), !is_doubted, "{uid}");
        }
    }
}
