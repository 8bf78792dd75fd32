//! The program: prints its base URL, serves, and ends on a signal.

use bowline_kit::program::{Program, assert_explains_itself, assert_refuses_unprinted};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_phoenixnap-sim");

#[tokio::test]
async fn program_prints_its_url_serves_and_ends_on_interrupt() {
    let arguments = "--servers 3 --network 6598f7c2d2a94b6e0f1c1234 --location AUS --credentials id:secret --prefix x \
                     --data-plane on --latency 1";
    let program = Program::start(EXECUTABLE, arguments).await;
    let path = "POST /x/auth/realms/BMC/protocol/openid-connect/token";
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let body = |secret: &str| {
        format!("grant_type=client_credentials&scope=bmc.read&client_id=id&client_secret={secret}")
    };
    let refused = program.exchange(path, form, &body("wrong")).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let granted = program.exchange(path, form, &body("secret")).await;
    let (_, rest) = granted.split_once(r#""access_token":""#).unwrap();
    let token = rest.split('"').next().unwrap();
    let header = format!("authorization: Bearer {token}\r\n");
    let servers = program.exchange("GET /x/bmc/v1/servers", &header, "").await;
    assert!(servers.starts_with("HTTP/1.1 200"), "{servers}");
    assert_eq!(servers.matches(r#""location":"AUS""#).count(), 3);
    assert!(
        servers.contains(r#""hostname":"node-3""#) && servers.contains("127.78."),
        "{servers}"
    );
    let network = program
        .exchange(
            "GET /x/networks/v1/public-networks/6598f7c2d2a94b6e0f1c1234",
            &header,
            "",
        )
        .await;
    assert_eq!(network.matches("resourceId").count(), 3, "{network}");
    program.stop("-INT").await;
}

#[tokio::test]
async fn program_ends_on_terminate() {
    let program = Program::start(EXECUTABLE, "").await;
    let answer = program.exchange("GET /_sim/journal", "", "").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("[]"),
        "{answer}"
    );
    program.stop("-TERM").await;
}

#[tokio::test]
async fn program_explains_itself_and_refuses_what_it_does_not_know() {
    let options = "listen seed latency servers credentials network location attach-time data-plane";
    assert_explains_itself(EXECUTABLE, options).await;
}

#[tokio::test]
async fn credentials_that_are_not_two_halves_are_refused_unprinted() {
    assert_refuses_unprinted(EXECUTABLE, "--credentials", "hunter2").await;
}
