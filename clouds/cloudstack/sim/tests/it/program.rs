//! The program: prints its base URL, serves, and ends on a signal.

use bowline_kit::program::{Program, assert_explains_itself, assert_refuses_unprinted};

use crate::support::{pairs, query, sign};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_cloudstack-sim");

fn signed(secret: &str, command: &str) -> String {
    let mut parameters = pairs(&[
        ("apiKey", "key"),
        ("command", command),
        ("response", "json"),
        ("signatureversion", "3"),
        ("expires", "2999-01-02T03:04:05Z"),
    ]);
    let signature = sign(secret, &parameters);
    parameters.extend(pairs(&[("signature", &signature)]));
    format!("/client/api?{}", query(&parameters))
}

async fn get(program: &Program, path: &str) -> String {
    program.exchange(&format!("GET {path}"), "", "").await
}

#[tokio::test]
async fn program_prints_its_url_serves_and_ends_on_interrupt() {
    let arguments = "--servers 3 --network tier --user key:secret --version 4.18.1.0 --zone Bern-2 --page-size 2 \
                     --job-time 5 --data-plane on";
    let program = Program::start(EXECUTABLE, arguments).await;
    let refused = get(&program, &signed("wrong", "listVirtualMachines")).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let found = get(&program, &signed("secret", "listVirtualMachines")).await;
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
    assert!(found.contains(r#""count":3"#), "{found}");
    assert_eq!(found.matches(r#""networkname":"tier""#).count(), 2, "{found}");
    assert!(
        found.contains(r#""zonename":"Bern-2""#) && found.contains("127.80."),
        "{found}"
    );
    let known = get(&program, &signed("secret", "listCapabilities")).await;
    assert!(known.contains(r#""cloudstackversion":"4.18.1.0""#), "{known}");
    program.stop("-INT").await;
}

#[tokio::test]
async fn program_ends_on_terminate() {
    let program = Program::start(EXECUTABLE, "--admin key:secret --servers 1").await;
    let found = get(&program, &signed("secret", "listManagementServersMetrics")).await;
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
    let journal = get(&program, "/_sim/journal").await;
    assert!(journal.contains("listManagementServersMetrics"), "{journal}");
    program.stop("-TERM").await;
}

#[tokio::test]
async fn program_explains_itself_and_refuses_what_it_does_not_know() {
    let options = "listen seed latency servers user admin network job-time page-size data-plane";
    assert_explains_itself(EXECUTABLE, options).await;
}

#[tokio::test]
async fn keys_that_are_not_two_are_refused_unprinted() {
    assert_refuses_unprinted(EXECUTABLE, "--user", "hunter2").await;
}
