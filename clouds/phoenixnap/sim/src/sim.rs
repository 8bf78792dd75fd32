//! The handle to a running simulator.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Mark, Running, Shared};
use serde::Serialize;

use crate::announcements::Announcement;
use crate::behaviour::Behaviour;
use crate::builder::Builder;
use crate::model::{Block, Network, NetworkStatus, Server, TagName};
use crate::operation::Operation;
use crate::options::Scope;
use crate::snapshot::{self, Snapshot};
use crate::state::State;

mod manual;
mod project;
mod specs;

pub(crate) use manual::{
    insert_block, insert_network, insert_server, remove_network, remove_server, remove_tag,
};
pub use specs::{BlockSpec, NetworkSpec, ServerSpec};

/// A simulated phoenixNAP account. Clones share it.
#[derive(Clone, Debug)]
pub struct PhoenixnapSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

/// A request for a token. The journal has them too, though not what is in their headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenRequest {
    /// Who asked; empty if that could not be read.
    pub client_id: String,
    /// Time since the simulator's start.
    pub at: Duration,
    /// Whether the credentials were in the Basic header rather than in the form.
    pub in_header: bool,
    /// Whether there was a token in the answer.
    pub is_granted: bool,
}

bowline_cloud_kit::double!(PhoenixnapSim: servers, blocks, networks, tags);

impl PhoenixnapSim {
    /// The path of the token endpoint, below the base URL.
    pub const TOKEN_PATH: &str = "/auth/realms/BMC/protocol/openid-connect/token";

    bowline_cloud_kit::handle!(State, Behaviour, Builder);

    /// The names of the calls since a mark in the journal, in order of arrival, those for tokens left out.
    pub fn calls_since(&self, mark: Mark) -> Vec<String> {
        let calls = self.journal().since(mark).into_iter().map(|it| it.operation);
        calls.filter(|it| it != Operation::Token.name()).collect()
    }

    /// Accepts these credentials, or changes their secret or scopes. Tokens that were given stay good.
    pub fn set_credentials(
        &self,
        client_id: impl Into<String>,
        secret: impl Into<String>,
        scopes: impl IntoIterator<Item = Scope>,
    ) {
        let scopes = scopes.into_iter().collect();
        self.write(|state| state.credentials.set(client_id.into(), secret.into(), scopes));
    }

    /// Refuses these credentials from now on. After the last ones were revoked, all are good again.
    pub fn revoke_credentials(&self, client_id: &str) {
        self.write(|state| state.credentials.remove(client_id));
    }

    /// Refuses every token that was given so far.
    pub fn forget_tokens(&self) {
        self.write(|state| state.tokens.clear());
    }

    /// The last thousand requests for tokens, the oldest first.
    pub fn token_requests(&self) -> Vec<TokenRequest> {
        self.read().token_requests.clone()
    }

    /// The end state without ids and times.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&self.read())
    }

    /// Blocks bought twice for one Service, writes that met, and the like, in words; empty if all is well.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found = snapshot::violations(&self.read());
        found.extend(self.journal().overlaps().iter().map(ToString::to_string));
        found
    }

    /// All servers in order of creation.
    pub fn servers(&self) -> Vec<Server> {
        self.read().servers.values().cloned().collect()
    }

    /// One server.
    pub fn server(&self, id: &str) -> Option<Server> {
        self.read().servers.get(id).cloned()
    }

    /// All blocks in order of creation.
    pub fn blocks(&self) -> Vec<Block> {
        self.read().blocks.values().cloned().collect()
    }

    /// One block.
    pub fn block(&self, id: &str) -> Option<Block> {
        self.read().blocks.get(id).cloned()
    }

    /// All public networks in order of creation.
    pub fn networks(&self) -> Vec<Network> {
        self.read().networks.values().cloned().collect()
    }

    /// What a network is doing now.
    pub fn network_status(&self, id: &str) -> Option<NetworkStatus> {
        self.read().networks.get(id).map(State::network_status)
    }

    /// The tag names of the account in order of creation.
    pub fn tags(&self) -> Vec<TagName> {
        self.read().tags.values().cloned().collect()
    }

    /// Says who announces what from now on, instead of what was said before. It is kept though nothing may be carried
    /// yet: an address whose block is not attached begins to carry when it is.
    pub fn announce(&self, announcements: impl IntoIterator<Item = Announcement>) {
        let announcements = announcements.into_iter().collect();
        self.write(|state| state.announcements = announcements);
    }

    /// Who announces what.
    pub fn announcements(&self) -> Vec<Announcement> {
        self.read().announcements.clone()
    }

    /// Sends what is meant for a server's address and port to another place: for machines whose loopback interface has
    /// no other address than 127.0.0.1, where servers' addresses cannot be bound.
    pub fn move_server_port(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.insert((transport, wanted), actual));
    }
}
