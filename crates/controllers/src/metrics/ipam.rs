//! The series of node IPAM, by the names of the Go managers.

use std::fmt::Display;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Blocks that were passed over to find a free one.
const TRIES_BUCKETS: [f64; 5] = [1.0, 5.0, 25.0, 125.0, 625.0];

/// A pod network of the cluster, as a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(non_snake_case, reason = "the name of the label")]
pub struct IpamLabels {
    clusterCIDR: String,
}

impl IpamLabels {
    /// The labels of a network.
    #[must_use]
    pub fn of(network: &impl Display) -> Self {
        Self {
            clusterCIDR: network.to_string(),
        }
    }
}

bowline_plan::series! {
    /// The series of node IPAM, by pod network of the cluster. Clones share them.
    pub struct IpamMetrics {
        /// Blocks taken.
        pub allocations: Family<IpamLabels, Counter> = Family::default(),
            "node_ipam_controller_cidrset_cidrs_allocations", "[ALPHA] Node networks taken, by pod network of the cluster";
        /// Blocks freed.
        pub releases: Family<IpamLabels, Counter> = Family::default(),
            "node_ipam_controller_cidrset_cidrs_releases", "[ALPHA] Node networks freed, by pod network of the cluster";
        /// Blocks that there are.
        pub blocks: Family<IpamLabels, Gauge> = Family::default(),
            "node_ipam_controller_cirdset_max_cidrs", "[ALPHA] Node networks that fit into a pod network of the cluster";
        /// The share of them that is taken.
        pub usage: Family<IpamLabels, Gauge<f64, AtomicU64>> = Family::default(),
            "node_ipam_controller_cidrset_usage_cidrs", "[ALPHA] Share of the node networks that is taken, by pod network of the cluster";
        /// Taken blocks that were passed over to find a free one.
        pub tries: Family<IpamLabels, Histogram, fn() -> Histogram> = Family::new_with_constructor(|| Histogram::new(TRIES_BUCKETS)),
            "node_ipam_controller_cidrset_allocation_tries_per_request", "[ALPHA] Taken node networks that were passed over to find a free one";
    }
}
