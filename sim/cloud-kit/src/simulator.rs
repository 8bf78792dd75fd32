//! The frame that every simulator has: its first settings, and what runs around its state.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::dataplane::{self, Carrier, Following};
use crate::faults::Faults;
use crate::journal::Journal;
use crate::seed::Seed;
use crate::serve::{self, Server};
use crate::service::{Cloud, CloudService};
use crate::shared::Shared;

/// Settings that every simulator has. [`Default`] is for tests: a fixed start of time, no waiting, no traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Where ids come from.
    pub seed: u64,
    /// Wall time; [`Clock::default`], which starts at a fixed time, if absent.
    pub clock: Option<Clock>,
    /// The time that passes before each request is carried out.
    pub latency: Duration,
    /// Whether addresses carry traffic.
    pub data_plane: bool,
}

impl Settings {
    /// Makes the state, shares it, and puts its API behind a service. Needs a tokio runtime, whose clock it follows.
    pub fn start<S: Carrier, A: Cloud>(
        self,
        state: impl FnOnce(Seed, Clock) -> S,
        api: impl FnOnce(Shared<S>) -> A,
    ) -> (Shared<S>, Running) {
        let clock = self.clock.unwrap_or_default();
        let shared = Shared::new(state(Seed::new(self.seed), clock));
        let service = CloudService::new(api(shared.clone()), clock);
        service.set_latency(self.latency);
        let traffic = || Arc::new(dataplane::follow(shared.clone()));
        let running = Running {
            service,
            _traffic: self.data_plane.then(traffic),
        };
        (shared, running)
    }
}

/// A simulated API with its journal, its faults and, if wished for, its data plane, which ends with the last clone.
#[derive(Clone)]
pub struct Running {
    service: CloudService,
    /// Held for its end only.
    _traffic: Option<Arc<Following>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// The API as an in-memory `tower::Service`.
    pub fn service(&self) -> CloudService {
        self.service.clone()
    }

    /// Serves the API on a socket until the answer is stopped or dropped.
    ///
    /// # Errors
    ///
    /// If the listener has no local address.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Server> {
        serve::serve(listener, self.service())
    }

    /// The record of every request.
    pub fn journal(&self) -> &Journal {
        self.service.journal()
    }

    /// The fault rules.
    pub fn faults(&self) -> &Faults {
        self.service.faults()
    }
}
