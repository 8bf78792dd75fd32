//! Who announces which address: what kube-vip does on real servers.

use std::net::IpAddr;

use bowline_cloud_kit::dataplane::Transport;
use serde::{Deserialize, Serialize};

/// An address that a node announces, so that its traffic arrives there.
///
/// As on a real network, it carries only while the address is a usable one of a block that is attached to a public
/// network, and while the node's server is a member of that network and powered on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// The address, as in a Service's `spec.loadBalancerIP`.
    pub address: IpAddr,
    /// The hostname of the announcing server.
    pub node: String,
    /// Where traffic goes on that server.
    pub ports: Vec<AnnouncedPort>,
}

/// A port of an [`Announcement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncedPort {
    /// What is carried.
    pub transport: Transport,
    /// The port that clients use.
    pub port: u16,
    /// The port of the server's private address that it is forwarded to.
    pub node_port: u16,
}
