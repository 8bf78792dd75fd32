//! Which connections are kept. Their number is bounded, in all and for each address; at the bound an old one that is of
//! least use gives way, so that a new one, which may be a probe, is always let in.
//!
//! There are two rooms: one for connections whose handshake is not finished, which hold little and are many, and one for
//! those that speak HTTP, which hold more and are fewer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections a room keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// In all.
    pub(super) connections: usize,
    /// Of one address: what is left is for the other addresses.
    pub(super) per_origin: usize,
    /// A connection gives way only after this time, so that an honest client gets as far as its request. Those that come
    /// meanwhile wait: this and the number for one address are the pace at which they come in.
    pub(super) grace: Duration,
}

/// Connections whose handshake is not finished. With 640 at once from one address, the last one is let in after 0.4 s.
pub(super) const HANDSHAKES: Bounds = Bounds {
    connections: 256,
    per_origin: 192,
    grace: Duration::from_millis(150),
};

/// Connections that speak HTTP. Probes and scrapes need a handful; the worst that one can hold is some 100 KiB. What fills
/// this room is the pace of handshakes, so little grace is needed besides.
pub(super) const CONVERSATIONS: Bounds = Bounds {
    connections: 80,
    per_origin: 64,
    grace: Duration::from_millis(32),
};

/// The log tells of connections that give way no more often than this.
const QUIET: Duration = Duration::from_secs(60);

/// Where a client is, as far as the bounds for each address go. Whoever has one IPv6 address has the 64 bits below the
/// network's as well, so they count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin(IpAddr);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        })
    }
}

#[derive(Clone, Copy)]
struct Answered {
    first: Instant,
    last: Instant,
}

/// The connections that one room keeps.
pub(super) struct Places {
    bounds: Bounds,
    table: Mutex<Table>,
    /// Held while waiting for a place: those that wait come in in their order.
    entrance: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Table {
    /// By number, and numbers rise: in the order of arrival.
    held: BTreeMap<u64, Held>,
    next: u64,
    told: Option<Instant>,
}

struct Held {
    origin: Origin,
    arrived: Instant,
    /// When requests of this connection were answered; none: it has had no answer yet.
    answered: Option<Answered>,
    /// Requests that the API server is asked about.
    under_review: usize,
    /// A request of this connection was granted something that not everybody may read.
    is_trusted: bool,
    gives_way: CancellationToken,
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            table: Mutex::default(),
            entrance: tokio::sync::Mutex::default(),
        })
    }

    /// Takes a place for a connection. At the bound another connection gives way; if all are so new that they deserve
    /// some time first, this waits for no longer than that.
    pub(super) async fn enter(self: &Arc<Self>, origin: Origin) -> Place {
        let _turn = self.entrance.lock().await;
        loop {
            let entered = self.table().enter(origin, self.bounds, Instant::now());
            match entered {
                Ok((number, gives_way)) => {
                    return Place {
                        places: Arc::clone(self),
                        number,
                        gives_way,
                    };
                }
                Err(at) => tokio::time::sleep_until(at).await,
            }
        }
    }

    /// Lets one connection give way: for a process that has no file descriptor left.
    pub(super) fn yield_one(&self) {
        let mut table = self.table();
        if let Ok(Some(number)) = table.least(|_| true, Duration::ZERO, Instant::now()) {
            table.evict(number);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.table().held.get_mut(&number) {
            change(held);
        }
    }
}

