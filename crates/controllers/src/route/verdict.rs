//! What a Node is told about its routes: the condition and the event, by the words of Kubernetes' cloud-provider library.

use std::time::Duration;

use bowline_cloud_provider::Node;
use ipnet::IpNet;

/// The condition `NetworkUnavailable` of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every pod network has its route.
    Routed,
    /// One has none, or there are routes and no pod network.
    NotRouted,
}

impl Verdict {
    /// What follows for a Node that has this many pod networks, of which some have no route.
    #[must_use]
    pub(super) fn of(networks: usize, open: usize) -> Self {
        if networks > 0 && open == 0 {
            Self::Routed
        } else {
            Self::NotRouted
        }
    }

    /// Whether the status is `True`.
    #[must_use]
    pub(super) fn is_unavailable(self) -> bool {
        self == Self::NotRouted
    }

    /// The reason.
    #[must_use]
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Routed => "RouteCreated",
            Self::NotRouted => "NoRouteCreated",
        }
    }

    /// The message.
    #[must_use]
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Routed => "RouteController created a route",
            Self::NotRouted => "RouteController failed to create a route",
        }
    }

    /// Whether the Node shows it already: by status and reason.
    #[must_use]
    pub(super) fn is_shown_by(self, node: &Node) -> bool {
        node.network_unavailable.as_ref().is_some_and(|shown| {
            shown.is_unavailable == self.is_unavailable() && *shown.reason == *self.reason()
        })
    }
}

/// The message of the event `FailedToCreateRoute`.
#[must_use]
pub(super) fn failure_text(node: &Node, destination: &IpNet, took: Duration, error: &str) -> String {
    format!(
        "Could not create route {} {destination} for node {} after {}: {error}",
        node.uid,
        node.name,
        go_duration(took)
    )
}

/// A duration as Go writes it: `107.84µs`, `1.5s`, `1m4s`.
fn go_duration(duration: Duration) -> String {
    let minutes = duration.as_secs() / 60;
    let seconds = duration.saturating_sub(Duration::from_secs(minutes * 60));
    match (minutes, seconds.is_zero()) {
        (0, true) => "0s".to_owned(),
        (0, false) => format!("{seconds:?}"),
        (1..60, _) => format!("{minutes}m{}s", seconds.as_secs_f64()),
        _ => format!("{}h{}m{}s", minutes / 60, minutes % 60, seconds.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::NetworkUnavailable;

    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (340, "340ns"),
            (107_840, "107.84µs"),
            (2_500_000, "2.5ms"),
            (1_500_000_000, "1.5s"),
            (64_000_000_000, "1m4s"),
            (60_500_000_000, "1m0.5s"),
            (3_725_000_000_000, "1h2m5s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanoseconds)), text);
        }
    }

    #[test]
    fn a_condition_is_shown_when_status_and_reason_are() {
        let showing = |is_unavailable, reason: &str| Node {
            network_unavailable: Some(NetworkUnavailable {
                is_unavailable,
                reason: reason.into(),
            }),
            ..Node::named("n1")
        };
        assert!(!Verdict::Routed.is_shown_by(&Node::named("n1")));
        assert!(Verdict::Routed.is_shown_by(&showing(false, "RouteCreated")));
        assert!(!Verdict::Routed.is_shown_by(&showing(false, "CiliumIsUp")));
        assert!(!Verdict::Routed.is_shown_by(&showing(true, "RouteCreated")));
        assert!(Verdict::NotRouted.is_shown_by(&showing(true, "NoRouteCreated")));
    }

    #[test]
    fn one_open_network_is_enough_to_be_unavailable() {
        assert_eq!(Verdict::of(2, 0), Verdict::Routed);
        assert_eq!(Verdict::of(2, 1), Verdict::NotRouted);
        assert_eq!(Verdict::of(0, 0), Verdict::NotRouted);
    }
}
