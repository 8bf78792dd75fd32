//! A provider without a manager: a small loop that reconciles one Service step by step.

use std::sync::Arc;

use bowline_cloud_provider::plan::{Answer, PlanReport};
use bowline_cloud_provider::{
    ClusterFacts, DynLoadBalancer, Reconcile, ServerVersion, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_controllers::node_set;
use bowline_kube_io::Kube;
use bowline_manager::plan::{PlanInput, plan_services};

use super::under_test::CloudUnderTest;
use super::world::World;

/// The most waves and waits of one run: a run that needs more never ends.
const MAX_ROUNDS: usize = 2_000;

/// One Service and a provider that begins anew: nothing is remembered.
pub(super) struct Session<'a, C> {
    world: &'a World<C>,
    kube: Kube,
    load_balancer: Arc<dyn DynLoadBalancer>,
    key: ServiceKey,
}

impl<'a, C: CloudUnderTest> Session<'a, C> {
    pub(super) async fn begin(world: &'a World<C>, service: &str) -> Self {
        let kube = world.kube();
        let found = kube.list_services().await.unwrap();
        let found = found
            .iter()
            .find(|it| it.metadata.name.as_deref() == Some(service));
        Self {
            world,
            kube,
            load_balancer: world.provider().load_balancer().unwrap(),
            key: ServiceKey::of(found.unwrap()),
        }
    }

    async fn input(&self) -> PlanInput {
        PlanInput {
            services: self.kube.list_services().await.unwrap(),
            nodes: self.kube.list_nodes().await.unwrap(),
            cluster: Arc::new(ClusterFacts {
                name: "kubernetes".to_owned(),
                uid: self.cluster_uid(),
                server_version: Some(ServerVersion { major: 1, minor: 37 }),
                holder: "conformance".to_owned(),
            }),
            now: self.world.api.now(),
        }
    }

    fn cluster_uid(&self) -> Option<String> {
        let namespace = self.world.api.object("Namespace", "", "kube-system")?;
        Some(namespace["metadata"]["uid"].as_str()?.to_owned())
    }

    async fn facts(&self) -> ServiceFacts {
        let input = self.input().await;
        let service = Arc::clone(
            input
                .services
                .iter()
                .find(|it| ServiceKey::of(it) == self.key)
                .unwrap(),
        );
        let is_wanted = facts::wants_load_balancer(&service) && service.metadata.deletion_timestamp.is_none();
        let nodes = node_set::balanced(&input.nodes, self.load_balancer.node_set());
        ServiceFacts {
            nodes: if is_wanted { nodes.into() } else { Arc::from([]) },
            service,
            is_wanted,
            services: Arc::new(input.services),
            cluster: input.cluster,
            now: input.now,
        }
    }

    /// What the command `plan` prints.
    pub(super) async fn printed(&self) -> PlanReport {
        let input = self.input().await;
        let mut reports = plan_services(&*self.load_balancer, &input, std::slice::from_ref(&self.key)).await;
        reports.remove(0)
    }

    /// Makes all steps until it settles; their labels. The Service keeps its finalizer and gets no status: that is the
    /// loop's part.
    pub(super) async fn finish(&mut self) -> Vec<String> {
        self.make(usize::MAX).await
    }

    /// Makes so many steps, and waits after the last one for what is under way.
    pub(super) async fn make(&mut self, limit: usize) -> Vec<String> {
        let facts = self.facts().await;
        self.hold(&facts.service).await;
        let mut session = self.load_balancer.begin(self.facts().await).unwrap();
        let mut done = Vec::new();
        session.observe().await.unwrap();
        for _ in 0..MAX_ROUNDS {
            match session.plan().unwrap().answer {
                Answer::Settled(_) => return done,
                Answer::Refused(refusal) => panic!("{refusal}"),
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    session.observe().await.unwrap();
                }
                Answer::Apply(_) if done.len() == limit => return done,
                Answer::Apply(wave) => {
                    for step in wave.into_steps() {
                        if done.len() == limit {
                            return done;
                        }
                        done.push(step.view().label.clone());
                        self.make_one(&mut *session, &step).await;
                    }
                }
            }
        }
        panic!("{} never settles: {done:#?}", self.key);
    }

    async fn make_one(
        &self,
        session: &mut dyn Reconcile<ServiceFacts>,
        step: &bowline_cloud_provider::DynStep,
    ) {
        let Some(write) = step.kube_write() else {
            let learned = session.apply(step).await.unwrap();
            session.learn(step, learned);
            return;
        };
        let mut service = Service::clone(&session.facts().service);
        write.predict(&mut service);
        self.world.apply(as_object(&service));
        session.refresh(self.facts().await).unwrap();
    }

    /// Puts the finalizer on, as the loop does before the first write to the cloud.
    async fn hold(&self, service: &Service) {
        if facts::has_finalizer(service) || service.metadata.deletion_timestamp.is_some() {
            return;
        }
        let mut held = service.clone();
        held.metadata.finalizers = Some(vec![super::world::FINALIZER.to_owned()]);
        self.world.apply(as_object(&held));
    }
}

fn as_object(service: &Service) -> serde_json::Value {
    let mut object = serde_json::to_value(service).unwrap();
    object["apiVersion"] = "v1".into();
    object["kind"] = "Service".into();
    object
}
