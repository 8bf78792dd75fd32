//! Keeping a data plane as a simulator's state says.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Config, DataPlane, HealthChange, MemberConfig, Transport};
use crate::shared::{Shared, Simulated};

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

/// Where members really are that cannot be bound at their own place: on machines whose loopback interface has no other
/// address than 127.0.0.1.
#[derive(Clone, Debug, Default)]
pub struct Moved(BTreeMap<(Transport, SocketAddr), SocketAddr>);

impl Moved {
    /// Sends what is meant for a place to another one.
    pub fn set(&mut self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.0.insert((transport, wanted), actual);
    }

    /// A member that is on, where it really is. A port for probes that is another one than the port for traffic is one
    /// for health checks, which are TCP.
    pub fn member(
        &self,
        transport: Transport,
        address: IpAddr,
        port: u16,
        probed: Option<u16>,
    ) -> MemberConfig {
        let place = |transport, port| {
            let wanted = SocketAddr::new(address, port);
            self.0.get(&(transport, wanted)).copied().unwrap_or(wanted)
        };
        let traffic = place(transport, port);
        let probed = match probed {
            Some(other) if other != port => place(Transport::Tcp, other),
            _ => traffic,
        };
        MemberConfig {
            address: traffic.ip(),
            port: traffic.port(),
            monitor_port: probed.port(),
            enabled: true,
        }
    }
}

/// A state that says what is carried.
pub trait Carrier: Simulated {
    /// The type of its switches.
    type Behaviour: Serialize + DeserializeOwned;

    /// What should be carried now, and the moment at which the clock alone changes that.
    fn wanted(&self) -> (Config, Option<Instant>);

    /// The switches.
    fn behaviour(&mut self) -> &mut Self::Behaviour;

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
