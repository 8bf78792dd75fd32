//! The public network of Services, as far as it is known. Only a purchase depends on it: none is made for a network that is not
//! known to have a place. What it says also tells people what does not fit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{ServiceKey, held_back_for, lock};
use bowline_phoenixnap_client::{BlockStatus, Class, Client, IpBlock, NetworkBlock, PublicNetwork};
use bowline_plan::{Refusal, refusal};
use tokio::time::{Instant, timeout};

use crate::load_balancer::observe::busy::{Busy, LOOKS, Later, Move};

/// Why no place is kept.
pub(crate) enum NoPlace {
    /// It is not known yet whether the network takes the block of another Service.
    Later(Later),
    /// The network takes no more.
    Full(Refusal),
}

/// How long a look before a purchase waits for what might forbid it. The read goes on without it: the [watch](crate::load_balancer::watch) waits too.
const PATIENCE: Duration = Duration::from_secs(1);

/// How old a read may be that says whether the network has a place, where none is newer.
const RECENT: Duration = Duration::from_secs(30);

/// How old what is known becomes: servers come into the network and take addresses.
pub(crate) const AGE: Duration = Duration::from_secs(3600);

/// How many IPv4 blocks a public network takes (Networks API, "Public Networks").
pub(crate) const MOST_BLOCKS: usize = 10;

/// How long the turn of a Service to buy lasts. Mostly its block is bought by then, and more than a moment would hold up others for a
/// purchase that takes its time.
const MOMENT: Duration = Duration::from_secs(4);

/// How long the sweeper lets Services go first that wait for the network.
const COURTESY: Duration = Duration::from_secs(30);

/// How long a place is kept for a block that the network does not show.
const KEPT: Duration = Duration::from_secs(120);

/// How long the network must have refused a free block before it counts as full.
const FOR_LONG: Duration = Duration::from_secs(10);

/// What a read tells of the network.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// The network, and which blocks it has.
    Known(Arc<PublicNetwork>),
    /// What the API says where it does not exist, or is not the account's. Nothing could be attached to that.
    Denied(Arc<str>),
    /// Why it cannot be told now which blocks it has.
    Unknown(Arc<str>),
    /// The API does not know this call.
    NotServed,
}

impl Shown {
    /// The network, if it is known.
    pub(crate) fn known(self) -> Option<Arc<PublicNetwork>> {
        match self {
            Self::Known(network) => Some(network),
            Self::Denied(_) | Self::Unknown(_) | Self::NotServed => None,
        }
    }
}

/// The public network.
pub(crate) struct Network {
    facts: Arc<Facts>,
    /// One read at a time: whoever asks meanwhile waits for that one.
    read: SharedRead<Shown>,
}

struct Facts {
    client: Client,
    id: String,
    /// Where blocks are bought, if that is the same for all Services.
    location: Option<String>,
    known: Mutex<Option<Known>>,
    /// Why it could not be read the last time, as the log has it.
    unreadable: Mutex<String>,
    places: Mutex<Vec<Place>>,
    /// The free blocks that the network refused at the last try, in which words, and since when.
    refused: Mutex<BTreeMap<String, (String, Instant)>>,
    /// What came of moves that the network has begun in the time of this process, by the ID of the block.
    tries: Mutex<BTreeMap<String, Tries>>,
    /// Whether it makes a move now: to it, off it.
    busy: [Busy; 2],
    /// The blocks of Services that wait for it: since when, and until when they ask again.
    waiting: Mutex<BTreeMap<String, (Instant, Instant)>>,
    /// Whether it took a block in the time of this process.
    has_taken: AtomicBool,
    /// The Service whose turn it is to buy, and since when.
    turn: Mutex<Option<(ServiceKey, Instant)>>,
}

/// Moves of a block that were begun.
struct Tries {
    to: Move,
    /// How many attachments in a row failed.
    failed: u32,
    /// Whether it is not known yet what came of the last one.
    is_open: bool,
    /// When that one began, or was seen to have failed.
    since: Instant,
}

/// A place in the network that is being bought for, so that two Services that come together do not buy for the same one.
struct Place {
    service: ServiceKey,
    /// The block, once it is bought. It counts as long as the network does not show it.
    block: Option<String>,
    since: Instant,
    /// Whether the network has said something to it.
    is_answered: bool,
    /// Whether an earlier process bought it.
    is_earlier: bool,
}

#[derive(Clone)]
struct Known {
    network: Arc<PublicNetwork>,
    read: Instant,
    /// Of the credentials: others may be of an account that does not see the network, and blocks would be bought there.
    generation: u64,
}

