//! How long `doctor` lets a person wait, and what it tells of load balancers that nobody asks for.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_cloud_provider::{MadeFor, ServiceKey};
use bowline_kube_api::{Effect, Fault, KubeApi, Permit, Status};
use bowline_manager::config::Config;
use bowline_manager::doctor::{Check, Cloud, Outcome, Target, examine, examine_before, explain};
use serde_json::json;
use tokio::time::Instant;

use crate::clouds::TestInstances;
use crate::process::patient;

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
        let begun = Instant::now();
        let checks = examine(&patient(
            &Config {
                election: None,
                ..Config::default()
            },
            &api,
            Cloud::Unusable(String::new()),
        ))
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

/// Every check would wait for the same.
#[tokio::test(start_paused = true)]
async fn that_a_cloud_lets_nobody_in_is_found_out_once() {
    let api = KubeApi::builder().build();
    let cloud = Arc::new(TestInstances {
        has_instances: true,
        hangs: true,
        ..TestInstances::default()
    });
    let begun = Instant::now();
    let cloud = Cloud::signed_in(cloud, Duration::ZERO, Vec::new()).await;
    let config = Config::default();
    let patient = patient(&config, &api, cloud);
    for checks in [examine(&patient).await, examine_before(&patient).await] {
        let first = checks[..3].iter();
        let first: Vec<_> = first.map(|it| (it.topic.id, it.outcome, &*it.seen)).collect();
        assert_eq!(
            first,
            [
                ("cloud.provider", Outcome::Failed, "no answer within 30 s"),
                ("cloud.instances", Outcome::Skipped, "there is no provider"),
                ("cloud.load-balancers", Outcome::Skipped, "there is no provider"),
            ]
        );
    }
    assert_eq!(begun.elapsed().as_secs(), 30);
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
    let checks = examine(&patient(
        &Config::default(),
        &api,
        Cloud::Built(Arc::new(cloud), Duration::ZERO),
    ))
    .await;
    let told = checks
        .iter()
        .find(|it| it.topic.name == "no load balancer is left behind");
    let told = told.unwrap();
    assert_eq!(told.outcome, Outcome::Warning);
    let lines = [&marks[2], &marks[1]].map(|it| {
        format!(
            "load balancer {}, made for Service {}, uid {}",
            it.balancer, it.key, it.uid
        )
    });
    assert_eq!(told.details, lines);
}

#[tokio::test(start_paused = true)]
async fn what_is_explained_tells_who_leads_and_what_the_last_try_met() {
    let api = KubeApi::builder().build();
    let apply = |object| api.apply_json(object).unwrap();
    apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    }));
    apply(
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "spec": { "providerID": "nimbus://1" } }),
    );
    let now = api.now().to_string();
    apply(json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "web.1", "namespace": "default" },
        "involvedObject": { "apiVersion": "v1", "kind": "Service", "namespace": "default", "name": "web" },
        "reason": "SyncLoadBalancerFailed", "message": "quota reached", "type": "Warning", "count": 3,
        "firstTimestamp": now, "lastTimestamp": now, "source": { "component": "service-controller" },
    }));
    let config = Config::default();
    let cloud = Arc::new(TestInstances {
        has_instances: true,
        ..TestInstances::default()
    });
    let patient = || patient(&config, &api, Cloud::Built(cloud.clone(), Duration::ZERO));
    let targets = [
        Target::Service(ServiceKey::new("default", "web")),
        Target::Service(ServiceKey::new("default", "nobody")),
        Target::Node(NodeName::new("n1")),
    ];
    let all = explain(&patient(), &targets).await.unwrap();
    let texts = |index: usize| {
        all[index]
            .causes
            .iter()
            .map(|it| it.text.as_str())
            .collect::<Vec<_>>()
    };
    for index in 0..3 {
        // A cause stands before what follows from it.
        assert!(texts(index)[0].starts_with("there is no manager"), "{all:?}");
        assert!(
            texts(index)[1].ends_with("is not there: no process has led yet"),
            "{all:?}"
        );
        assert_eq!(all[index].outcome(), Outcome::Failed);
    }
    // This provider makes no load balancers, which counts before all that was tried.
    assert!(texts(0)[2].contains("makes no load balancers"), "{all:?}");
    assert_eq!(texts(1)[2], "there is no such Service");
    assert_eq!(texts(2)[2], "nothing is known");

    let lease = |name: &str| {
        apply(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "namespace": "kube-system", "name": name },
            "spec": { "holderIdentity": "n1_1", "leaseDurationSeconds": 15, "renewTime": format!("{:.6}", api.now()) },
        }))
    };
    lease("cloud-controller-manager");
    let all = explain(&patient(), &targets[2..]).await.unwrap();
    assert_eq!(all[0].causes.len(), 1, "{all:?}");
    lease("another-cloud-controller-manager");
    let all = explain(&patient(), &targets[2..]).await.unwrap();
    assert!(
        all[0].causes[0].text.ends_with("another manager leads besides"),
        "{all:?}"
    );
}

