//! `/bmc/v1/servers`

use bowline_cloud_kit::service::json;
use http::StatusCode;

use super::{Answer, Call};
use crate::wire;

impl Call<'_> {
    pub(super) fn list_servers(&self) -> Answer {
        let conditions = self.query("tag");
        let servers = self
            .state
            .servers
            .values()
            .filter(|it| self.passes(&conditions, &it.tags));
        Ok(json(
            StatusCode::OK,
            &servers.map(|it| wire::server(self.state, it)).collect(),
        ))
    }

    pub(super) fn read_server(&self, id: &str) -> Answer {
        let server = self.state.server(id)?;
        Ok(json(StatusCode::OK, &wire::server(self.state, server)))
    }
}
