//! A login that Keystone refuses: how often it is made again, and when another one takes its place.

use std::time::Duration;

use bowline_cloud_http::{CredentialsFile, Secret};
use bowline_openstack_client::{Class, Credentials, Login, Service};
use tokio::time::advance;

use crate::cloud::{Answer, NEUTRON, TOKEN, client, client_with, lines, refusal, settings, token};

const SERVERS: &str = r#"{"servers": []}"#;
const REFUSED: &str = include_str!("recorded/token-bad.json");

const LOGIN: &str = "POST http://127.0.0.1:15000/v3/auth/tokens";

fn login(password: &str) -> Login {
    let login = Login::new(&Credentials {
        username: "demo".to_owned(),
        password: Some(Secret::new(password)),
        tenant_name: "demo".to_owned(),
        domain_id: "default".to_owned(),
        doubt: "look at how it is written".to_owned(),
        ..Credentials::default()
    });
    login.unwrap()
}

/// Ten calls in five minutes, each with a password that is wrong, and one with the right one.
#[tokio::test(start_paused = true)]
async fn a_refused_login_is_made_again_after_a_pause_that_grows() {
    let unknown = r#"{"error": {"code": 404, "message": "Could not find Application Credential: x."}}"#;
    let answers = [
        refusal(401, REFUSED),
        refusal(404, unknown),
        refusal(403, REFUSED),
        token("T1"),
        Answer::ok(SERVERS),
    ];
    let (client, api) = client_with(settings(), answers);
    for (waited, logins) in [(0, 1), (1, 0), (28, 0), (1, 1), (59, 0), (1, 1), (119, 0)] {
        advance(Duration::from_secs(waited)).await;
        let begun = tokio::time::Instant::now();
        let error = client.servers().await.unwrap_err();
        assert_eq!(error.class, Class::Unauthenticated);
        assert_eq!(begun.elapsed(), Duration::ZERO, "a refusal is told at once");
        assert_eq!(api.take_seen().len(), logins, "after {waited} s");
    }
    advance(Duration::from_secs(1)).await;
    client.servers().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_keystone_that_is_in_trouble_is_asked_again_soon() {
    let (client, api) = client_with(settings(), [refusal(503, ""), token("T1"), Answer::ok(SERVERS)]);
    client.servers().await.unwrap_err();
    client.servers().await.unwrap();
    assert_eq!(api.take_seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn other_credentials_are_used_without_a_pause_and_the_former_token_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cloud.conf");
    std::fs::write(&path, "old").unwrap();
    let file =
        CredentialsFile::open(&path, |contents| Ok(login(&String::from_utf8_lossy(contents)))).unwrap();
    let answers = [
        refusal(401, REFUSED),
        token("T1"),
        Answer::ok(SERVERS),
        token("T2"),
        Answer::ok(SERVERS),
    ];
    let (first, api) = client_with(settings(), answers);
    let client = first.continued_over(first.http().clone(), Some(file));
    let error = client.servers().await.unwrap_err().to_string();
    assert!(error.contains("; look at how it is written"), "{error}");
    assert!(lines(&api, 0)[0].contains(r#""password":"old""#));
    std::fs::write(&path, "new").unwrap();
    client.servers().await.unwrap();
    let login = lines(&api, 0).remove(0);
    assert!(
        login.starts_with(LOGIN) && login.contains(r#""password":"new""#),
        "{login}"
    );
    std::fs::write(&path, "newest").unwrap();
    advance(Duration::from_secs(10)).await;
    client.servers().await.unwrap();
    let seen = api.take_seen();
    assert!(
        seen[0].body.contains(r#""password":"newest""#),
        "{}",
        seen[0].body
    );
    assert_eq!(seen[1].headers["x-auth-token"], "T2");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_moved_is_found_by_the_catalog_of_the_next_login() {
    let moved = Answer::Header(201, ("x-subject-token", "T2"), TOKEN.replace(":19696", ":29696"));
    let ports = || Answer::ok(r#"{"ports": []}"#);
    let (client, api) = client([
        Answer::ok(NEUTRON),
        refusal(401, REFUSED),
        moved,
        ports(),
        Answer::ok(NEUTRON),
        ports(),
    ]);
    let filter = bowline_openstack_client::PortFilter::default();
    client.find(Service::Network).await.unwrap();
    // The call whose token was refused goes where it was going.
    client.ports(&filter).await.unwrap();
    client.ports(&filter).await.unwrap();
    let seen = lines(&api, 2);
    assert!(seen[1].starts_with(LOGIN), "{seen:?}");
    assert_eq!(
        [&seen[0], &seen[2], &seen[3], &seen[4]],
        [
            "GET http://127.0.0.1:19696/v2.0/ports?limit=1000",
            "GET http://127.0.0.1:19696/v2.0/ports?limit=1000",
            "GET http://127.0.0.1:29696/",
            "GET http://127.0.0.1:29696/v2.0/ports?limit=1000",
        ]
    );
}
