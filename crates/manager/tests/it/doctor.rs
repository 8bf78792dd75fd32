//! How long `doctor` lets a person wait.

use std::time::Duration;

use bowline_kube_api::{Effect, Fault, KubeApi, Status};
use bowline_kube_io::{Kube, KubeOptions};
use bowline_manager::config::Config;
use bowline_manager::doctor::{Cloud, Outcome, Patient, examine};
use serde_json::json;
use tokio::time::Instant;

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
