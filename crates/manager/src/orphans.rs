//! What bears our marks in the cloud and has no Service: found for a cluster, shown, and removed when a person says so.
//!
//! A list that lacks a Service proves nothing, so a Service is asked for by its name once more before anything is removed, and all is
//! found anew after the question: what has changed meanwhile stays.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::orphans::{Found, GoneCluster, OrphanFacts, Standing};
use bowline_cloud_provider::{
    CloudProvider, ClusterFacts, LoadBalancer, Service, ServiceClasses, ServiceKey, ServiceList,
    ServicesView, Unanswered, facts,
};
use bowline_drive::orphans::{Planned, Removal, find};
use bowline_drive::{Driven, Lanes};
use bowline_kube_io::{Clock as _, Kube, ServiceCache, SystemClock};
use futures::StreamExt as _;
use futures::future::pending;

use crate::cluster;

mod render;

pub use render::{render_json, render_text};

/// Removals under way at once. The cloud's own budget bounds the calls below that.
const AT_ONCE: usize = 8;

/// How long one removal is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where is looked, and for whose orphans.
pub struct Search {
    load_balancer: Arc<dyn LoadBalancer>,
    /// The API server; `None` for a cluster that is gone.
    kube: Option<Kube>,
    cluster: Arc<ClusterFacts>,
}

/// What was found.
#[derive(Debug)]
pub struct Survey {
    /// The cluster, for people.
    pub cluster: String,
    /// Orphans, with what would be done.
    pub removals: Vec<Planned>,
    /// What stays.
    pub others: Vec<Found>,
    /// The clouds that could not be read, of several.
    pub unread: Vec<Unanswered>,
    /// When it was looked.
    pub now: jiff::Timestamp,
}

impl Survey {
    /// Of how many objects nothing tells for certain whose they are.
    pub fn unclear(&self) -> usize {
        self.count(Standing::Unclear)
    }

    fn count(&self, standing: Standing) -> usize {
        self.others.iter().filter(|it| it.standing == standing).count()
    }
}

/// What became of the orphans of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Them, for people.
    pub object: String,
    /// Why they are there still; `None` if they are gone.
    pub why_not: Option<String>,
}

impl Search {
    /// For the orphans of the cluster that the API server is of.
    ///
    /// # Errors
    ///
    /// For people: the cloud has no load balancers, or what tells clusters apart cannot be read.
    pub async fn of_cluster(
        provider: &dyn CloudProvider,
        kube: Kube,
        name: &str,
        holder: &str,
    ) -> Result<Self, String> {
        let uid = cluster::uid(&kube, provider).await?;
        Self::new(provider, Some(kube), name, holder, uid)
    }

    /// For the orphans of a cluster that is gone, by its name, its UID or both.
    ///
    /// # Errors
    ///
    /// The cloud has no load balancers.
    pub fn of_gone(
        provider: &dyn CloudProvider,
        name: &str,
        uid: Option<String>,
        holder: &str,
    ) -> Result<Self, String> {
        Self::new(provider, None, name, holder, uid)
    }

    fn new(
        provider: &dyn CloudProvider,
        kube: Option<Kube>,
        name: &str,
        holder: &str,
        uid: Option<String>,
    ) -> Result<Self, String> {
        let Some(load_balancer) = provider.load_balancer() else {
            return Err(format!(
                "cloud provider {:?} makes no load balancers as it is configured; see the manual of the cloud",
                provider.name()
            ));
        };
        let cluster = ClusterFacts {
            name: name.to_owned(),
            uid,
            server_version: None,
            holder: holder.to_owned(),
        };
        Ok(Self {
            load_balancer,
            kube,
            cluster: Arc::new(cluster),
        })
    }

    async fn facts(&self) -> Result<OrphanFacts, String> {
        let Some(kube) = &self.kube else {
            return Ok(OrphanFacts {
                services: Arc::new(GoneCluster(self.cluster.uid.clone())),
                nodes: Arc::new([]),
                cluster: Arc::clone(&self.cluster),
                now: SystemClock.now(),
            });
        };
        let nodes = kube.list_whole_nodes().await;
        let nodes = nodes.map_err(|error| format!("reading Nodes: {error}"))?;
        let services = kube.list_services().await;
        let services = services.map_err(|error| format!("reading Services: {error}"))?;
        Ok(OrphanFacts {
            services: self::services(services),
            nodes: nodes.into(),
            cluster: Arc::clone(&self.cluster),
            now: kube.clock().now(),
        })
    }

    /// Looks, and changes nothing.
    ///
    /// # Errors
    ///
    /// For people: the API server or the cloud could not be read.
    pub async fn survey(&self) -> Result<Survey, String> {
        let mut facts = self.facts().await?;
        let found = find(&self.load_balancer, &facts, pending).await;
        let mut found = found.map_err(|error| format!("reading the cloud: {error}"))?;
        // A Service may have come, and got a load balancer, since the Services were read.
        if self.kube.is_some() && !found.0.is_empty() {
            facts = self.facts().await?;
            let again = find(&self.load_balancer, &facts, pending).await;
            let first = std::mem::replace(
                &mut found,
                again.map_err(|error| format!("reading the cloud: {error}"))?,
            );
            let (same, new) = both(&first.0, found.0);
            found.0 = same;
            found.1.extend(
                new.into_iter()
                    .flat_map(|(orphans, _)| orphans)
                    .map(|orphan| Found {
                        standing: Standing::Unclear,
                        why: format!(
                            "{}; but a moment before it was not so: run `orphans` again",
                            orphan.why
                        ),
                        ..orphan
                    }),
            );
        }
        let (removals, others, unread) = found;
        Ok(Survey {
            cluster: self.name(&facts),
            removals,
            others,
            unread,
            now: facts.now,
        })
    }

