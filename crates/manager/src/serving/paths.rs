//! What is served, and to whom.

use crate::health::Endpoint;

/// What is served, for `/statusz`; with `/debug/` only some of it.
pub(super) const PATHS: &[&str] = &[
    "/configz",
    "/debug/flags",
    "/debug/pprof",
    "/flagz",
    "/healthz",
    "/livez",
    "/metrics",
    "/metrics/slis",
    "/readyz",
    "/statusz",
];

/// Whether this is a page for those only who are granted it.
pub(super) fn is_private(path: &str) -> bool {
    (PATHS.contains(&path) && endpoint(path).is_none()) || is_of_debug(path)
}

/// Whether the path is below `/debug/`, where there is something.
pub(super) fn is_of_debug(path: &str) -> bool {
    path.starts_with("/debug/flags") || path.starts_with("/debug/pprof")
}

/// Reads `/healthz` and `/healthz/name`.
pub(super) fn endpoint(path: &str) -> Option<(Endpoint, Option<&str>)> {
    let (word, check) = match path.strip_prefix('/')?.split_once('/') {
        Some((word, check)) => (word, Some(check).filter(|check| !check.is_empty())),
        None => (&path[1..], None),
    };
    let endpoint = [Endpoint::Health, Endpoint::Live, Endpoint::Ready]
        .into_iter()
        .find(|endpoint| endpoint.name() == word)?;
    Some((endpoint, check))
}
