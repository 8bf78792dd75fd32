//! Carrying TCP connections.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::config::{ListenerConfig, Timeouts};
use super::pool::Chosen;
use super::{Place, Shared, proxy};

const CHUNK: usize = 16 * 1024;
/// After a failed accept: the usual reason is a lack of file descriptors, which others free meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until it is stopped, which ends its connections as well.
pub(super) async fn listen(socket: TcpListener, place: Place, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = socket.accept() => {
                let Ok((stream, client)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Some((rules, pool)) = shared.target(place) else { continue };
                if !rules.admits(client.ip()) {
                    continue;
                }
                let Some(chosen) = pool.choose(client.ip()) else { continue };
                connections.spawn(carry(stream, client, chosen, rules));
            }
        }
    }
}

impl ListenerConfig {
    pub(super) fn admits(&self, client: std::net::IpAddr) -> bool {
        let client = client.to_canonical();
        self.allowed.is_empty() || self.allowed.iter().any(|range| range.contains(&client))
    }
}

async fn carry(client: TcpStream, from: SocketAddr, chosen: Chosen, rules: Arc<ListenerConfig>) {
    let connect = TcpStream::connect(chosen.address);
    let mut member = match tokio::time::timeout(for_ever(rules.timeouts.member_connect), connect).await {
        Ok(Ok(member)) => member,
        // A real balancer closes the client's connection too; the monitor is there to keep this rare.
        _ => return,
    };
    // Latency matters more than packets on the loopback interface; failing to say so does no harm.
    let _ = (client.set_nodelay(true), member.set_nodelay(true));
    if let Some(version) = chosen.proxy {
        let called = SocketAddr::new(rules.address, rules.port);
        if member
            .write_all(&proxy::header(version, from, called))
            .await
            .is_err()
        {
            return;
        }
    }
    let (client_read, client_write) = client.into_split();
    let (member_read, member_write) = member.into_split();
    let (client_seen, member_seen) = (Seen::default(), Seen::default());
    let both = async {
        tokio::join!(
            pump(client_read, member_write, &client_seen, &member_seen),
            pump(member_read, client_write, &member_seen, &client_seen),
        )
    };
    tokio::select! {
        biased;
        _ = both => {}
        () = silence(&rules.timeouts, &client_seen, &member_seen) => {}
    }
}

/// Copies one direction until its end, which it passes on.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, from_seen: &Seen, to_seen: &Seen) {
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => {
                from_seen.now();
                if to.write_all(&chunk[..read]).await.is_err() {
                    break;
                }
                to_seen.now();
            }
        }
    }
    // The other side may be gone already.
    let _ = to.shutdown().await;
}

/// When one side last did something.
struct Seen(Mutex<Instant>);

impl Default for Seen {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Seen {
    fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends when one side was silent for too long.
async fn silence(timeouts: &Timeouts, client: &Seen, member: &Seen) {
    loop {
        let client_end = client.last() + for_ever(timeouts.client_idle);
        let end = client_end.min(member.last() + for_ever(timeouts.member_idle));
        if end <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(end).await;
    }
}

/// Zero means no limit: a year is longer than any simulator runs.
pub(super) fn for_ever(limit: Duration) -> Duration {
    if limit.is_zero() {
        Duration::from_secs(365 * 86_400)
    } else {
        limit
    }
}
