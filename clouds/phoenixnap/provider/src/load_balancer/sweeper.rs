//! Takes marked blocks off their network and gives them back; attaches again what fell off.
//!
//! One list for each run. Every block is handled by its own ID and on its own network, side by side but for the network's
//! lane; a failure on one keeps no other waiting. A block whose Service is nowhere to be seen is counted and told of.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::orphans::OrphanFacts;
use bowline_cloud_provider::{
    Asker, BackgroundFacts, BackgroundWork, CloudError, LoadBalancerPlan, Measurement, Memory, Reconciler,
    RefusalBook, Seen, ServiceKey, lock,
};
use bowline_phoenixnap_client::{BlockStatus, Client, IpBlock, Listed};
use bowline_plan::{Plan, Refusal};
use serde_json::Value;
use tokio::time::Instant;

use crate::load_balancer::apply::{Learned, Writer};
use crate::load_balancer::blocks::{Attachment, attachment};
use crate::load_balancer::evidence;
use crate::load_balancer::fate::{Fate, fate};
use crate::load_balancer::names::ClusterTags;
use crate::load_balancer::observe::MarkName;
use crate::load_balancer::observe::busy::{LOOKS, Move};
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::orphans::Evidence;
use crate::load_balancer::step::CloudStep;

pub(crate) mod gauges;
mod observe;
pub(crate) mod plan;

use crate::load_balancer::sweeper::observe::{Intent, Observed};

/// Time between two runs.
const PERIOD: Duration = Duration::from_secs(30);

/// How long a block must have looked like an orphan before it is called one. Services and blocks are read one after the
/// other, so a block may be there a moment before its Service is seen, or a moment after it.
const DOUBT: Duration = Duration::from_secs(20);

/// How long no list must have had the block of a Service that shows its address: a list may be as late as that.
const LATE_LIST: Duration = Duration::from_secs(60);

/// Gives back what is marked.
pub(crate) struct Sweeper {
    client: Client,
    reads: Arc<Reads>,
    network: String,
    /// The blocks that have looked like orphans without a break, and since when.
    suspects: Mutex<BTreeMap<String, Instant>>,
    /// The Services with the address that they show, which no block has had without a break, and since when.
    without_block: Mutex<BTreeMap<(ServiceKey, IpAddr), Instant>>,
    /// The attachments that were refused: each is tried less and less often.
    refusals: RefusalBook<CloudStep>,
    /// The blocks of which a write failed: it is tried again in the next run.
    failed: Mutex<BTreeMap<String, Failed>>,
    /// Whether a block was taken off its network, or given back.
    has_made_room: AtomicBool,
}

/// A write that failed.
struct Failed {
    why: String,
    /// Whether it had no answer.
    is_silent: bool,
    /// When, until the run is over.
    held_since: Option<Instant>,
}

impl Failed {
    /// A run that has to wait is not over for a long time.
    fn is_held(&self) -> bool {
        self.held_since.is_some_and(|since| since.elapsed() < PERIOD)
    }
}

impl Reconciler for Sweeper {
    type Facts = BackgroundFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Remembered = ();
    type Step = CloudStep;
    type Learned = Learned;

    fn intent(&self, facts: &BackgroundFacts) -> Result<Intent, Refusal> {
        let Some(uid) = facts.cluster.uid.clone() else {
            return Err(Refusal::new("the cluster's ID is not known"));
        };
        let services = facts.services.services();
        Ok(Intent {
            cluster: ClusterTags { uid },
            classes: facts.services.classes().clone(),
            evidence: Evidence::of(&OrphanFacts {
                services: Arc::clone(&facts.services),
                nodes: Arc::default(),
                cluster: Arc::clone(&facts.cluster),
                now: facts.now,
            }),
            services: services
                .into_iter()
                .map(|service| (ServiceKey::of(&service), service))
                .collect(),
        })
    }

