//! What failures become.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::GateClosed;
use bowline_cloudscale_client::{ApiError, Class, Deleted, LoadBalancerId, NewLoadBalancer, Settings};
use tokio::time::Instant;

use crate::answers::{Answer, Api, BALANCER, TOKEN};

fn balancer() -> LoadBalancerId {
    uuid::Uuid::from_u128(0x3333_3333_aaaa_4aaa_8aaa_0000_0000_0001).into()
}

fn new() -> NewLoadBalancer {
    NewLoadBalancer {
        name: "shop".to_owned(),
        flavor: "lb-standard".to_owned(),
        vip_addresses: vec![],
        zone: None,
        tags: std::sync::Arc::default(),
    }
}

/// A write, which is never repeated, so that each answer is seen once.
async fn create(answer: Answer) -> Result<(), ApiError> {
    Api::new([answer])
        .client()
        .create_load_balancer(&new())
        .await
        .map(drop)
}

#[tokio::test(start_paused = true)]
async fn each_failure_has_the_class_of_its_status_and_the_text_is_the_apis_own() {
    let after = |seconds| Some(Duration::from_secs(seconds));
    let body = |status: u16, body: &str| Answer::Body(status, body.to_owned());
    let table = [
        (
            body(
                400,
                r#"{"zone":"\"x\" is not a zone.","name":"May not be blank.","tags":["Too long.","Odd."]}"#,
            ),
            Class::Invalid,
            r#"400 Bad Request: name: May not be blank.; tags: Too long. Odd.; zone: "x" is not a zone."#,
        ),
        (
            body(404, r#"{"detail":"Not this time."}"#),
            Class::NotFound,
            "404 Not Found: detail: Not this time.",
        ),
        (
            body(404, "<html>\n<body>no such page</body></html>"),
            Class::NotFound,
            "404 Not Found: <html> <body>no such page</body></html>",
        ),
        (body(409, ""), Class::Conflict, "409 Conflict"),
        (
            Answer::RetryAfter(429, "11"),
            Class::Throttled { after: after(11) },
            "429 Too Many Requests",
        ),
        (
            body(500, "{\"detail\""),
            Class::Unavailable { after: None },
            r#"500 Internal Server Error: {"detail""#,
        ),
        (
            Answer::RetryAfter(503, "60"),
            Class::Unavailable { after: after(60) },
            "503 Service Unavailable",
        ),
        (
            body(201, r#"{"uuid":"#),
            Class::Unusable,
            "cannot read the answer (201 Created): EOF while parsing a value at line 1 column 8: {\"uuid\":",
        ),
        (
            Answer::NoConnection,
            Class::Unanswered,
            "cannot connect: refused (host api.example)",
        ),
        (
            Answer::Silence,
            Class::Silent,
            "no answer within 120 s (request sent) (host api.example)",
        ),
    ];
    for (answer, class, text) in table {
        let error = create(answer).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert_eq!(
            error.to_string(),
            format!("load-balancers.create: POST /v1/load-balancers: {text}")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_404_of_the_api_itself_proves_absence() {
    for (body, proven) in [
        (r#"{"detail":"Not found."}"#, true),
        ("<h1>Not found</h1>", false),
        (r#"{"message":"no route matched"}"#, false),
        ("", false),
        ("[]", false),
    ] {
        let api = Api::new([Answer::Body(404, body.to_owned())]);
        let error = api.client().load_balancer(balancer()).await.unwrap_err();
        assert_eq!(error.class, Class::NotFound);
        assert_eq!(error.proves_absence(), proven, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_what_is_gone_succeeds_but_a_strangers_404_does_not_count() {
    for body in [r#"{"detail":"Not found."}"#, ""] {
        let api = Api::new([Answer::Body(404, body.to_owned())]);
        assert_eq!(
            api.client().delete_load_balancer(balancer()).await.unwrap(),
            Deleted::AlreadyGone
        );
    }
    let api = Api::new([Answer::Body(404, "<h1>Not found</h1>".to_owned())]);
    let error = api.client().delete_load_balancer(balancer()).await.unwrap_err();
    assert!(error.class == Class::NotFound && !error.proves_absence());
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_and_a_write_is_not() {
    let busy = || Answer::Body(503, String::new());
    let api = Api::new([busy(), Answer::NoConnection, Answer::ok(BALANCER)]);
    api.client().load_balancer(balancer()).await.unwrap();
    assert_eq!(api.take_seen().len(), 3);
    for answer in [busy(), Answer::NoConnection] {
        let api = Api::new([answer]);
        let client = api.client();
        client.delete_load_balancer(balancer()).await.unwrap_err();
        assert_eq!(api.take_seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_run_under_the_configured_timeouts() {
    for (variable, read, write) in [(None, 20, 120), (Some("7"), 7, 7)] {
        let settings = Settings::from_env(|name| match name {
            "CLOUDSCALE_ACCESS_TOKEN" => Some(TOKEN.to_owned()),
            "CLOUDSCALE_API_TIMEOUT" => variable.map(str::to_owned),
            _ => None,
        })
        .unwrap();
        let api = Api::new([Answer::Silence, Answer::Silence]);
        let client = api.client_with("https://api.example", |config| settings.configure(config));
        let begun = Instant::now();
        let error = client.servers().await.unwrap_err();
        assert_eq!((begun.elapsed().as_secs(), error.class), (read, Class::Silent));
        let begun = Instant::now();
        let error = client.create_load_balancer(&new()).await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), write);
        assert!(error.maybe_applied());
        assert_eq!(api.take_seen().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_sends_nothing() {
    let api = Api::new([Answer::ok("[]")]);
    let client = api.client_with("https://api.example", |config| {
        config.gate = Arc::new(|| Err(GateClosed::new("the lease may have been lost")));
    });
    assert_eq!(client.servers().await.unwrap_err().class, Class::NotSent);
    let error = client.create_load_balancer(&new()).await.unwrap_err();
    assert_eq!(error.class, Class::NotSent);
    assert!(!error.maybe_applied());
    assert_eq!(
        client.delete_load_balancer(balancer()).await.unwrap_err().class,
        Class::NotSent
    );
    assert_eq!(api.take_seen().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_error_shows_the_token_even_if_the_api_repeats_it() {
    for body in [
        format!(r#"{{"detail":"bad token {TOKEN}"}}"#),
        format!("<p>bad token {TOKEN}</p>"),
    ] {
        let error = create(Answer::Body(401, body)).await.unwrap_err();
        assert!(
            !error.to_string().contains(TOKEN) && error.to_string().contains("bad token ***"),
            "{error}"
        );
    }
}
