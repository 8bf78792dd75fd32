//! Which cloud balances for a Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_plan::{EventSpec, Refusal};
use futures::future::{self, BoxFuture, FutureExt as _};

use super::session::{InTurn, Part};
use super::{Cloud, Known, services_of};
use crate::orphans::{Found, OrphanFacts};
use crate::{
    AnnotationSpec, Begin, CloudError, Kept, LoadBalancer, MadeFor, Node, NodeSet, Readiness, Reconcile,
    ReconcileKind, Service, ServiceClasses, ServiceFacts, ServiceKey, ServicesView, facts,
};

/// The load balancers of several clouds.
pub(super) struct Balancers {
    clouds: Vec<Balancing>,
    /// What this process had to do with each Service.
    records: Kept<ServiceKey, Record>,
    /// Which cloud showed an object, by its ID.
    found: Mutex<Known>,
}

/// What this process had to do with a Service.
#[derive(Debug, Default)]
struct Record {
    uid: String,
    /// Which clouds it may have something in.
    served: BTreeSet<usize>,
    /// Where this process was the first to have anything for it: no earlier one can have begun something there.
    first: BTreeSet<usize>,
    /// What the reconcile under way is to do in which clouds, for the series of each.
    under_way: Vec<(usize, bool)>,
    /// Which clouds an earlier process may have begun something in without a word on the Service.
    doubted: BTreeSet<usize>,
}

impl Record {
    fn is_empty(&self) -> bool {
        self.served.is_empty() && self.under_way.is_empty()
    }
}

