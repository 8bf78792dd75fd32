//! The series of the controllers, by the names and buckets of the Go managers, and those of our own.

pub mod gauges;
mod ipam;
mod measurements;
mod probes;

use bowline_plan::{Answer, Lane};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::time::Instant;

use crate::queue::QueueMetrics;
pub use ipam::{IpamLabels, IpamMetrics};
pub use measurements::Measurements;
pub use probes::{Probes, Readings};

/// Seconds from the creation of a Node: each bucket four times the one before.
const NODE_BUCKETS: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];
/// Seconds of work on balancers: each bucket twice the one before.
const BALANCER_BUCKETS: [f64; 15] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
];

/// Seconds from a change of a Service, or of the Nodes behind it, to the end of the work on it: from a cloud that answers
/// at once to one that builds for half an hour.
const SETTLE_BUCKETS: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1800.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SyncLabels {
    operation: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SkipLabels {
    controller: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    outcome: &'static str,
    trigger: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabels {
    lane: String,
}

type LaneHistograms = Family<LaneLabels, Histogram, fn() -> Histogram>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GuardLabels {
    guard: &'static str,
}

/// Something that keeps the manager from doing what it would do else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A Node is not deleted: the credentials see no instance of any ready Node.
    NodeDeletionFrozen,
    /// A Node is not deleted yet: many were a short time ago.
    NodeDeletionThrottled,
}

impl Guard {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NodeDeletionFrozen, Self::NodeDeletionThrottled];

    /// The value of the label `guard`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeDeletionFrozen => "node-deletion-frozen",
            Self::NodeDeletionThrottled => "node-deletion-throttled",
        }
    }
}

/// A trip must be seen as a step from 0, not as a series that begins with 1.
fn never_tripped() -> Family<GuardLabels, Counter> {
    let trips = Family::<GuardLabels, Counter>::default();
    for guard in Guard::ALL {
        trips
            .get_or_create(&GuardLabels { guard: guard.name() })
            .inc_by(0);
    }
    trips
}

bowline_plan::series! {
    /// The series of the controllers. Clones share them.
    pub struct ControllerMetrics {
        /// Seconds from the creation of a Node to the removal of the taint it waits with.
        pub taint_removal_delay_seconds: Histogram = Histogram::new(NODE_BUCKETS),
            "node_controller_cloud_provider_taint_removal_delay_seconds", "[ALPHA] Time from the creation of a Node to the removal of its uninitialized taint";
        /// Seconds from the creation of a Node to the end of its initialisation.
        pub initial_node_sync_delay_seconds: Histogram = Histogram::new(NODE_BUCKETS),
            "node_controller_initial_node_sync_delay_seconds", "[ALPHA] Time from the creation of a Node to the end of its initialisation";
        /// Balancers brought up to date because Nodes changed.
        pub loadbalancer_sync_total: Counter = Counter::default(),
            "service_controller_loadbalancer_sync", "[ALPHA] Load balancers brought up to date because Nodes changed";
        /// Balancers for which that failed.
        pub nodesync_error_total: Counter = Counter::default(),
            "service_controller_nodesync_error", "[ALPHA] Load balancers that could not be brought up to date after Nodes changed";
        /// Seconds of one pass over all Services after Nodes changed.
        pub nodesync_latency_seconds: Histogram = Histogram::new(BALANCER_BUCKETS),
            "service_controller_nodesync_latency_seconds", "[ALPHA] Time of one pass over all Services after Nodes changed";
        /// Seconds of bringing one balancer up to date because Nodes changed.
        pub update_loadbalancer_host_latency_seconds: Histogram = Histogram::new(BALANCER_BUCKETS),
            "service_controller_update_loadbalancer_host_latency_seconds", "[ALPHA] Time of bringing one load balancer up to date after Nodes changed";
        /// Seconds of one pass over the Nodes that may be lost.
        pub monitor_nodes_duration_seconds: Histogram = Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds", "[ALPHA] Time of one pass over the Nodes that are not ready or were not a moment ago; one without any counts too";
        /// Nodes whose deletion is proved but frozen, because the credentials see no instance of a ready Node.
        pub node_deletions_frozen: Gauge = Gauge::default(),
            "node_deletions_frozen", "Nodes that are not deleted because the cloud reports that the instances of all ready Nodes do not exist: wrong credentials or project?";
        /// Nodes whose deletion is proved and waits for its turn.
        pub node_deletions_throttled: Gauge = Gauge::default(),
            "node_deletions_throttled", "Nodes that are not deleted yet because many were deleted a short time ago";
        /// Nodes that are ready, and have no instance.
        pub nodes_without_instance: Gauge = Gauge::default(),
            "nodes_without_instance", "Nodes that are ready and whose instance the cloud did not show at the last two periodic passes; they are not deleted";
        /// Seconds from a change to a settled balancer.
        pub settle_duration_seconds: Histogram = Histogram::new(SETTLE_BUCKETS),
            "load_balancer_settle_duration_seconds", "Time from a change of a Service or of the Nodes behind it to a load balancer that is as it should be";
        instance_calls: Family<SyncLabels, Counter> = Family::default(),
            "cloud_node_lifecycle_controller_cloud_provider_calls", "[ALPHA] Answers about the instances of Nodes that are not ready, by operation and result. One request to the cloud can answer many";
        nodes_passed_over: Family<SkipLabels, Counter> = Family::default(),
            "cloudprovider_node_ownership_skipped", "[ALPHA] Times that a Node was passed over because it is not this manager's, by controller and reason";
        route_syncs: Family<RouteLabels, Counter> = Family::default(),
            "route_controller_route_sync", "[ALPHA] Route reconciliations ended, by outcome (error if the routes could not be read, changed if one was created or deleted, else noop) and trigger (node_change or periodic)";
        plans: Family<ResultLabels, Counter> = Family::default(),
            "load_balancer_plans", "Plans made for load balancers and for background work, by what they answered: apply, settled, wait, refused";
        syncs: Family<SyncLabels, Counter> = Family::default(),
            "load_balancer_syncs", "Syncs of single load balancers, by operation (ensure, update, delete) and result (settled, waiting, interrupted, conflict, failed)";
        lane_waits: LaneHistograms = Family::new_with_constructor(|| Histogram::new(SETTLE_BUCKETS)),
            "load_balancer_lane_wait_duration_seconds", "Time that steps of plans waited because a step of another Service was writing to the same object, by kind of object; steps that found it free are not counted";
        lane_waiting: Family<LaneLabels, Gauge> = Family::default(),
            "load_balancer_lane_waiting", "Steps of plans that wait now because a step of another Service is writing to the same object, by kind of object";
        guard_trips: Family<GuardLabels, Counter> = never_tripped(),
            "guard_trips", "Times that a guard began to hold something back, by guard";
    }
    with {
        /// Node IPAM's.
        pub ipam: IpamMetrics;
        /// What the provider counts.
        pub measurements: Measurements;
        /// Gauges that are worked out at a scrape.
        pub probes: Probes;
        /// The series of the work queues.
        pub queues: QueueMetrics;
    }
}

