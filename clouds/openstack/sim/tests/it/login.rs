//! Keystone: what the catalog says, where the cloud is made so.

use bowline_openstack_sim::{CatalogUrls, OpenstackSim, Service};
use serde_json::Value;

use crate::support::{Caller, log_in, password};

fn urls(login: &Value, kind: &str) -> Vec<String> {
    let catalog = login["token"]["catalog"].as_array().unwrap();
    let entries = catalog.iter().filter(|it| it["type"] == kind);
    let endpoints = entries.flat_map(|it| it["endpoints"].as_array().unwrap());
    endpoints
        .map(|it| it["url"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn catalog_is_as_it_was_asked_for() {
    let sim = OpenstackSim::builder()
        .regions(["here", "there"])
        .without(Service::KeyManager)
        .catalog_urls(CatalogUrls::Versioned)
        .base_url("https://elsewhere.test")
        .build();
    let login = log_in(&sim, &password("demo", "demo", "demo")).await.body;
    assert!(urls(&login, "key-manager").is_empty());
    let network = urls(&login, "network");
    assert_eq!(network[0], "https://elsewhere.test/network/v2.0");
    assert_eq!(network[4], "https://elsewhere.test/there/internal/network/v2.0");
    let caller = Caller::new(&sim).await;
    assert_eq!(caller.get("/internal/network/v2.0/ports").await.0, 200);
    assert_eq!(caller.get("/there/network/v2.0/ports").await.0, 404);
    let bare = OpenstackSim::builder().catalog_urls(CatalogUrls::Bare).build();
    let login = log_in(&bare, &password("demo", "demo", "demo")).await.body;
    assert_eq!(urls(&login, "compute")[0], "http://cloud.test/compute");
}
