//! What every simulated cloud has here: addresses of this demo's own, and an API on a socket.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use bowline_cloud_kit::{Clock, CloudService, Journal, Server, Settings};
use tokio::net::TcpListener;

use crate::loopback::Block;

/// How long each API call takes; real ones need some tens of milliseconds at least.
const LATENCY: Duration = Duration::from_millis(20);

/// How long the cloud works on something. A real one takes a minute or more, which nobody wants to watch.
pub(super) const WORK_TIME: Duration = Duration::from_millis(700);

/// An API that is served until this is dropped.
pub(crate) struct Served {
    service: CloudService,
    server: Server,
    _addresses: Block,
}

impl Served {
    /// The settings of a simulator whose addresses carry traffic.
    pub(super) fn settings(seed: u64) -> Settings {
        Settings {
            seed,
            clock: Some(Clock::system()),
            latency: LATENCY,
            data_plane: true,
        }
    }

    /// Serves an API whose objects have these addresses.
    pub(super) async fn start(service: CloudService, addresses: Block) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("no port for the simulated cloud")?;
        let server = bowline_cloud_kit::serve(listener, service.clone())
            .context("cannot serve the simulated cloud")?;
        Ok(Self {
            service,
            server,
            _addresses: addresses,
        })
    }

    /// The base URL.
    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// The record of every call.
    pub(super) fn journal(&self) -> &Journal {
        self.service.journal()
    }
}
