//! Keeping a data plane as a simulator's state says.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Config, DataPlane, HealthChange, Transport};

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

/// A simulator whose state says what is carried.
pub trait Carrier: Send + Sync + 'static {
    /// What should be carried now, and the moment at which the clock alone changes that.
    fn wanted(&self) -> (Config, Option<Instant>);

    /// Takes note of where the listeners are. Called each time after what was wanted is there.
    fn bound(&self, bound: Vec<Bound>);

    /// Takes note of a member's health. Must not block.
    fn heard(&self, _change: HealthChange) {}

    /// Rung after each change of the state.
    fn changed(&self) -> Arc<Notify>;
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
pub fn follow(carrier: impl Carrier) -> Following {
    Following(tokio::spawn(run(Arc::new(carrier))))
}

async fn run(carrier: Arc<impl Carrier>) {
    let ears = Arc::clone(&carrier);
    let plane = DataPlane::new(Arc::new(move |change| ears.heard(change)));
    let changed = carrier.changed();
    loop {
        let (config, next) = carrier.wanted();
        plane.apply(config).await;
        carrier.bound(plane.bound());
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
