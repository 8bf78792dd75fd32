//! Nova: `/v2.1`

use http::{HeaderValue, StatusCode};
use regex_lite::RegexBuilder;
use serde_json::{Value, json};

use super::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::model::compute::Server;
use crate::query::next_link;

/// The newest microversion that is offered.
const NEWEST_MINOR: u32 = 104;

impl Call<'_> {
    pub(super) fn compute(&mut self, rest: &[&str]) -> Answer {
        let minor = self.minor_version()?;
        // Refusals name the version too.
        let mut reply = self
            .at_version(rest, minor)
            .unwrap_or_else(|error| error.reply(self.base));
        let versions = [
            ("openstack-api-version", format!("compute 2.{minor}")),
            ("x-openstack-nova-api-version", format!("2.{minor}")),
        ];
        for (name, value) in versions {
            if let Ok(value) = HeaderValue::from_str(&value) {
                reply.headers_mut().insert(name, value);
            }
        }
        Ok(reply)
    }

    fn at_version(&self, rest: &[&str], minor: u32) -> Answer {
        match (self.method(), rest) {
            ("GET", ["servers", "detail"]) => self.list_servers(minor),
            ("GET", ["servers", id]) => {
                let server = path_id(id).and_then(|id| self.state.servers.get(&id));
                let server = server.filter(|it| self.sees(&it.project));
                let text = format!("Instance {id} could not be found.");
                let server = server.ok_or_else(|| ApiError::nova(StatusCode::NOT_FOUND, text))?;
                self.answer(StatusCode::OK, "server", self.wire().server(server, minor))
            }
            ("GET", ["flavors"]) => {
                let flavors = self.state.flavors.values();
                self.nova_page(
                    "flavors",
                    flavors.map(|it| self.wire().named_flavor(it)).collect(),
                )
            }
            ("GET", ["flavors", "detail"]) => {
                let flavors = self.state.flavors.values();
                self.nova_page("flavors", flavors.map(|it| self.wire().flavor(it)).collect())
            }
            ("GET", ["flavors", id]) => {
                let text = format!("Flavor {id} could not be found.");
                let flavor = self.state.flavors.get(*id);
                let flavor = flavor.ok_or_else(|| ApiError::nova(StatusCode::NOT_FOUND, text))?;
                self.answer(StatusCode::OK, "flavor", self.wire().flavor(flavor))
            }
            _ => self.no_such_path(),
        }
    }

    /// The microversion that is asked for: 2.1 if none is.
    fn minor_version(&self) -> Result<u32, ApiError> {
        let new = self
            .header("openstack-api-version")
            .and_then(|it| it.strip_prefix("compute "));
        let Some(asked) = new.or_else(|| self.header("x-openstack-nova-api-version")) else {
            return Ok(1);
        };
        let minor = asked.trim().strip_prefix("2.").and_then(|it| it.parse().ok());
        match (asked.trim(), minor) {
            ("latest", _) => Ok(NEWEST_MINOR),
            (_, Some(minor)) if (1..=NEWEST_MINOR).contains(&minor) => Ok(minor),
            _ => {
                let text = format!(
                    "Version {asked} is not supported by the API. Minimum is 2.1 and maximum is 2.{NEWEST_MINOR}."
                );
                Err(ApiError::nova(StatusCode::NOT_ACCEPTABLE, text))
            }
        }
    }

    /// The newest server comes first, as in Nova.
    fn list_servers(&self, minor: u32) -> Answer {
        let bad = |text: String| ApiError::nova(StatusCode::BAD_REQUEST, text);
        let pattern = self.query.first("name").map(|pattern| {
            let ignores_case = self.state.behaviour.names_ignore_case;
            let built = RegexBuilder::new(pattern).case_insensitive(ignores_case).build();
            built.map_err(|_| bad(format!("Invalid regular expression: {pattern}")))
        });
        let pattern = pattern.transpose()?;
        let status = self.query.first("status");
        let passes = |server: &&Server| {
            self.sees(&server.project)
                && pattern.as_ref().is_none_or(|it| it.is_match(&server.name))
                && status.is_none_or(|it| it.eq_ignore_ascii_case(&server.status))
        };
        let servers = self.state.servers.values().rev().filter(passes);
        let wire = self.wire();
        self.nova_page("servers", servers.map(|it| wire.server(it, minor)).collect())
    }

    /// A page of at most as many objects as Nova is set to, with a link to the next one.
    fn nova_page(&self, collection: &str, objects: Vec<Value>) -> Answer {
        let most = Some(self.state.behaviour.nova_page_size);
        let page = self.query.page(objects, most, false);
        let page = page.map_err(|unknown| {
            let text = format!("marker [{}] not found", unknown.0);
            ApiError::nova(StatusCode::BAD_REQUEST, text)
        })?;
        let mut body = json!({ collection: page.objects });
        if let Some(marker) = page.next {
            let limit = self.query.first("limit").and(page.limit);
            let href = self.href(&self.query.after(&marker, limit));
            body[format!("{collection}_links")] = next_link(&href);
        }
        Ok(bowline_cloud_kit::service::json(StatusCode::OK, &body))
    }
}
