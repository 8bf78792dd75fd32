//! Carrying UDP datagrams.
//!
//! Datagrams of one client address and port belong together while they keep coming: they go to one member and its
//! answers come back, from the address that the client called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::pool::{Chosen, PoolState};
use super::tcp::for_ever;
use super::{Place, Shared};

/// The largest datagram there is.
const MAX_DATAGRAM: usize = 65_536;

/// One client.
struct Session {
    member: String,
    pool: Arc<PoolState>,
    socket: Arc<UdpSocket>,
    seen: watch::Sender<Instant>,
    task: AbortHandle,
}

/// Carries datagrams until it is stopped, which ends its sessions as well.
pub(super) async fn listen(socket: UdpSocket, place: Place, shared: Arc<Shared>) {
    let socket = Arc::new(socket);
    let mut sessions: BTreeMap<SocketAddr, Session> = BTreeMap::new();
    let mut answers: JoinSet<SocketAddr> = JoinSet::new();
    let mut datagram = vec![0_u8; MAX_DATAGRAM];
    loop {
        tokio::select! {
            biased;
            Some(ended) = answers.join_next_with_id() => {
                // One that was aborted, or whose client has a new session meanwhile, was replaced already.
                if let Ok((task, client)) = ended
                    && sessions.get(&client).is_some_and(|session| session.task.id() == task)
                {
                    sessions.remove(&client);
                }
            }
            received = socket.recv_from(&mut datagram) => {
                // Errors here are refusals of earlier answers: a client that has gone.
                let Ok((length, client)) = received else { continue };
                let Some((rules, pool)) = shared.target(place) else { continue };
                if !rules.admits(client.ip()) {
                    continue;
                }
                let stale = |session: &Session| {
                    !Arc::ptr_eq(&session.pool, &pool) || !session.pool.is_usable(&session.member)
                };
                if sessions.get(&client).is_some_and(stale)
                    && let Some(session) = sessions.remove(&client)
                {
                    session.task.abort();
                }
                let session = match sessions.entry(client) {
                    Entry::Occupied(session) => session.into_mut(),
                    Entry::Vacant(place) => {
                        let Some(chosen) = pool.choose(client.ip()) else { continue };
                        let idle = rules.timeouts.client_idle;
                        let opened = open(&mut answers, &socket, client, chosen, pool, idle).await;
                        let Some(session) = opened else { continue };
                        place.insert(session)
                    }
                };
                session.seen.send_replace(Instant::now());
                // A datagram that does not arrive is what UDP allows for.
                let _ = session.socket.send(&datagram[..length]).await;
            }
        }
    }
}

async fn open(
    answers: &mut JoinSet<SocketAddr>,
    listener: &Arc<UdpSocket>,
    client: SocketAddr,
    chosen: Chosen,
    pool: Arc<PoolState>,
    idle: Duration,
) -> Option<Session> {
    let any_port = SocketAddr::new(listener.local_addr().ok()?.ip(), 0);
    let socket = Arc::new(UdpSocket::bind(any_port).await.ok()?);
    socket.connect(chosen.address).await.ok()?;
    let (seen, watching) = watch::channel(Instant::now());
    let member = chosen.member.clone();
    let task = answers.spawn(answer(
        Arc::clone(listener),
        Arc::clone(&socket),
        client,
        chosen,
        watching,
        idle,
    ));
    Some(Session {
        member,
        pool,
        socket,
        seen,
        task,
    })
}

/// Carries answers back until nothing was said for too long.
async fn answer(
    listener: Arc<UdpSocket>,
    member: Arc<UdpSocket>,
    client: SocketAddr,
    _open: Chosen,
    seen: watch::Receiver<Instant>,
    idle: Duration,
) -> SocketAddr {
    let mut datagram = vec![0_u8; MAX_DATAGRAM];
    let mut answered = Instant::now();
    loop {
        let last = answered.max(*seen.borrow());
        let end = last + for_ever(idle);
        tokio::select! {
            biased;
            received = member.recv(&mut datagram) => {
                // An error is a refusal by the member; the next datagram may fare better.
                if let Ok(length) = received {
                    answered = Instant::now();
                    let _ = listener.send_to(&datagram[..length], client).await;
                }
            }
            () = tokio::time::sleep_until(end) => {
                if answered.max(*seen.borrow()) == last {
                    return client;
                }
            }
        }
    }
}
