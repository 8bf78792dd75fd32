//! Barbican: `/v1`

use bowline_cloud_kit::service::json;
use http::StatusCode;

use super::{Answer, Call, path_id};
use crate::error::ApiError;

impl Call<'_> {
    pub(super) fn keys(&mut self, rest: &[&str]) -> Answer {
        let shown = match (self.method(), rest) {
            ("GET", ["secrets", id]) => {
                let secret = path_id(id).and_then(|id| self.state.secrets.get(&id));
                let secret = secret.filter(|it| self.sees(&it.project));
                self.wire()
                    .secret(secret.ok_or_else(|| ApiError::barbican_not_found("secret"))?)
            }
            ("GET", ["containers", id]) => {
                let container = path_id(id).and_then(|id| self.state.containers.get(&id));
                let container = container.filter(|it| self.sees(&it.project));
                self.wire()
                    .container(container.ok_or_else(|| ApiError::barbican_not_found("container"))?)
            }
            _ => return self.no_such_path(),
        };
        Ok(json(StatusCode::OK, &shown))
    }
}
