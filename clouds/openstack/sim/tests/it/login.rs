//! Keystone: who gets a token, what it is good for, and what the catalog says.

use std::time::Duration;

use bowline_openstack_sim::{CatalogUrls, OpenstackSim, Service, UserSpec};
use serde_json::{Value, json};

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
async fn password_gets_a_token_for_its_project() {
    let sim = OpenstackSim::builder().build();
    let answer = log_in(&sim, &password("demo", "demo", "demo")).await;
    assert_eq!(answer.status, 201);
    let token = &answer.body["token"];
    assert_eq!(token["methods"], json!(["password"]));
    assert_eq!(token["project"]["name"], "demo");
    assert_eq!(
        token["project"]["domain"],
        json!({ "id": "default", "name": "Default" })
    );
    assert_eq!(token["issued_at"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(sim.journal().writes().len(), 0, "a login is no write");
    assert_eq!(token["expires_at"], "2026-01-01T01:00:00.000000Z");
    assert_eq!(
        urls(&answer.body, "network"),
        [
            "http://cloud.test/network",
            "http://cloud.test/internal/network",
            "http://cloud.test/admin/network"
        ]
    );
    assert_eq!(urls(&answer.body, "compute")[0], "http://cloud.test/compute/v2.1");
    for (name, word, project) in [
        ("demo", "wrong", "demo"),
        ("nobody", "demo", "demo"),
        ("demo", "demo", "admin"),
        ("demo", "demo", "nowhere"),
    ] {
        let refused = log_in(&sim, &password(name, word, project)).await;
        assert_eq!(refused.status, 401, "{name} {project}");
        let expected = json!({ "error": {
            "code": 401, "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        } });
        assert_eq!(refused.body, expected);
        assert_eq!(
            refused.headers["www-authenticate"],
            "Keystone uri=\"http://cloud.test/identity\""
        );
        let request_id = refused.headers["x-openstack-request-id"].to_str().unwrap();
        assert!(request_id.starts_with("req-"), "{request_id}");
    }
}

#[tokio::test(start_paused = true)]
async fn user_and_project_are_named_by_id_too() {
    let sim = OpenstackSim::builder().build();
    let user = sim.user_id("demo").unwrap();
    let body = json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": { "id": user, "password": "demo" } } },
        "scope": { "project": { "id": sim.home().project } },
    } });
    assert_eq!(log_in(&sim, &body).await.status, 201);
    let mut both = body.clone();
    both["auth"]["identity"]["password"]["user"]["name"] = json!("demo");
    assert_eq!(log_in(&sim, &both).await.status, 400);
    let mut homeless = password("demo", "demo", "demo");
    homeless["auth"]["identity"]["password"]["user"]["domain"] = Value::Null;
    assert_eq!(log_in(&sim, &homeless).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn application_credential_brings_its_own_scope() {
    let sim = OpenstackSim::builder().build();
    let user = sim.user_id("demo").unwrap();
    let id = sim.add_application_credential(&user, "ccm", "s3cret");
    let login = |part: Value| {
        json!({ "auth": { "identity": {
        "methods": ["application_credential"], "application_credential": part,
    } } })
    };
    let by_id = login(json!({ "id": id, "secret": "s3cret" }));
    let answer = log_in(&sim, &by_id).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.body["token"]["project"]["name"], "demo");
    let domain = json!({ "name": "Default" });
    for part in [
        json!({ "name": "ccm", "secret": "s3cret", "user": { "id": user } }),
        json!({ "name": "ccm", "secret": "s3cret", "user": { "name": "demo", "domain": domain } }),
    ] {
        assert_eq!(log_in(&sim, &login(part)).await.status, 201);
    }
    assert_eq!(
        log_in(&sim, &login(json!({ "id": id, "secret": "no" })))
            .await
            .status,
        401
    );
    let unknown = log_in(&sim, &login(json!({ "id": "none", "secret": "s3cret" }))).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        unknown.body["error"]["message"],
        "Could not find Application Credential: none."
    );
    let mut scoped = by_id;
    scoped["auth"]["scope"] = json!({ "project": { "id": sim.home().project } });
    assert_eq!(log_in(&sim, &scoped).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn trustee_acts_in_the_name_of_the_trustor() {
    let sim = OpenstackSim::builder().build();
    let trustor = sim.user_id("demo").unwrap();
    let other = sim.add_project("other");
    let trustee = sim.add_user(UserSpec {
        project: Some(other),
        ..UserSpec::new("helper", "help")
    });
    let trust = sim.add_trust(&trustor, &trustee);
    let login = |user: &str, password: &str| {
        json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": { "id": user, "password": password } } },
        "scope": { "OS-TRUST:trust": { "id": trust } },
    } })
    };
    let answer = log_in(&sim, &login(&trustee, "help")).await;
    assert_eq!(answer.status, 201);
    let token = &answer.body["token"];
    assert_eq!(token["user"]["id"], trustor);
    assert_eq!(token["project"]["id"], sim.home().project);
    assert_eq!(token["OS-TRUST:trust"]["trustee_user"]["id"], trustee);
    assert_eq!(log_in(&sim, &login(&trustor, "demo")).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn token_gets_another_one_that_lives_no_longer() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    tokio::time::advance(Duration::from_secs(600)).await;
    let body = json!({ "auth": {
        "identity": { "methods": ["token"], "token": { "id": caller.token } },
        "scope": { "project": { "id": sim.home().project } },
    } });
    let answer = log_in(&sim, &body).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.body["token"]["expires_at"], "2026-01-01T01:00:00.000000Z");
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

#[tokio::test(start_paused = true)]
async fn journal_shows_who_logs_in_and_no_secret() {
    let sim = OpenstackSim::builder().build();
    let id = sim.add_application_credential(&sim.user_id("demo").unwrap(), "ccm", "s3cret");
    let caller = Caller::new(&sim).await;
    let part = json!({ "id": id, "secret": "s3cret" });
    let credential = json!({ "methods": ["application_credential"], "application_credential": part });
    log_in(&sim, &json!({ "auth": { "identity": credential } })).await;
    let token = json!({ "methods": ["token"], "token": { "id": caller.token } });
    log_in(&sim, &json!({ "auth": { "identity": token } })).await;
    assert_eq!(sim.journal().count_operation("keystone.tokens.create"), 3);
    let bodies: Vec<String> = sim
        .journal()
        .entries()
        .iter()
        .map(|it| it.body.as_ref().unwrap().to_string())
        .collect();
    assert!(
        bodies[0].contains(r#""name":"demo","password":"***""#),
        "{}",
        bodies[0]
    );
    assert!(
        bodies[1].contains(&id) && !bodies[1].contains("s3cret"),
        "{}",
        bodies[1]
    );
    assert!(!bodies[2].contains(&caller.token), "{}", bodies[2]);
}
