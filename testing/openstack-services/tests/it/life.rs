//! Clouds of one's own, from their start to their end.

use std::path::Path;

use bowline_openstack_services::{Cloud, Mode, OpenStack, Options, Project, Service, Workers, cloud_or_skip};
use http::Method;
use serde_json::json;

/// Beside the cloud that all tests use, so that two run at the same time.
#[tokio::test]
async fn a_second_cloud_whose_load_balancers_fail_runs_beside_the_first_and_ends_without_a_trace() {
    let Some(first) = cloud_or_skip().await else {
        return;
    };
    let second = OpenStack::start(Options {
        mode: Mode::Min,
        workers: Workers::Failing,
    })
    .await
    .unwrap();
    assert_ne!(first.keystone_url(), second.cloud().keystone_url());
    new_load_balancers_end_in_error(second.cloud()).await;

    let (logs, ids) = (second.logs(), second.process_ids());
    assert!(logs.join("octavia-worker.log").exists());
    drop(second);
    assert!(!logs.parent().unwrap().exists());
    for (name, id) in ids {
        assert!(!group_is_alive(id), "{name}");
    }
}

async fn new_load_balancers_end_in_error(cloud: &Cloud) {
    let project = cloud.project(&Project::unique_name("failing")).await.unwrap();
    let body = json!({ "loadbalancer": { "name": "doomed", "vip_subnet_id": project.subnet_id } });
    let path = "/v2.0/lbaas/loadbalancers";
    let id = project
        .session
        .call(Service::LoadBalancer, Method::POST, path, Some(body))
        .await
        .unwrap()
        .id("loadbalancer")
        .unwrap();
    project.load_balancer_state(&id, "ERROR").await.unwrap();
}

/// Whether a process of this group runs; one that has ended and that nobody has reaped does not.
fn group_is_alive(group: u32) -> bool {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let entries = std::fs::read_dir(Path::new("/proc")).unwrap().flatten();
    entries.filter_map(stat).any(|stat| {
        // After the name, which ends at the last parenthesis: state, parent, group (proc_pid_stat(5)).
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[0] != "Z" && fields[2] == group.to_string()
    })
}
