//! The reads of blocks. What several ask for at the same time is read once.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, Kept, Service, ServiceKey, facts, lock};
use bowline_phoenixnap_client::{ApiError, Client, IpBlock, Listed, TagFilter};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::load_balancer::blocks::{self, Address, Attachment};
use crate::load_balancer::claim::PATIENCE;
use crate::load_balancer::evidence;
use crate::load_balancer::intent::{Identity, Intent, Wanted};
use crate::load_balancer::names::{self, ClusterTags};
use crate::load_balancer::observe::network::Network;
use crate::load_balancer::observe::releases::Releases;
use crate::load_balancer::observe::{Memory, Observed, Purchase, Remembered};
use crate::load_balancer::step::mark_label;

/// How long a list of blocks waits for other Services that want it: Services are created and deleted in groups.
const GATHER: Duration = Duration::from_millis(25);

/// Reads from the APIs.
pub(crate) struct Reads {
    client: Client,
    blocks: SharedRead<Result<Arc<Listing>, CloudError>>,
    /// Who waits for the next list of blocks: one Service is looked for by its tags, several by their cluster's.
    asking: Arc<Mutex<BTreeSet<Asker>>>,
    /// The names of tags that the account knows.
    names: Mutex<BTreeSet<&'static str>>,
    /// The public network.
    pub(crate) network: Arc<Network>,
    /// Whether the blocks that wait for the network since an earlier process were looked for.
    earlier: OnceCell<()>,
    /// How many reconciles have begun.
    reconciles: AtomicU64,
    /// The blocks that are being given back.
    pub(crate) releases: Releases,
    /// The last purchase for each Service, by its name: the tags of a block have no UID, and another Service of that name takes it.
    purchases: Kept<Asker, Begun>,
}

/// A Service that is looked for: the UID of its cluster, and its key.
type Asker = (String, ServiceKey);

/// A list of blocks, and for whom it was read: it says nothing about anybody else's.
struct Listing {
    asked: BTreeSet<Asker>,
    blocks: Listed<IpBlock>,
}

/// A purchase that was begun.
pub(crate) struct Begun {
    /// The reconcile under whose claim.
    pub(crate) reconcile: u64,
    /// When.
    pub(crate) at: Instant,
    /// What came of it.
    pub(crate) end: End,
}

/// What came of a purchase.
pub(crate) enum End {
    /// Nobody knows: the answer has not come, was lost, or said that the API had failed.
    Unknown,
    /// A block, which no list has shown.
    Unlisted(String),
    /// Its block was seen.
    Seen,
}

impl Reads {
    pub(crate) fn new(client: &Client, network: Arc<Network>) -> Self {
        let asking = Arc::new(Mutex::new(BTreeSet::new()));
        let source = (client.clone(), Arc::clone(&asking), Arc::clone(&network));
        Self {
            client: client.clone(),
            blocks: SharedRead::listing(GATHER, &source, |(client, asking, network)| {
                let asked = std::mem::take(&mut *lock(&asking));
                async move {
                    let conditions = conditions(&asked, network.awaits_a_block());
                    let blocks = match conditions {
                        // Those who waited are served by another read.
                        None => Listed {
                            entries: Vec::new(),
                            odd: Vec::new(),
                        },
                        Some(conditions) => client.ip_blocks(&conditions).await?,
                    };
                    blocks.entries.iter().for_each(|block| network.sees(block));
                    Ok(Arc::new(Listing { asked, blocks }))
                }
            }),
            asking,
            names: Mutex::default(),
            reconciles: AtomicU64::default(),
            releases: Releases::default(),
            purchases: Kept::default(),
            network,
            earlier: OnceCell::new(),
        }
    }

