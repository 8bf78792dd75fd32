//! The load balancers of several clouds, as those of one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{EventSpec, Refusal};

use super::served::{Balancers, Balancing};
use super::session::{InTurn, Part};
use crate::orphans::{Found, OrphanFacts, compare};
use crate::{
    AnnotationSpec, Begin, LoadBalancer, MadeFor, Node, NodeSet, Question, Reconcile, ReconcileKind, Service,
    ServiceFacts, ServiceKey, ServicesView, lock,
};

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

    fn selects(&self, service: &Service, node: &Node) -> bool {
        self.of(service)
            .is_none_or(|cloud| cloud.load_balancer.selects(service, node))
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

    fn made_for<'a>(&'a self, services: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        let all = self.clouds.iter().enumerate().flat_map(|(index, cloud)| {
            let made = cloud.load_balancer.made_for(services).into_iter();
            made.map(move |made| made.to(self.name(index)))
        });
        all.collect()
    }

    fn left_elsewhere<'a>(&'a self, facts: &'a OrphanFacts) -> Vec<Question<'a, MadeFor>> {
        let unsurveyed = lock(&self.unsurveyed).clone().into_iter();
        let question = |cloud| Question::new(self.elsewhere(cloud, facts)).to(self.name(cloud));
        unsurveyed.map(question).collect()
    }

    fn surveyed<'a>(&'a self, facts: &'a OrphanFacts) -> Vec<Question<'a, Found>> {
        let all = self.clouds.iter().enumerate().map(|(index, cloud)| {
            let survey = async move {
                let facts = self.orphan_facts(index, facts);
                let mut found = cloud.load_balancer.marked(&facts).await?;
                compare(&mut found, &facts);
                lock(&self.found).extend(found.iter().map(|found| (found.id.clone(), index)));
                Ok(found)
            };
            Question::new(survey).to(self.name(index))
        });
        all.collect()
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
