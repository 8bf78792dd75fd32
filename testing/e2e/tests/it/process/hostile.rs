//! Whoever can reach the secure port and means ill: hostile connections of each kind, more than it keeps and opened again
//! whenever the program closes one, must neither keep a probe from its answer nor make the program grow.
//!
//! A debug build has no figures to hold: there, handshakes take a hundred times as long, for the program and for the clients
//! beside it. It shows that probes are answered at all and that connections, memory and log are bounded. The same test of a release build
//! holds the figures that operators rely on.
//!
//! Loopback only, and for a few seconds each.

mod attack;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::cluster::{Cluster, SCRAPER};
use attack::{Attack, secure};

/// How hard the attack is, and what is asked of the program under it.
struct Strength {
    connections: usize,
    /// A closed connection is opened again after this time.
    reopen: Duration,
    probes: usize,
    /// Between two probes.
    pause: Duration,
    /// So many probes in a row may fail. The kubelet restarts a container when the third one has failed.
    failures: usize,
    /// What a probe may take.
    patience: Duration,
    /// An attack that has lasted so long is not probed any more: a few probes may take minutes where its clients take all
    /// cores, and one shows as much.
    enough: Duration,
    /// What may be resident, in KiB.
    resident: u64,
}

const STRENGTH: Strength = if cfg!(debug_assertions) {
    Strength {
        connections: 240,
        reopen: Duration::from_secs(10),
        probes: 4,
        pause: Duration::from_millis(250),
        failures: 2,
        patience: Duration::from_secs(60),
        enough: Duration::from_secs(10),
        resident: u64::MAX,
    }
} else {
    Strength {
        connections: 640,
        reopen: Duration::from_millis(20),
        probes: 30,
        pause: Duration::from_millis(50),
        failures: 0,
        patience: Duration::from_secs(1),
        enough: Duration::MAX,
        resident: 32 * 1024,
    }
};

/// How much the program may grow, in KiB.
const GROWTH: u64 = 16 * 1024;

/// How many connections it may hold. Of one address it keeps 200; the rest are those to the API server.
const HELD: usize = 220;

/// How many lines the log may have at the end. There are thousands of connections.
const LINES: usize = 200;

/// An attack, on a thread of its own.
struct Hostile {
    runtime: Runtime,
    opened: Arc<AtomicUsize>,
}

impl Hostile {
    fn begin(attack: Attack, address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let opened = Arc::new(AtomicUsize::new(0));
        for number in 0..STRENGTH.connections {
            let opened = Arc::clone(&opened);
            runtime.spawn(async move {
                loop {
                    opened.fetch_add(1, Ordering::Relaxed);
                    // That it is closed is what is wanted.
                    let _ = attack.run(address, number).await;
                    tokio::time::sleep(STRENGTH.reopen).await;
                }
            });
        }
        Self { runtime, opened }
    }

    /// Ends it; says how many connections it has opened.
    fn end(self) -> usize {
        self.runtime.shutdown_background();
        self.opened.load(Ordering::Relaxed)
    }
}

async fn ask(address: SocketAddr, path: &str, token: Option<&str>) -> std::io::Result<String> {
    let mut stream = secure(address, b"http/1.1").await?;
    let authorization = token.map_or_else(String::new, |it| format!("authorization: Bearer {it}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    // The end of a connection need not be told.
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

/// The status of the answer, or why there is none.
async fn status(address: SocketAddr, path: &str, token: Option<&str>) -> String {
    match tokio::time::timeout(STRENGTH.patience, ask(address, path, token)).await {
        Ok(Ok(answer)) => answer.get(9..12).unwrap_or("closed").to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "none in time".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_answered_under_attacks_of_any_kind_and_the_program_does_not_grow() {
    let cluster = Cluster::start().await;
    let manager = cluster.manager(&[]);
    manager
        .until("it is healthy", async || {
            cluster.ask("/livez").await == Some((200, "ok".to_owned()))
        })
        .await;
    cluster.ask_as(Some(SCRAPER), "/metrics").await.unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], cluster.port));
    let (at_rest, files_at_rest) = (manager.anonymous(), manager.open_files());
    let mut table = format!("at rest: {at_rest} KiB, {} KiB resident\n", manager.resident());
    for attack in Attack::ALL {
        let reviews = |resource| cluster.api.journal().of("create", resource).len();
        let asked = || reviews("tokenreviews") + reviews("subjectaccessreviews");
        let (attacked, asked_before) = (Instant::now(), asked());
        let hostile = Hostile::begin(attack, address);
        let (mut longest, mut failed) = (Duration::ZERO, 0);
        let (mut grown, mut resident, mut files) = (0, 0, 0);
        for _ in 0..STRENGTH.probes {
            tokio::time::sleep(STRENGTH.pause).await;
            let begun = Instant::now();
            let status = status(address, "/livez", None).await;
            longest = longest.max(begun.elapsed());
            (grown, resident) = (grown.max(manager.anonymous()), resident.max(manager.resident()));
            files = files.max(manager.open_files());
            failed = if status == "200" { 0 } else { failed + 1 };
            assert!(failed <= STRENGTH.failures, "{attack:?}: {status}\n{table}");
            // Not after one that failed: the next may do so, too.
            if failed == 0 && attacked.elapsed() > STRENGTH.enough {
                break;
            }
        }
        let scrape = status(address, "/metrics", Some(SCRAPER)).await;
        let (opened, took) = (hostile.end(), attacked.elapsed());
        table.push_str(&format!(
            "{attack:?}: longest probe {longest:?}, scrape {scrape}, {grown} KiB, {resident} KiB resident, \
             {opened} connections and {} reviews in {took:?}\n",
            asked() - asked_before,
        ));
        assert!(
            grown < at_rest + GROWTH && resident < STRENGTH.resident,
            "{table}"
        );
        assert!(files < files_at_rest + HELD, "{files} open files\n{table}");
    }
    println!("{table}");
    let log = manager.log();
    assert!(
        log.len() < LINES,
        "{} lines of log:\n{}",
        log.len(),
        log.join("\n")
    );
}
