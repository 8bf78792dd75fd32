//! A way between the program and a server that counts what the program sends, and that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A TCP proxy on a loopback port.
pub(crate) struct Wire {
    address: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
    sent: Arc<AtomicU64>,
}

impl Wire {
    /// Leads to this address.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let wire = Self {
            address: listener.local_addr().unwrap(),
            is_cut: Arc::default(),
            sent: Arc::default(),
        };
        tokio::spawn(serve(
            listener,
            server,
            Arc::clone(&wire.is_cut),
            Arc::clone(&wire.sent),
        ));
        wire
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections. New ones are taken and nothing is ever said on them, as when packets are lost.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Takes that back: what was connected meanwhile ends, and what comes is forwarded again.
    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }

    /// The bytes that the program has sent so far. A request, a read like a write, cannot begin without one.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn serve(
    listener: TcpListener,
    server: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
    sent: Arc<AtomicU64>,
) {
    let mut changes = is_cut.subscribe();
    loop {
        let is_cut = *changes.borrow_and_update();
        let (mut connections, mut kept) = (JoinSet::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                _ = changes.changed() => break,
                Ok((near, _)) = listener.accept() => match is_cut {
                    true => kept.push(near),
                    false => {
                        let sent = Arc::clone(&sent);
                        connections.spawn(async move {
                            // Either side may go away at any time.
                            if let Ok(far) = TcpStream::connect(server).await {
                                let _ = forward(near, far, &sent).await;
                            }
                        });
                    }
                },
            }
        }
        connections.shutdown().await;
    }
}

async fn forward(near: TcpStream, far: TcpStream, sent: &AtomicU64) -> std::io::Result<()> {
    let (mut from_near, mut to_near) = near.into_split();
    let (mut from_far, mut to_far) = far.into_split();
    let there = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from_near.read(&mut buffer).await?;
            if read == 0 {
                return to_far.shutdown().await;
            }
            sent.fetch_add(u64::try_from(read).unwrap_or_default(), Ordering::SeqCst);
            to_far.write_all(&buffer[..read]).await?;
        }
    };
    let back = async {
        tokio::io::copy(&mut from_far, &mut to_near).await?;
        to_near.shutdown().await
    };
    tokio::try_join!(there, back).map(drop)
}
