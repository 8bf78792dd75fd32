//! `/bmc/v1/servers`

use http::StatusCode;
use serde_json::Value;

use super::{Answer, Call, reply};
use crate::wire;

impl Call<'_> {
    pub(super) fn list_servers(&self) -> Answer {
        let conditions = self.query("tag");
        let servers = self.state.servers.values();
        let servers = servers.filter(|it| self.passes(&conditions, &it.tags));
        reply(
            StatusCode::OK,
            servers.map(|it| wire::server(self.state, it)).collect::<Value>(),
        )
    }

    pub(super) fn read_server(&self, id: &str) -> Answer {
        let server = self.state.server(id)?;
        reply(StatusCode::OK, wire::server(self.state, server))
    }
}
