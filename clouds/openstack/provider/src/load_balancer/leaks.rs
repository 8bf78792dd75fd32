//! Ports that refused creations of load balancers left behind. They use up addresses, and nobody else removes them.
//!
//! Nothing at a port says whose creation it was made for, and other clusters of the project may leave some too. So each creation that is
//! refused after Octavia made its port notes which ports came meanwhile. They are ours if there are as many such creations as ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_openstack_client::{Port, PortId};
use tokio::time::Instant;

use crate::load_balancer::vip_ports::{Known, Place};

/// For how long a port is left: until then a list that is behind shows what else came.
const AGE: Duration = Duration::from_secs(600);

/// A creation that was refused when its port was there.
#[derive(Debug)]
pub(crate) struct Leak {
    since: Instant,
    /// The ports that were there before.
    before: Known,
    place: Place,
    /// Those that had come by then.
    came: BTreeSet<PortId>,
}

impl Leak {
    pub(crate) fn new(before: Known, place: Place, came: BTreeSet<PortId>) -> Self {
        Self {
            since: Instant::now(),
            before,
            place,
            came,
        }
    }
}

/// What refused creations of this process left behind.
#[derive(Debug, Default)]
pub(crate) struct Leaks(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    /// Creations whose port is not told from others yet.
    open: Vec<Leak>,
    /// Ports that are ours, and since when they are left.
    ours: BTreeMap<PortId, Instant>,
}

impl Leaks {
    pub(crate) fn add(&self, leak: Leak) {
        self.lock().open.push(leak);
    }

    /// Whether something is known for long enough.
    pub(crate) fn is_due(&self) -> bool {
        let book = self.lock();
        let mut since = book.open.iter().map(|leak| &leak.since).chain(book.ours.values());
        since.any(|since| since.elapsed() >= AGE)
    }

    /// Tells ours from others, once they are old enough, and gives those that stay because it cannot be told. `alone` are those of all
    /// ports whose load balancer is not there.
    pub(crate) fn tell_apart(&self, there: &BTreeSet<&PortId>, alone: &[&Port]) -> BTreeSet<PortId> {
        let mut book = self.lock();
        let Book { open, ours } = &mut *book;
        let is_alone = |id: &PortId| alone.iter().any(|port| port.id == *id);
        let may_be = |leak: &Leak| -> BTreeSet<PortId> {
            let came = leak.came.iter().filter(|id| is_alone(id) || !there.contains(id));
            let since = alone
                .iter()
                .filter(|port| !leak.before.contains(&port.id) && leak.place.fits(port));
            let all = came.chain(since.map(|port| &port.id));
            all.filter(|id| !ours.contains_key(*id)).cloned().collect()
        };
        let mut rest: Vec<(Leak, BTreeSet<PortId>)> = std::mem::take(open)
            .into_iter()
            .map(|leak| {
                let ports = may_be(&leak);
                (leak, ports)
            })
            .collect();
        let mut others = BTreeSet::new();
        while let Some((first, mut ports)) = rest.pop() {
            let since = first.since;
            let mut group = vec![first];
            while let Some(at) = rest.iter().position(|(_, its)| !its.is_disjoint(&ports)) {
                let (leak, its) = rest.swap_remove(at);
                ports.extend(its);
                group.push(leak);
            }
            if group.iter().any(|leak| leak.since.elapsed() < AGE) {
                open.extend(group);
            } else if ports.len() == group.len() && ports.iter().all(|id| there.contains(id)) {
                ours.extend(ports.into_iter().map(|id| (id, since)));
            } else {
                others.extend(ports.into_iter().filter(|id| there.contains(id)));
            }
        }
        others
    }

    /// Those that are ours and old enough.
    pub(crate) fn ripe(&self) -> BTreeSet<PortId> {
        let book = self.lock();
        let ripe = book.ours.iter().filter(|(_, since)| since.elapsed() >= AGE);
        ripe.map(|(port, _)| port.clone()).collect()
    }

    pub(crate) fn forget(&self, port: &PortId) {
        self.lock().ours.remove(port);
    }

    /// It is looked at again after the same time.
    pub(crate) fn put_off(&self, port: &PortId) {
        self.lock().ours.insert(port.clone(), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
