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

/// Runs the fixed story of a cloud, which has all these points and leaves nothing.
async fn story_holds(cloud: &str, points: &[&str]) {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = demo(temporary.path());
    command.args(["--once", "--seed", "7", "--cloud", cloud]);
    let output = output(command).await;
    let story = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n{story}");
    assert!(!story.contains("FAILED"), "{story}");
    let common = [
        "demo-node-3 is initialised as its server says",
        "nothing is written, neither to the cloud nor to the Service",
        "the cloud was written to as often as the plan says",
        "the cloud had said twice that the server is gone",
        "the Service has the event SyncLoadBalancerFailed",
        "nothing is left over in the cloud",
    ];
    for point in common.iter().chain(points) {
        // A line that tells of the same thing before it happens is no claim.
        let is_held = story
            .lines()
            .any(|line| line.contains(point) && line.contains("  ok  "));
        assert!(is_held, "{point}: {story}");
    }
    assert!(!story.contains('\x1b'), "style without a terminal: {story}");
    assert!(is_empty(temporary.path()));
}

#[tokio::test]
async fn the_story_of_a_cloud_with_balancers_holds_in_every_point() {
    let points = [
        "the plan creates a balancer and has not touched the cloud",
        "all servers answer",
        "demo-node-2 is tainted, not deleted",
        "the balancer is gone",
    ];
    story_holds("cloudscale", &points).await;
}

#[tokio::test]
async fn the_story_of_a_cloud_whose_every_write_is_a_job_holds_in_every_point() {
    let points = [
        "the plan creates a balancer and has not touched the cloud",
        "all servers answer",
        "demo-node-2 is tainted, not deleted",
        "the balancer is gone",
    ];
    story_holds("cloudstack", &points).await;
}

#[tokio::test]
async fn the_story_of_a_cloud_with_routes_holds_in_every_point() {
    let points = [
        "the pods of demo-node-1 are reached through it",
        "the plan creates a balancer and has not touched the cloud",
        "all servers answer",
        "demo-node-2 is tainted, not deleted",
        "the route to the pods of demo-node-3 is gone",
        "the balancer is gone",
    ];
    story_holds("openstack", &points).await;
}

#[tokio::test]
async fn the_story_of_a_cloud_with_announced_addresses_holds_in_every_point() {
    let points = [
        "the plan creates an IP block and has not touched the cloud",
        "answers at port 8080",
        "the manager keeps the entry that kube-vip has made in the status",
        "demo-node-1 is tainted, not deleted",
        "another server than demo-node-1 announces",
        "the Service is synced again",
        "the IP block is taken off its network and given back",
    ];
    story_holds("phoenixnap", &points).await;
}

#[tokio::test]
async fn an_interrupt_in_the_middle_of_the_story_ends_it_without_an_error() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = demo(temporary.path())
        .args(["--once", "--cloud", "phoenixnap"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let story = async {
        let mut last = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line == "The Service becomes a LoadBalancer" {
                interrupt(&demo);
            }
            last = line;
        }
        last
    };
    let last = tokio::time::timeout(DEADLINE, story)
        .await
        .expect("the demo does not end");
    assert!(last.ends_with("nothing is left behind"), "{last}");
    assert_eq!(demo.wait().await.unwrap().code(), Some(0));
    assert!(is_empty(temporary.path()));
}

fn interrupt(demo: &tokio::process::Child) {
    let id = rustix::process::Pid::from_raw(i32::try_from(demo.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
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

    interrupt(&demo);
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
