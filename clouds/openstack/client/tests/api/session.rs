use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline_cloud_http::{BoxError, Bytes, CloudHttp, CloudHttpConfig, Method, Secret, Transport};
use bowline_openstack_client::{Class, Client, Credentials, Login, Service, Settings};
use http_body_util::Full;

use crate::cloud::{Answer, NEUTRON, OCTAVIA, TOKEN, client, client_with, lines, refusal, settings, token};

const SERVERS: &str = r#"{"servers": []}"#;
const REFUSED: &str = include_str!("recorded/token-bad.json");

#[tokio::test(start_paused = true)]
async fn one_login_serves_all_calls_and_its_token_goes_with_each() {
    let (client, api) = client([Answer::ok(SERVERS), Answer::ok(SERVERS)]);
    client.servers().await.unwrap();
    client.servers().await.unwrap();
    let seen = api.take_seen();
    assert_eq!(seen[0].line, "POST http://127.0.0.1:15000/v3/auth/tokens");
    assert_eq!(
        seen[0].body,
        r#"{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"demo","domain":{"id":"default"},"password":"hunter2"}}},"scope":{"project":{"name":"demo","domain":{"id":"default"}}}}}"#
    );
    assert!(!seen[0].headers.contains_key("x-auth-token"));
    for request in &seen[1..] {
        assert_eq!(request.line, "GET http://127.0.0.1:18774/v2.1/servers/detail");
        assert_eq!(request.headers["x-auth-token"], "T1");
    }
    assert_eq!(seen.len(), 3);
}

/// A cloud that takes a second for each request and knows one token, `T1` first, `T2` after the next login, and so on.
#[derive(Default)]
struct Slow {
    logins: AtomicUsize,
    is_expired: AtomicBool,
    refused: AtomicUsize,
}

impl Slow {
    async fn answer(
        self: Arc<Self>,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Full<Bytes>>, BoxError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = http::Response::builder();
        if request.method() == Method::POST {
            self.is_expired.store(false, Ordering::Relaxed);
            let number = self.logins.fetch_add(1, Ordering::Relaxed) + 1;
            let answer = answer.status(201).header("x-subject-token", format!("T{number}"));
            return Ok(answer.body(TOKEN.into())?);
        }
        let wanted = format!("T{}", self.logins.load(Ordering::Relaxed));
        if self.is_expired.load(Ordering::Relaxed) || request.headers()["x-auth-token"] != *wanted {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(answer.status(401).body(REFUSED.into())?);
        }
        Ok(answer.body(SERVERS.into())?)
    }
}

