//! Makes the writes.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, Told, WriteOutcome};
use bowline_phoenixnap_client::{
    ApiError, BlockStatus, BlockTag, Class, Client, IpBlock, NewIpBlock, PublicNetwork,
};
use bowline_plan::{Refusal, RefusedBy, refusal};
use tokio::time::{Instant, sleep_until, timeout};

use crate::load_balancer::blocks::{self, Attachment};
use crate::load_balancer::claim::{self, VALIDITY};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::names::ClusterTags;
use crate::load_balancer::observe::busy::{Later, Move};
use crate::load_balancer::observe::network::{MOST_BLOCKS, NoPlace, not_attached, others};
use crate::load_balancer::observe::reads::{Begun, Bought, End, Reads};
use crate::load_balancer::observe::{MarkName, Purchase, Seen};
use crate::load_balancer::plan::answer::PATIENCE;
use crate::load_balancer::step::CloudStep;

/// A list that is older than this does not decide a purchase: the blocks are looked for once more.
const FRESH: Duration = Duration::from_secs(5);

/// How long an attachment that was refused waits for each answer to why: the other Services wait with it.
const ASIDE: Duration = Duration::from_secs(1);

/// What the answer to a write told.
#[derive(Debug)]
pub(crate) enum Learned {
    /// A tag's name is known to the account.
    Name,
    /// The block that was bought, or was there already.
    Blocks(Vec<IpBlock>),
    /// Nothing was bought.
    NotBought(Purchase),
    /// It was refused: nothing was bought, or the network takes no more, or the block is one that the API does not attach as it is.
    Refused(Refusal),
    /// It was not done now: the network or the block is busy, others come first, or it is not known yet whether the network takes the
    /// block of another Service.
    PutOff(Later),
    /// The block is on its way to the network.
    Attached,
    /// The block, as it is after the attachment was refused because it is there already.
    Block(Box<IpBlock>),
    /// The block is marked.
    Marked,
    /// The account does not know the tag that marks.
    NoMarkName,
    /// The block is on its way off the network.
    Detached,
    /// The block is gone.
    Deleted,
    /// A write of the sweeper failed; the others go on.
    Failed(CloudError),
}

impl Told for Learned {
    fn refused(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// What the network is asked next it would refuse too.
    fn ends_wave(&self) -> bool {
        matches!(self, Self::PutOff(_))
    }

    fn outcome(&self) -> WriteOutcome {
        match self {
            Self::Name
            | Self::Blocks(_)
            | Self::Attached
            | Self::Block(_)
            | Self::Marked
            | Self::Detached
            | Self::Deleted => WriteOutcome::Taken,
            Self::PutOff(_) => WriteOutcome::PutOff,
            // It may have been asked for by then.
            Self::NotBought(Purchase::ClaimExpired) => WriteOutcome::Unknown,
            Self::Failed(error) if error.kind() == ErrorKind::Transient => WriteOutcome::Unknown,
            Self::NotBought(_) | Self::Refused(_) | Self::NoMarkName | Self::Failed(_) => {
                WriteOutcome::NotTaken
            }
        }
    }
}

/// Makes the writes of whoever sees to the blocks of a cluster.
pub(crate) struct Writer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) reads: &'a Reads,
    pub(crate) cluster: &'a ClusterTags,
    /// Whether the account knows the tag that marks.
    pub(crate) mark: MarkName,
    /// Whether it lets Services go first that wait for the network.
    pub(crate) gives_way: bool,
}

