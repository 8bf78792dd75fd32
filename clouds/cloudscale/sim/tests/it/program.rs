//! The program: prints its base URL, serves, and ends on SIGTERM.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

const DEADLINE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn program_prints_its_url_and_serves() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cloudscale-sim"))
        .args([
            "--servers",
            "3",
            "--token",
            "secret",
            "--zone",
            "lpg2",
            "--data-plane",
            "on",
            "--latency",
            "1",
        ])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut stdout = BufReader::new(program.stdout.take().unwrap());
    tokio::time::timeout(DEADLINE, stdout.read_line(&mut url))
        .await
        .unwrap()
        .unwrap();
    let address = url.trim().strip_prefix("http://").unwrap();
    for (token, status, count) in [("secret", "200", 3), ("other", "401", 0)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("host: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
        stream
            .write_all(format!("GET /v1/servers HTTP/1.1\r\n{head}").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert_eq!(answer.matches("ssh_host_keys").count(), count);
        assert_eq!(answer.contains(r#""slug":"lpg2""#), count > 0);
    }
    let id = program.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .await
            .unwrap()
            .success()
    );
    let end = tokio::time::timeout(DEADLINE, program.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(end.success());
}