    async fn observe(
        &self,
        intent: &Intent,
        _: Option<Observed>,
        _: &mut Memory<(), CloudStep>,
    ) -> Result<Observed, CloudError> {
        let network = &self.reads.network;
        let Listed {
            entries: mut blocks,
            odd,
        } = self.reads.blocks_of_cluster(&intent.cluster).await?;
        network.listed(|id| {
            let mut waiting = blocks.iter().filter(|block| !evidence::is_marked(block));
            waiting.any(|block| block.id == id && attachment(block, &self.network) != Attachment::Done)
        });
        let (mut failed, silent) = self.failed(&blocks);
        for block in &mut blocks {
            network.sees(block);
            if block.status == BlockStatus::Assigned && network.is_leaving(&block.id) {
                block.status = BlockStatus::Unassigning; // the list is behind
            }
            if let Some(why) = network.holds_back(block).filter(|_| !evidence::is_marked(block)) {
                failed.insert(block.id.clone(), why.reason);
            }
        }
        let busy = [Move::On, Move::Off].map(|to| Some((to, network.busy_for_sweeper(to, "")?)));
        Ok(Observed {
            busy: busy.into_iter().flatten().collect(),
            look: network.look(&blocks),
            silent,
            orphans: self.orphans(intent, &blocks),
            going: self.going(&blocks),
            unlisted: self.unlisted(intent, &blocks, &odd),
            blocks,
            failed,
            used: self
                .reads
                .network
                .known()
                .iter()
                .flat_map(|network| &network.memberships)
                .flat_map(|member| member.ips.iter().cloned())
                .collect(),
        })
    }

    /// The next run looks anyway.
    async fn verify(
        &self,
        _: &Intent,
        last: Observed,
        _: &mut Memory<(), CloudStep>,
    ) -> Result<Observed, CloudError> {
        Ok(last)
    }

    fn plan(&self, intent: &Intent, observed: &Seen<Observed, (), CloudStep>) -> LoadBalancerPlan<CloudStep> {
        let refusals = &observed.memory.refusals;
        let (answer, notes) = plan::plan(intent, observed, refusals, &self.network);
        Plan::new(answer).with_notes(notes)
    }

    async fn apply(
        &self,
        intent: &Intent,
        _observed: &Seen<Observed, (), CloudStep>,
        step: &CloudStep,
    ) -> Result<Learned, CloudError> {
        let writer = Writer {
            client: &self.client,
            reads: &self.reads,
            cluster: &intent.cluster,
            mark: MarkName::Ensured,
            gives_way: true,
        };
        let result = writer.apply(step).await;
        if let Some(block) = step.block() {
            let failed = result.as_ref().err().map(|error| Failed {
                why: error.to_string(),
                is_silent: error.is_unheard(),
                held_since: Some(Instant::now()),
            });
            let mut all = lock(&self.failed);
            match failed {
                Some(failed) => all.insert(block.to_owned(), failed),
                None => all.remove(block),
            };
        }
        if matches!(result, Ok(Learned::Detached | Learned::Deleted)) {
            self.refusals.room_was_made();
            self.has_made_room.store(true, Ordering::Relaxed);
        }
        // One block must not end the run for the others.
        Ok(result.unwrap_or_else(Learned::Failed))
    }

    /// It asks for no Service, and always for the same.
    fn book(&self, facts: &BackgroundFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        let asker = Asker {
            uid: String::new(),
            asked: 0,
            is_removal: false,
            has_begun: false,
            is_unanswered: false,
            now: facts.now,
        };
        Some((&self.refusals, asker))
    }

    fn settled(&self, _: &Intent) {
        let mut failed = lock(&self.failed);
        failed.values_mut().for_each(|it| it.held_since = None);
    }

    fn learn(&self, observed: &mut Seen<Observed, (), CloudStep>, step: &CloudStep, learned: Learned) {
        let Some(block) = step.block() else {
            return;
        };
        match learned {
            Learned::Failed(error) => {
                observed.failed.insert(block.to_owned(), error.to_string());
            }
            Learned::PutOff(later) => observed.busy.extend(step.moves().map(|to| (to, later))),
            // A Service at which nothing changes is looked at every ten minutes only.
            Learned::Refused(refusal) => {
                observed.failed.insert(block.to_owned(), refusal.reason);
            }
            _ => {
                if step.moves().is_some() {
                    observed.look = Some(LOOKS.next(Duration::ZERO));
                }
                self.predict(observed, step);
            }
        }
    }

    fn predict(&self, observed: &mut Seen<Observed, (), CloudStep>, step: &CloudStep) {
        match step {
            CloudStep::Delete { block, .. } => observed.blocks.retain(|known| known.id != *block),
            CloudStep::Detach { block, .. } => set_status(observed, block, BlockStatus::Unassigning),
            CloudStep::Attach { block, .. } => set_status(observed, block, BlockStatus::Assigning),
            CloudStep::Mark { block, tags, .. } => {
                for known in observed.blocks.iter_mut().filter(|known| known.id == *block) {
                    known.tags.clone_from(tags);
                }
            }
            _ => {}
        }
    }

    fn measure(&self, _: &Intent, observed: &Seen<Observed, (), CloudStep>) -> Vec<Measurement> {
        gauges::measure(observed, &self.network)
    }
}

