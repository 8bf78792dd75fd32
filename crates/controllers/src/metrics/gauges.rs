//! The gauges that are worked out at a scrape.

use std::time::Duration;

use bowline_cloud_provider::GaugeSpec;

/// Services whose load balancer is not as it should be.
pub static UNSETTLED: GaugeSpec = GaugeSpec {
    name: "load_balancers_unsettled",
    help: "Services whose load balancer is not as it should be, by what came of the last sync: pending (its sync has not ended yet), waiting (the cloud is busy with it), no_nodes (there is no Node for it to lead to), quota (a quota or limit of the cloud is reached, or it has no more of what is needed), refused (a person has to change something, the event says what), denied, invalid, conflict, throttled or failed (what the cloud answered), kubernetes (the API server refused a write), unanswered (a call to the cloud has no answer, and may take effect yet)",
    label: "reason",
};

/// How long the oldest of them has been so.
pub static UNSETTLED_OLDEST: GaugeSpec = GaugeSpec {
    name: "load_balancers_unsettled_oldest_seconds",
    help: "Time since the first change, or failure, that no settled sync has served yet: that of the Service that waits for longest, by reason; 0 without one",
    label: "reason",
};

/// Load balancers that no Service of this cluster asks for.
pub static LEFT_BEHIND: GaugeSpec = GaugeSpec {
    name: "load_balancers_left_behind",
    help: "Load balancers that bear the marks of this cluster, and whose Service is gone or asks for none, without this process having seen that; they stay until a person deletes them, as with the command `orphans`. The log names them. Only cloudscale.ch's objects bear such marks: elsewhere it is 0",
    label: "",
};

/// Nodes that wait with the taint.
pub static UNINITIALIZED: GaugeSpec = GaugeSpec {
    name: "nodes_uninitialized",
    help: "Nodes with the taint node.cloudprovider.kubernetes.io/uninitialized",
    label: "",
};

/// The age of the oldest of them.
pub static UNINITIALIZED_OLDEST: GaugeSpec = GaugeSpec {
    name: "nodes_uninitialized_oldest_seconds",
    help: "Age of the oldest Node with the taint node.cloudprovider.kubernetes.io/uninitialized; 0 without one",
    label: "",
};

/// What the route controller has failed at.
pub static ROUTES_FAILING: GaugeSpec = GaugeSpec {
    name: "routes_failing",
    help: "What the route controller has failed at and tries again, by operation: list (of all routes), create, delete, condition (NetworkUnavailable of a Node)",
    label: "operation",
};

/// All of them.
#[must_use]
pub fn table() -> [&'static GaugeSpec; 6] {
    [
        &UNSETTLED,
        &UNSETTLED_OLDEST,
        &LEFT_BEHIND,
        &UNINITIALIZED,
        &UNINITIALIZED_OLDEST,
        &ROUTES_FAILING,
    ]
}

/// How many there are of something, and the age of the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    count: usize,
    oldest: Duration,
}

impl Standing {
    /// One more.
    pub(crate) fn add(&mut self, age: Duration) {
        self.count += 1;
        self.oldest = self.oldest.max(age);
    }

    /// How many there are.
    pub(crate) fn count(self) -> f64 {
        number(self.count)
    }

    /// The age of the oldest, in seconds.
    pub(crate) fn oldest(self) -> f64 {
        self.oldest.as_secs_f64()
    }
}

/// A count as a gauge shows it.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
