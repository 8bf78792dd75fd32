//! Clouds that are no more than their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_cloud_provider::evidence::Traces;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner};
use bowline_cloud_provider::plan::Refusal;
use bowline_cloud_provider::{
    AbsenceProof, Begin, CloudError, CloudProvider, ClusterUid, FoundBy, Instance, InstanceAnswer,
    InstanceMetadata, InstanceQuery, InstanceResult, InstanceState, InstancesV2, LoadBalancer, MadeFor,
    PowerState, Question, Reconcile, Route, RouteChange, Routes, ServiceFacts,
};
use futures::future::BoxFuture;

/// A cloud of instances that it knows nothing about; it counts how often it is asked.
#[derive(Default)]
pub(crate) struct TestInstances {
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) has_instances: bool,
    pub(crate) needs_uid: bool,
    pub(crate) has_routes: bool,
    pub(crate) leaves_node_networks: bool,
    /// It never answers.
    pub(crate) hangs: bool,
    /// The marks that its load balancers bear; without any it has none.
    pub(crate) marks: Vec<MadeFor>,
}

impl CloudProvider for TestInstances {
    fn name(&self) -> &'static str {
        "nimbus"
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn leaves_node_networks(&self) -> bool {
        self.leaves_node_networks
    }

    fn cluster_uid(&self) -> ClusterUid {
        if self.needs_uid {
            ClusterUid::Required
        } else {
            ClusterUid::Unused
        }
    }

    fn sign_in(&self) -> Vec<Question<'_, ()>> {
        let hangs = self.hangs.then(|| Question::new(std::future::pending()));
        hangs.into_iter().collect()
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        let asked = Asked(Arc::clone(&self.asked));
        match (self.has_instances, self.hangs) {
            (false, _) => None,
            (true, false) => Some(Arc::new(asked)),
            (true, true) => Some(Arc::new(Hung(asked))),
        }
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        let marked = Marked(self.marks.clone());
        (!marked.0.is_empty()).then(|| Arc::new(marked) as Arc<dyn LoadBalancer>)
    }

    fn routes(&self) -> Option<Arc<dyn Routes>> {
        let asked = Arc::clone(&self.asked);
        self.has_routes.then(|| Arc::new(Asked(asked)) as Arc<dyn Routes>)
    }
}

/// Load balancers of which nothing but the marks is known.
struct Marked(Vec<MadeFor>);

impl Begin<ServiceFacts> for Marked {
    fn begin(self: Arc<Self>, _: ServiceFacts) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        Err(Refusal::new("nothing is known"))
    }
}

impl LoadBalancer for Marked {
    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        facts.key().to_string()
    }

    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        let judge = Judge::new(facts, None, &[], |_| None);
        let found = self.0.iter().map(|made| {
            let owner = Owner {
                uid: made.uid.clone(),
                key: Some(made.key.clone()),
                ..Owner::default()
            };
            let traces = Traces {
                id: &made.balancer,
                ..Traces::default()
            };
            let (standing, why) =
                judge.judge(&traces, &owner, false, OfCluster::This("its marks"), "its tags");
            Found {
                kind: "load balancer",
                id: made.balancer.clone(),
                name: String::new(),
                made: None,
                owner,
                cluster_uid: None,
                standing,
                why,
            }
        });
        let found = found.collect();
        Box::pin(async { Ok(found) })
    }
}

struct Asked(Arc<AtomicUsize>);

impl InstancesV2 for Asked {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let answer = |_: &InstanceQuery| -> InstanceResult { Err(CloudError::other("nothing is known")) };
        let answers = queries.iter().map(answer).collect();
        Box::pin(async { answers })
    }
}

struct Hung(Asked);

impl InstancesV2 for Hung {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        drop(self.0.instances(queries));
        Box::pin(std::future::pending())
    }
}

impl Routes for Asked {
    fn list_routes<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Vec::new()) })
    }

    fn change_routes<'a>(
        &'a self,
        _: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { changes.iter().map(|_| Ok(())).collect() })
    }
}

/// A cloud that proves of each instance that it is gone, but for one.
pub(crate) struct Empty;

fn running() -> Instance {
    Instance {
        metadata: InstanceMetadata::default(),
        power: PowerState::On,
        state: InstanceState::new("running", "running", &[]),
        found_by: FoundBy::Id,
    }
}

impl CloudProvider for Empty {
    fn name(&self) -> &'static str {
        "nimbus"
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::new(Self))
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        None
    }
}

impl InstancesV2 for Empty {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        let gone = |query: &InstanceQuery| match query.node.name.as_str() {
            "well" => Ok(InstanceAnswer::Present(Box::new(running()))),
            _ => Ok(InstanceAnswer::Absent(AbsenceProof::new("404"))),
        };
        let answers = queries.iter().map(gone).collect();
        Box::pin(async { answers })
    }
}
