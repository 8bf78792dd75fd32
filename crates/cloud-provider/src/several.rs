//! Several clouds that are one to the controllers.
//!
//! A Node is of the cloud whose scheme its provider ID bears; one without is asked of each, and only a single *present* counts. A
//! Node of none of them is nobody's here. A Service is of the cloud that serves its class. What the controllers ask goes to the
//! cloud that it concerns, with the Services and Nodes as that cloud is to see them; nothing else in the program knows that there
//! are several.

mod balancers;
mod instances;
mod served;
mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{
    Allowance, BackgroundFacts, BackgroundWork, Begin, CloudError, CloudProvider, ClusterUid, InstancesV2,
    LoadBalancer, Misfit, Node, Question, Reconcile, Route, RouteChange, Routes, Service, ServiceClasses,
    ServiceKey, ServicesView,
};
use bowline_plan::Refusal;
use instances::Instances;
use served::{Balancers, Balancing, Neighbours};

/// One of several clouds.
#[derive(Clone)]
pub struct Cloud {
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// Which Services it serves.
    pub classes: ServiceClasses,
}

/// Why clouds cannot be had together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeveralError {
    /// Two have a name in common.
    #[error("cloud provider {0:?} is named twice")]
    Name(&'static str),
    /// Two would serve the same Services.
    #[error("clouds {one} and {other} both serve {classes}: give a class to one of them only")]
    Class {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
        /// What both serve.
        classes: ServiceClasses,
    },
    /// Two have route tables, and a Node's pod network is in one of them.
    #[error(
        "clouds {0} and {1} both have routes to pod networks: switch them off by --configure-cloud-routes=false"
    )]
    Routes(&'static str, &'static str),
}

/// Several clouds.
pub struct Several {
    name: &'static str,
    clouds: Vec<Cloud>,
    balancers: Option<Arc<Balancers>>,
}

impl Several {
    /// These clouds.
    ///
    /// # Errors
    ///
    /// They claim the same.
    pub fn new(clouds: Vec<Cloud>, makes_routes: bool) -> Result<Self, SeveralError> {
        let pairs = (1..clouds.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        for (first, second) in pairs {
            let (one, other) = (&clouds[first], &clouds[second]);
            let names = (one.provider.name(), other.provider.name());
            if names.0 == names.1 {
                return Err(SeveralError::Name(names.0));
            }
            let classes = one.classes.and(&other.classes);
            if !classes.is_empty() {
                let (one, other) = names;
                return Err(SeveralError::Class { one, other, classes });
            }
            if makes_routes && one.provider.routes().is_some() && other.provider.routes().is_some() {
                return Err(SeveralError::Routes(names.0, names.1));
            }
        }
        let names: Vec<&str> = clouds.iter().map(|cloud| cloud.provider.name()).collect();
        let platforms = clouds.iter().flat_map(|cloud| cloud.provider.platforms());
        let neighbours = Neighbours::Clouds(platforms.collect());
        let balancing = clouds
            .iter()
            .filter_map(|cloud| Balancing::of(cloud, &neighbours));
        let balancing: Vec<Balancing> = balancing.collect();
        Ok(Self {
            // Once in the life of a process.
            name: names.join(",").leak(),
            balancers: (!balancing.is_empty()).then(|| Arc::new(Balancers::new(balancing))),
            clouds,
        })
    }

    /// One cloud in a cluster in which other managers have Nodes too: those with other `platforms` than these are no members. Where
    /// none are given, the cloud's own count.
    #[must_use]
    pub fn beside_managers(cloud: Cloud, platforms: &[String]) -> Self {
        let balancing = Balancing::of(&cloud, &Neighbours::Managers);
        let balancing = balancing.map(|balancing| balancing.with_platforms(platforms));
        Self {
            name: cloud.provider.name(),
            balancers: balancing.map(|balancing| Arc::new(Balancers::new(vec![balancing]))),
            clouds: vec![cloud],
        }
    }

    fn only(&self) -> Option<&dyn CloudProvider> {
        match &self.clouds[..] {
            [only] => Some(&*only.provider),
            _ => None,
        }
    }

    /// What each is asked, by its name where there are several.
    fn each<'a, T>(&'a self, ask: impl Fn(&'a Cloud) -> Vec<Question<'a, T>>) -> Vec<Question<'a, T>> {
        let is_one = self.clouds.len() == 1;
        let all = self.clouds.iter().flat_map(|cloud| {
            let name = (!is_one).then(|| cloud.provider.name());
            ask(cloud).into_iter().map(move |question| question.to(name))
        });
        all.collect()
    }

    fn any(&self, of: impl Fn(&dyn CloudProvider) -> bool) -> bool {
        self.clouds.iter().any(|cloud| of(&*cloud.provider))
    }
}

