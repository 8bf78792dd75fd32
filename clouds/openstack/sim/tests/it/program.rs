//! The program: prints its base URL, serves, and ends on a signal.

use bowline_kit::program::{Program, assert_explains_itself, assert_refuses_unprinted};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_openstack-sim");

#[tokio::test]
async fn program_prints_its_url_serves_and_ends_on_terminate() {
    let arguments = "--servers 3 --user ccm:secret --project k8s --region Bern --network inner --without key-manager --data-plane on";
    let program = Program::start(EXECUTABLE, arguments).await;
    let body = r#"{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"ccm","password":"secret",
                  "domain":{"id":"default"}}}},"scope":{"project":{"name":"k8s","domain":{"id":"default"}}}}}"#;
    let refused = program
        .exchange(
            "POST /identity/v3/auth/tokens",
            "",
            &body.replace("secret", "other"),
        )
        .await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let login = program.exchange("POST /identity/v3/auth/tokens", "", body).await;
    assert!(login.starts_with("HTTP/1.1 201"), "{login}");
    assert!(
        login.contains(r#""region":"Bern""#) && !login.contains("barbican"),
        "{login}"
    );
    let token = login
        .lines()
        .find_map(|line| line.strip_prefix("x-subject-token: "))
        .unwrap();
    let header = format!("x-auth-token: {token}\r\n");
    let servers = program
        .exchange("GET /compute/v2.1/servers/detail", &header, "")
        .await;
    assert_eq!(servers.matches(r#""name":"node-"#).count(), 3, "{servers}");
    assert!(
        servers.contains(r#""addresses":{"inner":"#) && servers.contains("127.78."),
        "{servers}"
    );
    program.stop("-TERM").await;
}

#[tokio::test]
async fn program_explains_itself_and_refuses_what_it_does_not_know() {
    let options = "listen seed latency servers user project region zone network without lb-ready-after data-plane base-url";
    assert_explains_itself(EXECUTABLE, options).await;
}

#[tokio::test]
async fn login_that_is_not_two_words_is_refused_unprinted() {
    assert_refuses_unprinted(EXECUTABLE, "--user", "hunter2").await;
}