impl Network {
    pub(crate) fn new(client: &Client, id: String, location: Option<String>) -> Self {
        let facts = Arc::new(Facts {
            client: client.clone(),
            id,
            location,
            known: Mutex::default(),
            unreadable: Mutex::default(),
            places: Mutex::default(),
            refused: Mutex::default(),
            tries: Mutex::default(),
            busy: Default::default(),
            waiting: Mutex::default(),
            has_taken: AtomicBool::new(false),
            turn: Mutex::default(),
        });
        let read = SharedRead::single(
            SharedRead::<()>::INTERVAL,
            &facts,
            |facts: Arc<Facts>| async move { facts.read().await },
        );
        Self { facts, read }
    }

    /// Whether it is the one with this ID.
    pub(crate) fn is(&self, id: &str) -> bool {
        self.facts.id == id
    }

    /// What is known, without a call.
    pub(crate) fn known(&self) -> Option<Arc<PublicNetwork>> {
        self.facts.known().map(|known| known.network)
    }

    /// What a read tells within a moment: others take places in the network too. Else what was read a moment ago.
    pub(crate) async fn in_a_moment(&self) -> Shown {
        let why = match timeout(PATIENCE, self.read.ask()).await {
            Ok(Shown::Unknown(why)) => why,
            Ok(shown) => return shown,
            Err(_) => "it has not answered yet".into(),
        };
        let known = self
            .facts
            .known()
            .filter(|known| known.read.elapsed() < RECENT && known.network.ip_blocks.is_some());
        known.map_or(Shown::Unknown(why), |known| Shown::Known(known.network))
    }

    /// Why no block is bought for a Service: the network has no place for it.
    pub(crate) fn full_for(&self, service: &ServiceKey) -> Option<Refusal> {
        self.facts.full_for(service, &lock(&self.facts.places))
    }

    /// Before the network has taken any block, one Service buys at a time: if it is full whatever it shows, one block is bought in vain.
    /// Why it is not the turn of this one; `None`: it is, for a moment. After that what the network shows counts.
    pub(crate) fn turn(&self, service: &ServiceKey) -> Option<Later> {
        if let Some(later) = self.unanswered_for(service) {
            return Some(later);
        }
        if self.facts.has_taken.load(Ordering::Relaxed) && self.facts.known().is_some() {
            return None;
        }
        let mut turn = lock(&self.facts.turn);
        let places = lock(&self.facts.places);
        let is_answered = |of: &ServiceKey| places.iter().any(|it| it.service == *of && it.is_answered);
        if let Some((of, since)) = &*turn
            && of != service
            && since.elapsed() < MOMENT
            && !is_answered(of)
        {
            let why = format!(
                "an IP block is being bought for service {of}, and whether public network {} takes it is not known yet",
                self.facts.id
            );
            return Some(Later::since(*since, why));
        }
        *turn = Some((service.clone(), Instant::now()));
        None
    }

    /// Keeps a place for the block that is about to be bought for a Service; else says why not: the network is full, or it is not known yet
    /// whether it takes the block of another one.
    pub(crate) fn reserve(&self, service: &ServiceKey) -> Result<(), NoPlace> {
        if let Some(later) = self.unanswered_for(service) {
            return Err(NoPlace::Later(later));
        }
        let mut places = lock(&self.facts.places);
        if let Some(full) = self.facts.full_for(service, &places) {
            return Err(NoPlace::Full(full));
        }
        places.retain(|place| place.service != *service && place.since.elapsed() < KEPT);
        places.push(Place::new(service.clone(), None));
        Ok(())
    }

    /// An earlier process bought a block for a Service, and did not get it attached: perhaps the network refuses it.
    pub(crate) fn found_waiting(&self, service: ServiceKey, block: String) {
        let mut places = lock(&self.facts.places);
        if places.iter().all(|place| place.service != service) {
            places.push(Place::new(service, Some(block)));
        }
    }

    /// Whether there is a block of another Service to which the network has said nothing yet: one of an earlier process or, before the
    /// network has taken any, of this one.
    pub(crate) fn unanswered_for(&self, service: &ServiceKey) -> Option<Later> {
        let has_taken = self.facts.has_taken.load(Ordering::Relaxed);
        let places = lock(&self.facts.places);
        let is_open =
            |it: &&Place| (it.is_earlier || !has_taken) && !it.is_answered && it.since.elapsed() < KEPT;
        let mut open = places.iter().filter(is_open).filter(|it| it.service != *service);
        let open = open.find_map(|place| Some((place.block.clone()?, place.since)));
        let coming = || self.facts.begun(|to| to == Move::On).filter(|_| !has_taken);
        let (block, since) = open.or_else(coming)?;
        let why = format!(
            "whether public network {} takes IP block {block} is not known yet",
            self.facts.id
        );
        Some(Later::since(since, why))
    }