#[tokio::test(start_paused = true)]
async fn calls_whose_token_was_refused_together_share_one_login_and_are_repeated() {
    let cloud = Arc::new(Slow::default());
    let answers = Arc::clone(&cloud);
    let transport = Transport::memory(tower::service_fn(move |request| {
        Arc::clone(&answers).answer(request)
    }));
    let http = CloudHttp::new(CloudHttpConfig::new("openstack", "test"), transport);
    let client = Client::new(http, settings());
    client.servers().await.unwrap();
    cloud.is_expired.store(true, Ordering::Relaxed);
    let (first, second, third) = tokio::join!(client.servers(), client.servers(), client.servers());
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!(cloud.refused.load(Ordering::Relaxed), 3);
    assert_eq!(cloud.logins.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_an_error() {
    let refused = || refusal(401, REFUSED);
    let (client, api) = client([refused(), token("T2"), refused()]);
    let error = client.servers().await.unwrap_err();
    assert_eq!(error.class, Class::Unauthenticated);
    assert!(
        error
            .to_string()
            .ends_with("The login succeeded, and the service refuses the new token as well"),
        "{error}"
    );
    assert_eq!(api.take_seen().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_never_reads_as_an_absence_and_shows_no_password() {
    for (status, body) in [
        (401, REFUSED.to_owned()),
        (
            404,
            r#"{"error": {"code": 404, "message": "Could not find project: hunter2."}}"#.to_owned(),
        ),
        (403, String::new()),
    ] {
        let (client, _) = client_with(settings(), [refusal(status, &body)]);
        let error = client.server("x").await.unwrap_err();
        assert_eq!(error.class, Class::Unauthenticated, "{status}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_of_keystone_is_looked_for_where_the_url_has_none() {
    let versions = r#"{"versions": {"values": [
        {"id": "v2.0", "status": "stable", "links": [{"rel": "self", "href": "http://127.0.0.1:15000/v2.0/"}]},
        {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://127.0.0.1:15000/v3/"}]}]}}"#;
    let settings = Settings {
        auth_url: "http://127.0.0.1:15000".parse().unwrap(),
        ..settings()
    };
    let (client, api) = client_with(settings, [refusal(300, versions), token("T1")]);
    client.login().await.unwrap();
    let asked = lines(&api, 0);
    assert_eq!(asked[0], "GET http://127.0.0.1:15000/");
    assert!(
        asked[1].starts_with("POST http://127.0.0.1:15000/v3/auth/tokens"),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_link_does_not_take_a_password_out_of_tls() {
    let versions = r#"{"versions": {"values": [
        {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://inside:5000/identity/v3/"}]}]}}"#;
    let settings = Settings {
        auth_url: "https://cloud.test/identity".parse().unwrap(),
        ..settings()
    };
    let (client, api) = client_with(settings, [refusal(300, versions), token("T1")]);
    client.login().await.unwrap();
    let login = lines(&api, 1).remove(0);
    assert!(
        login.starts_with("POST https://cloud.test/identity/v3/auth/tokens"),
        "{login}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_trust_needs_no_versions_and_is_the_only_scope() {
    let login = Login::new(&Credentials {
        trust_id: "T".to_owned(),
        trustee_id: "I".to_owned(),
        trustee_password: Some(Secret::new("Q")),
        tenant_name: "demo".to_owned(),
        ..Credentials::default()
    });
    let settings = Settings {
        auth_url: "http://127.0.0.1:15000".parse().unwrap(),
        login: login.unwrap(),
        ..settings()
    };
    let (client, api) = client_with(settings, [token("T1")]);
    client.login().await.unwrap();
    assert_eq!(
        lines(&api, 0),
        [
            r#"POST http://127.0.0.1:15000/v3/auth/tokens {"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"I","password":"Q"}}},"scope":{"OS-TRUST:trust":{"id":"T"}}}}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_is_looked_for_once_and_again_only_after_a_failure() {
    let ports = || Answer::ok(r#"{"ports": []}"#);
    let (client, api) = client([refusal(503, ""), Answer::ok(NEUTRON), ports(), ports()]);
    let error = client.find(Service::Network).await.unwrap_err();
    assert!(!error.is_missing_service());
    client.find(Service::Network).await.unwrap();
    let filter = bowline_openstack_client::PortFilter::default();
    client.ports(&filter).await.unwrap();
    client.clone().ports(&filter).await.unwrap();
    assert_eq!(
        lines(&api, 1),
        [
            "GET http://127.0.0.1:19696/",
            "GET http://127.0.0.1:19696/",
            "GET http://127.0.0.1:19696/v2.0/ports?limit=1000",
            "GET http://127.0.0.1:19696/v2.0/ports?limit=1000",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_the_catalog_does_not_name_is_missing_and_an_absence_of_nothing() {
    let catalog = TOKEN.replace("load-balancer", "balancing");
    let login = Answer::Header(201, ("x-subject-token", "T1"), catalog);
    let (client, _) = client_with(settings(), [login]);
    let error = client.load_balancer(&"x".into()).await.unwrap_err();
    assert!(error.is_missing_service());
    assert_eq!(
        error.to_string(),
        "No suitable endpoint could be found in the service catalog for load-balancer, interface public, region \"RegionOne\": \
         the cloud has no Octavia for this project (then set `enabled = false` in section [LoadBalancer]), or Keystone's catalog \
         is not whole"
    );
}

/// The answer to a login whose catalog lacks Octavia.
fn without_balancing(token: &'static str) -> Answer {
    let catalog = TOKEN.replace("load-balancer", "balancing");
    Answer::Header(201, ("x-subject-token", token), catalog)
}

#[tokio::test(start_paused = true)]
async fn a_service_that_a_catalog_lacks_is_looked_for_in_a_new_one_after_a_pause() {
    let answers = [
        without_balancing("T1"),
        without_balancing("T2"),
        refusal(503, ""),
        token("T3"),
    ];
    let versions = [Answer::ok(OCTAVIA)];
    let (client, api) = client_with(settings(), answers.into_iter().chain(versions));
    let find = async |seconds| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let (one, other) = tokio::join!(
            client.find(Service::LoadBalancer),
            client.find(Service::LoadBalancer)
        );
        assert_eq!(one.is_ok(), other.is_ok());
        (one.is_ok(), lines(&api, 0).len())
    };
    assert_eq!(find(0).await, (false, 1));
    assert_eq!(find(29).await, (false, 0));
    assert_eq!(find(1).await, (false, 1), "one login for both");
    assert_eq!(find(59).await, (false, 0), "the pause grows");
    assert_eq!(find(1).await, (false, 1), "a failure changes nothing");
    assert_eq!(find(120).await, (true, 2));
    assert_eq!(find(600).await, (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_for_another_catalog_takes_no_token_away() {
    let refused = || refusal(401, REFUSED);
    let works = || Answer::ok(SERVERS);
    let looks = [without_balancing("T1"), refused()];
    let calls = [works(), works(), refused(), token("T2"), works()];
    let (client, api) = client_with(settings(), looks.into_iter().chain(calls));
    let after = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    for seconds in [0, 30] {
        after(seconds).await;
        let error = client.find(Service::LoadBalancer).await.unwrap_err();
        assert!(error.is_missing_service(), "{error}");
    }
    client.servers().await.unwrap();
    // The pause after the refusal is over, and no other login is made before a service refuses the token.
    after(30).await;
    client.servers().await.unwrap();
    client.servers().await.unwrap();
    let seen = api.take_seen();
    let tokens: Vec<_> = seen
        .iter()
        .map(|seen| {
            seen.headers
                .get("x-auth-token")
                .map(|token| token.to_str().unwrap())
        })
        .collect();
    let (one, two) = (Some("T1"), Some("T2"));
    assert_eq!(tokens, [None, None, one, one, one, None, two]);
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_lacks_a_service_takes_away_no_endpoint() {
    let balancers = || Answer::ok(r#"{"loadbalancers": []}"#);
    let expired = || refusal(401, REFUSED);
    let (client, api) = client([
        Answer::ok(OCTAVIA),
        balancers(),
        expired(),
        without_balancing("T2"),
        balancers(),
        balancers(),
    ]);
    for _ in 0..3 {
        client.load_balancers().await.unwrap();
    }
    assert_eq!(lines(&api, 0).len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_keystone_without_version_3_is_told_as_that() {
    let old = r#"{"versions": {"values": [{"id": "v2.0", "status": "stable", "links": []}]}}"#;
    let settings = Settings {
        auth_url: "http://127.0.0.1:15000".parse().unwrap(),
        ..settings()
    };
    let (client, _) = client_with(settings, [refusal(300, old)]);
    let error = client.login().await.unwrap_err();
    assert!(!error.is_missing_service());
    assert_eq!(
        error.to_string(),
        "Keystone offers no version 3 of its API at `auth-url`"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_found_another_one_goes_on_with() {
    let (first, _) = client([Answer::ok(NEUTRON)]);
    first.find(Service::Network).await.unwrap();
    let (other, api) = client_with(settings(), [Answer::ok(r#"{"ports": []}"#)]);
    let continued = first.continued_over(other.http().clone(), None);
    continued.ports(&Default::default()).await.unwrap();
    assert_eq!(
        lines(&api, 0),
        ["GET http://127.0.0.1:19696/v2.0/ports?limit=1000"]
    );
}
