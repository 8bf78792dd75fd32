//! What a test can ask of a cloud.

use bowline_openstack_services::{Cloud, Login, Mode, Project, RestError, Service, Session, cloud_or_skip};
use http::{Method, StatusCode};
use serde_json::{Value, json};

async fn project() -> Option<Project> {
    let cloud = cloud_or_skip().await?;
    Some(cloud.project(&Project::unique_name("kit")).await.unwrap())
}

async fn floating_ip(project: &Project, network: &str) -> Result<String, RestError> {
    let body = json!({ "floatingip": { "floating_network_id": network } });
    project
        .session
        .call(Service::Network, Method::POST, "/v2.0/floatingips", Some(body))
        .await?
        .id("floatingip")
}

#[tokio::test]
async fn projects_see_nothing_of_each_other() {
    let Some(one) = project().await else {
        return;
    };
    let other = one.cloud().project(&Project::unique_name("kit")).await.unwrap();
    let path = format!("/v2.0/networks/{}", other.network_id);
    let answer = one
        .session
        .call(Service::Network, Method::GET, &path, None)
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_server_is_booted_stopped_and_deleted() {
    let Some(project) = project().await else {
        return;
    };
    if project.cloud().access().mode == Mode::Min {
        return;
    }
    let server = project.server("node-1").await.unwrap();
    assert!(server.address.starts_with("10.0.0."), "{server:?}");
    let port = format!("/v2.0/ports/{}", server.port_id);
    let port = project
        .session
        .call(Service::Network, Method::GET, &port, None)
        .await
        .unwrap();
    // Bound without any agent, and up.
    assert_eq!(port.text("/port/status").unwrap(), "ACTIVE");
    project.stop(&server).await.unwrap();
    project.delete(&server).await.unwrap();
}

#[tokio::test]
async fn users_log_in_by_application_credential_and_by_trust() {
    let Some(project) = project().await else {
        return;
    };
    let url = project.cloud().keystone_url();
    let credential = project.application_credential("manager").await.unwrap();
    let login = Login::application_credential(&credential.id, &credential.secret);
    let session = Session::open(url, &login).await.unwrap();
    assert_eq!(session.project_id, project.id());

    let trust = project.trust().await.unwrap();
    let login = Login::trust(&trust.trustee_id, &trust.trustee_password, &trust.id);
    let session = Session::open(url, &login).await.unwrap();
    assert_eq!(session.project_id, project.id());
}

#[tokio::test]
async fn a_quota_and_a_small_network_are_exhausted() {
    let Some(project) = project().await else {
        return;
    };
    let cloud: &Cloud = project.cloud();
    // Two addresses, of which the gateway takes one.
    let small = cloud
        .external_network(&Project::unique_name("small"), "192.0.2.0/30")
        .await
        .unwrap();
    floating_ip(&project, &small.id).await.unwrap();
    let refused = floating_ip(&project, &small.id).await.unwrap_err().to_string();
    assert!(refused.contains("No more IP addresses available"), "{refused}");

    cloud
        .limit(Service::Network, project.id(), "floatingip", 1)
        .await
        .unwrap();
    let external = &cloud.access().external.id;
    let refused = floating_ip(&project, external).await.unwrap_err().to_string();
    assert!(refused.contains("OverQuota"), "{refused}");
}

#[tokio::test]
async fn a_further_external_subnet_has_its_tags() {
    let Some(project) = project().await else {
        return;
    };
    let name = Project::unique_name("tagged");
    // A range for each process that uses the same cloud.
    let range = format!("198.18.{}.0/29", std::process::id() % 256);
    let id = project
        .cloud()
        .external_subnet(&name, &range, &["gold", "floating"])
        .await
        .unwrap();
    let path = "/v2.0/subnets?tags=gold";
    let answer = project
        .session
        .call(Service::Network, Method::GET, path, None)
        .await
        .unwrap();
    let ids: Vec<&Value> = answer.body["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subnet| &subnet["id"])
        .collect();
    assert!(ids.contains(&&json!(id)), "{ids:?}");
}
