//! Runs a simulator's program for the simulator's own tests: from the base URL that it prints to the signal that ends
//! it. Nothing here knows a cloud.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// How long a program may take to say where it listens, and to end.
const DEADLINE: Duration = Duration::from_secs(20);

/// A program that serves. It is killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    address: String,
}

impl Program {
    /// Starts the executable with these arguments, between spaces, and waits for its base URL.
    ///
    /// # Panics
    ///
    /// If it does not start, or prints no such URL.
    pub async fn start(executable: &str, arguments: &str) -> Self {
        let arguments = arguments.split_whitespace();
        let mut child = command(executable).args(arguments).spawn().unwrap();
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        tokio::time::timeout(DEADLINE, stdout.read_line(&mut url))
            .await
            .unwrap()
            .unwrap();
        let address = url.trim().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Sends a request, `METHOD PATH` with header lines that each end in CRLF, and answers with the whole reply.
    ///
    /// # Panics
    ///
    /// If the connection fails.
    pub async fn exchange(&self, request: &str, headers: &str, body: &str) -> String {
        let address = &self.address;
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

    /// Sends the signal, as `-TERM`; the program has to end in time and with success.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn stop(mut self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().await.unwrap();
        assert!(sent.success());
        let end = tokio::time::timeout(DEADLINE, self.child.wait()).await.unwrap();
        assert!(end.unwrap().success());
    }
}

fn command(executable: &str) -> Command {
    let mut command = Command::new(executable);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The program's help names the options, between spaces and without their hyphens, and a slip of the pen, `--netwrk`, ends it with a hint at `--network`.
///
/// # Panics
///
/// If that is not so.
pub async fn assert_explains_itself(executable: &str, options: &str) {
    let help = command(executable).arg("--help").output().await.unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success());
    for option in options.split_whitespace() {
        assert!(text.contains(&format!("--{option}")), "{option} in {text}");
    }
    let wrong = command(executable).arg("--netwrk=x").output().await.unwrap();
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text.contains("--netwrk") && text.contains("--network"), "{text}");
}

/// The program refuses the secret `value` of an option, and does not print it.
///
/// # Panics
///
/// If that is not so.
pub async fn assert_refuses_unprinted(executable: &str, option: &str, value: &str) {
    let refused = command(executable).args([option, value]).output().await.unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(text.contains(option) && !text.contains(value), "{text}");
}
