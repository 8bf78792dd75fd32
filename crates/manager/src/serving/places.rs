//! Which connections are kept. A connection goes through three stages: its TLS handshake, its first request, and what
//! comes after its first answer. Each stage keeps a bounded number, in all and of each address. At the bound the next one
//! comes in all the same, for it may be a probe, and an old one that is of least use gives way.
//!
//! A connection that has had no answer yet gives way only when its time is over, so that an honest client gets as far as
//! its answer. Meanwhile the next ones wait, in the order of their arrival: what a stage keeps and the time that each one
//! has are the pace at which they come in, whatever the clients do.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its handshake is not finished. It holds some 20 KiB.
    Handshake,
    /// It speaks HTTP and has had no answer. It holds 130 KiB at most: headers in HTTP/2 frames of 16 KiB.
    FirstRequest,
    /// It has had an answer, and may ask again. Probes do not, and scrapers are a handful. It holds 130 KiB at most.
    Answered,
}

/// How many connections a stage keeps.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// In all.
    connections: usize,
    /// Of one address: what is left is for the other addresses.
    per_origin: usize,
    /// A connection gives way only when it has been in this stage for so long.
    grace: Duration,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Handshake, Self::FirstRequest, Self::Answered];

    /// The first two stages let in 1,200 and 1,100 connections of one address in a second: a probe that comes behind 640
    /// hostile ones waits for 0.6 s. Handshakes at this pace take a third of a processor.
    const fn bounds(self) -> Bounds {
        match self {
            // The time for the client's part of the cryptography, on a busy node.
            Self::Handshake => Bounds {
                connections: 192,
                per_origin: 144,
                grace: Duration::from_millis(120),
            },
            // The time until a request is here that was sent right after the handshake.
            Self::FirstRequest => Bounds {
                connections: 56,
                per_origin: 44,
                grace: Duration::from_millis(40),
            },
            Self::Answered => Bounds {
                connections: 16,
                per_origin: 12,
                grace: Duration::ZERO,
            },
        }
    }
}

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

/// The connections that are kept.
#[derive(Default)]
pub(super) struct Places {
    table: Mutex<Table>,
    /// Held by the connection that is the next one to come to its first request, so that they come in their order. For
    /// handshakes there is no need: connections are accepted one after the other.
    line: tokio::sync::Mutex<()>,
    /// Tells those who wait that a connection has left a stage.
    left: Notify,
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
    stage: Stage,
    /// Since when it is in its stage.
    since: Instant,
    /// It has finished its stage and waits for room in the next one. That is our matter, so it does not give way.
    waits: bool,
    /// When it was last answered, or has come in.
    used: Instant,
    /// Requests that the API server is asked about.
    under_review: usize,
    /// A request of this connection was granted something that not everybody may read.
    is_trusted: bool,
    gives_way: CancellationToken,
}

impl Held {
    /// The connection with the least of these gives way first: those about which the API server is being asked are few,
    /// and those that may read more than everybody are wanted. Of the others, whoever holds many gives one, so that nobody
    /// can take the place of those who hold few.
    fn worth(&self, of_same_origin: usize) -> impl Ord + use<> {
        (
            self.under_review > 0,
            self.is_trusted,
            Reverse(of_same_origin),
            self.used,
        )
    }
}

impl Places {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Takes a place for a connection that was accepted, when there is room for its handshake.
    pub(super) async fn enter(self: &Arc<Self>, origin: Origin) -> Place {
        let gives_way = CancellationToken::new();
        let number = self
            .when_there_is_room(origin, Stage::Handshake, |table, now| {
                table.insert(origin, gives_way.clone(), now)
            })
            .await;
        Place {
            places: Arc::clone(self),
            origin,
            number,
            gives_way,
        }
    }

    async fn when_there_is_room<T>(
        &self,
        origin: Origin,
        stage: Stage,
        mut enter: impl FnMut(&mut Table, Instant) -> T,
    ) -> T {
        loop {
            let (left, now) = (self.left.notified(), Instant::now());
            let room = {
                let mut table = self.table();
                table
                    .make_room(origin, stage, now)
                    .map(|()| enter(&mut table, now))
            };
            match room {
                Ok(entered) => return entered,
                Err(at) => wait(left, at).await,
            }
        }
    }