/// Whose Nodes there are besides those of a cloud.
#[derive(Clone)]
pub(super) enum Neighbours {
    /// Those with these platforms are of the clouds of this process.
    Clouds(Arc<[&'static str]>),
    /// Other managers have Nodes in the cluster, with platforms that nobody here knows.
    Managers,
}

impl Neighbours {
    /// Whether a platform that is not the cloud's own is another's.
    fn have(&self, platform: &str) -> bool {
        match self {
            Self::Clouds(all) => all.contains(&platform),
            Self::Managers => true,
        }
    }
}

/// One of them.
pub(super) struct Balancing {
    pub(super) name: &'static str,
    platforms: Vec<String>,
    /// The platforms of the other clouds.
    neighbours: Neighbours,
    classes: ServiceClasses,
    load_balancer: Arc<dyn LoadBalancer>,
}

impl Balancing {
    /// That of a cloud; `None` if it has no load balancers.
    pub(super) fn of(cloud: &Cloud, neighbours: &Neighbours) -> Option<Self> {
        let platforms = cloud.provider.platforms().into_iter();
        Some(Self {
            name: cloud.provider.name(),
            platforms: platforms.map(str::to_owned).collect(),
            neighbours: neighbours.clone(),
            classes: cloud.classes.clone(),
            load_balancer: cloud.provider.load_balancer()?,
        })
    }

    /// With these platforms instead of its own, if there are any.
    pub(super) fn with_platforms(mut self, platforms: &[String]) -> Self {
        if !platforms.is_empty() {
            self.platforms = platforms.to_vec();
        }
        self
    }

    fn has(&self, platform: &str) -> bool {
        self.platforms.iter().any(|own| own == platform)
    }

    /// Whether a Node may be a member: not one of another of the clouds, which has networks of its own, and none of which it is not
    /// known yet whose it is. One of no cloud may, where the cloud needs no more of it than its addresses.
    fn is_near(&self, node: &Node) -> bool {
        let takes_addresses = self.load_balancer.takes_addresses();
        match (node.platform(), &node.provider_id) {
            (Some(platform), _) => self.has(platform) || takes_addresses && !self.neighbours.have(platform),
            // An ID without a scheme some clouds take for their own.
            (None, Some(_)) => true,
            (None, None) => takes_addresses && !node.is_uninitialized(),
        }
    }

    fn leads_to(&self, node: &Node) -> bool {
        let set = self.load_balancer.node_set();
        self.is_near(node) && (set == NodeSet::Stable || node.readiness == Readiness::Ready)
    }

    /// What this cloud is to see of a Service.
    fn facts(&self, facts: &ServiceFacts, is_wanted: bool) -> ServiceFacts {
        let leads_to = |node: &&Arc<Node>| self.leads_to(node);
        let mut nodes: Vec<Arc<Node>> = facts.nodes.iter().filter(leads_to).cloned().collect();
        let is_staying = |node: &Arc<Node>| node.draining.is_none();
        if !self.load_balancer.keeps_drained() && nodes.iter().any(is_staying) {
            nodes.retain(is_staying);
        }
        ServiceFacts {
            is_wanted,
            nodes: nodes.into(),
            services: services_of(&self.classes, &facts.services),
            ..facts.clone()
        }
    }
}

impl Balancers {
    pub(super) fn new(clouds: Vec<Balancing>) -> Self {
        Self {
            clouds,
            records: Kept::default(),
            found: Mutex::default(),
        }
    }

    /// The name of a cloud, for texts; `None` where there is no other one.
    pub(super) fn name(&self, index: usize) -> Option<&'static str> {
        (self.clouds.len() > 1).then(|| self.clouds[index].name)
    }

    fn only(&self) -> Option<&dyn LoadBalancer> {
        match &self.clouds[..] {
            [only] => Some(&*only.load_balancer),
            _ => None,
        }
    }

    /// What a cloud is to see of a Service.
    pub(super) fn facts(&self, cloud: usize, facts: &ServiceFacts, is_wanted: bool) -> ServiceFacts {
        let is_first = self.of_service(&facts.service, |record| record.first.contains(&cloud));
        ServiceFacts {
            has_begun: facts.has_begun && !is_first,
            ..self.clouds[cloud].facts(facts, is_wanted)
        }
    }

    /// Looks up or changes what is known of a Service. Of another one of its name nothing is, before that begins.
    fn of_service<R: Default>(&self, service: &Service, act: impl FnOnce(&mut Record) -> R) -> R {
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        self.records.with(&ServiceKey::of(service), |kept| {
            let record = kept.as_mut().filter(|record| record.uid == uid);
            let result = record.map_or_else(R::default, act);
            kept.take_if(|record| record.is_empty());
            result
        })
    }

    /// The cloud that a Service asks.
    fn asked(&self, service: &Service) -> Option<usize> {
        if !facts::is_type(service, "LoadBalancer") {
            return None;
        }
        self.clouds.iter().position(|cloud| cloud.classes.serves(service))
    }

    fn of(&self, service: &Service) -> Option<&Balancing> {
        self.asked(service).map(|cloud| &self.clouds[cloud])
    }

    /// The clouds whose annotations on a Service say that something was made there. An earlier process may have made it.
    fn traced(&self, service: &Service) -> BTreeSet<usize> {
        let is_traced = |cloud: &Balancing| {
            let mut annotations = cloud.load_balancer.annotations().iter();
            annotations.any(|annotation| annotation.is_written_on(service))
        };
        let traced = self.clouds.iter().enumerate();
        traced
            .filter_map(|(index, cloud)| is_traced(cloud).then_some(index))
            .collect()
    }

    /// The clouds that may have something of a Service though nothing on it says so: all others, where an earlier process began with it
    /// and the cloud that it asks has written nothing on it yet.
    fn doubted(&self, service: &Service) -> BTreeSet<usize> {
        match self.asked(service) {
            Some(asked) if facts::has_finalizer(service) && !self.traced(service).contains(&asked) => {
                (0..self.clouds.len()).filter(|cloud| *cloud != asked).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// What there is to do, cloud by cloud: where a Service had something before, that goes first.
    fn parts(&self, facts: &ServiceFacts) -> Result<Vec<(usize, bool)>, Refusal> {
        let service = &facts.service;
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let asked = self.asked(service);
        self.records.with(&ServiceKey::of(service), |kept| {
            let record = kept.get_or_insert_default();
            if record.uid != uid {
                *record = Record {
                    uid: uid.to_owned(),
                    doubted: self.doubted(service),
                    ..Record::default()
                };
            }
            let known = match asked {
                _ if !record.served.is_empty() => record.served.clone(),
                Some(_) => self.traced(service),
                // Its class went with its type, and this process has not seen it: each may have something.
                None => (0..self.clouds.len()).collect(),
            };
            record.under_way = match (facts.is_wanted, asked) {
                (false, _) => {
                    let all = known.into_iter().chain(asked).collect::<BTreeSet<_>>();
                    all.into_iter().map(|cloud| (cloud, false)).collect()
                }
                (true, None) => {
                    kept.take_if(|record| record.is_empty());
                    return Err(Refusal::new("none of the clouds serves the class of the Service"));
                }
                (true, Some(asked)) => {
                    if !record.served.is_empty() && !known.contains(&asked) {
                        record.first.insert(asked);
                    }
                    record.served.extend(known.iter().copied().chain([asked]));
                    let before = known.into_iter().filter(|cloud| *cloud != asked);
                    let before = before.map(|cloud| (cloud, false));
                    before.chain([(asked, true)]).collect()
                }
            };
            Ok(record.under_way.clone())
        })
    }

    /// A Service has nothing in a cloud any more.
    pub(super) fn is_gone(&self, service: &Service, cloud: usize) {
        self.of_service(service, |record| {
            record.served.remove(&cloud);
            record.first.remove(&cloud);
            record.doubted.remove(&cloud);
        });
    }

    /// The facts as a cloud is to see them that looks for orphans: the Services of the other clouds ask for nothing in it. Those that
    /// no cloud is known to serve may ask for anything.
    fn orphan_facts(&self, cloud: usize, facts: &OrphanFacts) -> OrphanFacts {
        let others = self
            .clouds
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != cloud);
        let all = facts.services.classes().clone();
        let classes = others.fold(all, |left, (_, other)| left.except(&other.classes));
        OrphanFacts {
            services: services_of(&classes, &facts.services),
            ..facts.clone()
        }
    }

    /// A cloud that cannot be read is told of as [`Standing::Unread`](crate::orphans::Standing::Unread), unless none can be.
    async fn find(&self, facts: &OrphanFacts) -> Result<Vec<Found>, CloudError> {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for (index, cloud) in self.clouds.iter().enumerate() {
            let facts = self.orphan_facts(index, facts);
            let found = match cloud.load_balancer.surveyed(&facts).await {
                Ok(found) => found,
                Err(error) => {
                    all.push(Found::unread(cloud.name, &error));
                    errors.push(said_by(self.name(index), error));
                    continue;
                }
            };
            lock(&self.found).extend(found.iter().map(|found| (found.id.clone(), index)));
            all.extend(found);
        }
        match errors.len() == self.clouds.len() {
            true => Err(errors.swap_remove(0)),
            false => Ok(all),
        }
    }
}

impl Begin<ServiceFacts> for Balancers {
    fn begin(self: Arc<Self>, facts: ServiceFacts) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        let parts = self.parts(&facts)?;
        let doubted = self.of_service(&facts.service, |record| record.doubted.clone());
        let is_new = |cloud: &usize| parts.iter().all(|(known, _)| known != cloud);
        let doubted = doubted.into_iter().filter(is_new);
        let doubted: Vec<_> = doubted.map(|cloud| (cloud, false, facts.is_wanted)).collect();
        let known = parts
            .into_iter()
            .map(|(cloud, is_wanted)| (cloud, is_wanted, false));
        let parts = doubted.into_iter().chain(known);
        let parts = parts.map(|(cloud, is_wanted, may_be_left_out)| {
            let of_cloud = self.facts(cloud, &facts, is_wanted);
            let session = Arc::clone(&self.clouds[cloud].load_balancer).begin(of_cloud)?;
            Ok(Part {
                cloud,
                is_wanted,
                may_be_left_out,
                session,
            })
        });
        let parts: Vec<Part> = parts.collect::<Result<_, Refusal>>()?;
        Ok(Box::new(InTurn::new(self, facts, parts)))
    }
}

impl LoadBalancer for Balancers {
    fn node_set(&self) -> NodeSet {
        let mut sets = self.clouds.iter().map(|cloud| cloud.load_balancer.node_set());
        let first = sets.next().unwrap_or(NodeSet::Stable);
        match sets.all(|set| set == first) {
            true => first,
            false => NodeSet::Both,
        }
    }

    fn may_lead_to(&self, service: &Service, node: &Node) -> bool {
        self.of(service).is_none_or(|cloud| cloud.is_near(node))
    }

    fn event(&self, reason: &str) -> Option<&'static EventSpec> {
        self.clouds
            .iter()
            .find_map(|cloud| cloud.load_balancer.event(reason))
    }

    fn drains(&self, service: &Service) -> bool {
        self.of(service)
            .is_some_and(|cloud| cloud.load_balancer.drains(service))
    }

    fn heeds_source_ranges(&self, service: &Service) -> bool {
        self.of(service)
            .is_none_or(|cloud| cloud.load_balancer.heeds_source_ranges(service))
    }

    fn keeps_drained(&self) -> bool {
        true // the Nodes of one cloud may all be about to go, and those of another one not
    }

    fn follows_nodes(&self) -> bool {
        self.clouds
            .iter()
            .any(|cloud| cloud.load_balancer.follows_nodes())
    }

    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        let platform = node.platform().unwrap_or_default();
        let cloud = self.clouds.iter().find(|cloud| cloud.has(platform));
        cloud.map_or_else(BTreeMap::new, |cloud| cloud.load_balancer.node_annotations(node))
    }