impl Sweeper {
    /// A sweeper of the blocks on this network.
    pub(crate) fn new(client: &Client, reads: &Arc<Reads>, network: &str) -> Self {
        Self {
            client: client.clone(),
            reads: Arc::clone(reads),
            network: network.to_owned(),
            suspects: Mutex::default(),
            without_block: Mutex::default(),
            refusals: RefusalBook::default(),
            failed: Mutex::default(),
            has_made_room: AtomicBool::new(false),
        }
    }

    /// The blocks that look like orphans, and those that are marked and not given back.
    pub(crate) async fn left_over(&self, facts: BackgroundFacts) -> Result<Vec<String>, CloudError> {
        let intent = self
            .intent(&facts)
            .map_err(|refusal| CloudError::other(refusal.to_string()))?;
        let blocks = self.reads.blocks_of_cluster(&intent.cluster).await?.entries;
        let is_held = |block: &IpBlock| {
            let fate = fate(block, &self.network);
            evidence::is_marked(block) && matches!(fate, Fate::Step(CloudStep::Detach { .. }))
        };
        let network = match blocks.iter().any(is_held) {
            true => self.reads.network.in_a_moment().await.known(),
            false => None,
        };
        let members = network.as_ref().map_or(&[][..], |known| &known.memberships);
        let lines = blocks
            .iter()
            .filter_map(|block| plan::left_over(&intent, block, &self.network, members));
        Ok(lines.collect())
    }

    /// The blocks of which a write has failed in this run, and why; and those of which one had no answer the last time.
    fn failed(&self, blocks: &[IpBlock]) -> (BTreeMap<String, String>, BTreeSet<String>) {
        let mut failed = lock(&self.failed);
        failed.retain(|id, _| blocks.iter().any(|block| block.id == *id));
        let held = failed.iter().filter(|(_, it)| it.is_held());
        let silent = failed.iter().filter(|(_, it)| it.is_silent);
        (
            held.map(|(id, it)| (id.clone(), it.why.clone())).collect(),
            silent.map(|(id, _)| id.clone()).collect(),
        )
    }

    /// The blocks without their mark that this process began to give back.
    fn going(&self, blocks: &[IpBlock]) -> BTreeMap<String, bool> {
        let active = blocks.iter().filter(|block| !evidence::is_marked(block));
        let going =
            active.filter_map(|block| Some((block.id.clone(), self.reads.releases.is_overdue(&block.id)?)));
        going.collect()
    }

    /// The blocks that have looked like orphans for so long that they are some.
    fn orphans(&self, intent: &Intent, blocks: &[IpBlock]) -> BTreeSet<String> {
        let looks_so =
            |block: &&IpBlock| intent.has_orphan(block) && !self.reads.releases.has_begun(&block.id);
        let ids = blocks.iter().filter(looks_so).map(|block| block.id.clone());
        beyond_doubt(&self.suspects, ids, DOUBT)
    }

    /// The Services whose block no list has had for so long that somebody took it or its tags away.
    fn unlisted(&self, intent: &Intent, blocks: &[IpBlock], odd: &[Value]) -> BTreeSet<(ServiceKey, IpAddr)> {
        // What cannot be read may be any of them.
        let without = intent
            .without_block(blocks)
            .filter(|(key, _)| odd.is_empty() && !self.reads.is_unlisted(&intent.cluster, key));
        beyond_doubt(&self.without_block, without, LATE_LIST)
    }
}

/// Which of those that look so now have looked so without a break for as long as that.
fn beyond_doubt<K: Ord + Clone>(
    suspects: &Mutex<BTreeMap<K, Instant>>,
    looking_so: impl Iterator<Item = K>,
    doubt: Duration,
) -> BTreeSet<K> {
    let now = Instant::now();
    let mut suspects = lock(suspects);
    let looking_so = looking_so.map(|key| {
        let since = suspects.get(&key).copied().unwrap_or(now);
        (key, since)
    });
    *suspects = looking_so.collect();
    let beyond = suspects
        .iter()
        .filter(|(_, since)| now.duration_since(**since) >= doubt);
    beyond.map(|(key, _)| key.clone()).collect()
}

impl BackgroundWork for Sweeper {
    fn name(&self) -> &'static str {
        "phoenixnap-sweeper"
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn has_made_room(&self) -> bool {
        self.has_made_room.swap(false, Ordering::Relaxed)
    }
}

fn set_status(observed: &mut Observed, block: &str, status: BlockStatus) {
    for known in observed.blocks.iter_mut().filter(|known| known.id == block) {
        known.status = status.clone();
    }
}
