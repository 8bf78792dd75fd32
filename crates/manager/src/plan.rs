//! What would be done for Services, without doing it.
//!
//! The same drive as that of the service controller ([`bowline_drive`]), with predicted waves: nothing is written, neither
//! to the cloud nor to Kubernetes.

use std::sync::Arc;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{
    ClusterFacts, LoadBalancer, Node, ServiceFacts, ServiceKey, ServiceList, ServicesView,
};
use bowline_controllers::node_set;
use bowline_drive::predict;
use futures::StreamExt as _;
use jiff::Timestamp;

use crate::why;

/// Services that are observed at once. The cloud's own budget bounds the calls below that.
const AT_ONCE: usize = 16;

/// What the plans are made from.
pub struct PlanInput {
    /// All Services of the cluster.
    pub services: ServiceList,
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
    let balanced = node_set::balanced(&input.nodes, load_balancer.node_set());
    let plans = named(input, only).into_iter().map(|key| {
        let facts = view.service(&key).map(|service| {
            let nodes = node_set::of_service(balanced.clone(), &service, &**load_balancer).into();
            let services = Arc::clone(&view);
            ServiceFacts::of(service, nodes, services, Arc::clone(&input.cluster), input.now)
        });
        async move {
            match facts {
                Some(facts) if input.services.classes.concern(&facts.service) => {
                    predict(Arc::clone(load_balancer), facts).await
                }
                Some(facts) => PlanReport {
                    outcome: ReportedOutcome::NotServed {
                        because: why::not_served(&facts.service, &input.services.classes).unwrap_or_default(),
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

/// What is said of these Services where no plan can be made for this reason.
pub fn plan_nothing(input: &PlanInput, only: &[ServiceKey], why: &str) -> Vec<PlanReport> {
    let keys = named(input, only).into_iter();
    keys.map(|key| PlanReport {
        outcome: ReportedOutcome::Failed {
            error: why.to_owned(),
        },
        ..PlanReport::of_nothing(key.to_string())
    })
    .collect()
}

/// These Services, or all that have to do with a balancer of ours if none is named.
fn named(input: &PlanInput, only: &[ServiceKey]) -> Vec<ServiceKey> {
    if !only.is_empty() {
        return only.to_vec();
    }
    let ServiceList { services, classes } = &input.services;
    let ours = services.iter().filter(|service| classes.concern(service));
    ours.map(|service| ServiceKey::of(service)).collect()
}
