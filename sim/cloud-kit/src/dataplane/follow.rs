//! Keeping a data plane as a simulator's state says.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Config, DataPlane, HealthChange, Transport};
use crate::simulator::{Shared, Simulated};

/// Where a listener can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// What it carries.
    pub transport: Transport,
    /// Where it should be.
    #[serde(rename = "listener")]
    pub wanted: SocketAddr,
    /// Where it is.
    #[serde(rename = "bound")]
    pub actual: SocketAddr,
}

impl Bound {
    /// Where the listener can be reached that should be at `wanted`.
    pub fn find(all: &[Self], transport: Transport, wanted: SocketAddr) -> Option<SocketAddr> {
        let fits = |it: &&Self| (it.transport, it.wanted) == (transport, wanted);
        all.iter().find(fits).map(|it| it.actual)
    }
}

/// A state that says what is carried.
pub trait Carrier: Simulated {
    /// What should be carried now, and the moment at which the clock alone changes that.
    fn wanted(&self) -> (Config, Option<Instant>);

    /// Where the listeners are. Written each time after what was wanted is there.
    fn bound(&mut self) -> &mut Vec<Bound>;

    /// Takes note of a member's health.
    fn heard(&mut self, _change: HealthChange) {}
}

/// The task of [`follow`]. It ends, and everything is closed, when this is dropped.
pub struct Following(JoinHandle<()>);

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").finish_non_exhaustive()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a data plane that follows a simulator's state until the answer is dropped.
pub fn follow(shared: Shared<impl Carrier>) -> Following {
    Following(tokio::spawn(run(shared)))
}

async fn run(shared: Shared<impl Carrier>) {
    let ears = shared.clone();
    let plane = DataPlane::new(Arc::new(move |change| ears.read().heard(change)));
    let changed = shared.changed();
    loop {
        let (config, next) = shared.read().wanted();
        plane.apply(config).await;
        // Not `write`: that would ring for the data plane again.
        *shared.read().bound() = plane.bound();
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = until(next) => {}
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
