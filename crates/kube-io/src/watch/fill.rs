//! A list that fills the cache.

use crate::cache::Cache;
use crate::client::Kube;
use crate::error::KubeError;
use crate::reads::Listed;
use crate::shape::version_number;

/// What came of a list.
pub(super) enum Filled {
    /// The cache is filled as of this version.
    At(String),
    /// The list is older than what was known.
    Not { listed: u64, known: u64 },
}

pub(super) async fn fill<T: Listed>(kube: &Kube, cache: &Cache<T>, asked: u64) -> Result<Filled, KubeError> {
    let listing = kube.list::<T>(Some(cache), !cache.is_synced()).await?;
    let position = listing.resource_version.clone();
    let listed = version_number(&position).unwrap_or_default();
    let known = cache.newest_version();
    if listed < known {
        return Ok(Filled::Not { listed, known });
    }
    let nameless = listing.nameless;
    cache.refill(listing, asked);
    let unreadable = cache.unreadable();
    let unreadable = unreadable.borrow();
    if nameless > 0 || !unreadable.is_empty() {
        // One of them is told: a proxy that spoils one spoils a thousand.
        let one = unreadable.values().next();
        let (object, err) = one.map(|one| (one.object.to_string(), one.why.as_str())).unzip();
        let count = unreadable.len();
        tracing::warn!(
            kind = T::PLURAL,
            object,
            count,
            nameless,
            err,
            "Objects of a list cannot be understood, their last known state stays in force"
        );
    }
    Ok(Filled::At(position))
}
