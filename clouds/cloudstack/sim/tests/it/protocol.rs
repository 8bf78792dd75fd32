//! Signatures, methods, and the forms of answers.

use std::time::Duration;

use bowline_cloudstack_sim::{CloudstackSim, UserSpec};
use http::{Method, Request};
use serde_json::json;

use crate::support::{Caller, cloud, pairs, query, send};

const WRONG: &str = "unable to verify user credentials and/or request signature";

#[tokio::test(start_paused = true)]
async fn signed_requests_are_answered_by_both_methods() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    for method in [Method::GET, Method::POST] {
        let found = caller
            .call(method, "listVirtualMachines", &[("keyword", "ü *~/ü")])
            .await;
        assert_eq!(
            found.unwrap(),
            (200, json!({ "listvirtualmachinesresponse": {} }))
        );
    }
    let calls = sim.journal().entries();
    assert_eq!(calls.len(), 2);
    assert!(
        calls
            .iter()
            .all(|it| it.operation == "listVirtualMachines" && !it.write)
    );
    let recorded = format!("{calls:?}");
    assert!(recorded.contains("ü *~/ü") && recorded.contains("***"));
    assert!(!recorded.contains(CloudstackSim::API_KEY));
    assert!(!recorded.contains(CloudstackSim::SECRET_KEY));
}

#[tokio::test(start_paused = true)]
async fn published_vector_is_accepted() {
    let sim = CloudstackSim::builder()
        .user(UserSpec::new("Example-Api_Key.01", "Example-Secret_Key.02"))
        .build();
    let query = "apiKey=Example-Api_Key.01&command=listVirtualMachines&expires=2030-01-02T03%3A04%3A05Z&\
                 name=worker%2001*a~b%2Fc&response=json&signatureversion=3&signature=eIW30ymgqfVmrvH9NLooWWKR41w%3D";
    let request = |query: &str| {
        Request::get(format!("/client/api?{query}"))
            .body(String::new())
            .unwrap()
    };
    assert_eq!(send(&sim, request(query)).await.unwrap().0, 200);
    let changed = query.replace("worker", "wOrker");
    assert_eq!(
        send(&sim, request(&changed)).await.unwrap().0,
        200,
        "what is signed is in lower case"
    );
    let changed = query.replace("worker", "another");
    assert_eq!(send(&sim, request(&changed)).await.unwrap().0, 401);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_signed_well_is_refused_in_one_form() {
    let (sim, _) = cloud();
    let body = json!({ "listzonesresponse": { "uuidList": [], "errorcode": 401, "errortext": WRONG } });
    for caller in [
        Caller::with_keys(&sim, "unknown", CloudstackSim::SECRET_KEY),
        Caller::with_keys(&sim, CloudstackSim::API_KEY, "wrong"),
    ] {
        let answer = caller.call(Method::GET, "listZones", &[]).await.unwrap();
        assert_eq!(answer, (401, body.clone()));
    }
    let caller = Caller::new(&sim);
    for expires in ["2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "tomorrow", ""] {
        let answer = caller
            .call(Method::GET, "listZones", &[("expires", expires)])
            .await;
        assert_eq!(answer.unwrap(), (401, body.clone()), "{expires}");
    }
    for missing in ["apiKey", "signature", "expires"] {
        let mut parameters = caller.signed("listZones", &[]);
        parameters.retain(|(name, _)| name != missing);
        let request = Request::get(format!("/client/api?{}", query(&parameters)));
        let answer = send(&sim, request.body(String::new()).unwrap()).await.unwrap();
        assert_eq!(answer, (401, body.clone()), "without {missing}");
    }
    assert!(sim.remove_user(CloudstackSim::API_KEY));
    assert_eq!(caller.call(Method::GET, "listZones", &[]).await.unwrap().0, 401);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_are_noticed() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let soon = [("expires", "2026-01-01T00:10:00+0000")];
    let status = async || caller.call(Method::GET, "listZones", &soon).await.unwrap().0;
    assert_eq!(status().await, 200);
    sim.set_behaviour(|it| it.clock_skew_s = 601);
    assert_eq!(status().await, 401);
    sim.set_behaviour(|it| (it.clock_skew_s, it.max_expiry) = (0, Some(900)));
    assert_eq!(status().await, 200);
    sim.set_behaviour(|it| it.clock_skew_s = -301);
    assert_eq!(status().await, 401, "more than 15 minutes ahead");
    sim.set_behaviour(|it| it.clock_skew_s = 0);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(status().await, 401);
}

#[tokio::test(start_paused = true)]
async fn strict_server_takes_changes_by_post_only() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let network = sim.network();
    let wish = [("networkid", network.as_str())];
    let taken = caller
        .call(Method::GET, "associateIpAddress", &wish)
        .await
        .unwrap();
    assert_eq!(taken.0, 200, "{}", taken.1);
    sim.set_behaviour(|it| it.post_only = true);
    assert_eq!(
        caller
            .call(Method::GET, "associateIpAddress", &wish)
            .await
            .unwrap()
            .0,
        405
    );
    assert_eq!(caller.call(Method::POST, "listZones", &[]).await.unwrap().0, 200);
    assert!(
        sim.journal()
            .writes()
            .iter()
            .all(|it| it.operation == "associateIpAddress")
    );
    assert_eq!(
        sim.journal().writes().len(),
        2,
        "a change is a write by any method"
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_say_their_code_in_three_places() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let signed = caller.signed("listNetworks", &[("id", "7f")]);
    let request = Request::get(format!("/client/api?{}", query(&signed)));
    let answer = sim
        .service()
        .send(
            request
                .body(http_body_util::Empty::<bytes::Bytes>::new())
                .unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(answer.status().as_u16(), 431);
    let text = answer.headers()["x-description"].to_str().unwrap();
    assert_eq!(
        text,
        "Unable to execute API command listnetworks due to invalid value. Invalid parameter id value=7f due to \
         incorrect long value format, or entity does not exist or due to incorrect parameter annotation for the field \
         in api cmd class."
    );
    let unsigned = pairs(&[("command", "")]);
    let request = Request::get(format!("/client/api?{}", query(&unsigned)));
    assert_eq!(
        send(&sim, request.body(String::new()).unwrap()).await.unwrap().0,
        432
    );
}