    /// Everything that the plan needs.
    pub(crate) async fn all(
        &self,
        intent: &Intent,
        network: &str,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let identity = intent.identity();
        let listed = Instant::now();
        let own = &mut memory.own;
        let began = *own.began.get_or_insert_with(|| {
            own.reconcile = self.reconciles.fetch_add(1, Ordering::Relaxed);
            listed
        });
        let mut blocks = self.blocks_of(identity).await?;
        if let Intent::Wanted(wanted) = intent {
            for step in facts::unanswered_steps(&wanted.service, wanted.identity.now) {
                let noted = blocks.iter().filter(|block| step == mark_label(&block.cidr));
                noted.for_each(|block| self.releases.inherits(&block.id));
            }
        }
        let going = blocks.iter().filter(|block| self.releases.has_begun(&block.id));
        let going: BTreeSet<String> = going.map(|block| block.id.clone()).collect();
        blocks.retain(|block| matches!(intent, Intent::Absent(_)) || !going.contains(&block.id));
        blocks::sort(&mut blocks, network);
        // Whatever a list says twice is one block.
        blocks.dedup_by(|one, other| one.id == other.id);
        own.age = began.elapsed();
        let mut observed = Observed {
            blocks,
            going,
            listed,
            missing_names: None,
            is_claim_void: self.is_void(identity),
            asked: self.asked(identity),
            network: None,
            full: None,
            unanswered: None,
            stray: None,
            is_lost_late: false,
            busy: None,
        };
        match intent {
            Intent::Absent(_) => self.network.bought(&identity.key, None),
            Intent::Wanted(_) if !observed.blocks.is_empty() => {
                let waits = |it: &&IpBlock| blocks::attachment(it, network) == Attachment::Needed;
                let waiting = observed.blocks.iter().find(waits);
                observed.busy = waiting.and_then(|block| self.network.busy_for_service(&block.id));
                let is_bought_here = self.purchases.with(&asker(identity), |last| last.is_some());
                if identity.field.is_empty() && !is_bought_here {
                    observed
                        .blocks
                        .iter()
                        .for_each(|block| self.releases.adopts(&block.id));
                }
            }
            Intent::Wanted(wanted) if is_buyer(wanted) => {
                self.before_purchase(wanted, network, &mut observed, own).await?;
            }
            Intent::Wanted(_) => {
                if let Ok(Some(Address::Known(address))) = identity.address() {
                    let found = self.block_with(&identity.cluster, address).await?;
                    if let Some(block) = found.as_ref().filter(|it| self.releases.has_begun(&it.id)) {
                        observed.going.insert(block.id.clone());
                    } else {
                        // A list that was behind may not have shown it.
                        let is_ours = |block: &IpBlock| identity.cluster.is_active_for(block, &identity.key);
                        observed.blocks.extend(found.clone().filter(is_ours));
                    }
                    observed.is_lost_late = found.as_ref().is_some_and(|block| {
                        evidence::is_marked(block) && self.releases.is_of_earlier(&block.id)
                    });
                    observed.stray = found;
                }
            }
        }
        Ok(observed)
    }

    /// The Service's active blocks, also those that this process began to give back.
    async fn blocks_of(&self, identity: &Identity) -> Result<Vec<IpBlock>, CloudError> {
        let Identity { key, cluster, .. } = identity;
        let asker = asker(identity);
        loop {
            lock(&self.asking).insert(asker.clone());
            let listing = self.blocks.ask().await?;
            // A read that began between the two lines above took the question along without answering us. What it does
            // not cover it must not be asked: a block that is not found gets bought.
            if listing.asked.contains(&asker) {
                let ours = listing.blocks.entries.iter();
                let mut ours: Vec<IpBlock> = ours
                    .filter(|block| cluster.is_active_for(block, key))
                    .cloned()
                    .collect();
                self.add_unlisted(identity, &asker, &mut ours).await?;
                let mut stays = ours.iter().filter(|block| !self.releases.has_begun(&block.id));
                return if stays.next().is_none() && may_hide_a_block(&listing.blocks, identity) {
                    Err(CloudError::other(hidden(key)))
                } else {
                    Ok(ours)
                };
            }
        }
    }

    /// Adds the block that this process has bought for the Service if the list does not show it: a list may be behind, and
    /// a Service that is deleted in that moment would leave its block to nobody. It costs a call only then.
    async fn add_unlisted(
        &self,
        identity: &Identity,
        asker: &Asker,
        listed: &mut Vec<IpBlock>,
    ) -> Result<(), CloudError> {
        let Identity { key, cluster, .. } = identity;
        let unlisted = self.purchases.with(asker, |last| match &last.as_ref()?.end {
            End::Unlisted(id) => Some(Some(id.clone())),
            // What is listed was bought by then: there was none before it.
            End::Unknown if listed.iter().any(|block| !self.releases.has_begun(&block.id)) => Some(None),
            End::Unknown | End::Seen => None,
        });
        let Some(unlisted) = unlisted else {
            return Ok(());
        };
        let mut end = End::Seen;
        if let Some(id) = unlisted.filter(|id| !listed.iter().any(|block| block.id == *id)) {
            match self.client.ip_block(&id).await {
                Ok(block) if cluster.is_active_for(&block, key) => {
                    listed.push(block);
                    return Ok(());
                }
                // It was marked since, and is nobody's any more.
                Ok(_) => {}
                Err(error) if error.may_be_gone() && self.releases.has_begun(&id) => {}
                // It was given back by somebody else, or is as late here as in the list.
                Err(error) if error.may_be_gone() => end = End::Unknown,
                Err(error) => return Err(error.into()),
            }
        }
        self.purchases.with(asker, |last| {
            if let Some(last) = last {
                last.end = end;
            }
        });
        Ok(())
    }

