//! Watches: a list, then every change after it, for ever.

mod begin;
mod config_map;
mod event;
mod fill;
mod open;
mod questions;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::{Cache, CacheKey, NodeCache, ServiceCache};
use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::segment;
use crate::reads::Listed;
use crate::shape::version_number;
use crate::waits::{FIRST_WAIT, LONGEST_WAIT, Waits};
use begin::{From, goes_on, next};
use event::apply;
use fill::{Filled, fill};
use open::{Ended, Next, OpenWatch, TOO_SHORT};
use told::Told;

pub use config_map::watch_config_map;
pub(crate) use event::WireEvent;
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

/// After so many watches in a row that ended in order and showed nothing, there is a list: in about three minutes. One alone proves
/// enough where a server sends no bookmarks, and all of them nothing where something on the way keeps what they show.
const MOST_MUTE: u32 = 6;

/// Failures are told once in this time.
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
    let mut from = From::Nothing;
    let mut mute = 0;
    loop {
        if let From::Followed(position) = &mut from
            && (unheard(cache) >= STALE || mute >= MOST_MUTE)
        {
            mute = 0;
            from = From::Doubted(std::mem::take(position));
        }
        let failure;
        (from, failure) = match begin(kube, cache, asked, from, &mut told, backwards).await {
            Err(Unbegun::BackInTime) => return BackInTime,
            Err(Unbegun::Failed(error)) => (From::Nothing, Some(error)),
            Ok((mut position, is_listed)) => {
                let begun = Instant::now();
                let lasts = open.saturating_sub(unheard(cache)).max(SHORTEST_OPEN);
                let follow = follow(kube, cache, &mut position, (lasts, open));
                let followed = believed(cache, follow).await;
                match &followed {
                    Ok(Ended::InOrder | Ended::Mute) => told.end(),
                    // What the watch took is wait enough.
                    Ok(Ended::Silent) => told.silence(T::PLURAL, lasts),
                    Err(KubeError::Expired(reason)) => {
                        tracing::debug!(kind = T::PLURAL, reason, "Watch expired, listing again");
                    }
                    Err(_) => {}
                }
                let was_open = match &followed {
                    Ok(_) => true,
                    Err(KubeError::Timeout) => false,
                    Err(error) => goes_on(error) && begun.elapsed() >= TOO_SHORT,
                };
                if was_open {
                    waits.reset();
                }
                mute = match &followed {
                    Ok(Ended::Mute) => mute + 1,
                    _ => 0,
                };
                next(position, is_listed, followed)
            }
        };
        let Some(failure) = failure else { continue };
        let wait = waits.after(&failure);
        told.failure(T::PLURAL, &failure, wait);
        if is_about_credentials(&failure) {
            // Time alone does not mend it, so it is also told by the readiness of the process.
            cache.set_refusal(Some(failure));
        } else if cache.refusal().as_ref().is_some_and(is_about_credentials) {
            cache.set_refusal(None); // what fails now is something else
        }
        tokio::time::sleep(wait).await;
    }
}

/// Why no watch begins.
enum Unbegun {
    BackInTime,
    Failed(KubeError),
}

/// Finds where the next watch begins, and whether a list said it: unless what is known will do.
async fn begin<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    asked: u64,
    from: From,
    told: &mut Told,
    backwards: &mut Option<Instant>,
) -> Result<(String, bool), Unbegun> {
    let known = match from {
        From::Followed(position) => return Ok((position, false)),
        From::Doubted(position) => Some(position),
        From::Nothing => None,
    };
    match (fill(kube, cache, asked).await, known) {
        (Ok(Filled::At(position)), _) => {
            *backwards = None;
            Ok((position, true))
        }
        (Ok(Filled::Not { listed, known }), _) => {
            if backwards.get_or_insert_with(Instant::now).elapsed() >= BACKWARDS {
                tracing::error!(
                    kind = T::PLURAL,
                    listed,
                    known,
                    "The API server's data is older than what it has shown before. Was etcd restored from a backup? Starting anew"
                );
                return Err(Unbegun::BackInTime);
            }
            Err(Unbegun::Failed(KubeError::Decode(format!(
                "a list of {} has version {listed}, and an object was known in version {known}: it is older, and is not believed",
                T::PLURAL
            ))))
        }
        // A watch may be had where a list is not. A list that came and is not believed comes first all the same.
        (Err(error), Some(position)) if !matches!(error, KubeError::Decode(_)) => {
            told.failure(T::PLURAL, &error, Duration::ZERO);
            Ok((position, false))
        }
        (Err(error), _) => Err(Unbegun::Failed(error)),
    }
}

/// For how long the API server has not shown that the cache is as it should be.
fn unheard<T: CacheKey>(cache: &Cache<T>) -> Duration {
    cache.heard().map_or(Duration::MAX, |heard| heard.elapsed())
}

fn is_about_credentials(error: &KubeError) -> bool {
    matches!(error, KubeError::Forbidden(_) | KubeError::Unauthorized(_))
}

fn silence(open: Duration) -> KubeError {
    KubeError::Transport(format!(
        "the watch fell silent: the API server was asked to end it after {} s and did not",
        open.as_secs()
    ))
}

/// Follows a watch as long as nothing shows that it, or the list before it, is untrue.
async fn believed<T: Listed, E>(
    cache: &Cache<T>,
    follow: impl Future<Output = Result<E, KubeError>>,
) -> Result<E, KubeError> {
    tokio::select! {
        biased;
        () = cache.disproved() => Err(KubeError::Decode(format!(
            "what it showed of {} is not true, as a question about one of them by its name found out. If this comes often, look for a proxy that answers for the API server.",
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
) -> Result<Ended, KubeError> {
    let path = format!("/api/v1/{}?resourceVersion={}", T::PLURAL, segment(position));
    let mut watch = OpenWatch::begin(kube, path, lasts).await?;
    cache.set_refusal(None);
    loop {
        let line = match watch.next().await? {
            Next::Line(line) => line,
            Next::Ended(ended) => {
                // One that is ended sooner may have been dead all the time.
                if ended != Ended::Silent && watch.age() + EARLIER >= usual {
                    cache.hear();
                }
                return Ok(ended);
            }
        };
        let event = WireEvent::read(line)?;
        let mut is_news = false;
        if let Some(version) = apply(kube, cache, &event)? {
            is_news = version_number(&version) > version_number(position);
            *position = version;
        }
        // The same beginning of a watch, shown again and again, tells nothing.
        if is_news || watch.age() >= TOO_SHORT {
            cache.hear();
        }
    }
}
