//! Which cloud balances for a Service, and what this process had to do with it there.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bowline_plan::Refusal;

use super::{Cloud, Known, services_of};
use crate::orphans::{OrphanFacts, compare};
use crate::{
    CloudError, Kept, LoadBalancer, MadeFor, Node, NodeSet, Readiness, Service, ServiceClasses, ServiceFacts,
    ServiceKey, facts, lock,
};

/// The load balancers of several clouds.
pub(super) struct Balancers {
    pub(super) clouds: Vec<Balancing>,
    /// What this process had to do with each Service.
    pub(super) records: Kept<ServiceKey, Record>,
    /// Which cloud showed an object, by its ID.
    pub(super) found: Mutex<Known>,
    /// Which clouds are still to be asked what they have of the Services of others.
    pub(super) unsurveyed: Mutex<BTreeSet<usize>>,
}

/// What this process had to do with a Service.
#[derive(Debug, Default)]
pub(super) struct Record {
    uid: String,
    /// Which clouds it may have something in.
    served: BTreeSet<usize>,
    /// Where this process was the first to have anything for it: no earlier one can have begun something there.
    first: BTreeSet<usize>,
    /// What the reconcile under way is to do in which clouds, for the series of each.
    pub(super) under_way: Vec<(usize, bool)>,
    /// Which clouds an earlier process may have begun something in without a word on the Service.
    pub(super) doubted: BTreeSet<usize>,
}

impl Record {
    pub(super) fn is_empty(&self) -> bool {
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
    pub(super) load_balancer: Arc<dyn LoadBalancer>,
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

    pub(super) fn has(&self, platform: &str) -> bool {
        self.platforms.iter().any(|own| own == platform)
    }

    /// Whether a Node may be a member: not one of another of the clouds, which has networks of its own, and none of which it is not
    /// known yet whose it is. One of no cloud may, where the cloud needs no more of it than its addresses.
    pub(super) fn is_near(&self, node: &Node) -> bool {
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
    pub(super) fn facts(&self, facts: &ServiceFacts, is_wanted: bool) -> ServiceFacts {
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
        let all = 0..clouds.len();
        Self {
            unsurveyed: Mutex::new(all.filter(|_| clouds.len() > 1).collect()),
            clouds,
            records: Kept::default(),
            found: Mutex::default(),
        }
    }

    /// The name of a cloud, for texts; `None` where there is no other one.
    pub(super) fn name(&self, index: usize) -> Option<&'static str> {
        (self.clouds.len() > 1).then(|| self.clouds[index].name)
    }

    pub(super) fn only(&self) -> Option<&dyn LoadBalancer> {
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
    pub(super) fn of_service<R: Default>(&self, service: &Service, act: impl FnOnce(&mut Record) -> R) -> R {
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

    pub(super) fn of(&self, service: &Service) -> Option<&Balancing> {
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
    /// and the Service goes, or the cloud that it asks has written nothing on it yet. Where it has, [`elsewhere`](Self::elsewhere) tells.
    fn doubted(&self, service: &Service, is_wanted: bool) -> BTreeSet<usize> {
        let is_in_doubt = |asked| !is_wanted || !self.traced(service).contains(&asked);
        match self.asked(service) {
            Some(asked) if facts::has_finalizer(service) && is_in_doubt(asked) => {
                (0..self.clouds.len()).filter(|cloud| *cloud != asked).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// What there is to do, cloud by cloud: where a Service had something before, that goes first.
    pub(super) fn parts(&self, facts: &ServiceFacts) -> Result<Vec<(usize, bool)>, Refusal> {
        let service = &facts.service;
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let asked = self.asked(service);
        self.records.with(&ServiceKey::of(service), |kept| {
            let record = kept.get_or_insert_default();
            if record.uid != uid {
                *record = Record {
                    uid: uid.to_owned(),
                    doubted: self.doubted(service, facts.is_wanted),
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
    pub(super) fn orphan_facts(&self, cloud: usize, facts: &OrphanFacts) -> OrphanFacts {
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

    /// The Services of the other clouds of which this one shows something, so that it is removed when they are looked at next. A Service
    /// whose class changed back and forth bears annotations of a load balancer that is long gone, and so says nothing of the other one.
    /// What this process makes, it knows of: once is enough.
    pub(super) async fn elsewhere(
        &self,
        cloud: usize,
        facts: &OrphanFacts,
    ) -> Result<Vec<MadeFor>, CloudError> {
        let seen = self.orphan_facts(cloud, facts);
        let mut found = self.clouds[cloud].load_balancer.marked(&seen).await?;
        compare(&mut found, &seen);
        lock(&self.unsurveyed).remove(&cloud);
        let services = facts.services.services();
        let orphans = found.iter().filter(|found| found.standing.is_orphan());
        let elsewhere = orphans.filter_map(|orphan| {
            let owner = services.iter().find(|service| orphan.owner.is(service))?;
            self.doubt(owner, cloud).then(|| MadeFor {
                key: ServiceKey::of(owner),
                uid: owner.metadata.uid.clone().unwrap_or_default(),
                balancer: orphan.id.clone(),
            })
        });
        Ok(elsewhere.collect())
    }

    /// Notes that a cloud has something of a Service; false if that says nothing, because it serves the Service, or nothing was begun.
    fn doubt(&self, service: &Service, cloud: usize) -> bool {
        let Some(asked) = self.asked(service).filter(|asked| *asked != cloud) else {
            return false;
        };
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        facts::has_finalizer(service)
            && self.records.with(&ServiceKey::of(service), |kept| {
                let record = kept.get_or_insert_default();
                if record.uid != uid {
                    *record = Record {
                        uid: uid.to_owned(),
                        served: self.traced(service).into_iter().chain([asked]).collect(),
                        doubted: self.doubted(service, true),
                        ..Record::default()
                    };
                }
                record.doubted.insert(cloud)
            })
    }
}