/// A wait for a lane.
#[derive(Debug)]
pub struct LaneWait {
    begun: Instant,
    waiting: Gauge,
    waits: Histogram,
}

impl Drop for LaneWait {
    // In drop, so that a wait that is given up is counted as well.
    fn drop(&mut self) {
        self.waiting.dec();
        self.waits.observe(self.begun.elapsed().as_secs_f64());
    }
}

impl ControllerMetrics {
    /// Counts a plan by what it answered.
    pub fn planned<S, R>(&self, answer: &Answer<S, R>) {
        let result = match answer {
            Answer::Apply(_) => "apply",
            Answer::Settled(_) => "settled",
            Answer::Wait { .. } | Answer::LookAgain { .. } => "wait",
            Answer::Refused(_) => "refused",
        };
        self.plans.get_or_create(&ResultLabels { result }).inc();
    }

    /// Counts a sync of one balancer.
    pub fn synced(&self, operation: &'static str, result: &'static str) {
        self.syncs.get_or_create(&SyncLabels { operation, result }).inc();
    }

    /// Counts what was learned about the instance of a Node that is not ready.
    pub fn instance_asked(&self, operation: &'static str, result: &'static str) {
        let labels = SyncLabels { operation, result };
        self.instance_calls.get_or_create(&labels).inc();
    }

    /// Counts that a Node was passed over because it is another manager's.
    pub fn node_passed_over(&self, controller: &'static str, reason: &'static str) {
        let labels = SkipLabels { controller, reason };
        self.nodes_passed_over.get_or_create(&labels).inc();
    }

    /// Counts a route reconciliation that has ended.
    pub fn route_synced(&self, outcome: &'static str, trigger: &'static str) {
        self.route_syncs
            .get_or_create(&RouteLabels { outcome, trigger })
            .inc();
    }

    /// Measures a wait for a lane, until what is answered is dropped.
    #[must_use]
    pub fn waits_for(&self, lane: &Lane) -> LaneWait {
        let labels = LaneLabels {
            lane: lane.kind().to_owned(),
        };
        let waiting = self.lane_waiting.get_or_create_owned(&labels);
        waiting.inc();
        LaneWait {
            begun: Instant::now(),
            waiting,
            waits: self.lane_waits.get_or_create_owned(&labels),
        }
    }

    /// How often a guard has begun to hold something back.
    #[must_use]
    pub fn guard_trips(&self, guard: Guard) -> u64 {
        self.guard_trips
            .get_or_create(&GuardLabels { guard: guard.name() })
            .get()
    }

    /// Counts that a guard has begun to hold something back.
    pub fn guard_tripped(&self, guard: Guard) {
        let labels = GuardLabels { guard: guard.name() };
        self.guard_trips.get_or_create(&labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn the_series_have_the_names_and_buckets_of_the_go_managers() {
        let metrics = ControllerMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.taint_removal_delay_seconds.observe(20.0);
        metrics.nodesync_error_total.inc();
        metrics.monitor_nodes_duration_seconds.observe(0.003);
        metrics.instance_asked("instance_exists", "instance_not_found");
        metrics.route_synced("changed", "node_change");
        metrics.node_deletions_frozen.set(2);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "node_controller_cloud_provider_taint_removal_delay_seconds_bucket{le=\"16.0\"} 0",
            "node_controller_cloud_provider_taint_removal_delay_seconds_bucket{le=\"64.0\"} 1",
            "node_controller_initial_node_sync_delay_seconds_bucket{le=\"1024.0\"} 0",
            "service_controller_loadbalancer_sync_total 0",
            "service_controller_nodesync_error_total 1",
            "service_controller_nodesync_latency_seconds_bucket{le=\"16384.0\"} 0",
            "service_controller_update_loadbalancer_host_latency_seconds_count 0",
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_bucket{le=\"0.002\"} 0",
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_bucket{le=\"0.004\"} 1",
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_bucket{le=\"16.384\"} 1",
            "cloud_node_lifecycle_controller_cloud_provider_calls_total{operation=\"instance_exists\",result=\"instance_not_found\"} 1",
            "route_controller_route_sync_total{outcome=\"changed\",trigger=\"node_change\"} 1",
            "node_deletions_frozen 2",
            "node_deletions_throttled 0",
            "nodes_without_instance 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
