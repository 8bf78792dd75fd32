//! How long `doctor` lets a person wait, and what it tells of load balancers that nobody asks for.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{MadeFor, ServiceKey};
use bowline_kube_api::{Effect, Fault, KubeApi, Status};
use bowline_kube_io::{Kube, KubeOptions};
use bowline_manager::config::Config;
use bowline_manager::doctor::{Cloud, Outcome, Patient, examine};
use serde_json::json;
use tokio::time::Instant;

use crate::clouds::TestInstances;

/// Of many objects the first page comes, and then none for minutes.
#[tokio::test(start_paused = true)]
async fn a_busy_api_server_does_not_have_the_doctor_wait_for_more_than_half_a_minute() {
    for resource in ["nodes", "services"] {
        let api = KubeApi::builder().build();
        for n in 0..150 {
            let name = format!("o{n:03}");
            api.apply_json(json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": name, "namespace": "default" }, "spec": { "ports": [{ "port": 80 }] },
            }))
            .unwrap();
            api.apply_json(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }))
                .unwrap();
        }
        let busy = Fault::new(Effect::Answer(Status::unavailable("busy"))).verb("list");
        api.faults().inject(busy.resource(resource).after(1));
        let kube = Kube::with_service(api.service(), KubeOptions::new("bowline/test"));
        let begun = Instant::now();
        let checks = examine(&Patient {
            config: &Config::default(),
            lookup: None,
            is_manager: false,
            kube: Ok(kube),
            cloud: Cloud::Unknown,
            holder: "test".to_owned(),
            follows: None,
        })
        .await;
        assert!(
            begun.elapsed() <= Duration::from_secs(31),
            "{:?}",
            begun.elapsed()
        );
        let failed = checks.iter().filter(|it| it.outcome == Outcome::Failed);
        let failed: Vec<&str> = failed.map(|it| it.topic.name).collect();
        let read = format!(
            "{} are read",
            ["Nodes", "Services"][usize::from(resource == "services")]
        );
        assert_eq!(failed, [read]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_no_service_asks_for_is_told_with_the_service_that_it_was_made_for() {
    let api = KubeApi::builder().build();
    let mut marks = Vec::new();
    for (name, kind) in [
        ("web", "LoadBalancer"),
        ("shop", "ClusterIP"),
        ("gone", "LoadBalancer"),
    ] {
        let made = api
            .apply_json(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "default" },
                "spec": { "type": kind, "ports": [{ "port": 80 }] },
            }))
            .unwrap();
        marks.push(MadeFor {
            key: ServiceKey::new("default", name),
            uid: made["metadata"]["uid"].as_str().unwrap().to_owned(),
            balancer: format!("load balancer of {name}"),
        });
    }
    api.delete("Service", "default", "gone");
    let cloud = TestInstances {
        marks: marks.clone(),
        ..TestInstances::default()
    };
    let checks = examine(&Patient {
        config: &Config::default(),
        lookup: None,
        is_manager: false,
        kube: Ok(Kube::with_service(
            api.service(),
            KubeOptions::new("bowline/test"),
        )),
        cloud: Cloud::Built(Arc::new(cloud), Duration::ZERO),
        holder: "test".to_owned(),
        follows: None,
    })
    .await;
    let told = checks
        .iter()
        .find(|it| it.topic.name == "no load balancer is left behind");
    let told = told.unwrap();
    assert_eq!(told.outcome, Outcome::Warning);
    let lines =
        [&marks[1], &marks[2]].map(|it| format!("{}, made for {}, uid {}", it.balancer, it.key, it.uid));
    assert_eq!(told.details, lines);
}
