//! The handle to a running simulator.

use std::net::SocketAddr;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Mark, Running, Shared};

use crate::announcements::Announcement;
use crate::behaviour::Behaviour;
use crate::model::{Block, Network, NetworkStatus, Server, TagName};
use crate::operation::Operation;
use crate::options::Scope;
use crate::state::{State, TokenRequest};

mod manual;
mod project;

/// A simulated phoenixNAP account. Clones share it.
#[derive(Clone, Debug)]
pub struct PhoenixnapSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

bowline_cloud_kit::double! {
    PhoenixnapSim by &str;
    servers: Server, all servers, one server, edit edit_server;
    blocks: Block, all blocks, one block, edit edit_block;
    networks: Network, all networks;
    tags: TagName, all tags;
}

impl PhoenixnapSim {
    /// The path of the token endpoint, below the base URL.
    pub const TOKEN_PATH: &str = "/auth/realms/BMC/protocol/openid-connect/token";

    bowline_cloud_kit::handle!(State, Behaviour);

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
        self.write(|state| {
            state
                .options
                .credentials
                .set(client_id.into(), secret.into(), scopes)
        });
    }

    /// Refuses these credentials from now on. After the last ones were revoked, all are good again.
    pub fn revoke_credentials(&self, client_id: &str) {
        self.write(|state| state.options.credentials.remove(client_id));
    }

    /// Refuses every token that was given so far.
    pub fn forget_tokens(&self) {
        self.write(|state| state.tokens.clear());
    }

    /// The last thousand requests for tokens, the oldest first.
    pub fn token_requests(&self) -> Vec<TokenRequest> {
        self.read().token_requests.clone()
    }

    /// What a network is doing now.
    pub fn network_status(&self, id: &str) -> Option<NetworkStatus> {
        self.read().networks.get(id).map(State::network_status)
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
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.set(transport, wanted, actual));
    }
}
