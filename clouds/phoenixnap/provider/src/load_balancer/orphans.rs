//! Whose the IP blocks of the account are, and how one goes that nobody asks for, for the command `orphans`.
//!
//! A block is marked first, so that no Service of its name takes it, then taken off its network and given back, as the sweeper does.
//! Whatever stops in between, the sweeper of a manager or the next call of the command goes on with.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::evidence::Traces;
use bowline_cloud_provider::facts::published_addresses;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner, Standing};
use bowline_cloud_provider::{
    CloudError, LoadBalancerPlan, LoadBalancerStatus, Memory, Reconciler, Seen, ServiceFacts, ServiceKey,
};
use bowline_phoenixnap_client::{BlockStatus, Client, IpBlock};
use bowline_plan::{Answer, Plan, Refusal};

use crate::load_balancer::apply::{Learned, Writer};
use crate::load_balancer::blocks;
use crate::load_balancer::evidence;
use crate::load_balancer::fate::{Fate, fate};
use crate::load_balancer::names::{ClusterTags, DELETE, of_managers};
use crate::load_balancer::observe::MarkName;
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::plan::answer::{cloud, wait};
use crate::load_balancer::step::CloudStep;

/// How long until the next look at a block that is on its way.
const LOOK: Duration = Duration::from_secs(5);

/// All blocks that a manager bought, and those that have the address of a Service and lost the tags that tell so.
pub(crate) async fn marked(client: &Client, facts: &OrphanFacts) -> Result<Vec<Found>, CloudError> {
    let evidence = Evidence::of(facts);
    let listed = client.ip_blocks(&[of_managers()]).await?;
    let bought = listed.entries.iter();
    let bought: Vec<&IpBlock> = bought
        .filter(|block| of_managers().is_met_by(&block.tags))
        .collect();
    let found = bought.iter().map(|block| {
        let lost = evidence.with_other_tags(block, facts);
        lost.unwrap_or_else(|| evidence.found(block))
    });
    let mut found: Vec<Found> = found.collect();
    let is_bought = |address| bought.iter().any(|block| blocks::contains(block, address));
    if !evidence.used.iter().copied().all(is_bought) {
        let all = client.ip_blocks(&[]).await?.entries;
        let untagged = all.iter().filter(|block| !of_managers().is_met_by(&block.tags));
        found.extend(untagged.filter_map(|block| evidence.without_tags(block, facts)));
    }
    found.extend(listed.odd.iter().map(|odd| {
        Found {
            kind: "IP block",
            id: odd
                .get("id")
                .and_then(|id| id.as_str())
                .unwrap_or("unknown")
                .to_owned(),
            name: String::new(),
            made: None,
            owner: Owner::default(),
            cluster_uid: None,
            standing: Standing::Unclear,
            why: "what the API says about it cannot be read".to_owned(),
        }
    }));
    Ok(found)
}

/// What tells whose blocks are.
pub(crate) struct Evidence {
    judge: Judge,
    /// The addresses that Services ask for or show.
    used: Vec<IpAddr>,
}

impl Evidence {
    pub(crate) fn of(facts: &OrphanFacts) -> Self {
        Self {
            judge: Judge::new(facts, facts.cluster.uid.clone(), &[], |_| None),
            used: blocks::used_addresses(&*facts.services),
        }
    }

    pub(crate) fn found(&self, block: &IpBlock) -> Found {
        let owner = Owner {
            key: evidence::service_of(block),
            ..Owner::default()
        };
        let cluster_uid = evidence::cluster_of(block);
        let cluster = OfCluster::Marks(cluster_uid, None);
        let traces = Traces {
            id: &block.id,
            ..Traces::default()
        };
        let (mut standing, mut why) = self.judge.judge(&traces, &owner, true, cluster, "its tags");
        if standing == Standing::Orphan {
            if evidence::is_marked(block) {
                (standing, why) = (
                    Standing::Going,
                    format!(
                        "its tag {DELETE} says that it is to be given back, and its tags name this cluster"
                    ),
                );
            } else if let Some(value) = evidence::unclear_mark(block) {
                (standing, why) = (
                    Standing::Persons,
                    format!("its tag {DELETE} is {value}, which no manager writes"),
                );
            } else if blocks::is_used(block, &self.used) {
                (standing, why) = (
                    Standing::InUse,
                    "a Service asks for an address of it, or shows one".to_owned(),
                );
            }
        }
        Found {
            kind: "IP block",
            id: block.id.clone(),
            name: block.cidr.clone(),
            made: block.created_on.as_deref().and_then(|time| time.parse().ok()),
            cluster_uid: cluster_uid.map(str::to_owned),
            owner,
            standing,
            why,
        }
    }

    /// A block that no tag says a manager bought, if a Service asks for an address of it, or shows one.
    fn without_tags(&self, block: &IpBlock, facts: &OrphanFacts) -> Option<Found> {
        let services = facts.services.services();
        let user = services
            .iter()
            .find(|it| blocks::is_used(block, &blocks::addresses_of(it)))?;
        Some(self.unclear(block, ServiceKey::of(user), facts))
    }

