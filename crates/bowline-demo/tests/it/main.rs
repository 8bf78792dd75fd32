//! The program as its users run it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// For a story that takes half a minute on a machine with nothing else to do.
const DEADLINE: Duration = Duration::from_secs(240);

/// The demo with a temporary directory of its own, so that it can be seen what is left there.
fn demo(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

async fn output(mut command: Command) -> Output {
    tokio::time::timeout(DEADLINE, command.output())
        .await
        .expect("the demo does not end")
        .unwrap()
}

#[tokio::test]
async fn the_fixed_story_holds_in_every_point_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = demo(temporary.path());
    command.args(["--once", "--seed", "7"]);
    let output = output(command).await;
    let story = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n{story}");
    assert!(!story.contains("FAILED"), "{story}");
    for point in [
        "demo-node-3 is initialised as its server says",
        "the plan creates a balancer and has not touched the cloud",
        "all servers answer",
        "nothing is written, neither to the cloud nor to the Service",
        "demo-node-2 is tainted, not deleted",
        "the cloud was written to as often as the plan says",
        "the cloud had said twice that the server is gone",
        "the Service has the event SyncLoadBalancerFailed",
        "nothing is left over in the cloud",
    ] {
        let line = story
            .lines()
            .find(|line| line.contains(point))
            .unwrap_or_default();
        assert!(line.contains("  ok  "), "{point}: {story}");
    }
    assert!(!story.contains('\x1b'), "style without a terminal: {story}");
    assert!(is_empty(temporary.path()));
}

#[tokio::test]
async fn an_interrupt_ends_everything_without_an_error() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = demo(temporary.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let wait = async {
        let mut place = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(address) = line.trim().strip_prefix("curl http://127.") {
                place = format!("127.{}", address.trim_end_matches('/'));
            }
            if line == "Waiting for you" {
                return place;
            }
        }
        panic!("the demo has ended");
    };
    let place = tokio::time::timeout(DEADLINE, wait)
        .await
        .expect("no address is printed");
    assert!(TcpStream::connect(&place).await.is_ok(), "{place}");
    assert!(!is_empty(temporary.path()), "the kubeconfig is not there");

    let id = rustix::process::Pid::from_raw(i32::try_from(demo.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let rest = async {
        let mut last = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            last = line;
        }
        (demo.wait().await.unwrap(), last)
    };
    let (status, last) = tokio::time::timeout(DEADLINE, rest)
        .await
        .expect("the demo does not end");
    assert_eq!(status.code(), Some(0), "{last}");
    assert!(last.ends_with("nothing is left behind"), "{last}");
    assert!(is_empty(temporary.path()));
    assert!(TcpStream::connect(&place).await.is_err(), "{place}");
}

#[tokio::test]
async fn a_wrong_flag_is_status_2_and_named() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = demo(temporary.path());
    command.args(["--cloud", "fog"]);
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("'fog'"), "{complaint}");
    assert!(is_empty(temporary.path()));
}
