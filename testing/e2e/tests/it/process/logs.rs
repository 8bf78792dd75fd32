//! What is on stderr.

use rustix::process::Signal;
use serde_json::Value;

use super::cluster::{Cluster, TOKEN};

/// A whole life with work, a failure and an end; the log of it.
async fn life(flags: &[&str]) -> Vec<String> {
    let cluster = Cluster::start().await;
    cluster
        .sim
        .faults()
        .add(bowline_cloudscale_sim::kit::Fault::any().nth(3).status(400));
    let mut manager = cluster.manager(flags);
    cluster.join("n1");
    cluster.join("stranger");
    cluster.add_service("web");
    cluster.addressed(&manager, "web").await;
    manager.signal(Signal::TERM);
    let (status, _) = manager.ended().await;
    let log = manager.log();
    assert_eq!(status.code(), Some(0), "{}", log.join("\n"));
    log
}

/// Whether a line begins as klog's do: `I0102 15:04:05.000000    1234 file.rs:56] `.
fn is_klog(line: &str) -> bool {
    let Some((head, _)) = line.split_once("] ") else {
        return false;
    };
    let mut words = head.split_whitespace();
    let (Some(day), Some(time), Some(process), Some(place), None) = (
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ) else {
        return false;
    };
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|c| c.is_ascii_digit());
    day.starts_with(['I', 'W', 'E', 'F'])
        && digits(&day[1..], 4)
        && time.len() == "15:04:05.000000".len()
        && process.bytes().all(|c| c.is_ascii_digit())
        && place
            .rsplit_once(':')
            .is_some_and(|(file, line)| !file.is_empty() && line.parse::<u32>().is_ok())
}

#[tokio::test]
async fn text_is_klog_s_line_form() {
    for line in life(&["--v=4"]).await {
        assert!(is_klog(&line), "{line}");
    }
}

#[tokio::test]
async fn json_is_one_object_per_line() {
    let lines = life(&["--logging-format=json", "--v=4"]).await;
    assert!(lines.len() > 10);
    for line in lines {
        let object: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(object["ts"].is_number(), "{line}");
        assert!(object["msg"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn the_token_is_in_no_line_however_talkative() {
    for flags in [
        ["--v=6", "--logging-format=text"],
        ["--v=10", "--logging-format=json"],
    ] {
        let lines = life(&flags).await;
        // The vendor's manager shows the first four characters, so that people can tell tokens apart.
        let shown = format!("{}****", &TOKEN[..4]);
        assert!(
            lines.iter().any(|line| line.contains(&shown)),
            "{}",
            lines.join("\n")
        );
        for line in lines {
            assert!(!line.contains(&TOKEN[4..]), "{line}");
            assert!(!line.to_lowercase().contains("authorization: "), "{line}");
        }
    }
}

#[tokio::test]
async fn a_healthy_life_has_no_line_that_alarms() {
    let cluster = Cluster::start().await;
    let mut manager = cluster.manager(&["--v=3"]);
    cluster.join("n1");
    cluster.add_service("web");
    cluster.addressed(&manager, "web").await;
    assert!(cluster.api.delete("Service", "default", "web"));
    manager
        .until("it is gone", async || {
            cluster.api.object("Service", "default", "web").is_none()
        })
        .await;
    manager.signal(Signal::TERM);
    assert_eq!(manager.ended().await.0.code(), Some(0));
    // The vendor's end-to-end tests look for these words.
    for line in manager.log() {
        for word in ["error", "Error", "warn", "Warn"] {
            assert!(!line.contains(word) || line.contains("FLAG"), "{line}");
        }
    }
}
