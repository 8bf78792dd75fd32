//! Load balancers by hand. None of it is in the journal.

use std::collections::BTreeSet;

use super::OpenstackSim;
use crate::model::Id;
use crate::model::balancing::{Forwarder, LoadBalancer, Part, Pool, Provisioning, Redirect, Vip};
use crate::state::PortWish;

impl OpenstackSim {
    /// Adds an active load balancer in the project's subnet, without parts; answers its id.
    ///
    /// # Panics
    ///
    /// If there is no free address: a mistake in the test.
    pub fn add_load_balancer(&self, name: &str, tags: Vec<String>) -> Id {
        self.write(|state| {
            let home = state.home.clone();
            let fixed_ip = match state.allocate(home.subnet) {
                Ok(fixed_ip) => fixed_ip,
                Err(reason) => panic!("no address for a load balancer: {reason:?}"),
            };
            let part = state.part(&home.project, name.to_owned(), String::new(), tags);
            let id = part.id;
            let port = state.add_port(PortWish {
                name: format!("octavia-lb-{id}"),
                network: home.network,
                project: home.project,
                device: format!("lb-{id}"),
                device_owner: "Octavia",
                fixed_ips: vec![fixed_ip],
                is_active: false,
            });
            let balancer = LoadBalancer {
                part: Part {
                    status: Provisioning::Active,
                    is_made: true,
                    ..part
                },
                vip: Vip {
                    fixed_ip,
                    network: home.network,
                    port,
                },
                additional_vips: Vec::new(),
                owns_port: true,
                provider: "amphora".to_owned(),
                flavor: None,
                zone: None,
                forwarder: Forwarder::Working,
                change: None,
                ending: Vec::new(),
                sticky: BTreeSet::new(),
                vip_groups: Vec::new(),
            };
            state.load_balancers.insert(id, balancer);
            id
        })
    }

    /// Ends what is under way on a load balancer.
    pub fn end_change(&self, id: Id) {
        self.write(|state| state.finish(id));
    }

    /// Removes a load balancer with all its parts at once.
    pub fn delete_load_balancer(&self, id: Id) {
        self.write(|state| state.remove_load_balancer(id));
    }

    /// The amphora of a load balancer died, and Octavia could not replace it: it is in `ERROR`, and its operating status, as that of its
    /// parts, is what was reported last.
    pub fn lose_load_balancer(&self, id: Id) {
        self.set_provisioning(id, Provisioning::Error);
        self.edit_load_balancer(id, |it| it.forwarder = Forwarder::Lost);
    }

    /// As [`lose_load_balancer`](Self::lose_load_balancer), of a provider that tells of it: the operating status is `ERROR` all over.
    pub fn break_load_balancer(&self, id: Id) {
        self.set_provisioning(id, Provisioning::Error);
        self.edit_load_balancer(id, |it| it.forwarder = Forwarder::KnownLost);
    }

    /// What the operator of a cloud does about one in `ERROR`: it works again, and so do its parts.
    pub fn fail_over_load_balancer(&self, id: Id) {
        self.write(|state| {
            if let Some(balancer) = state.load_balancers.get_mut(&id) {
                balancer.forwarder = Forwarder::Working;
                (balancer.part.status, balancer.change) = (Provisioning::Active, None);
            }
            let pools: Vec<Id> = state.pools_of(id).map(|it| it.part.id).collect();
            for part in state.parts_mut(id, &pools) {
                (part.status, part.is_made) = (Provisioning::Active, true);
            }
        });
    }

    /// Sets where a load balancer is in its life, and it stays there. What carries its traffic does not change by that.
    pub fn set_provisioning(&self, id: Id, status: Provisioning) {
        let now = self.read().clock.rfc3339_seconds();
        self.edit_load_balancer(id, |it| {
            it.part.status = status;
            it.part.meta.touch(&now);
            it.change = None;
        });
    }

    /// Adds a pool to the load balancer of a listener, and a policy that sends requests there; answers the pool's id.
    pub fn add_redirect(&self, listener: Id) -> Option<Id> {
        self.write(|state| {
            let balancer = state.listeners.get(&listener)?.load_balancer;
            let there = state.pools_of(balancer).next()?.clone();
            let project = there.part.meta.project.clone();
            let part = state.part(&project, "elsewhere".to_owned(), String::new(), Vec::new());
            let part = Part {
                status: Provisioning::Active,
                is_made: true,
                ..part
            };
            let (pool, id) = (part.id, state.seed.uuid());
            state.pools.insert(pool, Pool { part, ..there });
            let listener = state.listeners.get_mut(&listener)?;
            listener.redirects.push(Redirect {
                id,
                pool,
                is_up: true,
                has_rules: true,
            });
            Some(pool)
        })
    }

    /// Removes a listener; whether there was one.
    pub fn delete_listener(&self, id: Id) -> bool {
        self.write(|state| state.listeners.shift_remove(&id).is_some())
    }

    /// Removes a pool with its members and monitor. Its listeners stay.
    pub fn delete_pool(&self, id: Id) {
        self.write(|state| state.remove_pool(id));
    }

    /// Removes a member; whether there was one.
    pub fn delete_member(&self, id: Id) -> bool {
        self.write(|state| state.members.shift_remove(&id).is_some())
    }
}