/// A policy may be about the manager's account alone, so dry runs are made in its name by whoever may do that.
#[tokio::test(start_paused = true)]
async fn dry_runs_are_made_in_the_name_of_the_managers_account_if_whoever_asks_may() {
    let api = KubeApi::builder().build();
    for object in [
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": "cloud-controller-manager", "namespace": "kube-system" },
        }),
    ] {
        api.apply_json(object).unwrap();
    }
    let manager = "system:serviceaccount:kube-system:cloud-controller-manager";
    let person = "system:unauthenticated";
    let everything = ["get", "list", "watch", "patch", "create"];
    api.access().permit(Permit::new(person, &everything, "*", &["*"]));
    api.access()
        .permit(Permit::new(manager, &["patch", "create"], "*", &["*"]));
    let admitted = async || {
        let config = Config::default();
        let checks = examine(&patient(&config, &api, Cloud::Unusable(String::new()))).await;
        let asked = api.journal().of("patch", "nodes");
        let users: Vec<String> = asked.into_iter().map(|it| it.user).collect();
        let check = checks
            .into_iter()
            .find(|it| it.topic.name == "writes are admitted");
        (check.unwrap(), users)
    };
    let (check, users) = admitted().await;
    assert_eq!(users, ["system:anonymous"; 2]);
    assert_eq!(check.outcome, Outcome::Ok);
    assert!(
        check.details[0].contains("may not impersonate the ServiceAccount kube-system/"),
        "{:?}",
        check.details
    );

    api.access()
        .permit(Permit::new(person, &["impersonate"], "", &["serviceaccounts"]));
    let (check, users) = admitted().await;
    assert_eq!(users[2..], [manager; 2]);
    assert_eq!(
        (check.outcome, check.details),
        (Outcome::Ok, Vec::<String>::new())
    );
}

/// At night people with view rights ask. What they may not read says nothing of the manager.
#[tokio::test(start_paused = true)]
async fn to_whoever_may_only_read_a_healthy_cluster_has_not_failed() {
    let api = KubeApi::builder().build();
    let container =
        json!({ "name": "m", "image": "bowline/bowline:v0.1.0", "args": ["--cloud-provider=nimbus"] });
    let pod = json!({ "serviceAccountName": "cloud-controller-manager", "containers": [container] });
    let labels = json!({ "app": "ccm" });
    for object in [
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
            "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "ccm-1", "namespace": "kube-system", "labels": labels }, "spec": pod,
            "status": { "phase": "Running", "containerStatuses": [{ "name": "m", "ready": true }] },
        }),
    ] {
        api.apply_json(object).unwrap();
    }
    let person = "system:unauthenticated";
    let reads = ["get", "list", "watch"];
    for (group, resource) in [("", "services"), ("", "pods"), ("", "events"), ("apps", "*")] {
        api.access()
            .permit(Permit::new(person, &reads, group, &[resource]));
    }
    let reviews = ["selfsubjectaccessreviews"];
    api.access()
        .permit(Permit::new(person, &["create"], "authorization.k8s.io", &reviews));
    let config = Config::default();
    let patient = patient(
        &config,
        &api,
        Cloud::Hidden("secrets \"cloud-config\" is forbidden".to_owned()),
    );
    let checks = examine(&patient).await;
    let failed = checks.iter().filter(|it| it.outcome == Outcome::Failed);
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&Check>::new());
    for name in [
        "a process leads",
        "the manager has its permissions",
        "Nodes are read",
    ] {
        let check = checks.iter().find(|it| it.topic.name == name).unwrap();
        assert_eq!(check.outcome, Outcome::Skipped, "{check:?}");
        assert!(check.seen.contains("kubeconfig"), "{check:?}");
    }
    let targets = [
        Target::Service(ServiceKey::new("default", "web")),
        Target::Node(NodeName::new("n1")),
    ];
    for why in explain(&patient, &targets).await.unwrap() {
        assert_eq!(why.outcome(), Outcome::Warning, "{why:?}");
        let harm = why.causes.iter().find(|it| it.remedy.contains("apply"));
        assert_eq!(harm, None);
    }
}
