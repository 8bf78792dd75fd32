//! A layer 4 load balancer that carries real traffic on the loopback interface.
//!
//! A simulator describes what should be there as a [`Config`] and hands it over whenever it changes; [`DataPlane::apply`]
//! touches only what is different. Connections live as long as their listener: a change of pool, members, monitor or
//! rules matters to new connections only, as after a soft reload of a real balancer.
//!
//! Listeners are bound to loopback addresses only. One that cannot be bound where it should be, because its address is
//! not a loopback one, its port is taken or it needs a privilege, is bound to a free port instead, and
//! [`DataPlane::bound_address`] says where. Members outside the loopback range are never dialled and count as down.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

mod bind;
mod config;
mod follow;
mod monitor;
mod pool;
mod probe;
mod proxy;
mod tcp;
mod udp;

pub use config::{
    Algorithm, Config, ListenerConfig, MemberConfig, MonitorConfig, PoolConfig, Probe, ProxyVersion,
    Timeouts, Transport, codes,
};

pub use follow::{Bound, Carrier, Following, Moved, follow};

use pool::PoolState;

/// A member changed its health, or was probed for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    /// The pool's id.
    pub pool: String,
    /// The member's id.
    pub member: String,
    /// Whether it is up now.
    pub up: bool,
}

/// Called on every [`HealthChange`], from a task of the data plane. Must not block.
pub type OnHealth = Arc<dyn Fn(HealthChange) + Send + Sync>;

/// Where a listener should be.
type Place = (Transport, SocketAddr);

/// The running data plane. Dropping it closes everything at once.
pub struct DataPlane {
    shared: Arc<Shared>,
    on_health: OnHealth,
    /// Serialises [`DataPlane::apply`].
    running: tokio::sync::Mutex<Running>,
}

/// What tasks look at for each new connection.
#[derive(Default)]
struct Shared {
    pools: Mutex<BTreeMap<String, Arc<PoolState>>>,
    listeners: Mutex<BTreeMap<Place, (Arc<ListenerConfig>, SocketAddr)>>,
}

impl Shared {
    fn pools(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PoolState>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, BTreeMap<Place, (Arc<ListenerConfig>, SocketAddr)>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rules for new connections of a listener and its pool, if it has both.
    fn target(&self, place: Place) -> Option<(Arc<ListenerConfig>, Arc<PoolState>)> {
        let rules = Arc::clone(&self.listeners().get(&place)?.0);
        let pool = self.pools().get(rules.pool.as_deref()?).cloned()?;
        Some((rules, pool))
    }
}

#[derive(Default)]
struct Running {
    listeners: BTreeMap<Place, Task>,
    monitors: BTreeMap<(String, String), (monitor::Watch, Task)>,
}

/// A task that ends with its handle.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for DataPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataPlane")
            .field("listeners", &self.bound())
            .finish_non_exhaustive()
    }
}

impl DataPlane {
    /// An empty data plane.
    pub fn new(on_health: OnHealth) -> Self {
        Self {
            shared: Arc::default(),
            on_health,
            running: tokio::sync::Mutex::default(),
        }
    }

    /// Makes the data plane as `config` says. When it answers, new listeners accept and removed ones do not.
    ///
    /// # Cancellation
    ///
    /// May be cancelled; what was not done yet is done by the next call.
    pub async fn apply(&self, config: Config) {
        let mut running = self.running.lock().await;
        self.apply_pools(&mut running, config.pools);
        self.apply_listeners(&mut running, config.listeners).await;
    }

    fn apply_pools(&self, running: &mut Running, wanted: BTreeMap<String, PoolConfig>) {
        let watches = monitor::watches(&wanted);
        // Watches that differ start anew, from what the old ones found.
        running
            .monitors
            .retain(|key, (watch, _)| watches.get(key) == Some(watch));
        let mut pools = self.shared.pools();
        pools.retain(|id, _| wanted.contains_key(id));
        for (id, config) in wanted {
            match pools.get(&id) {
                Some(pool) => pool.replace(config),
                None => {
                    pools.insert(id, Arc::new(PoolState::new(config)));
                }
            }
        }
        for (key, watch) in watches {
            if running.monitors.contains_key(&key) {
                continue;
            }
            let Some(pool) = pools.get(&key.0) else { continue };
            let (pool, on_health) = (Arc::clone(pool), Arc::clone(&self.on_health));
            let watching = monitor::run(key.clone(), watch.clone(), pool, on_health);
            running
                .monitors
                .insert(key, (watch, Task(tokio::spawn(watching))));
        }
    }

    async fn apply_listeners(&self, running: &mut Running, wanted: Vec<ListenerConfig>) {
        let wanted: BTreeMap<Place, Arc<ListenerConfig>> = wanted
            .into_iter()
            .map(|it| ((it.transport, SocketAddr::new(it.address, it.port)), Arc::new(it)))
            .collect();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut running.listeners)
            .into_iter()
            .partition(|(place, _)| wanted.contains_key(place));
        running.listeners = kept;
        for mut task in gone.into_values() {
            task.0.abort();
            // Waits until its socket is closed; an aborted task is what is expected.
            let _ = (&mut task.0).await;
        }
        self.shared
            .listeners()
            .retain(|place, _| wanted.contains_key(place));
        for (place, rules) in wanted {
            if running.listeners.contains_key(&place) {
                if let Some(entry) = self.shared.listeners().get_mut(&place) {
                    entry.0 = rules;
                }
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let started = match place.0 {
                Transport::Tcp => bind::tcp(place.1)
                    .await
                    .map(|(socket, bound)| (bound, tokio::spawn(tcp::listen(socket, place, shared)))),
                Transport::Udp => bind::udp(place.1)
                    .await
                    .map(|(socket, bound)| (bound, tokio::spawn(udp::listen(socket, place, shared)))),
            };
            match started {
                Ok((bound, task)) => {
                    self.shared.listeners().insert(place, (rules, bound));
                    running.listeners.insert(place, Task(task));
                }
                Err(error) => tracing::warn!(listener = %place.1, err = %error, "Listener not bound"),
            }
        }
    }

    /// Where the TCP listener that should be at `address` and `port` can be reached.
    pub fn bound_address(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        self.bound_to(Transport::Tcp, address, port)
    }

    /// Where a listener that should be at `address` and `port` can be reached.
    pub fn bound_to(&self, transport: Transport, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let listeners = self.shared.listeners();
        listeners
            .get(&(transport, SocketAddr::new(address, port)))
            .map(|(_, bound)| *bound)
    }

    /// All listeners.
    pub fn bound(&self) -> Vec<Bound> {
        self.shared
            .listeners()
            .iter()
            .map(|(&(transport, wanted), &(_, actual))| Bound {
                transport,
                wanted,
                actual,
            })
            .collect()
    }

    /// Whether a monitored member is up; `None` without a monitor or before the first probe.
    ///
    /// A member that was in use when its pool got a monitor counts as up until its probes say otherwise.
    pub fn health(&self, pool: &str, member: &str) -> Option<bool> {
        self.shared.pools().get(pool)?.health(member)
    }

    /// Closes everything and waits for that.
    pub async fn shut_down(self) {
        self.apply(Config::default()).await;
    }
}
