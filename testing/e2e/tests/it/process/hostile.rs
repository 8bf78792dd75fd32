//! Whoever can reach the secure port and means ill: 640 connections of each kind, opened again whenever the program closes
//! one, must neither keep a probe from its answer nor make the program grow.
//!
//! Loopback only, and for a few seconds each.

mod attack;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cluster::{Cluster, SCRAPER};
use attack::{Attack, secure};

const CONNECTIONS: usize = 640;

/// A closed connection is opened again after this time. Without optimisation, handshakes take a hundred times as long, for
/// the program and for the attackers beside it.
const REOPEN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 20 });

/// Probes under each attack, and the pauses between them.
const PROBES: usize = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// What a probe may take. The aim is one second; a machine with two cores is busy with the attackers and other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much the program may grow, in KiB.
const GROWTH: u64 = 16 * 1024;

async fn probe(address: SocketAddr, path: &str, token: Option<&str>) -> std::io::Result<String> {
    let mut stream = secure(address, b"http/1.1").await?;
    let authorization = token.map_or_else(String::new, |it| format!("authorization: Bearer {it}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    // The end of a connection need not be told.
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

#[ignore = "a debug build on a busy machine is too slow for its bounds: run it with --release and --ignored"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_is_answered_under_640_hostile_connections_of_any_kind_and_the_program_does_not_grow() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&[]);
    manager
        .until("it is healthy", async || {
            cluster.ask("/livez").await == Some((200, "ok".to_owned()))
        })
        .await;
    cluster.ask_as(Some(SCRAPER), "/metrics").await.unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], cluster.port));
    let at_rest = manager.resident();
    let mut table = format!("at rest: {at_rest} KiB\n");
    for attack in Attack::ALL {
        let reviews = |resource| cluster.api.journal().of("create", resource).len();
        let asked = || reviews("tokenreviews") + reviews("subjectaccessreviews");
        let (asked_before, opened) = (asked(), Arc::new(AtomicUsize::new(0)));
        let mut hostile = JoinSet::new();
        for number in 0..CONNECTIONS {
            let opened = Arc::clone(&opened);
            hostile.spawn(async move {
                loop {
                    opened.fetch_add(1, Ordering::Relaxed);
                    // That it is closed is what is wanted.
                    let _ = attack.run(address, number).await;
                    tokio::time::sleep(REOPEN).await;
                }
            });
        }
        let (mut longest, mut peak) = (Duration::ZERO, at_rest);
        let begun = Instant::now();
        for _ in 0..PROBES {
            tokio::time::sleep(PAUSE).await;
            let asked = Instant::now();
            let answer = tokio::time::timeout(PATIENCE, probe(address, "/livez", None)).await;
            longest = longest.max(asked.elapsed());
            peak = peak.max(manager.resident());
            let is_answered = matches!(&answer, Ok(Ok(text)) if text.starts_with("HTTP/1.1 200 "));
            assert!(is_answered, "{attack:?}: {answer:?}\n{table}");
        }
        let (scraped, took) = (Instant::now(), begun.elapsed());
        let scrape = tokio::time::timeout(PATIENCE, probe(address, "/metrics", Some(SCRAPER))).await;
        let status = match &scrape {
            Ok(Ok(text)) => text.get(9..12).unwrap_or("cut").to_owned(),
            _ => "none".to_owned(),
        };
        let scraped = scraped.elapsed();
        table.push_str(&format!(
            "{attack:?}: probe {longest:?}, scrape {status} {scraped:?}, {peak} KiB, {} opened and {} reviews in {took:?}\n",
            opened.load(Ordering::Relaxed),
            asked() - asked_before,
        ));
        assert!(peak < at_rest + GROWTH, "{table}");
        hostile.shutdown().await;
    }
    println!("{table}");
    let log = manager.log();
    assert!(log.len() < 2_000, "{} lines of log", log.len());
}
