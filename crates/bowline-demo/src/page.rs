//! The demo's page: one page on a port of this machine, with what happens and with buttons. Nothing in it is from elsewhere.
//!
//! Its parts: [`board`] is what is known, [`cluster`], [`plan`], [`traffic`] and [`calls`] are the things on it, [`picture`] draws
//! them, [`hands`] are the buttons, and [`server`] is between all that and the browser.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, Change, follow};

mod board;
mod browser;
mod calls;
mod cluster;
mod flows;
mod hands;
mod picture;
mod plan;
mod seconds;
mod server;
mod traffic;

pub(crate) use board::Board;
pub(crate) use browser::open;
pub(crate) use hands::Hands;

use cluster::{Node, Service};

/// Why the buttons do not work in the beginning.
const STORY_FIRST: &str = "The demo tells its story first. The buttons work when it says: your turn.";

/// Where the lease of the manager is.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// What the demo's managers are called in a lease.
const HOLDERS: &str = "demo_";

/// Served until it is dropped.
pub(crate) struct Page {
    url: String,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Page {
    /// Starts to watch, to visit and to serve.
    pub(crate) async fn start(hands: Hands) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("no port for the page")?;
        let address = listener.local_addr()?;
        let hands = Arc::new(hands);
        hands.board.close(Some(STORY_FIRST));
        let pictures = watch::Sender::new(Arc::from("{}"));
        let seen = pictures.subscribe();
        let tasks = vec![
            tokio::spawn(keep(hands.api.clone(), hands.board.clone())),
            tokio::spawn(traffic::run(Arc::clone(&hands.cloud), hands.board.clone())),
            tokio::spawn(picture::run(Arc::clone(&hands), pictures)),
            tokio::spawn(server::serve(listener, address, hands, seen)),
        ];
        Ok(Self {
            url: format!("http://{address}/"),
            _tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Keeps the board as the cluster is. Never returns; drop it to stop.
async fn keep(api: Api, board: Board) {
    let nodes = follow(api.clone(), "/api/v1/nodes", |change: Change<'_>| {
        change.keep(&mut board.lock().nodes, Node::read);
    });
    let services = follow(api.clone(), "/api/v1/services", |change: Change<'_>| {
        change.keep(&mut board.lock().services, Service::read);
    });
    let events = follow(api.clone(), "/api/v1/events", |change: Change<'_>| {
        if let Some(event) = change.new {
            board.event(event);
        }
    });
    let leases = follow(api, LEASES, |change: Change<'_>| {
        let holder = |lease: &serde_json::Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
        let holder = change.new.and_then(holder).filter(|it| it.starts_with(HOLDERS));
        if let Some(holder) = holder {
            board.lock().holder = Some(holder);
        }
    });
    futures::join!(nodes, services, events, leases);
}
