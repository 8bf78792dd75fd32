//! Building a simulator.

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::options::{Options, Scope};
use crate::sim::PhoenixnapSim;
use crate::state::State;

bowline_cloud_kit::builder!(Builder makes PhoenixnapSim);

impl Builder {
    bowline_cloud_kit::setters! {
        /// The range of the servers' private addresses. Default: 10.10.0.0/16.
        private_range(range: IpNet) options.private = range.trunc();
    }

    /// Accepts these credentials, and from now on no unknown ones. Without any, every client that has a secret is good.
    pub fn credentials(
        mut self,
        client_id: impl Into<String>,
        secret: impl Into<String>,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        let scopes = scopes.into_iter().collect();
        self.options
            .credentials
            .set(client_id.into(), secret.into(), scopes);
        self
    }

    /// A path in front of all others, such as `/x`, for a base URL that has one. Default: none.
    pub fn prefix(mut self, prefix: &str) -> Self {
        let path = prefix.trim_matches('/');
        self.options.prefix = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        self
    }

    /// The range that the IPv4 blocks of all locations are cut from. Default: 198.19.0.0/16.
    pub fn block_range(mut self, range: IpNet) -> Self {
        self.options.share_out(range.trunc());
        self
    }

    /// The ranges that the blocks of one location are cut from; none for a location that has no blocks left.
    pub fn pool(mut self, location: impl Into<String>, ranges: impl IntoIterator<Item = IpNet>) -> Self {
        let ranges = ranges.into_iter().map(|range| range.trunc()).collect();
        self.options.pools.insert(location.into(), ranges);
        self
    }

    /// Makes announced addresses carry traffic, see [`crate::Announcement`]. Default: no.
    ///
    /// Moves the ranges of blocks and servers' private addresses into the loopback range (127.77.0.0/16 and
    /// 127.78.0.0/16), so that all of them can be bound. Ranges set after this call win. Not for a paused clock: sockets
    /// do not wait for it. It lasts as long as a clone of the simulator lives.
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.block_range(v4_range([127, 77, 0, 0], 16))
            .private_range(v4_range([127, 78, 0, 0], 16))
    }
}
