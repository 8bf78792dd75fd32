//! A list that fills the cache.

use crate::cache::Cache;
use crate::client::Kube;
use crate::error::KubeError;
use crate::reads::{Listed, Listing, version_number};

/// What came of a list.
pub(super) enum Filled {
    /// The cache is filled as of this version.
    At(String),
    /// The list is older than what was known.
    Not { listed: u64, known: u64 },
}

pub(super) async fn fill<T: Listed>(kube: &Kube, cache: &Cache<T>, asked: u64) -> Result<Filled, KubeError> {
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