    /// Lets one connection of each stage give way, whatever its age: for a process that has no file descriptor left.
    pub(super) fn yield_some(&self) {
        let mut table = self.table();
        for stage in Stage::ALL {
            let counts = table.counts(stage);
            let least = table
                .may_leave(stage)
                .min_by_key(|(_, held)| held.worth(counts[&held.origin]))
                .map(|(number, _)| *number);
            if let Some(number) = least {
                table.evict(number);
            }
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

/// Waits until a connection has left, or until this time, if there is one.
async fn wait(left: Notified<'_>, at: Option<Instant>) {
    match at {
        Some(at) => drop(tokio::time::timeout_at(at, left).await),
        None => left.await,
    }
}

impl Table {
    /// Sees to it that there is room for one more connection in a stage; if there is none, says when to ask again, unless
    /// it is when a connection has left.
    fn make_room(&mut self, origin: Origin, stage: Stage, now: Instant) -> Result<(), Option<Instant>> {
        let (bounds, counts) = (stage.bounds(), self.counts(stage));
        let of_origin = counts.get(&origin).copied().unwrap_or(0);
        let is_own_bound = of_origin >= bounds.per_origin;
        if !is_own_bound && counts.values().sum::<usize>() < bounds.connections {
            return Ok(());
        }
        let eligible = || {
            self.may_leave(stage)
                .filter(|(_, held)| !is_own_bound || held.origin == origin)
        };
        let least = eligible()
            .filter(|(_, held)| now >= held.since + bounds.grace)
            .min_by_key(|(_, held)| held.worth(counts[&held.origin]))
            .map(|(number, _)| *number);
        let Some(number) = least else {
            return Err(eligible().map(|(_, held)| held.since + bounds.grace).min());
        };
        self.tell(now);
        self.evict(number);
        Ok(())
    }

    /// How many each origin has in a stage.
    fn counts(&self, stage: Stage) -> BTreeMap<Origin, usize> {
        let mut counts = BTreeMap::new();
        for held in self.held.values().filter(|held| held.stage == stage) {
            *counts.entry(held.origin).or_insert(0) += 1;
        }
        counts
    }

    fn may_leave(&self, stage: Stage) -> impl Iterator<Item = (&u64, &Held)> {
        self.held
            .iter()
            .filter(move |(_, held)| held.stage == stage && !held.waits)
    }

    fn insert(&mut self, origin: Origin, gives_way: CancellationToken, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        let held = Held {
            origin,
            stage: Stage::Handshake,
            since: now,
            waits: false,
            used: now,
            under_review: 0,
            is_trusted: false,
            gives_way,
        };
        self.held.insert(number, held);
        number
    }

    fn advance(&mut self, number: u64, stage: Stage, now: Instant) {
        if let Some(held) = self.held.get_mut(&number) {
            (held.stage, held.since, held.used, held.waits) = (stage, now, now, false);
        }
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
    origin: Origin,
    number: u64,
    gives_way: CancellationToken,
}

impl Place {
    /// Where the client is.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Cancelled when this connection has to give way.
    pub(super) fn gives_way(&self) -> CancellationToken {
        self.gives_way.clone()
    }

    /// Notes that the handshake is finished, and waits until there is room for a request.
    pub(super) async fn shaken_hands(&self) {
        self.places.change(self.number, |held| held.waits = true);
        let _turn = self.places.line.lock().await;
        self.places
            .when_there_is_room(self.origin, Stage::FirstRequest, |table, now| {
                table.advance(self.number, Stage::FirstRequest, now);
            })
            .await;
        self.places.left.notify_waiters();
    }

    /// Notes that a request was answered.
    pub(super) fn answered(&self) {
        let now = Instant::now();
        let mut table = self.places.table();
        match table.held.get_mut(&self.number) {
            Some(held) if held.stage == Stage::Answered => held.used = now,
            Some(_) => {
                // There always is: with no grace, one can always give way.
                let _room = table.make_room(self.origin, Stage::Answered, now);
                table.advance(self.number, Stage::Answered, now);
                self.places.left.notify_waiters();
            }
            None => {}
        }
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
        self.places.left.notify_waiters();
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