    /// The cluster, for people.
    fn name(&self, facts: &OrphanFacts) -> String {
        let uid = self.cluster.uid.clone().or_else(|| facts.services.cluster_uid());
        match uid {
            Some(uid) => format!("{} (UID {uid})", self.cluster.name),
            None => self.cluster.name.clone(),
        }
    }

    /// Removes what was found, as far as it is found again as it was; `told` hears of each.
    ///
    /// # Errors
    ///
    /// For people: the API server or the cloud could not be read, and nothing was removed.
    pub async fn remove(&self, survey: &Survey, told: impl Fn(&Removed)) -> Result<Vec<Removed>, String> {
        let facts = self.facts().await?;
        let again = find(&self.load_balancer, &facts, pending).await;
        let (again, ..) = again.map_err(|error| format!("reading the cloud: {error}"))?;
        let lanes = Lanes::default();
        let removals = survey.removals.iter().map(|planned| {
            let (facts, again, lanes) = (&facts, &again, &lanes);
            async move {
                let is_same = again.iter().any(|(orphans, _)| *orphans == planned.0);
                let outcome = match is_same {
                    true => self.remove_one(&planned.0, facts, lanes).await,
                    false => Err("it is not as it was any more; run it again".to_owned()),
                };
                Removed {
                    object: objects(&planned.0),
                    why_not: outcome.err(),
                }
            }
        });
        let mut all = Vec::new();
        let mut removals = std::pin::pin!(futures::stream::iter(removals).buffer_unordered(AT_ONCE));
        while let Some(removed) = removals.next().await {
            told(&removed);
            all.push(removed);
        }
        Ok(all)
    }

    async fn remove_one(&self, orphans: &[Found], facts: &OrphanFacts, lanes: &Lanes) -> Result<(), String> {
        for orphan in orphans {
            self.ask_by_name(orphan, facts).await?;
        }
        let Some(first) = orphans.first() else {
            return Ok(());
        };
        let removal = Removal::begin(&self.load_balancer, first, facts);
        let mut removal = removal.map_err(|refusal| refusal.to_string())?;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            match removal.go_on(lanes).await.map_err(|error| error.to_string())? {
                Driven::Settled(..) => return Ok(()),
                Driven::Wait { after, reason } if tokio::time::Instant::now() + after > deadline => {
                    return Err(format!("{reason}; run it again later"));
                }
                Driven::Wait { after, .. } => tokio::time::sleep(after).await,
                Driven::Refused(refusal, _) => return Err(refusal.to_string()),
                Driven::Superseded => return Err("the provider has no plan".to_owned()),
            }
        }
    }

    /// Whether there is no such Service, in the API server's own words.
    async fn ask_by_name(&self, orphan: &Found, facts: &OrphanFacts) -> Result<(), String> {
        let (Some(kube), Some(key)) = (&self.kube, &orphan.owner.key) else {
            return Ok(());
        };
        let known = ServiceCache::new();
        known.reset(facts.services.services());
        let found = kube.find_service(key, &known).await;
        let found = found.map_err(|error| format!("asking for Service {key}: {error}"))?;
        let uid = &orphan.owner.uid;
        let is_owner = |uid_of: &Option<String>| uid.is_empty() || uid_of.as_ref() == Some(uid);
        // One that another cloud serves was known when it was looked what is an orphan.
        let is_known = |it: &Service| {
            let before = facts.services.service(key);
            before.is_some_and(|before| before.metadata.uid == it.metadata.uid && class(&before) == class(it))
        };
        let asks = |it: &Arc<Service>| facts.services.classes().may_concern(it) && !is_known(it);
        match found.filter(|it| is_owner(&it.metadata.uid) && asks(it)) {
            Some(_) => Err(format!("Service {key} asks for it by now")),
            None => Ok(()),
        }
    }
}

/// What decides who serves a Service.
fn class(service: &Service) -> (bool, Option<&str>) {
    (facts::is_type(service, "LoadBalancer"), facts::class(service))
}

/// Whoever looks may not know which classes the manager serves: what any Service asks for is no orphan.
pub(crate) fn services(services: Vec<Arc<Service>>) -> Arc<dyn ServicesView> {
    Arc::new(ServiceList {
        classes: ServiceClasses::all_of(&services),
        services,
    })
}

/// Whether something that bears the name of another cluster was made for a Service that lives here, as its marks prove: this cluster had
/// that name. Two clusters may well have Services of one name.
pub(crate) fn is_of_this_cluster(
    found: &Found,
    services: &[Arc<Service>],
    cluster_uid: Option<&str>,
) -> bool {
    let has_uid = |it: &Arc<Service>| it.metadata.uid.as_ref() == Some(&found.owner.uid);
    let has_name = |it: &Arc<Service>| found.owner.key.as_ref() == Some(&ServiceKey::of(it));
    let is_here = cluster_uid.is_some() && found.cluster_uid.as_deref() == cluster_uid;
    found.standing == Standing::AnotherClusters
        && services.iter().any(|it| has_uid(it) || is_here && has_name(it))
}

/// What was found both times as it is now, and what was not so at first.
pub(crate) fn both(first: &[Planned], again: Vec<Planned>) -> (Vec<Planned>, Vec<Planned>) {
    let is_known = |(orphans, _): &Planned| first.iter().any(|(known, _)| known == orphans);
    again.into_iter().partition(is_known)
}

/// What goes together, for people.
pub(crate) fn objects(orphans: &[Found]) -> String {
    let names: Vec<String> = orphans.iter().map(ToString::to_string).collect();
    names.join(", ")
}