    /// Whether something depends on what comes of a block's move.
    pub(crate) fn awaits_a_block(&self) -> bool {
        let has_taken = self.facts.has_taken.load(Ordering::Relaxed);
        (!has_taken || self.facts.busy.iter().any(Busy::is_known)) && self.is_moving()
    }

    /// Whether a block of this process is on its way to the network or off it, as far as it knows.
    pub(crate) fn is_moving(&self) -> bool {
        self.facts.begun(|_| true).is_some()
    }

    /// How long until the next look at those of these blocks that this process has on their way; `None`: there are none.
    pub(crate) fn look(&self, blocks: &[IpBlock]) -> Option<Duration> {
        let tries = lock(&self.facts.tries);
        let open = blocks.iter().filter_map(|block| tries.get(&block.id));
        let ages = open.filter(|it| it.is_open).map(|it| it.since.elapsed());
        ages.filter(|age| *age < KEPT).map(|age| LOOKS.next(age)).min()
    }

    /// Why a block is not moved now; `None`: it is tried.
    pub(crate) fn busy(&self, to: Move, block: &str) -> Option<Later> {
        self.facts.busy[to as usize].later(block, self.is_moving())
    }

    /// The same for the block of a Service, which comes before what the sweeper does.
    pub(crate) fn busy_for_service(&self, block: &str) -> Option<Later> {
        let later = self.busy(Move::On, block)?;
        let now = Instant::now();
        let mut waiting = lock(&self.facts.waiting);
        let (_, until) = waiting.entry(block.to_owned()).or_insert((now, now));
        *until = now + later.look + SharedRead::<()>::INTERVAL;
        Some(later)
    }

    /// The same for the sweeper.
    pub(crate) fn busy_for_sweeper(&self, to: Move, block: &str) -> Option<Later> {
        let now = Instant::now();
        let mut waiting = lock(&self.facts.waiting);
        waiting.retain(|_, (_, until)| now <= *until);
        let first = waiting.values().find(|(since, _)| since.elapsed() < COURTESY);
        let first =
            first.map(|(since, _)| Later::since(*since, "IP blocks of Services come first".to_owned()));
        drop(waiting);
        first.or_else(|| self.busy(to, block))
    }

    /// The network, or something of it, is busy: it has just refused to move a block.
    pub(crate) fn is_busy(&self, to: Move, block: &str, words: String) -> Later {
        let begun = self.facts.begun(|_| true).map(|(_, since)| since);
        self.facts.busy[to as usize].refuses(block, words, begun)
    }

    /// Whether a list is behind that shows a block on the network: it was taken off a moment ago.
    pub(crate) fn is_leaving(&self, block: &str) -> bool {
        let tries = lock(&self.facts.tries);
        let is_leaving = |it: &Tries| it.to == Move::Off && it.is_open && it.since.elapsed() < MOMENT;
        tries.get(block).is_some_and(is_leaving)
    }

    /// Tells which block was bought for a Service; `None` if none was, or the Service goes: its place is free.
    pub(crate) fn bought(&self, service: &ServiceKey, block: Option<&str>) {
        if block.is_none() {
            lock(&self.facts.turn).take_if(|(of, _)| of == service);
        }
        let mut places = lock(&self.facts.places);
        match block {
            None => places.retain(|place| place.service != *service),
            Some(id) => {
                let of_service = places.iter_mut().filter(|place| place.service == *service);
                of_service.for_each(|place| place.block = Some(id.to_owned()));
            }
        }
    }

    /// The network has said something to a block, whatever it is.
    pub(crate) fn answers(&self, block: &str) {
        let mut places = lock(&self.facts.places);
        let of_block = places.iter_mut().filter(|it| it.block.as_deref() == Some(block));
        of_block.for_each(|place| place.is_answered = true);
    }

    /// The network does not take a block that could be attached: it would not take the next one either. Says whether that has been so for
    /// longer than a moment.
    pub(crate) fn refuses(&self, block: &str, words: String) -> bool {
        let mut refused = lock(&self.facts.refused);
        let refused = refused.entry(block.to_owned());
        let (last, since) = refused.or_insert_with(|| (String::new(), Instant::now()));
        *last = words;
        since.elapsed() >= FOR_LONG
    }