    /// Reads the blocks that a purchase may have made, right before it.
    pub(crate) async fn bought_already(&self, identity: &Identity) -> Result<Bought, ApiError> {
        let Identity { key, cluster, .. } = identity;
        let mut blocks = self.client.ip_blocks(&cluster.conditions_of(key)).await?;
        blocks
            .entries
            .retain(|block| cluster.is_active_for(block, key) && !self.releases.has_begun(&block.id));
        Ok(
            if blocks.entries.is_empty() && may_hide_a_block(&blocks, identity) {
                Bought::Unknown(hidden(key))
            } else {
                Bought::Blocks(blocks.entries)
            },
        )
    }

    /// All blocks of the cluster, active and marked.
    pub(crate) async fn blocks_of_cluster(
        &self,
        cluster: &ClusterTags,
    ) -> Result<Listed<IpBlock>, CloudError> {
        let mut blocks = self.client.ip_blocks(&cluster.conditions()).await?;
        blocks.entries.retain(|block| cluster.owns(block));
        for block in blocks.entries.iter().filter(|block| evidence::is_marked(block)) {
            self.releases.is_seen(&block.id);
            self.purchases.each(|last| {
                if matches!(&last.end, End::Unlisted(id) if *id == block.id) {
                    last.end = End::Seen;
                }
            });
        }
        Ok(blocks)
    }

    /// The block that has an address: one of the cluster, or else any of the account, as after somebody took its tags off.
    async fn block_with(
        &self,
        cluster: &ClusterTags,
        address: IpAddr,
    ) -> Result<Option<IpBlock>, CloudError> {
        let of = |blocks: Listed<IpBlock>| {
            let mut blocks = blocks.entries.into_iter();
            blocks.find(|block| blocks::contains(block, address))
        };
        match of(self.blocks_of_cluster(cluster).await?) {
            None => Ok(of(self.client.ip_blocks(&[]).await?)),
            found => Ok(found),
        }
    }

    async fn before_purchase(
        &self,
        wanted: &Wanted,
        id: &str,
        observed: &mut Observed,
        own: &mut Remembered,
    ) -> Result<(), CloudError> {
        if own.purchase == Purchase::NamesForgotten {
            lock(&self.names).clear();
            own.purchase = Purchase::Untried;
        }
        let known = &self.network;
        let (names, network, earlier) = tokio::join!(
            self.missing_names(&mut own.are_names_read),
            known.in_a_moment(),
            self.earlier.get_or_try_init(|| self.find_waiting(wanted, id)),
        );
        earlier?;
        observed.missing_names = Some(names?);
        observed.network = Some(network);
        observed.full = known.full_for(&wanted.identity.key);
        let Identity { key, claim, now, .. } = &wanted.identity;
        let is_barred = claim.as_ref().is_some_and(|claim| claim.bars_for(*now).is_some());
        let is_pending = observed.asked.is_some() || is_barred && !observed.is_claim_void;
        observed.unanswered = match is_pending || observed.full.is_some() {
            true => known.unanswered_for(key),
            false => known.turn(key),
        };
        Ok(())
    }

    /// Tells the network of the blocks that wait for it since an earlier process: those of Services without an address. No call if
    /// there is no other such Service.
    async fn find_waiting(&self, wanted: &Wanted, network: &str) -> Result<(), CloudError> {
        let Identity { key, cluster, .. } = &wanted.identity;
        let classes = wanted.services.classes();
        let has_no_address = |service: &Service| {
            let spec = service.spec.as_ref();
            spec.is_none_or(|spec| spec.load_balancer_ip.is_none()) && classes.wants_load_balancer(service)
        };
        let services = wanted.services.services();
        let others = services.iter().filter(|service| has_no_address(service));
        let others: BTreeSet<ServiceKey> = others.map(|service| ServiceKey::of(service)).collect();
        if others.iter().all(|other| other == key) {
            return Ok(());
        }
        for block in self.blocks_of_cluster(cluster).await?.entries {
            let waits =
                !evidence::is_marked(&block) && blocks::attachment(&block, network) == Attachment::Needed;
            let service = evidence::service_of(&block).filter(|service| waits && others.contains(service));
            if let Some(service) = service {
                self.network.found_waiting(service, block.id);
            }
        }
        Ok(())
    }