    fn needs_annotations(&self) -> bool {
        self.clouds
            .iter()
            .any(|cloud| cloud.load_balancer.needs_annotations())
    }

    fn event_component(&self) -> Option<&'static str> {
        self.only()?.event_component()
    }

    fn annotations(&self) -> &'static [AnnotationSpec] {
        self.only().map_or(&[], LoadBalancer::annotations)
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        let name = |cloud: &Balancing| {
            let of = cloud.facts(facts, facts.is_wanted);
            cloud.load_balancer.load_balancer_name(&of)
        };
        self.of(&facts.service).map(name).unwrap_or_default()
    }

    fn made_for<'a>(
        &'a self,
        services: &'a dyn ServicesView,
    ) -> BoxFuture<'a, Result<Vec<MadeFor>, CloudError>> {
        let all = self.clouds.iter().enumerate().map(|(index, cloud)| {
            let made = cloud.load_balancer.made_for(services);
            made.map(move |made| made.map_err(|error| said_by(self.name(index), error)))
        });
        let all = future::try_join_all(all);
        all.map(|all| all.map(|all| all.concat())).boxed()
    }

    fn surveyed<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        self.find(facts).boxed()
    }

    fn begin_removal(
        self: Arc<Self>,
        orphan: &Found,
        facts: &OrphanFacts,
    ) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        let Some(cloud) = lock(&self.found).get(&orphan.id).copied() else {
            return Err(Refusal::new(format!(
                "{orphan} was not found in any of the clouds"
            )));
        };
        let facts = self.orphan_facts(cloud, facts);
        Arc::clone(&self.clouds[cloud].load_balancer).begin_removal(orphan, &facts)
    }

    fn reconciled(&self, service: &ServiceKey, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let parts = self.records.with(service, |kept| {
            let parts = kept.as_mut().map(|record| std::mem::take(&mut record.under_way));
            kept.take_if(|record| record.is_empty());
            parts.unwrap_or_default()
        });
        for (cloud, is_wanted) in parts {
            let kind = if is_wanted { kind } else { ReconcileKind::Delete };
            let load_balancer = &self.clouds[cloud].load_balancer;
            load_balancer.reconciled(service, kind, took, has_failed);
        }
    }

    fn room_was_made(&self) {
        self.clouds
            .iter()
            .for_each(|cloud| cloud.load_balancer.room_was_made());
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        let cloud = self.of(service);
        cloud.is_some_and(|cloud| cloud.load_balancer.selects_nodes_by_label(service))
    }
}

/// An error, with the name of the cloud that it is of.
pub(super) fn said_by(cloud: Option<&str>, error: CloudError) -> CloudError {
    match cloud {
        Some(name) => error.context(name),
        None => error,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
