//! Tokens: who gets one, what it is good for, and for how long.

use std::time::Duration;

use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::{CredentialForm, ExpiresIn, Operation, PhoenixnapSim, Scope};
use http::Request;
use serde_json::{Value, json};

use crate::support::{ALL_SCOPES, Caller, account, ask, pass, send};

const SERVERS: &str = "/bmc/v1/servers";

/// Asks for a token with the credentials in the form.
async fn ask_in_form(sim: &PhoenixnapSim, form: &str) -> (u16, Value) {
    let request = Request::post(PhoenixnapSim::TOKEN_PATH)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned())
        .unwrap();
    let (status, text) = send(sim, request).await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn token_is_good_until_it_expires() {
    let sim = account();
    let (status, answer) = ask(&sim, "id", "secret", ALL_SCOPES).await;
    assert_eq!(status, 200);
    assert_eq!(answer["expires_in"], 900);
    assert_eq!(answer["token_type"], "Bearer");
    assert_eq!(answer["scope"], ALL_SCOPES);
    let caller = Caller::with_token(&sim, answer["access_token"].as_str().unwrap());
    pass(899).await;
    assert_eq!(caller.get(SERVERS).await.0, 200);
    pass(1).await;
    let (status, answer) = caller.get(SERVERS).await;
    assert_eq!(status, 401);
    assert!(answer["message"].is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn credentials_come_in_the_header_or_in_the_form() {
    let sim = PhoenixnapSim::builder()
        .credentials("a b", "p+%:", Scope::ALL)
        .build();
    // Both halves are form-encoded before they are joined.
    assert_eq!(ask(&sim, "a+b", "p%2B%25%3A", "bmc").await.0, 200);
    assert_eq!(ask(&sim, "a b", "wrong", "bmc").await.0, 401);
    let form = "grant_type=client_credentials&scope=bmc&client_id=a+b&client_secret=p%2B%25%3A";
    assert_eq!(ask_in_form(&sim, form).await.0, 200);

    sim.set_behaviour(|it| it.credentials_in = CredentialForm::Body);
    assert_eq!(ask(&sim, "a+b", "p%2B%25%3A", "bmc").await.0, 401);
    assert_eq!(ask_in_form(&sim, form).await.0, 200);
    sim.set_behaviour(|it| it.credentials_in = CredentialForm::Header);
    let (status, answer) = ask_in_form(&sim, form).await;
    assert_eq!(status, 401);
    assert_eq!(answer["error"], "invalid_client");

    let told: Vec<_> = sim
        .token_requests()
        .into_iter()
        .map(|it| (it.client_id, it.in_header, it.is_granted))
        .collect();
    let named = |in_header, granted| ("a b".to_owned(), in_header, granted);
    assert_eq!(
        told[..3],
        [named(true, true), named(true, false), named(false, true)]
    );
    let recorded = format!("{:?}", sim.journal().entries());
    assert!(
        !recorded.contains("p+%:") && !recorded.contains("p%2B"),
        "{recorded}"
    );
}

#[tokio::test(start_paused = true)]
async fn grant_type_and_scopes_are_checked() {
    let sim = PhoenixnapSim::builder()
        .credentials("id", "secret", [Scope::Bmc, Scope::BmcRead])
        .build();
    for (form, word) in [
        ("scope=bmc", "invalid_request"),
        ("grant_type=password", "unsupported_grant_type"),
    ] {
        let (status, answer) = ask_in_form(&sim, &format!("{form}&client_id=id&client_secret=secret")).await;
        assert_eq!((status, &answer["error"]), (400, &json!(word)));
    }
    for scopes in [ALL_SCOPES, "bmc nonsense"] {
        let (status, answer) = ask(&sim, "id", "secret", scopes).await;
        assert_eq!((status, &answer["error"]), (400, &json!("invalid_scope")));
    }
    sim.set_behaviour(|it| it.drops_missing_scopes = true);
    let (status, answer) = ask(&sim, "id", "secret", ALL_SCOPES).await;
    assert_eq!((status, &answer["scope"]), (200, &json!("bmc bmc.read")));
}

#[tokio::test(start_paused = true)]
async fn forgotten_tokens_and_revoked_credentials_are_refused() {
    let sim = PhoenixnapSim::builder()
        .credentials("id", "secret", Scope::ALL)
        .credentials("other", "secret", Scope::ALL)
        .build();
    let caller = Caller::new(&sim).await;
    assert_eq!(caller.get(SERVERS).await.0, 200);
    sim.forget_tokens();
    assert_eq!(caller.get(SERVERS).await.0, 401);
    assert_eq!(Caller::new(&sim).await.get(SERVERS).await.0, 200);
    sim.revoke_credentials("id");
    assert_eq!(ask(&sim, "id", "secret", ALL_SCOPES).await.0, 401);
    sim.set_credentials("id", "second", Scope::ALL);
    assert_eq!(ask(&sim, "id", "secret", ALL_SCOPES).await.0, 401);
    assert_eq!(ask(&sim, "id", "second", ALL_SCOPES).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn lifetime_is_told_in_many_ways_and_denials_may_be_plain() {
    let sim = account();
    sim.set_behaviour(|it| it.token_lifetime = Duration::from_secs(60));
    for (way, told) in [
        (ExpiresIn::Number, json!(60)),
        (ExpiresIn::Text, json!("60")),
        (ExpiresIn::Zero, json!(0)),
        (ExpiresIn::Missing, Value::Null),
    ] {
        sim.set_behaviour(|it| it.expires_in = way);
        assert_eq!(
            ask(&sim, "id", "secret", "bmc").await.1["expires_in"],
            told,
            "{way:?}"
        );
    }
    sim.set_behaviour(|it| it.plain_denials = true);
    let (status, answer) = Caller::with_token(&sim, "none").get(SERVERS).await;
    assert_eq!(status, 401);
    assert!(answer.as_str().unwrap().starts_with("The token"), "not JSON");
}

#[tokio::test(start_paused = true)]
async fn token_endpoint_fails_when_told_and_outlives_maintenance() {
    let sim = account();
    sim.faults()
        .add(Fault::operation(Operation::Token.name()).times(2).status(500));
    for status in [500, 500, 200] {
        assert_eq!(ask(&sim, "id", "secret", "bmc").await.0, status);
    }
    sim.set_behaviour(|it| it.maintenance = true);
    let caller = Caller::new(&sim).await;
    assert_eq!(caller.get(SERVERS).await.0, 503);
    assert_eq!(sim.journal().count_operation("token"), 4);
    assert!(sim.journal().writes().is_empty(), "a token is no change");
}
