//! Building a simulator.

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::options::{Access, Flavor, Options};
use crate::sim::CloudscaleSim;
use crate::state::State;

bowline_cloud_kit::builder!(Builder makes CloudscaleSim);

impl Builder {
    bowline_cloud_kit::setters! {
        /// The base of all links, without a slash at the end. Default: as the caller named the host.
        base_url(base_url: impl Into<String>) options.base_url = Some(base_url.into());
        /// The range of the servers' private addresses. Default: 10.20.0.0/16.
        private_range(range: IpNet) options.private = range.trunc();
        /// The range of the load balancers' public IPv4 addresses. Default: 198.19.0.0/16.
        vip_range(range: IpNet) options.vip_v4 = range.trunc();
        /// The range of floating IPv4 addresses. Default: 198.51.100.0/24.
        floating_range(range: IpNet) options.floating_v4 = range.trunc();
    }

    /// Accepts this token, and from now on no unknown ones. Without any, every token that is not empty is good.
    pub fn token(mut self, token: impl Into<String>, access: Access) -> Self {
        self.options.tokens.set(token.into(), access);
        self
    }

    /// Zone slugs, the default one first. Default: `rma1`, `lpg1`.
    pub fn zones<Z: Into<String>>(mut self, zones: impl IntoIterator<Item = Z>) -> Self {
        self.options.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a server flavor.
    pub fn flavor(mut self, flavor: Flavor) -> Self {
        self.options.flavors.push(flavor);
        self
    }

    /// Makes the load balancers carry traffic, see [`bowline_cloud_kit::dataplane`]. Default: no.
    ///
    /// Moves the ranges of load balancers, servers' private addresses and floating IPs into the loopback range
    /// (127.77.0.0/16, 127.78.0.0/16 and 127.79.0.0/16), so that all of them can be bound. Ranges set after this call win.
    /// Not for a paused clock: sockets do not wait for it. It lasts as long as a clone of the simulator lives.
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.vip_range(v4_range([127, 77, 0, 0], 16))
            .private_range(v4_range([127, 78, 0, 0], 16))
            .floating_range(v4_range([127, 79, 0, 0], 16))
    }
}
