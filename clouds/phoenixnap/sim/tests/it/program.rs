//! The program: prints its base URL, serves, and ends on a signal.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const DEADLINE: Duration = Duration::from_secs(20);

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phoenixnap-sim"));
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Starts it; answers where it listens.
async fn start(arguments: &[&str]) -> (Child, String) {
    let mut program = program().args(arguments).spawn().unwrap();
    let mut url = String::new();
    let mut stdout = BufReader::new(program.stdout.take().unwrap());
    tokio::time::timeout(DEADLINE, stdout.read_line(&mut url))
        .await
        .unwrap()
        .unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().to_owned();
    (program, address)
}

async fn exchange(address: &str, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn stop(program: &mut Child, signal: &str) {
    let id = program.id().unwrap().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().await.unwrap();
    assert!(sent.success());
    let end = tokio::time::timeout(DEADLINE, program.wait()).await.unwrap();
    assert!(end.unwrap().success());
}

#[tokio::test]
async fn program_prints_its_url_serves_and_ends_on_interrupt() {
    let (mut program, address) = start(&[
        "--servers",
        "3",
        "--network",
        "6598f7c2d2a94b6e0f1c1234",
        "--location",
        "AUS",
        "--credentials",
        "id:secret",
        "--prefix",
        "x",
        "--data-plane",
        "on",
        "--latency",
        "1",
    ])
    .await;
    let path = "POST /x/auth/realms/BMC/protocol/openid-connect/token";
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let body = |secret: &str| {
        format!("grant_type=client_credentials&scope=bmc.read&client_id=id&client_secret={secret}")
    };
    let refused = exchange(&address, path, form, &body("wrong")).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let granted = exchange(&address, path, form, &body("secret")).await;
    let (_, rest) = granted.split_once(r#""access_token":""#).unwrap();
    let token = rest.split('"').next().unwrap();
    let header = format!("authorization: Bearer {token}\r\n");
    let servers = exchange(&address, "GET /x/bmc/v1/servers", &header, "").await;
    assert!(servers.starts_with("HTTP/1.1 200"), "{servers}");
    assert_eq!(servers.matches(r#""location":"AUS""#).count(), 3);
    assert!(
        servers.contains(r#""hostname":"node-3""#) && servers.contains("127.78."),
        "{servers}"
    );
    let network = exchange(
        &address,
        "GET /x/networks/v1/public-networks/6598f7c2d2a94b6e0f1c1234",
        &header,
        "",
    )
    .await;
    assert_eq!(network.matches("resourceId").count(), 3, "{network}");
    stop(&mut program, "-INT").await;
}

#[tokio::test]
async fn program_ends_on_terminate() {
    let (mut program, address) = start(&[]).await;
    let answer = exchange(&address, "GET /_sim/journal", "", "").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("[]"),
        "{answer}"
    );
    stop(&mut program, "-TERM").await;
}

#[tokio::test]
async fn program_explains_itself_and_refuses_what_it_does_not_know() {
    let help = program().arg("--help").output().await.unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success());
    for option in [
        "--listen",
        "--seed",
        "--latency",
        "--servers",
        "--credentials",
        "--network",
        "--location",
        "--attach-time",
        "--data-plane",
    ] {
        assert!(text.contains(option), "{option} in {text}");
    }
    let wrong = program().arg("--netwrk=x").output().await.unwrap();
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text.contains("--netwrk") && text.contains("--network"), "{text}");
}

#[tokio::test]
async fn credentials_that_are_not_two_halves_are_refused_unprinted() {
    let refused = program()
        .args(["--credentials", "hunter2"])
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(
        text.contains("--credentials") && !text.contains("hunter2"),
        "{text}"
    );
}
