//! Building a simulator.

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::options::{Options, UserSpec};
use crate::sim::CloudstackSim;
use crate::state::State;

bowline_cloud_kit::builder!(Builder makes CloudstackSim);

impl Builder {
    bowline_cloud_kit::setters! {
        /// The server's version, see [`Behaviour::version`]. Default: `4.22.0.0`.
        version(version: impl Into<String>) behaviour.version = version.into();
        /// The name of the zone. Default: `Zurich-1`.
        zone(name: impl Into<String>) options.zone = name.into();
        /// The range of the first network. Default: 10.1.0.0/16.
        guest_range(range: IpNet) options.guest = range.trunc();
        /// The range of public addresses. Default: 203.0.113.0/24.
        public_range(range: IpNet) options.public = range.trunc();
    }

    /// Adds a user. Without any, there is an ordinary one of the account `team` with [`CloudstackSim::API_KEY`] and
    /// [`CloudstackSim::SECRET_KEY`]. The first user's account owns what names no owner.
    pub fn user(mut self, user: UserSpec) -> Self {
        self.options.users.push(user);
        self
    }

    /// Makes load balancer rules carry traffic, see [`bowline_cloud_kit::dataplane`]. Default: no.
    ///
    /// Moves the ranges of public and of virtual machines' addresses into the loopback range (127.77.0.0/24 and
    /// 127.78.0.0/16), so that all of them can be bound. Ranges set after this call win. Not for a paused clock: sockets
    /// do not wait for it. It lasts as long as a clone of the simulator lives.
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.public_range(v4_range([127, 77, 0, 0], 24))
            .guest_range(v4_range([127, 78, 0, 0], 16))
    }
}
