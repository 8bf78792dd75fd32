//! Building a simulator.

use std::time::Duration;

use bowline_cloud_kit::addresses::v4_range;
use bowline_cloud_kit::{Clock, Running, Seed, Settings, Shared};
use ipnet::IpNet;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::options::{Options, UserSpec};
use crate::sim::CloudstackSim;
use crate::state::State;

/// Settings of a new simulator. Everything has a default.
#[derive(Debug, Default)]
pub struct Builder {
    options: Options,
    behaviour: Behaviour,
    settings: Settings,
}

impl Builder {
    /// All common settings at once, those that were set before included.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        let data_plane = settings.data_plane;
        let builder = Self { settings, ..self };
        if data_plane { builder.data_plane() } else { builder }
    }

    /// Adds a user. Without any, there is an ordinary one of the account `team` with [`CloudstackSim::API_KEY`] and
    /// [`CloudstackSim::SECRET_KEY`]. The first user's account owns what names no owner.
    #[must_use]
    pub fn user(mut self, user: UserSpec) -> Self {
        self.options.users.push(user);
        self
    }

    /// Where ids come from. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Wall time. Default: [`Clock::default`], which starts at a fixed time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// The time that passes before each request is carried out. Default: none.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.settings.latency = latency;
        self
    }

    /// The switches to begin with.
    #[must_use]
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// The server's version, see [`Behaviour::version`]. Default: `4.22.0.0`.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.behaviour.version = version.into();
        self
    }

    /// The name of the zone. Default: `Zurich-1`.
    #[must_use]
    pub fn zone(mut self, name: impl Into<String>) -> Self {
        self.options.zone = name.into();
        self
    }

    /// The range of the first network. Default: 10.1.0.0/16.
    #[must_use]
    pub fn guest_range(mut self, range: IpNet) -> Self {
        self.options.guest = range.trunc();
        self
    }

    /// The range of public addresses. Default: 203.0.113.0/24.
    #[must_use]
    pub fn public_range(mut self, range: IpNet) -> Self {
        self.options.public = range.trunc();
        self
    }

    /// Makes load balancer rules carry traffic, see [`bowline_cloud_kit::dataplane`]. Default: no.
    ///
    /// Moves the ranges of public and of virtual machines' addresses into the loopback range (127.77.0.0/24 and
    /// 127.78.0.0/16), so that all of them can be bound. Ranges set after this call win. Not for a paused clock: sockets
    /// do not wait for it. It lasts as long as a clone of the simulator lives.
    #[must_use]
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.public_range(v4_range([127, 77, 0, 0], 24))
            .guest_range(v4_range([127, 78, 0, 0], 16))
    }

    /// Builds it. Needs a tokio runtime, whose clock it follows.
    pub fn build(self) -> CloudstackSim {
        let clock = self.settings.clock.unwrap_or_default();
        let seed = Seed::new(self.settings.seed);
        let shared = Shared::new(State::new(self.options, self.behaviour, seed, clock));
        let api = Api {
            shared: shared.clone(),
        };
        CloudstackSim {
            shared,
            running: Running::start(self.settings, clock, api),
        }
    }
}
