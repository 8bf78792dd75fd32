//! Services of type LoadBalancer.

use bowline_openstack::LoadBalancerOptions;
use bowline_openstack_services::Service;

use super::cluster::Cluster;
use super::on_both;
use crate::ground::Ground;
use crate::walk::text;

on_both! {
    a_service_gets_a_load_balancer_and_nothing_of_it_stays,
    a_load_balancer_follows_its_service,
    two_services_share_a_load_balancer,
    a_quota_is_told_and_waited_out,
}

const WEB: (&str, i32, i32) = ("TCP", 80, 30080);

fn options() -> LoadBalancerOptions {
    let mut options = LoadBalancerOptions::default();
    options.monitor.is_wanted = true;
    options.manages_security_groups = true;
    options
}

async fn a_service_gets_a_load_balancer_and_nothing_of_it_stays(ground: Ground) {
    let cluster = Cluster::on(ground, options()).await;
    let groups = "/v2.0/security-groups";
    let before = cluster.list(Service::Network, groups).await.len();
    cluster.put("web", &[WEB]);
    let run = cluster.settle("web").await;

    let balancers = cluster.load_balancers().await;
    assert_eq!(text(&balancers[0], "/name"), "kube_service_lab_default_web");
    assert_eq!(text(&balancers[0], "/provisioning_status"), "ACTIVE");
    let floating = cluster.floating_ips().await;
    assert_eq!(run.published(), [text(&floating[0], "/floating_ip_address")]);
    assert_eq!(floating[0]["port_id"], balancers[0]["vip_port_id"]);
    assert_eq!(cluster.members().await, ["node-1", "node-2"]);
    let monitors = "/v2.0/lbaas/healthmonitors";
    assert_eq!(cluster.list(Service::LoadBalancer, monitors).await.len(), 1);
    assert_eq!(cluster.list(Service::Network, groups).await.len(), before + 1);

    cluster.delete("web").await;
    assert!(cluster.load_balancers().await.is_empty());
    assert!(cluster.floating_ips().await.is_empty());
    assert_eq!(cluster.list(Service::Network, groups).await.len(), before);
}

async fn a_load_balancer_follows_its_service(ground: Ground) {
    let mut cluster = Cluster::on(ground, options()).await;
    cluster.put("web", &[WEB]);
    cluster.settle("web").await;
    let before = cluster.load_balancers().await;

    cluster.remove_node("node-2");
    cluster.settle("web").await;
    assert_eq!(cluster.members().await, ["node-1"]);

    cluster.annotate("web", "timeout-client-data", "70000");
    cluster.edit("web", |service| {
        if let Some(spec) = service.spec.as_mut() {
            spec.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".to_owned()]);
        }
    });
    cluster.settle("web").await;
    let listeners = cluster.list(Service::LoadBalancer, "/v2.0/lbaas/listeners").await;
    assert_eq!(listeners[0]["timeout_client_data"], 70000);
    assert_eq!(listeners[0]["allowed_cidrs"], serde_json::json!(["192.0.2.0/24"]));

    cluster.put("web", &[("TCP", 443, 30443), ("UDP", 53, 30053)]);
    cluster.settle("web").await;
    let listeners = cluster.list(Service::LoadBalancer, "/v2.0/lbaas/listeners").await;
    let mut ports: Vec<_> = listeners
        .iter()
        .map(|listener| {
            (
                text(listener, "/protocol"),
                listener["protocol_port"].as_u64().unwrap(),
            )
        })
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [("TCP", 443), ("UDP", 53)]);
    let after = cluster.load_balancers().await;
    assert_eq!(before[0]["id"], after[0]["id"]);
    cluster.delete("web").await;
}

async fn two_services_share_a_load_balancer(ground: Ground) {
    let cluster = Cluster::on(ground, LoadBalancerOptions::default()).await;
    cluster.put("web", &[WEB]);
    cluster.settle("web").await;
    let balancers = cluster.load_balancers().await;
    cluster.put("mail", &[("TCP", 25, 30025)]);
    cluster.annotate("mail", "load-balancer-id", text(&balancers[0], "/id"));
    let run = cluster.settle("mail").await;
    assert_eq!(cluster.load_balancers().await.len(), 1);
    assert_eq!(
        run.published(),
        [text(&cluster.floating_ips().await[0], "/floating_ip_address")]
    );
    let listeners = "/v2.0/lbaas/listeners";
    assert_eq!(cluster.list(Service::LoadBalancer, listeners).await.len(), 2);

    cluster.delete("mail").await;
    assert_eq!(cluster.list(Service::LoadBalancer, listeners).await.len(), 1);
    cluster.settle("web").await;
    cluster.delete("web").await;
    assert!(cluster.load_balancers().await.is_empty());
}

async fn a_quota_is_told_and_waited_out(ground: Ground) {
    let cluster = Cluster::on(ground, LoadBalancerOptions::default()).await;
    cluster
        .ground
        .limit(Service::LoadBalancer, "load_balancer", 0)
        .await;
    cluster.put("web", &[WEB]);
    let run = cluster.run("web").await;
    assert!(run.complaint().to_lowercase().contains("quota"), "{run:#?}");
    assert!(cluster.floating_ips().await.is_empty());
    cluster
        .ground
        .limit(Service::LoadBalancer, "load_balancer", -1)
        .await;
    cluster.settle("web").await;
    cluster.delete("web").await;
}