impl Table {
    /// The number of the new place, or when to ask again.
    fn enter(
        &mut self,
        origin: Origin,
        bounds: Bounds,
        now: Instant,
    ) -> Result<(u64, CancellationToken), Instant> {
        let counts = self.held.values().fold(BTreeMap::new(), |mut counts, held| {
            *counts.entry(held.origin).or_insert(0) += 1;
            counts
        });
        let most = counts.values().copied().max().unwrap_or(0);
        let victim = if counts
            .get(&origin)
            .is_some_and(|count| *count >= bounds.per_origin)
        {
            self.least(|held| held.origin == origin, bounds.grace, now)?
        } else if self.held.len() >= bounds.connections {
            // Whoever holds most gives, so that nobody can take the place of those who hold few.
            self.least(|held| counts.get(&held.origin) == Some(&most), bounds.grace, now)?
        } else {
            None
        };
        if let Some(victim) = victim {
            self.tell(now);
            self.evict(victim);
        }
        let (number, gives_way) = (self.next, CancellationToken::new());
        self.next += 1;
        let held = Held {
            origin,
            arrived: now,
            answered: None,
            under_review: 0,
            is_trusted: false,
            gives_way: gives_way.clone(),
        };
        self.held.insert(number, held);
        Ok((number, gives_way))
    }

    /// The connection that can be missed best, or when there is one. In this order: the oldest of those that have not
    /// got as far as an answer; the longest idle of those that have; those that may read more than everybody; those
    /// about which the API server is being asked, which are few.
    fn least(
        &self,
        is_eligible: impl Fn(&Held) -> bool,
        grace: Duration,
        now: Instant,
    ) -> Result<Option<u64>, Instant> {
        let eligible = || self.held.iter().filter(|(_, held)| is_eligible(held));
        let plain = || eligible().filter(|(_, held)| !held.is_trusted && held.under_review == 0);
        let unfinished = plain()
            .find(|(_, held)| held.answered.is_none())
            .map(|(number, held)| (*number, held.arrived));
        // By the last answer; but the first one counts for the grace, or whoever keeps asking would crowd out the others.
        let idle = plain()
            .filter_map(|(number, held)| Some((*number, held.answered?)))
            .min_by_key(|(_, answered)| answered.last)
            .map(|(number, answered)| (number, answered.first));
        let candidates = unfinished.into_iter().chain(idle);
        if let Some((number, _)) = candidates.clone().find(|(_, since)| now >= *since + grace) {
            return Ok(Some(number));
        }
        if let Some(since) = candidates.map(|(_, since)| since).min() {
            return Err(since + grace);
        }
        let last = eligible().min_by_key(|(_, held)| {
            let answered = held.answered.map(|answered| answered.last);
            (held.under_review > 0, answered)
        });
        Ok(last.map(|(number, _)| *number))
    }

    fn evict(&mut self, number: u64) {
        if let Some(held) = self.held.remove(&number) {
            held.gives_way.cancel();
        }
    }

    fn tell(&mut self, now: Instant) {
        if self.told.is_none_or(|told| now >= told + QUIET) {
            self.told = Some(now);
            tracing::warn!(
                connections = self.held.len(),
                "The secure port has more connections than it keeps: old ones are closed for new ones"
            );
        }
    }
}

/// The place of one connection, given back when dropped.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    gives_way: CancellationToken,
}

impl Place {
    /// Cancelled when this connection has to give way.
    pub(super) fn gives_way(&self) -> CancellationToken {
        self.gives_way.clone()
    }

    /// Notes that a request was answered, or that the handshake is finished.
    pub(super) fn answered(&self) {
        let last = Instant::now();
        self.places.change(self.number, |held| {
            let first = held.answered.map_or(last, |answered| answered.first);
            held.answered = Some(Answered { first, last });
        });
    }

    /// Notes that a request was granted what not everybody may read.
    pub(super) fn trusted(&self) {
        self.places.change(self.number, |held| held.is_trusted = true);
    }

    /// Notes that the API server is asked about a request, until this is dropped.
    pub(super) fn under_review(&self) -> impl Drop + use<'_> {
        self.places.change(self.number, |held| held.under_review += 1);
        Review(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().held.remove(&self.number);
    }
}

struct Review<'a>(&'a Place);

impl Drop for Review<'_> {
    fn drop(&mut self) {
        self.0.places.change(self.0.number, |held| held.under_review -= 1);
    }
}

#[cfg(test)]
mod tests;
