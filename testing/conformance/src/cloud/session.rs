//! A provider without a manager: the Service `web` is planned or reconciled by a provider that begins anew and remembers
//! nothing.

use std::sync::Arc;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{ClusterFacts, ServerVersion, ServiceClasses, ServiceKey, ServiceList, facts};
use bowline_controllers::node_set;
use bowline_kit::{Interruption, Outcome, ServiceLoop, Services};
use bowline_manager::plan::{PlanInput, plan_services};
use serde_json::Value;

use super::under_test::CloudUnderTest;
use super::world::{FINALIZER, World};

const WEB: &str = "default/web";

async fn input<C: CloudUnderTest>(world: &World<C>) -> PlanInput {
    let kube = world.kube();
    let namespace = world.api.object("Namespace", "", "kube-system");
    PlanInput {
        services: ServiceList {
            services: kube.list_services().await.unwrap(),
            classes: ServiceClasses::default(),
        },
        nodes: kube.list_nodes().await.unwrap(),
        cluster: Arc::new(ClusterFacts {
            name: "kubernetes".to_owned(),
            uid: namespace.map(|it| it["metadata"]["uid"].as_str().unwrap().to_owned()),
            server_version: Some(ServerVersion { major: 1, minor: 37 }),
            holder: "conformance".to_owned(),
        }),
        now: world.api.now(),
    }
}

/// What the command `plan` prints.
pub(super) async fn printed<C: CloudUnderTest>(world: &World<C>) -> PlanReport {
    let load_balancer = world.provider().load_balancer().unwrap();
    let mut reports = plan_services(&load_balancer, &input(world).await, &[]).await;
    assert_eq!(reports.len(), 1, "{reports:#?}");
    reports.remove(0)
}

/// Makes all steps until it settles; their labels. The Service keeps its finalizer and gets no status: that is the
/// controller's part.
pub(super) async fn finish<C: CloudUnderTest>(world: &World<C>) -> Vec<String> {
    make(world, usize::MAX).await
}

/// Makes so many steps, and waits after the last one for what is under way. What is written to the Service is in the API
/// server at the end.
pub(super) async fn make<C: CloudUnderTest>(world: &World<C>, limit: usize) -> Vec<String> {
    let (provider, input) = (world.provider(), input(world).await);
    let services = Services::default();
    for service in &input.services.services {
        services.put(&ServiceKey::of(service).to_string(), (**service).clone());
    }
    let begun = services.service(WEB);
    if !facts::has_finalizer(&begun) && begun.metadata.deletion_timestamp.is_none() {
        // As the controller does before the first write to the cloud.
        let finalizers = Some(vec![FINALIZER.to_owned()]);
        services.edit(WEB, |service| service.metadata.finalizers = finalizers);
    }
    let nodes = node_set::balanced(&input.nodes, provider.load_balancer().unwrap().node_set());
    let facts = || services.facts(WEB, &nodes, (*input.cluster).clone(), input.now);
    let run = ServiceLoop::new(&services)
        .reconcile(&*provider, WEB, facts, Interruption::BeforeStep(limit))
        .await;
    assert!(
        matches!(run.outcome, Outcome::Settled(_) | Outcome::Stopped),
        "{run:#?}"
    );
    let service = services.service(WEB);
    if service != begun {
        let mut object = serde_json::to_value(&*service).unwrap();
        leave_out_nulls(&mut object);
        object["apiVersion"] = "v1".into();
        object["kind"] = "Service".into();
        world.apply(object);
    }
    run.waves.concat()
}

/// An API server writes nothing where there is nothing.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}