    /// The network has begun to move a block. What comes of it, a [look](Self::sees) tells.
    pub(crate) fn begins(&self, to: Move, block: &str) {
        lock(&self.facts.refused).remove(block);
        lock(&self.facts.waiting).remove(block);
        let since = Instant::now();
        self.facts.busy.iter().for_each(|busy| busy.begins(since));
        let mut tries = lock(&self.facts.tries);
        let failed = tries.get(block).map_or(0, |tries| tries.failed);
        let begun = Tries {
            to,
            failed,
            is_open: true,
            since,
        };
        tries.insert(block.to_owned(), begun);
    }

    /// A block is like this. One that was attached shows that the network is not full, whatever it shows itself; one that failed need
    /// not be the last.
    pub(crate) fn sees(&self, block: &IpBlock) {
        let mut tries = lock(&self.facts.tries);
        let open = tries.get(&block.id).filter(|tries| tries.is_open);
        let is_over = open.is_some_and(|tries| match tries.to {
            Move::On => matches!(block.status, BlockStatus::Assigned | BlockStatus::ErrorAssigning),
            Move::Off => matches!(
                block.status,
                BlockStatus::Unassigned | BlockStatus::ErrorUnassigning
            ),
        });
        if is_over {
            self.facts.busy.iter().for_each(Busy::ends);
        }
        if is_over && open.is_some_and(|tries| tries.to == Move::Off) {
            tries.remove(&block.id);
        }
        match (&block.status, tries.get_mut(&block.id)) {
            (BlockStatus::Assigned, Some(it)) if it.to == Move::On => {
                tries.remove(&block.id);
                self.facts.has_taken.store(true, Ordering::Relaxed);
                lock(&self.facts.refused).remove(&block.id);
            }
            (BlockStatus::ErrorAssigning, Some(tries)) if tries.is_open && tries.to == Move::On => {
                (tries.is_open, tries.since) = (false, Instant::now());
                tries.failed += 1;
                if !self.facts.has_taken.load(Ordering::Relaxed) {
                    let words = "its attachment ended in `error assigning`".to_owned();
                    lock(&self.facts.refused).insert(block.id.clone(), (words, Instant::now()));
                }
            }
            _ => {}
        }
    }

    /// Whether an attachment of a block has failed since it was attached last, as far as this process knows.
    pub(crate) fn has_failed(&self, block: &IpBlock) -> bool {
        let tries = lock(&self.facts.tries);
        let has_failed = tries.get(&block.id).is_some_and(|tries| tries.failed > 0);
        has_failed || block.status == BlockStatus::ErrorAssigning
    }

    /// Why a block whose attachment failed is not attached again now. After the first failure it is at once.
    pub(crate) fn holds_back(&self, block: &IpBlock) -> Option<Refusal> {
        let tries = lock(&self.facts.tries);
        let tries = tries.get(&block.id).filter(|tries| tries.failed > 1)?;
        let is_held = block.status == BlockStatus::ErrorAssigning
            && tries.since.elapsed() < held_back_for(tries.failed - 1);
        is_held.then(|| {
            let why = format!("its attachment failed {} times", tries.failed);
            not_attached(&block.id, &self.facts.id, &why)
        })
    }

    /// The block is not wanted there any more.
    pub(crate) fn refuses_no_more(&self, block: &str) {
        lock(&self.facts.refused).remove(block);
        lock(&self.facts.tries).remove(block);
    }

    /// What a list says of the blocks: which of them wait for their place. One that was refused a moment ago may not be listed yet.
    pub(crate) fn listed(&self, is_waiting: impl Fn(&str) -> bool) {
        let mut refused = lock(&self.facts.refused);
        refused.retain(|block, (_, since)| since.elapsed() < KEPT || is_waiting(block));
    }

    /// Reads it, however long that takes, unless what is known is new enough.
    pub(crate) async fn refresh(&self) {
        let is_fresh = |known: Known| known.read.elapsed() < AGE;
        if !self.facts.known().is_some_and(is_fresh) {
            self.read.ask().await;
        }
    }
}

impl Facts {
    fn known(&self) -> Option<Known> {
        let generation = self.client.generation();
        let known = lock(&self.known).clone();
        known.filter(|known| known.generation == generation)
    }

    /// The last block that has begun such a move, and since when.
    fn begun(&self, is_it: impl Fn(Move) -> bool) -> Option<(String, Instant)> {
        let tries = lock(&self.tries);
        let open = tries.iter().filter(|(_, it)| it.is_open && is_it(it.to));
        let recent = open.filter(|(_, tries)| tries.since.elapsed() < KEPT);
        let (block, begun) = recent.max_by_key(|(_, tries)| tries.since)?;
        Some((block.clone(), begun.since))
    }

