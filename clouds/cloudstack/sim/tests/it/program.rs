//! The program: prints its base URL, serves, and ends on a signal.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::support::{pairs, query, sign};

const DEADLINE: Duration = Duration::from_secs(20);

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudstack-sim"));
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

async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

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
        "tier",
        "--user",
        "key:secret",
        "--version",
        "4.18.1.0",
        "--zone",
        "Bern-2",
        "--page-size",
        "2",
        "--job-time",
        "5",
        "--data-plane",
        "on",
    ])
    .await;
    let refused = get(&address, &signed("wrong", "listVirtualMachines")).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let found = get(&address, &signed("secret", "listVirtualMachines")).await;
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
    assert!(found.contains(r#""count":3"#), "{found}");
    assert_eq!(found.matches(r#""networkname":"tier""#).count(), 2, "{found}");
    assert!(
        found.contains(r#""zonename":"Bern-2""#) && found.contains("127.80."),
        "{found}"
    );
    let known = get(&address, &signed("secret", "listCapabilities")).await;
    assert!(known.contains(r#""cloudstackversion":"4.18.1.0""#), "{known}");
    stop(&mut program, "-INT").await;
}

#[tokio::test]
async fn program_ends_on_terminate() {
    let (mut program, address) = start(&["--admin", "key:secret", "--servers", "1"]).await;
    let found = get(&address, &signed("secret", "listManagementServersMetrics")).await;
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
    let journal = get(&address, "/_sim/journal").await;
    assert!(journal.contains("listManagementServersMetrics"), "{journal}");
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
        "--user",
        "--admin",
        "--network",
        "--job-time",
        "--page-size",
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
async fn keys_that_are_not_two_are_refused_unprinted() {
    let refused = program().args(["--user", "hunter2"]).output().await.unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(text.contains("--user") && !text.contains("hunter2"), "{text}");
}