impl Writer<'_> {
    /// Makes one write, unless it is a purchase.
    pub(crate) async fn apply(&self, step: &CloudStep) -> Result<Learned, CloudError> {
        match step {
            CloudStep::CreateTagName { name } => self.create_name(name).await,
            CloudStep::BuyBlock { .. } => {
                let text = "an IP block is bought for a service that wants one, and for nobody else";
                Err(CloudError::other(text))
            }
            CloudStep::Attach { block, network, .. } => self.attach(block, network).await,
            CloudStep::Mark { block, tags, .. } => self.mark(block, tags).await,
            CloudStep::Detach { block, network, .. } => self.detach(block, network).await,
            CloudStep::Delete { block, .. } => self.delete(block).await,
        }
    }

    /// That the name is there already is good news, be it since another Service made it known.
    async fn create_name(&self, name: &'static str) -> Result<Learned, CloudError> {
        let is_removed = self.mark == MarkName::Missing;
        if !is_removed && self.reads.knows_name(name) {
            return Ok(Learned::Name);
        }
        match self.client.create_tag(name).await {
            Ok(()) => {}
            // Somebody was faster.
            Err(error) if error.class == Class::Conflict => {}
            Err(error) => return Err(error.into()),
        }
        self.reads.learn_name(name);
        Ok(Learned::Name)
    }

    /// Marks a block for deletion.
    async fn mark(&self, block: &str, tags: &[BlockTag]) -> Result<Learned, CloudError> {
        let Self { client, reads, .. } = self;
        let is_first = reads.releases.begins(block);
        let answer = client.put_ip_block_tags(block, tags).await;
        reads.releases.answers(block, is_first, &answer);
        match answer {
            Ok(()) => {
                reads.network.refuses_no_more(block);
                Ok(Learned::Marked)
            }
            Err(error) if error.status() == Some(400) && self.mark != MarkName::Ensured => {
                tracing::debug!(block, err = %error, "Marking refused, the tag may be unknown");
                Ok(Learned::NoMarkName)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a block of this cluster back.
    async fn delete(&self, block: &str) -> Result<Learned, CloudError> {
        let error = match self.client.delete_ip_block(block).await {
            Ok(_) => return Ok(Learned::Deleted),
            Err(error) => error,
        };
        // A deleted ID answers 403, as one does that must not be touched.
        if error.may_be_gone() {
            let blocks = self.reads.blocks_of_cluster(self.cluster).await?;
            if blocks.odd.is_empty() && blocks.entries.iter().all(|known| known.id != block) {
                return Ok(Learned::Deleted);
            }
        }
        Err(error.into())
    }

    /// Attaches a block. A refusal may mean that it is there already, that something is busy, or that the network is full. What is known to
    /// be refused, because the network is at work on the block of another Service, is not asked for.
    async fn attach(&self, block: &str, network: &str) -> Result<Learned, CloudError> {
        if let Some(later) = self.busy(Move::On, block) {
            return Ok(Learned::PutOff(later));
        }
        let answer = self.try_to_attach(block, network).await;
        self.reads.network.answers(block);
        answer
    }

    fn busy(&self, to: Move, block: &str) -> Option<Later> {
        let network = &self.reads.network;
        match self.gives_way {
            true => network.busy_for_sweeper(to, block),
            false => network.busy(to, block),
        }
    }

    /// Takes a block off its network. That one is refused while the network is at work is no failure, unless it stays so.
    async fn detach(&self, block: &str, network: &str) -> Result<Learned, CloudError> {
        let own = &self.reads.network;
        let is_own = own.is(network);
        if let Some(later) = self.busy(Move::Off, block).filter(|_| is_own) {
            return Ok(Learned::PutOff(later));
        }
        let error = match self.client.detach(network, block).await {
            Ok(()) if is_own => {
                own.begins(Move::Off, block);
                return Ok(Learned::Detached);
            }
            Ok(()) => return Ok(Learned::Detached),
            Err(error) => error,
        };
        if is_own && error.class == Class::Conflict {
            let is_busy = own.is_moving() || {
                let now = timeout(ASIDE, self.client.public_network(network)).await;
                now.is_ok_and(|now| now.is_ok_and(|now| now.is_busy()))
            };
            let later = is_busy.then(|| own.is_busy(Move::Off, block, error.to_string()));
            if let Some(later) = later.filter(|later| later.lasts < PATIENCE) {
                return Ok(Learned::PutOff(later));
            }
        }
        Err(error.into())
    }

    async fn try_to_attach(&self, block: &str, network: &str) -> Result<Learned, CloudError> {
        let Self { client, reads, .. } = self;
        let error = match client.attach(network, block).await {
            Ok(()) => {
                reads.network.begins(Move::On, block);
                return Ok(Learned::Attached);
            }
            Err(error) => error,
        };
        // Whether it was so at the last try too.
        let refuses = || reads.network.refuses(block, error.to_string());
        let is_refused = matches!(error.class, Class::Conflict | Class::Invalid | Class::Exhausted);
        if !is_refused {
            if error.class == Class::Denied {
                let _ = refuses();
            }
            return Err(error.into());
        }
        let (mut has_failed, mut is_free, mut is_looked_at) = (false, true, false);
        if error.class == Class::Conflict {
            match timeout(ASIDE, client.ip_block(block)).await {
                // Half of it may be left from an attachment that failed.
                Ok(Ok(now)) if blocks::attachment(&now, network) == Attachment::Done => {
                    // Whether the network would take another block is known by this one.
                    reads.network.begins(Move::On, block);
                    reads.network.sees(&now);
                    return Ok(Learned::Block(Box::new(now)));
                }
                Ok(Ok(now)) => {
                    is_looked_at = true;
                    has_failed = now.status == BlockStatus::ErrorAssigning;
                    is_free = !has_failed && blocks::attachment(&now, network) == Attachment::Needed;
                }
                // The next list tells.
                Ok(Err(error)) => tracing::debug!(block, err = %error, "The block cannot be looked at"),
                Err(_) => tracing::debug!(block, "The block cannot be looked at in time"),
            }
        }
        let now = timeout(ASIDE, client.public_network(network)).await.ok();
        let now = now.and_then(Result::ok);
        // What this process is attaching may have ended between the two answers.
        let is_busy = now.as_ref().is_some_and(PublicNetwork::is_busy) || reads.network.is_moving();
        let is_refused_for_long = is_free && !is_busy && refuses();
        // At first, network or block may have become free between the two answers.
        let is_full = is_refused_for_long && is_looked_at && now.is_some();
        match now.map_or(0, |now| others(&now, block)) {
            others @ MOST_BLOCKS.. => {
                let text = format!(
                    "public network {network} has {others} IP blocks and takes no more, so no more services either: {error}"
                );
                Ok(Learned::Refused(Refusal::new(text).of_limit(true)))
            }
            // What is busy ends by itself, and this need not.
            _ if has_failed => Ok(Learned::Refused(not_attached(block, network, &error.to_string()))),
            others if is_full && !has_failed => {
                let refusal = refusal!(
                    "public network {network} has {others} other IP blocks and refuses IP block {block} again and again, although the network is not busy and the block is free: {error}";
                    "the network may be full: delete a Service that is not needed, or ask phoenixNAP how many blocks the network takes. The block is billed meanwhile, and is attached when the network takes it"
                );
                Ok(Learned::Refused(refusal.of_limit(true)))
            }
            _ if error.class == Class::Conflict => {
                let later = reads.network.is_busy(Move::On, block, error.to_string());
                Ok(Learned::PutOff(later))
            }
            _ => Err(error.into()),
        }
    }
}

/// Makes the purchase of one reconcile.
pub(crate) struct Buyer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) reads: &'a Reads,
    pub(crate) seen: &'a Seen,
}