    /// The names of tags that have to be made known; they are read only if it is not known that all of them are.
    async fn missing_names(&self, are_read: &mut bool) -> Result<Vec<&'static str>, CloudError> {
        if lock(&self.names).len() == names::NAMES.len() {
            return Ok(Vec::new());
        }
        *are_read = true;
        let known = self.client.tags().await?;
        // A name that cannot be read is made known again, which the API refuses in a way that is good news.
        for tag in known.entries {
            self.learn_name(&tag.name);
        }
        let missing = names::NAMES.into_iter().filter(|name| !self.knows_name(name));
        Ok(missing.collect())
    }

    /// Remembers that the account knows a tag's name.
    pub(crate) fn learn_name(&self, name: &str) {
        if let Some(name) = names::NAMES.iter().find(|known| **known == name) {
            lock(&self.names).insert(name);
        }
    }

    /// Whether the account is known to know a tag's name.
    pub(crate) fn knows_name(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Remembers how the last purchase for a Service stands; `None` if nothing was bought after all.
    pub(crate) fn remember(&self, identity: &Identity, purchase: Option<Begun>) {
        self.purchases.with(&asker(identity), |last| *last = purchase);
    }

    /// Whether this process has bought a block for the Service that no list has shown.
    pub(crate) fn is_unlisted(&self, cluster: &ClusterTags, key: &ServiceKey) -> bool {
        let asker = (cluster.uid.clone(), key.clone());
        self.purchases.with(&asker, |last| {
            let last = last.as_ref();
            last.is_some_and(|last| matches!(last.end, End::Unlisted(_)))
        })
    }

    /// How long ago a purchase of this process for a Service began of which nobody knows what came of it, if it may still come true.
    /// The claim says the same to others, and anybody may take it off the Service.
    fn asked(&self, identity: &Identity) -> Option<Duration> {
        self.purchases.with(&asker(identity), |last| {
            let last = last.as_ref().filter(|last| matches!(last.end, End::Unknown))?;
            Some(last.at.elapsed()).filter(|age| *age < PATIENCE)
        })
    }

    /// Whether the claim on a Service is this process's own, and nothing can come of it any more: nothing was bought under it, because
    /// its reconcile was cut short by a change of the Service, and of one Service there is one reconcile at a time; or what was
    /// bought is known, and the claim is yet to be taken off.
    fn is_void(&self, identity: &Identity) -> bool {
        let Some(claim) = identity.claim_of_process() else {
            return false;
        };
        self.purchases.with(&asker(identity), |last| {
            let last = last.as_ref();
            last.is_none_or(|last| {
                let is_known = last.reconcile == claim.reconcile && !matches!(last.end, End::Unknown);
                is_known || last.reconcile < claim.reconcile
            })
        })
    }
}

fn asker(identity: &Identity) -> Asker {
    (identity.cluster.uid.clone(), identity.key.clone())
}

/// Whether a Service without a block may get to buy one, so that what that takes is worth reading.
fn is_buyer(wanted: &Wanted) -> bool {
    wanted.identity.field.is_empty()
        && wanted.location.is_some()
        && wanted.families != crate::load_balancer::intent::Families::Ipv6
}

/// One Service is looked for by all of its tags, several of a cluster, or one for which the block of another `is_awaited`, by the
/// cluster's alone; nobody by nothing.
fn conditions(asked: &BTreeSet<Asker>, is_awaited: bool) -> Option<Vec<TagFilter>> {
    let mut asked = asked.iter();
    let (uid, key) = asked.next()?;
    let cluster = ClusterTags { uid: uid.clone() };
    Some(if is_awaited || asked.next().is_some() {
        cluster.conditions()
    } else {
        cluster.conditions_of(key)
    })
}

/// What a purchase may have made, read right before it.
pub(crate) enum Bought {
    /// These, or nothing.
    Blocks(Vec<IpBlock>),
    /// It cannot be told, and why.
    Unknown(String),
}

/// Whether what cannot be read of a list may be an active block of the Service. What is not found gets bought, and a Service
/// that has nothing is let go.
fn may_hide_a_block(listed: &Listed<IpBlock>, identity: &Identity) -> bool {
    let Identity { key, cluster, .. } = identity;
    let mut odd = listed.odd.iter();
    odd.any(|odd| cluster.may_be_active_for(odd, key))
}

fn hidden(key: &ServiceKey) -> String {
    format!("the list of IP blocks has an entry that cannot be read and may be the one of service {key}")
}