impl CloudProvider for Several {
    fn name(&self) -> &'static str {
        self.name
    }

    fn platforms(&self) -> Vec<&'static str> {
        let platforms = self.clouds.iter().map(|cloud| cloud.provider.platforms());
        platforms.flatten().collect()
    }

    fn has_cluster_id(&self) -> bool {
        !self.any(|cloud| !cloud.has_cluster_id())
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        if let Some(only) = self.only() {
            return only.instances();
        }
        let all = Instances::of(self.clouds.iter().map(|cloud| &cloud.provider));
        all.map(|all| Arc::new(all) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        let balancers = self.balancers.clone()?;
        Some(balancers)
    }

    fn routes(&self) -> Option<Arc<dyn Routes>> {
        if let Some(only) = self.only() {
            return only.routes();
        }
        let mut all = self.clouds.iter();
        all.find_map(|Cloud { provider, .. }| {
            Some(Arc::new(RoutesOf {
                platforms: provider.platforms(),
                routes: provider.routes()?,
            }) as Arc<dyn Routes>)
        })
    }

    fn leaves_node_networks(&self) -> bool {
        self.any(CloudProvider::leaves_node_networks)
    }

    fn cluster_uid(&self) -> ClusterUid {
        match self.any(|cloud| cloud.cluster_uid() == ClusterUid::Required) {
            true => ClusterUid::Required,
            false => ClusterUid::Unused,
        }
    }

    fn service_account(&self) -> Option<&'static str> {
        let mut all = self.clouds.iter();
        all.find_map(|cloud| cloud.provider.service_account())
    }

    fn left_over(&self, facts: BackgroundFacts) -> Vec<Question<'_, String>> {
        self.each(|cloud| cloud.provider.left_over(seen_by(&cloud.classes, &facts)))
    }

    fn sign_in(&self) -> Vec<Question<'_, ()>> {
        self.each(|cloud| cloud.provider.sign_in())
    }

    fn allowance(&self) -> Vec<Question<'_, Allowance>> {
        self.each(|cloud| cloud.provider.allowance())
    }

    fn misfits(&self) -> Vec<Question<'_, Misfit>> {
        self.each(|cloud| cloud.provider.misfits())
    }

    fn background_work(&self) -> Vec<Arc<dyn BackgroundWork>> {
        let all = self.clouds.iter().flat_map(|cloud| {
            let works = cloud.provider.background_work().into_iter();
            works.map(|work| {
                let classes = cloud.classes.clone();
                Arc::new(WorkOf { classes, work }) as Arc<dyn BackgroundWork>
            })
        });
        all.collect()
    }
}

/// The Services as one of the clouds is to see them: those of the others ask others.
struct ServicesOf {
    services: Arc<dyn ServicesView>,
    classes: ServiceClasses,
}

impl ServicesView for ServicesOf {
    fn services(&self) -> Vec<Arc<Service>> {
        self.services.services()
    }

    fn classes(&self) -> &ServiceClasses {
        &self.classes
    }

    fn service(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.services.service(key)
    }

    fn cluster_uid(&self) -> Option<String> {
        self.services.cluster_uid()
    }

    fn has_uid(&self, uid: &str) -> bool {
        self.services.has_uid(uid)
    }
}

fn services_of(classes: &ServiceClasses, services: &Arc<dyn ServicesView>) -> Arc<dyn ServicesView> {
    Arc::new(ServicesOf {
        services: Arc::clone(services),
        classes: classes.clone(),
    })
}

fn seen_by(classes: &ServiceClasses, facts: &BackgroundFacts) -> BackgroundFacts {
    BackgroundFacts {
        services: services_of(classes, &facts.services),
        ..facts.clone()
    }
}

/// The background work of one of the clouds.
struct WorkOf {
    classes: ServiceClasses,
    work: Arc<dyn BackgroundWork>,
}

impl Begin<BackgroundFacts> for WorkOf {
    fn begin(
        self: Arc<Self>,
        facts: BackgroundFacts,
    ) -> Result<Box<dyn Reconcile<BackgroundFacts>>, Refusal> {
        Arc::clone(&self.work).begin(seen_by(&self.classes, &facts))
    }
}

impl BackgroundWork for WorkOf {
    fn name(&self) -> &'static str {
        self.work.name()
    }

    fn period(&self) -> std::time::Duration {
        self.work.period()
    }

    fn first(&self) -> std::time::Duration {
        self.work.first()
    }

    fn has_made_room(&self) -> bool {
        self.work.has_made_room()
    }
}

/// The routes of the one cloud that has some: they lead to its own Nodes.
struct RoutesOf {
    platforms: Vec<&'static str>,
    routes: Arc<dyn Routes>,
}

impl Routes for RoutesOf {
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        self.routes.list_routes(cluster)
    }

    fn change_routes<'a>(
        &'a self,
        cluster: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        self.routes.change_routes(cluster, changes)
    }

    fn leads_to(&self, node: &Node) -> bool {
        node.platform()
            .is_none_or(|platform| self.platforms.contains(&platform))
    }

    fn live<'a>(&'a self, routes: &'a [Route]) -> BoxFuture<'a, Result<Vec<bool>, CloudError>> {
        self.routes.live(routes)
    }

    fn calls_at_once(&self) -> usize {
        self.routes.calls_at_once()
    }

    fn changes_per_call(&self) -> usize {
        self.routes.changes_per_call()
    }
}

/// Which of several clouds something is of, by what was last found out.
type Known = BTreeMap<String, usize>;