impl Buyer<'_> {
    /// Buys a block, if the claim still holds and there really is none. Never tried twice in one reconcile, whatever became
    /// of it: the next one looks for the block by its tags.
    pub(crate) async fn buy(&self, wanted: &Wanted, new: &NewIpBlock) -> Result<Learned, CloudError> {
        let reconcile = self.seen.memory.own.reconcile;
        let Some(claim) = wanted.identity.own_claim(reconcile) else {
            return Err(CloudError::other("without a claim no IP block is bought"));
        };
        let began = self.seen.memory.own.began.unwrap_or(self.seen.listed);
        let remember = |purchase| self.reads.remember(&wanted.identity, purchase);
        let begun = |at, end| {
            remember(Some(Begun { reconcile, at, end }));
        };
        let key = &wanted.identity.key;
        let network = &self.reads.network;
        let bought = |block: Option<&str>| network.bought(key, block);
        let claimed = began + claim::elapsed(wanted.identity.now, claim.time);
        let purchase = async {
            match network.reserve(key) {
                Ok(()) => {}
                Err(NoPlace::Later(later)) => return Ok(Learned::PutOff(later)),
                Err(NoPlace::Full(full)) => return Ok(Learned::Refused(full)),
            }
            if self.seen.listed.elapsed() > FRESH {
                match self.reads.bought_already(&wanted.identity).await? {
                    Bought::Blocks(found) if found.is_empty() => {}
                    Bought::Blocks(found) => {
                        bought(found.first().map(|block| block.id.as_str()));
                        return Ok(Learned::Blocks(found));
                    }
                    Bought::Unknown(why) => {
                        bought(None);
                        return Ok(Learned::Refused(Refusal::new(why)));
                    }
                }
            }
            let asked = Instant::now();
            begun(asked, End::Unknown);
            let block = self.client.create_ip_block(new).await?;
            bought(Some(&block.id));
            begun(asked, End::Unlisted(block.id.clone()));
            Ok(Learned::Blocks(vec![block]))
        };
        let result: Result<Learned, ApiError> = tokio::select! {
            biased;
            // A process that was stopped for a while must not begin what another one has taken over meanwhile. If it had
            // begun, its answer is as good as lost.
            () = sleep_until(claimed + VALIDITY) => return Ok(Learned::NotBought(Purchase::ClaimExpired)),
            result = purchase => result,
        };
        let error = match result {
            Ok(learned) => return Ok(learned),
            Err(error) => error,
        };
        if error.maybe_applied() || error.class == Class::NotSent {
            return Err(error.into());
        }
        remember(None);
        bought(None);
        if !is_refusal(&error) {
            return Err(error.into());
        }
        // Names that were just read are known, and it is something else that is wrong.
        if error.status() == Some(400)
            && error.class != Class::Exhausted
            && !self.seen.memory.own.are_names_read
        {
            tracing::debug!(err = %error, "Purchase refused, the tags may be unknown");
            return Ok(Learned::NotBought(Purchase::NamesForgotten));
        }
        let is_limit = error.class == Class::Exhausted;
        let refusal = Refusal::new(error.to_string()).of_limit(is_limit);
        let refusal = match error.status() {
            Some(403) if !is_limit => refusal.by(RefusedBy::Denial).with_remedy(
                "whoever runs the manager gives it credentials that may buy IP blocks: they need the scopes bmc and tags",
            ),
            Some(406) => refusal.with_remedy(self.sold_out(new)),
            _ => refusal,
        };
        Ok(Learned::Refused(refusal))
    }

    /// What to do where it is the location that has no more, whatever the account may have.
    fn sold_out(&self, new: &NewIpBlock) -> String {
        let NewIpBlock {
            location,
            cidr_block_size,
            ..
        } = new;
        let network = self.reads.network.known();
        let is_bound = network.is_some_and(|it| it.location.is_some());
        let elsewhere = match is_bound {
            true => "another location is of no use, because the public network is in this one",
            false => "another location may have some",
        };
        format!(
            "location {location} has no free IP block of size {cidr_block_size}: whoever owns the project asks phoenixNAP for more there, or waits: it is tried again by itself; {elsewhere}"
        )
    }
}

/// Whether the API has looked at a purchase and does not make it: the remedy is a person's. One that did not get as far, for want of a
/// connection, a good token or a turn, is tried again like any other call; its claim stays, and this process knows that it is void.
fn is_refusal(error: &ApiError) -> bool {
    error.status().is_some() && !matches!(error.class, Class::Throttled { .. } | Class::Unauthenticated)
}
