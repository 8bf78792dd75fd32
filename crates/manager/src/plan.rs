//! What would be done for Services, without doing it.
//!
//! The same drive as that of the service controller ([`bowline_drive`]), with predicted waves: nothing is written, neither
//! to the cloud nor to Kubernetes.

use std::sync::Arc;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{
    ClusterFacts, LoadBalancer, Node, Service, ServiceFacts, ServiceKey, ServicesView, facts,
};
use bowline_controllers::node_set;
use bowline_drive::predict;
use bowline_kube_io::Kube;
use futures::StreamExt as _;
use jiff::Timestamp;

use crate::doctor;
use crate::why::{self, Known};

/// Services that are observed at once. The cloud's own budget bounds the calls below that.
const AT_ONCE: usize = 16;

/// What the plans are made from.
pub struct PlanInput {
    /// All Services of the cluster.
    pub services: Vec<Arc<Service>>,
    /// All Nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// The wall time.
    pub now: Timestamp,
}

/// Plans for these Services, or for all that have to do with a balancer of ours if none is named; in that order.
pub async fn plan_services(
    load_balancer: &Arc<dyn LoadBalancer>,
    input: &PlanInput,
    only: &[ServiceKey],
) -> Vec<PlanReport> {
    let view: Arc<dyn ServicesView> = Arc::new(input.services.clone());
    let nodes: Arc<[Arc<Node>]> = node_set::balanced(&input.nodes, load_balancer.node_set()).into();
    let keys: Vec<ServiceKey> = if only.is_empty() {
        input
            .services
            .iter()
            .filter(|service| is_ours(service))
            .map(|service| ServiceKey::of(service))
            .collect()
    } else {
        only.to_vec()
    };
    let plans = keys.into_iter().map(|key| {
        let facts = view.service(&key).map(|service| {
            let (nodes, services) = (Arc::clone(&nodes), Arc::clone(&view));
            ServiceFacts::of(service, nodes, services, Arc::clone(&input.cluster), input.now)
        });
        async move {
            match facts {
                Some(facts) if is_ours(&facts.service) => predict(Arc::clone(load_balancer), facts).await,
                Some(facts) => PlanReport {
                    outcome: ReportedOutcome::NotServed {
                        because: why::not_served(&facts.service).unwrap_or_default(),
                    },
                    ..PlanReport::of_nothing(key.to_string())
                },
                None => PlanReport {
                    outcome: ReportedOutcome::Failed {
                        error: "there is no such Service".to_owned(),
                    },
                    ..PlanReport::of_nothing(key.to_string())
                },
            }
        }
    });
    futures::stream::iter(plans).buffered(AT_ONCE).collect().await
}

/// Adds to each plan what came of the manager's last try, where the cluster shows that it failed.
pub async fn tell_last_tries(kube: &Kube, input: &PlanInput, reports: &mut [PlanReport]) {
    let events = doctor::events(Some(kube), None).await;
    let known = Known {
        now: input.now,
        nodes: None,
        node_set: None,
        unserved: None,
        events: &events,
        endpoints: None,
    };
    for report in reports {
        let is_of = |it: &&Arc<Service>| ServiceKey::of(it).to_string() == report.object;
        let service = input.services.iter().find(is_of);
        let is_idle = report.is_idle();
        let service = service.filter(|it| is_ours(it) && (!is_idle || facts::trouble(it).is_some()));
        report.last_try = service.and_then(|service| why::last_try(service, &known));
    }
}

fn is_ours(service: &Service) -> bool {
    facts::wants_load_balancer(service) || facts::needs_cleanup(service)
}