    /// Where the network shows more than the documented number of blocks, it takes more than those.
    fn full_for(&self, service: &ServiceKey, places: &[Place]) -> Option<Refusal> {
        let id = &self.id;
        if let Some((block, (words, _))) = lock(&self.refused).iter().next() {
            let refusal = refusal!(
                "public network {id} has refused IP block {block} and takes no more, so none is bought for service {service}: {words}";
                "look at the network in the portal, or delete a service that is not needed; a block is bought when the network has taken that one, or that one is given back"
            );
            return Some(refusal.of_limit(true));
        }
        let network = &self.known()?.network;
        let shown = others(network, "");
        let coming = places.iter().filter(|place| {
            let counts = place.service != *service && place.since.elapsed() < KEPT;
            counts && !place.is_shown_by(network)
        });
        let coming = coming.count();
        (shown <= MOST_BLOCKS && shown + coming >= MOST_BLOCKS).then(|| {
            let reserved = match coming {
                0 => String::new(),
                1 => ", 1 more is reserved for another service,".to_owned(),
                _ => format!(", {coming} more are reserved for other services,"),
            };
            let refusal = refusal!(
                "public network {id} has {shown} IP blocks on it{reserved} and takes no more, so none is bought for service {service}";
                "delete a service that is not needed; the block is bought as soon as another one has left the network"
            );
            refusal.of_limit(true)
        })
    }

    /// One read. Why it fails is told once, until it succeeds or fails for another reason.
    async fn read(&self) -> Shown {
        // Before: those that the answer came with are at least as new.
        let generation = self.client.generation();
        match self.client.public_network(&self.id).await {
            Ok(network) => {
                lock(&self.unreadable).clear();
                let network = Arc::new(network);
                let known = Known {
                    network: Arc::clone(&network),
                    read: Instant::now(),
                    generation,
                };
                let before = lock(&self.known).replace(known);
                if before.is_none_or(|before| before.network.location != network.location) {
                    self.tell(&network);
                }
                // Who has left it since needs no place any more.
                lock(&self.places).retain(|place| !place.is_shown_by(&network));
                if network.ip_blocks.is_none() {
                    return Shown::Unknown("the answer does not say which IP blocks it has".into());
                }
                Shown::Known(network)
            }
            Err(error) => {
                let text = error.to_string();
                if *lock(&self.unreadable) != text {
                    lock(&self.unreadable).clone_from(&text);
                    tracing::warn!(
                        network = self.id,
                        err = text,
                        "The public network of Services cannot be read"
                    );
                }
                match error.status() {
                    // Only 403 is a word of the API about this network: one that does not know the path answers 404.
                    Some(404) => Shown::NotServed,
                    _ if error.class == Class::Denied => Shown::Denied(text.into()),
                    _ => Shown::Unknown(text.into()),
                }
            }
        }
    }

    fn tell(&self, network: &PublicNetwork) {
        tracing::info!(
            network = network.id,
            name = network.name,
            location = network.location.as_deref().unwrap_or_default(),
            vlan = network.vlan_id,
            "Public network of Services"
        );
        if let (Some(wanted), Some(location)) = (&self.location, &network.location)
            && !wanted.eq_ignore_ascii_case(location)
        {
            tracing::warn!(
                network = network.id,
                "The public network is in {location}, and IP blocks are to be bought in {wanted}: none of them could be attached"
            );
        }
    }
}

impl Place {
    /// With the block that an earlier process bought, if one did.
    fn new(service: ServiceKey, block: Option<String>) -> Self {
        Self {
            service,
            is_earlier: block.is_some(),
            block,
            since: Instant::now(),
            is_answered: false,
        }
    }

    fn is_shown_by(&self, network: &PublicNetwork) -> bool {
        let mut shown = network.ip_blocks.iter().flatten();
        shown.any(|block| self.block.as_ref() == Some(&block.id))
    }
}

/// What is said of a block whose attachment failed.
pub(crate) fn not_attached(block: &str, network: &str, why: &str) -> Refusal {
    refusal!(
        "IP block {block} is error assigning, and is not attached to public network {network}: {why}";
        "take the block off its network by hand, or ask phoenixNAP what became of it"
    )
}

/// How many IPv4 blocks of a network are others than this one. One of IPv6 takes the place of none of them.
pub(crate) fn others(network: &PublicNetwork, block: &str) -> usize {
    let is_v6 = |it: &&NetworkBlock| it.cidr.as_ref().is_some_and(|cidr| cidr.contains(':'));
    let listed = network.ip_blocks.iter().flatten();
    let others = listed.filter(|it| it.id != block && !is_v6(it));
    others.count()
}
