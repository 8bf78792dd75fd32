//! The most telling scenarios. What is expected is as in the tests in memory.

use bowline_cloudscale_sim::kit::Fault;
use serde_json::json;

use super::cloudscale::Site;
use super::site::{addresses, ended, named, web};
use crate::deploy;
use crate::process::cluster::{ask, free_port};

#[tokio::test]
async fn nodes_and_services_live_under_the_go_manager_s_role_and_nothing_is_forbidden() {
    let Some(site) = Site::start().await else {
        return;
    };
    let mut manager = site.manager_with(&["--node-monitor-period=1s"]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    assert_eq!(site.holder().await, "");
    site.assert_nothing_forbidden();
    site.assert_no_puts();
}

#[tokio::test]
async fn a_node_goes_when_its_server_is_proved_gone_and_not_before() {
    let Some(site) = Site::start().await else {
        return;
    };
    for (name, server) in [("gone", false), ("sick", true), ("well", true)] {
        let id = if server {
            site.cloud
                .add_server(bowline_cloudscale_sim::ServerSpec::new(name))
        } else {
            uuid::Uuid::from_u128(7)
        };
        site.add_node(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "providerID": format!("cloudscale://{id}") },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .await;
    }
    let ill = site.cloud.faults().add(Fault::any().always().status(500));
    let manager = site.manager_with(&["--node-monitor-period=1s"]);
    for name in ["gone", "sick"] {
        site.set_ready(name, "Unknown").await;
    }
    manager
        .until("it has asked several times", async || {
            site.cloud.faults().struck(ill) > 3
        })
        .await;
    for name in ["gone", "sick", "well"] {
        assert!(site.node(name).await.is_some(), "{name} was deleted on an error");
    }
    site.cloud.faults().clear();
    manager
        .until("the node goes", async || site.node("gone").await.is_none())
        .await;
    site.until("the event", async || {
        site.reasons("gone").await.contains(&"DeletingNode".to_owned())
    })
    .await;
    assert!(site.node("sick").await.is_some() && site.node("well").await.is_some());
    site.assert_nothing_forbidden();
}

#[tokio::test]
async fn what_one_process_left_the_next_one_takes_over_without_a_write_and_without_an_event() {
    let Some(site) = Site::start().await else {
        return;
    };
    // One process makes it, then the mark, which is ours alone, is taken off: so the Go manager leaves it.
    let mut first = site.manager();
    site.join("n1").await;
    site.add_service(web()).await;
    first
        .until("the address", async || {
            !addresses(&site.service("web").await.unwrap()).is_empty()
        })
        .await;
    site.unchanged(|| site.cloud.journal().len()).await;
    ended(&mut first).await;
    site.cloud
        .tag_load_balancer(site.cloud.load_balancers()[0].uuid, Default::default());
    let (before, service, events) = (
        site.cloud.snapshot(),
        site.service("web").await.unwrap(),
        site.reasons("web").await,
    );
    let (writes, cloud_writes) = (site.object_writes().len(), site.cloud.journal().writes().len());
    let reads = site.cloud.journal().reads().len();

    let second = site.manager();
    second
        .until("it has looked", async || {
            site.cloud.journal().reads().len() > reads + 5
        })
        .await;
    site.unchanged(|| (site.cloud.journal().len(), site.object_writes().len()))
        .await;
    assert_eq!(site.cloud.journal().writes().len(), cloud_writes);
    assert_eq!(site.object_writes()[writes..], Vec::<String>::new()[..]);
    assert_eq!(site.cloud.snapshot(), before);
    assert_eq!(site.service("web").await.unwrap(), service);
    assert_eq!(site.reasons("web").await, events);
    site.assert_nothing_forbidden();
}

#[tokio::test]
async fn the_balancer_of_a_service_that_vanished_while_nobody_led_stays_and_so_does_another_cluster_s() {
    let Some(site) = Site::start().await else {
        return;
    };
    let mut first = site.manager();
    site.join("n1").await;
    for name in ["web", "shop"] {
        site.add_service(named(name)).await;
        site.served(&first, name).await;
    }
    ended(&mut first).await;
    for name in ["web", "shop"] {
        site.patch_service(name, json!({ "metadata": { "finalizers": null } }))
            .await;
    }
    let mark = |name: &str| {
        let name = format!("default/{name}");
        let there = site.cloud.load_balancers();
        let mut of_it = there
            .into_iter()
            .filter(move |it| it.tags.get("k8s-service-name") == Some(&name));
        of_it.next().unwrap()
    };
    // What another cluster made for a Service of the same name, in the same project.
    let mut theirs = mark("web").tags;
    for tag in ["k8s-cluster-uid", "k8s-service-uid"] {
        theirs.insert(tag.into(), "11111111-2222-4333-8444-555555555555".into());
    }
    let foreign = site.cloud.add_load_balancer("theirs", theirs);
    let (web, shop) = (mark("web").uuid, mark("shop").uuid);
    site.delete_service("web").await;
    assert!(site.service("web").await.is_none());

    let second = site.manager();
    second
        .until_logged("A load balancer was made for a Service that is gone")
        .await;
    second
        .until("the finalizer is put back", async || {
            let service = site.service("shop").await.unwrap();
            service.metadata.finalizers.is_some_and(|it| !it.is_empty())
        })
        .await;
    site.unchanged(|| site.cloud.journal().len()).await;
    let all = [web, shop, foreign];
    assert!(all.iter().all(|it| site.cloud.load_balancer(*it).is_some()));
    site.assert_nothing_forbidden();
}

/// Who may read the metrics.
pub(super) const SCRAPER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects:
- {kind: ServiceAccount, name: scraper, namespace: default}
";

#[tokio::test]
async fn our_manifests_are_accepted_and_their_role_is_enough_for_everything() {
    let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let config = text(&deploy::root().join("cloudscale/config.yml"));
    let Some(site) = Site::start_with(&config).await else {
        return;
    };
    for example in deploy::manifests(&deploy::root().join("cloudscale/examples")) {
        // The kinds of the Gateway API are no part of Kubernetes.
        if !example.ends_with("gateway-api.yml") {
            site.apply(&text(&example)).await;
        }
    }
    site.apply(SCRAPER).await;
    let (token, stranger) = (site.token("scraper").await, site.token("stranger").await);

    let port = free_port();
    let mut manager = site.manager_with(&["--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
    site.join("worker-1").await; // one of the examples asks for it by name
    for service in site.load_balancers().await {
        manager
            .until("every example has an address", async || {
                !addresses(&site.service(&service).await.unwrap()).is_empty()
            })
            .await;
    }
    manager
        .until("the scraper is let in", async || {
            matches!(ask(port, Some(&token), "/metrics").await, Some((200, _)))
        })
        .await;
    assert_eq!(ask(port, Some(&stranger), "/metrics").await.unwrap().0, 403);
    assert_eq!(ask(port, Some("nonsense"), "/metrics").await.unwrap().0, 401);
    assert_eq!(ask(port, None, "/metrics").await.unwrap().0, 403);
    ended(&mut manager).await;
    site.assert_nothing_forbidden();
    assert_eq!(site.cloud.check_invariants(), Vec::<String>::new());
}
