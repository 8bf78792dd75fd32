//! What somebody does by hand behind the manager's back. None of it is in the journal.

use uuid::Uuid;

use super::CloudscaleSim;
use crate::behaviour::MonitorStatus;
use crate::model::{Algorithm, LoadBalancer, Member, Pool, PoolProtocol, Tags, Target};
use crate::state::State;

/// A pool for [`CloudscaleSim::add_pool`].
#[derive(Clone, Debug)]
pub struct ManualPool {
    /// The load balancer.
    pub load_balancer: Uuid,
    /// Its name.
    pub name: String,
    /// How it spreads connections.
    pub algorithm: Algorithm,
    /// What its members get.
    pub protocol: PoolProtocol,
}

impl ManualPool {
    /// A `round_robin` pool for `tcp`.
    pub fn new(load_balancer: Uuid, name: impl Into<String>) -> Self {
        let (algorithm, protocol) = (Algorithm::RoundRobin, PoolProtocol::Tcp);
        Self {
            load_balancer,
            name: name.into(),
            algorithm,
            protocol,
        }
    }
}

impl CloudscaleSim {
    /// Enables or disables a member.
    pub fn set_member_enabled(&self, uuid: Uuid, enabled: bool) {
        self.edit_member(uuid, |member| member.enabled = enabled);
    }

    /// Fixes what a member's monitor says; `None` goes back to the probes.
    pub fn set_monitor_status(&self, uuid: Uuid, status: Option<MonitorStatus>) {
        self.edit_member(uuid, |member| member.monitor_status = status);
    }

    /// Changes a member in any way.
    pub fn edit_member(&self, uuid: Uuid, change: impl FnOnce(&mut Member)) {
        self.write(|state| state.members.get_mut(&uuid).map(change));
    }

    /// Adds a second member that equals another one but for its id.
    pub fn duplicate_member(&self, uuid: Uuid) -> Option<Uuid> {
        self.write(|state| {
            let twin = Member {
                uuid: state.seed.uuid(),
                ..state.members.get(&uuid)?.clone()
            };
            Some(insert_member(state, twin))
        })
    }

    /// Removes a member.
    pub fn delete_member(&self, uuid: Uuid) -> bool {
        self.write(|state| state.members.shift_remove(&uuid).is_some())
    }

    /// Adds an empty pool.
    pub fn add_pool(&self, pool: ManualPool) -> Uuid {
        self.write(|state| {
            let uuid = state.seed.uuid();
            let ManualPool {
                load_balancer,
                name,
                algorithm,
                protocol,
            } = pool;
            let created_at = state.clock.rfc3339_micros();
            let pool = Pool {
                uuid,
                name,
                created_at,
                load_balancer,
                algorithm,
                protocol,
                tags: Tags::new(),
            };
            state.pools.insert(uuid, pool);
            uuid
        })
    }

    /// Removes a pool with its members, monitors and listeners.
    pub fn delete_pool(&self, uuid: Uuid) {
        self.write(|state| {
            state.listeners.retain(|_, listener| listener.pool != Some(uuid));
            state.remove_pool(uuid);
        });
    }

    /// Removes a listener.
    pub fn delete_listener(&self, uuid: Uuid) -> bool {
        self.write(|state| state.listeners.shift_remove(&uuid).is_some())
    }

    /// Takes a listener's pool away.
    pub fn detach_listener(&self, uuid: Uuid) {
        self.write(|state| {
            if let Some(listener) = state.listeners.get_mut(&uuid) {
                listener.pool = None;
            }
        });
    }

    /// Removes a health monitor.
    pub fn delete_health_monitor(&self, uuid: Uuid) -> bool {
        self.write(|state| state.monitors.shift_remove(&uuid).is_some())
    }

    /// Adds a running load balancer with automatic addresses and no parts.
    ///
    /// # Panics
    ///
    /// If the address ranges are used up.
    pub fn add_load_balancer(&self, name: impl Into<String>, tags: Tags) -> Uuid {
        self.write(|state| {
            let home = state.home;
            let vips = [home.vip_v4, home.public_v6].map(|subnet| match state.allocate(subnet) {
                Ok(vip) => vip,
                Err(error) => panic!("no address for a load balancer: {}", error.texts()),
            });
            let uuid = state.seed.uuid();
            let balancer = LoadBalancer {
                uuid,
                name: name.into(),
                created_at: state.clock.rfc3339_micros(),
                zone: state.options.default_zone().to_owned(),
                flavor: "lb-standard".to_owned(),
                vips: vips.into(),
                tags,
                creating_until: None,
                changing_until: None,
                deleted_at: None,
                status: None,
            };
            state.load_balancers.insert(uuid, balancer);
            uuid
        })
    }

    /// Removes a load balancer with all its parts.
    pub fn delete_load_balancer(&self, uuid: Uuid) {
        self.write(|state| state.remove_load_balancer(uuid));
    }

    /// Fixes a load balancer's status; `None` goes back to what its parts say.
    pub fn set_load_balancer_status(&self, uuid: Uuid, status: Option<&str>) {
        self.edit_load_balancer(uuid, |balancer| balancer.status = status.map(str::to_owned));
    }

    /// Sets a load balancer's labels.
    pub fn tag_load_balancer(&self, uuid: Uuid, tags: Tags) {
        self.edit_load_balancer(uuid, |balancer| balancer.tags = tags);
    }

    /// Changes a load balancer in any way.
    pub fn edit_load_balancer(&self, uuid: Uuid, change: impl FnOnce(&mut LoadBalancer)) {
        self.write(|state| state.load_balancers.get_mut(&uuid).map(change));
    }

    /// Points a floating IP somewhere else, or nowhere.
    pub fn assign_floating_ip(&self, address: std::net::IpAddr, target: Option<Target>) {
        self.write(|state| {
            if let Some(floating) = state.floating_ips.get_mut(&address) {
                floating.target = target;
            }
        });
    }
}

fn insert_member(state: &mut State, member: Member) -> Uuid {
    let uuid = member.uuid;
    state.members.insert(uuid, member);
    uuid
}
