//! What a trial stands on: what is asked, and what each Node answered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bowline_cloud_provider::Node;

use crate::doctor::{Check, Outcome};

/// What is asked, and what is known of it.
pub(super) struct Ground<'a> {
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) heard: &'a Heard,
    /// The pods that are ready, each with its Node.
    pub(super) pods: BTreeMap<String, String>,
    /// Where the load balancer is.
    pub(super) address: SocketAddr,
}

/// What came of asking each Node.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) check: Check,
    /// Those that do not answer.
    pub(super) silent: Vec<String>,
}

impl Heard {
    /// Where to look when the load balancer does not answer.
    pub(super) fn remedy(&self) -> String {
        match (self.check.outcome, self.silent.as_slice()) {
            (Outcome::Failed, silent) => format!(
                "these Nodes do not answer either: {}. Look at kube-proxy and the network there first",
                silent.join(", ")
            ),
            (Outcome::Skipped, _) => "see whether a firewall or a security group is between you and the load balancer, or between that and the \
                                      Nodes; and what `explain` says of the members"
                .to_owned(),
            _ => "the Nodes answer, so look in between: a firewall or a security group at the load balancer or at the Nodes' ports; and what \
                  `explain` says of the members"
                .to_owned(),
        }
    }
}