    /// A block that a manager bought and that serves a Service, as its status shows, without all the tags that tell so.
    fn with_other_tags(&self, block: &IpBlock, facts: &OrphanFacts) -> Option<Found> {
        let cluster = evidence::cluster_of(block);
        let is_another_clusters = cluster.is_some_and(|uid| Some(uid) != facts.cluster.uid.as_deref());
        if is_another_clusters || evidence::is_marked(block) {
            return None;
        }
        let services = facts.services.services();
        let owner = evidence::service_of(block).filter(|_| cluster.is_some());
        let mut users = services
            .iter()
            .filter(|it| blocks::is_used(block, &blocks::addresses_of(it)));
        if users.clone().any(|it| Some(ServiceKey::of(it)) == owner) {
            return None;
        }
        let user = users.find(|it| {
            let shown = published_addresses(it);
            let mut shown = shown.iter().filter_map(|it| it.parse().ok());
            shown.any(|address| blocks::contains(block, address))
        })?;
        Some(self.unclear(block, ServiceKey::of(user), facts))
    }

    fn unclear(&self, block: &IpBlock, key: ServiceKey, facts: &OrphanFacts) -> Found {
        let uid = facts.cluster.uid.clone().unwrap_or_default();
        let tags = evidence::missing(block, &ClusterTags { uid }, &key).join(", ");
        Found {
            standing: Standing::Unclear,
            why: format!(
                "Service {key} asks for an address of it, or shows one, and it does not have the tags {tags}: put them back if it was bought for that Service"
            ),
            ..self.found(block)
        }
    }
}

/// Gives one block back.
pub(crate) struct Remover {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
    pub(crate) network: String,
    /// The block's ID.
    pub(crate) block: String,
}

/// Whose block it is.
pub(crate) struct Doomed {
    cluster: ClusterTags,
    evidence: Evidence,
}

/// The block, as long as it is there.
type Observed = Option<IpBlock>;

impl Reconciler for Remover {
    type Facts = ServiceFacts;
    type Intent = Doomed;
    type Observed = Observed;
    type Remembered = MarkName;
    type Step = CloudStep;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Doomed, Refusal> {
        let Some(uid) = facts.cluster.uid.clone() else {
            return Err(Refusal::new("the cluster's UID is not known"));
        };
        Ok(Doomed {
            cluster: ClusterTags { uid },
            evidence: Evidence::of(&OrphanFacts {
                services: Arc::clone(&facts.services),
                nodes: Arc::clone(&facts.nodes),
                cluster: Arc::clone(&facts.cluster),
                now: facts.now,
            }),
        })
    }

    async fn observe(
        &self,
        intent: &Doomed,
        _: Option<Observed>,
        _: &mut Memory<MarkName, CloudStep>,
    ) -> Result<Observed, CloudError> {
        let blocks = self.reads.blocks_of_cluster(&intent.cluster).await?;
        let block = blocks.entries.into_iter().find(|block| block.id == self.block);
        match block.is_none() && !blocks.odd.is_empty() {
            true => Err(CloudError::other(
                "the list of IP blocks has an entry that cannot be read and may be this one",
            )),
            false => Ok(block),
        }
    }

    fn plan(
        &self,
        intent: &Doomed,
        seen: &Seen<Observed, MarkName, CloudStep>,
    ) -> LoadBalancerPlan<CloudStep> {
        let Some(block) = &seen.observed else {
            return Plan::new(Answer::Settled(LoadBalancerStatus::empty()));
        };
        let found = intent.evidence.found(block);
        if !found.standing.is_orphan() {
            return Plan::new(Answer::Refused(Refusal::new(found.why)));
        }
        let IpBlock { id, cidr, .. } = block;
        if !evidence::is_marked(block) {
            return Plan::new(cloud(vec![match seen.memory.own {
                MarkName::Missing => CloudStep::CreateTagName { name: DELETE },
                MarkName::Assumed | MarkName::Ensured => CloudStep::mark(block),
            }]));
        }
        Plan::new(match fate(block, &self.network) {
            Fate::Wait => wait(LOOK, format!("IP block {id} is {}", block.status)),
            Fate::LeaveAlone(why) => Answer::Refused(Refusal::new(format!("IP block {id} ({cidr}) {why}"))),
            Fate::Step(step) => cloud(vec![step]),
        })
    }

    async fn apply(
        &self,
        intent: &Doomed,
        seen: &Seen<Observed, MarkName, CloudStep>,
        step: &CloudStep,
    ) -> Result<Learned, CloudError> {
        let writer = Writer {
            client: &self.client,
            reads: &self.reads,
            cluster: &intent.cluster,
            mark: seen.memory.own,
            gives_way: false,
        };
        writer.apply(step).await
    }

    fn learn(&self, seen: &mut Seen<Observed, MarkName, CloudStep>, step: &CloudStep, learned: Learned) {
        match learned {
            Learned::NoMarkName => seen.memory.own = MarkName::Missing,
            Learned::Detached => {
                if let Some(block) = &mut seen.observed {
                    block.status = BlockStatus::Unassigning;
                }
            }
            _ => self.predict(seen, step),
        }
    }

    /// What is taken off is off, so that all that will be done is shown.
    fn predict(&self, seen: &mut Seen<Observed, MarkName, CloudStep>, step: &CloudStep) {
        match (step, &mut seen.observed) {
            (CloudStep::Delete { .. }, block) => *block = None,
            (CloudStep::Mark { tags, .. }, Some(block)) => block.tags.clone_from(tags),
            (CloudStep::Detach { .. }, Some(block)) => block.status = BlockStatus::Unassigned,
            (CloudStep::CreateTagName { .. }, _) => seen.memory.own = MarkName::Ensured,
            _ => {}
        }
    }
}
