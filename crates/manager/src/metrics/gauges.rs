//! The gauges of the process that are worked out at a scrape.

use std::sync::Arc;

use bowline_cloud_provider::GaugeSpec;
use bowline_controllers::metrics::{Probes, Readings};
use bowline_kube_io::{Cache, CacheKey, Clock, Kube, NodeCache, ServiceCache};
use tokio::time::Instant;

/// The end of credentials.
pub static CREDENTIALS: GaugeSpec = GaugeSpec {
    name: "credential_expires_in_seconds",
    help: "Time until a credential ends that tells its end: serving-certificate, kubernetes-client-certificate, kubernetes-token (which the kubelet, or whoever else issued it, replaces before that); below 0 it has ended. What a credential plugin says is left out, because it is asked again before the end",
    label: "credential",
};

/// The age of what is known of Kubernetes.
pub static CACHE_AGE: GaugeSpec = GaugeSpec {
    name: "kubernetes_cache_age_seconds",
    help: "Time since the API server has shown for the last time that what is known of a kind is current; a watch that is well is heard of every half minute",
    label: "kind",
};

/// Objects that cannot be understood.
pub static UNREADABLE: GaugeSpec = GaugeSpec {
    name: "kubernetes_objects_not_understood",
    help: "Nodes and Services that the API server shows in a way that cannot be understood, those without a name included; each one that has a name has the event ObjectNotUnderstood, and all others are served",
    label: "kind",
};

/// The wall time.
pub static WALL_CLOCK: GaugeSpec = GaugeSpec {
    name: "wall_clock_seconds",
    help: "The time of day of the process's computer since unix epoch; one that differs from the time of the scrape is wrong",
    label: "",
};

/// All of them.
pub fn table() -> [&'static GaugeSpec; 4] {
    [&CREDENTIALS, &CACHE_AGE, &UNREADABLE, &WALL_CLOCK]
}

/// Shows the time, what is known of Kubernetes, and the ends of the credentials for it.
pub(crate) fn show(probes: &Probes, kube: &Kube, nodes: &Arc<NodeCache>, services: &Arc<ServiceCache>) {
    let begun = Instant::now();
    let caches = (Arc::downgrade(nodes), Arc::downgrade(services));
    let of_unreadable = caches.clone();
    probes.probe(&CACHE_AGE, "", move || {
        let (nodes, services) = (caches.0.upgrade()?, caches.1.upgrade()?);
        Some(vec![
            ("nodes", age(&nodes, begun)),
            ("services", age(&services, begun)),
        ])
    });
    probes.probe(&UNREADABLE, "", move || {
        let (nodes, services) = (of_unreadable.0.upgrade()?, of_unreadable.1.upgrade()?);
        Some(vec![
            ("nodes", unreadable(&nodes)),
            ("services", unreadable(&services)),
        ])
    });
    let clock = Arc::clone(kube.clock());
    probes.probe(&WALL_CLOCK, "", move || {
        Some(vec![("", clock.now().as_duration().as_secs_f64())])
    });
    let kube = kube.clone();
    probes.probe(&CREDENTIALS, "kubernetes", move || {
        Some(expires_in(&**kube.clock(), kube.credential_ends()))
    });
}

/// The age of a cache since it was heard of, or since then.
fn age<T: CacheKey>(cache: &Cache<T>, begun: Instant) -> f64 {
    cache.heard().unwrap_or(begun).elapsed().as_secs_f64()
}

/// How many objects of a cache cannot be understood.
#[expect(clippy::cast_precision_loss, reason = "a count for a gauge")]
fn unreadable<T: CacheKey>(cache: &Cache<T>) -> f64 {
    (cache.unreadable().borrow().len() + cache.nameless()) as f64
}

/// How far off these ends are, in seconds since 1970.
pub(crate) fn expires_in(clock: &dyn Clock, ends: impl IntoIterator<Item = (&'static str, i64)>) -> Readings {
    let now = clock.now().as_second();
    #[expect(clippy::cast_precision_loss, reason = "seconds for a gauge")]
    let left = |end: i64| end.saturating_sub(now) as f64;
    ends.into_iter().map(|(name, end)| (name, left(end))).collect()
}

#[cfg(test)]
mod tests {
    use bowline_kube_io::TokioClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_credential_counts_down_to_its_end_and_beyond() {
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let end = clock.now().as_second() + 60;
        let left = || expires_in(&clock, [("serving-certificate", end)]);
        assert_eq!(left(), [("serving-certificate", 60.0)]);
        tokio::time::advance(std::time::Duration::from_secs(90)).await;
        assert_eq!(left(), [("serving-certificate", -30.0)]);
    }
}
