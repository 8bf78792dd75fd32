//! Which cloud balances for a Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_plan::Refusal;
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
    /// Which clouds a Service may have something in, by its UID, as far as this process had to do with it.
    served: Mutex<BTreeMap<String, BTreeSet<usize>>>,
    /// Where this process was the first to have anything for a Service, by its UID: no earlier one can have begun something there.
    first: Mutex<BTreeSet<(String, usize)>>,
    /// What the reconcile under way of a Service is to do in which clouds, for the series of each.
    under_way: Mutex<BTreeMap<ServiceKey, Vec<(usize, bool)>>>,
    /// Which clouds an earlier process may have begun something in without a word on the Service, by its UID.
    doubts: Kept<String, BTreeSet<usize>>,
    /// Which cloud showed an object, by its ID.
    found: Mutex<Known>,
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
        let nodes = facts.nodes.iter().filter(|node| self.leads_to(node));
        ServiceFacts {
            is_wanted,
            nodes: nodes.cloned().collect(),
            services: services_of(&self.classes, &facts.services),
            ..facts.clone()
        }
    }
}

impl Balancers {
    pub(super) fn new(clouds: Vec<Balancing>) -> Self {
        Self {
            clouds,
            served: Mutex::default(),
            first: Mutex::default(),
            under_way: Mutex::default(),
            doubts: Kept::default(),
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
        let uid = facts.service.metadata.uid.clone().unwrap_or_default();
        let is_first = lock(&self.first).contains(&(uid, cloud));
        ServiceFacts {
            has_begun: facts.has_begun && !is_first,
            ..self.clouds[cloud].facts(facts, is_wanted)
        }
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
        let uid = service.metadata.uid.clone().unwrap_or_default();
        self.doubts.with(&uid, |kept| {
            let doubted = kept.get_or_insert_with(|| match self.asked(service) {
                Some(asked) if facts::has_finalizer(service) && !self.traced(service).contains(&asked) => {
                    (0..self.clouds.len()).filter(|cloud| *cloud != asked).collect()
                }
                _ => BTreeSet::new(),
            });
            doubted.clone()
        })
    }

    /// What there is to do, cloud by cloud: where a Service had something before, that goes first.
    fn parts(&self, facts: &ServiceFacts) -> Result<Vec<(usize, bool)>, Refusal> {
        let uid = facts.service.metadata.uid.as_deref().unwrap_or_default();
        let asked = self.asked(&facts.service);
        let mut served = lock(&self.served);
        let known = match (served.get(uid), asked) {
            (Some(known), _) => known.clone(),
            (None, Some(_)) => self.traced(&facts.service),
            // Its class went with its type, and this process has not seen it: each may have something.
            (None, None) => (0..self.clouds.len()).collect(),
        };
        if !facts.is_wanted {
            let all = known.into_iter().chain(asked).collect::<BTreeSet<_>>();
            return Ok(all.into_iter().map(|cloud| (cloud, false)).collect());
        }
        let Some(asked) = asked else {
            return Err(Refusal::new("none of the clouds serves the class of the Service"));
        };
        let entry = served.entry(uid.to_owned()).or_default();
        if !entry.is_empty() && !known.contains(&asked) {
            lock(&self.first).insert((uid.to_owned(), asked));
        }
        entry.extend(known.iter().copied().chain([asked]));
        let before = known.into_iter().filter(|cloud| *cloud != asked);
        let before = before.map(|cloud| (cloud, false));
        Ok(before.chain([(asked, true)]).collect())
    }

    /// A Service has nothing in a cloud any more.
    pub(super) fn is_gone(&self, uid: &str, cloud: usize) {
        let mut served = lock(&self.served);
        if let Some(clouds) = served.get_mut(uid) {
            clouds.remove(&cloud);
            lock(&self.first).remove(&(uid.to_owned(), cloud));
            if clouds.is_empty() {
                served.remove(uid);
            }
        }
        let is_served = served.contains_key(uid);
        self.doubts.with(&uid.to_owned(), |kept| {
            if let Some(doubted) = kept {
                doubted.remove(&cloud);
            }
            kept.take_if(|doubted| doubted.is_empty() && !is_served);
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

    async fn find(&self, facts: &OrphanFacts) -> Result<Vec<Found>, CloudError> {
        let mut all = Vec::new();
        for (index, cloud) in self.clouds.iter().enumerate() {
            let found = cloud
                .load_balancer
                .surveyed(&self.orphan_facts(index, facts))
                .await;
            let found = found.map_err(|error| said_by(self.name(index), error))?;
            lock(&self.found).extend(found.iter().map(|found| (found.id.clone(), index)));
            all.extend(found);
        }
        Ok(all)
    }
}

impl Begin<ServiceFacts> for Balancers {
    fn begin(self: Arc<Self>, facts: ServiceFacts) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        let doubted = self.doubted(&facts.service);
        let parts = self.parts(&facts)?;
        lock(&self.under_way).insert(ServiceKey::of(&facts.service), parts.clone());
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

    fn drains(&self, service: &Service) -> bool {
        self.of(service)
            .is_some_and(|cloud| cloud.load_balancer.drains(service))
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
        let parts = lock(&self.under_way).remove(service).unwrap_or_default();
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
