//! What there is to know about the server and the caller's surroundings.

use serde_json::{Value, json};

use super::{Answer, Call, contains};
use crate::model::{Project, Zone};
use crate::options::Role;
use crate::wire;

impl Call<'_> {
    pub(super) fn list_management_servers(&self) -> Answer {
        let server = wire::management_server(self.state);
        self.page("managementserver", vec![&server], Value::clone)
    }

    /// An object, unlike what every other list answers.
    pub(super) fn list_capabilities(&self) -> Answer {
        Ok(json!({ "capability": wire::capability(self.state) }))
    }

    pub(super) fn list_projects(&self) -> Answer {
        let is_admin = self.caller.role == Role::Admin;
        self.check_id("id", |id| self.state.projects.contains_key(id))?;
        let fits = |it: &&Project| {
            (is_admin || it.accounts.contains(&self.caller.account))
                && self.fits("id", Some(&it.id))
                && self.fits("name", Some(&it.name))
                && self.passes("keyword", |part| contains(&it.name, part))
        };
        let found = self.state.projects.values().filter(fits).collect();
        self.page("project", found, |it| wire::project(self.state, it))
    }

    pub(super) fn list_zones(&self) -> Answer {
        self.check_id("id", |id| self.state.zones.contains_key(id))?;
        let fits = |it: &&Zone| self.fits("id", Some(&it.id)) && self.fits("name", Some(&it.name));
        let found = self.state.zones.values().filter(fits).collect();
        self.page("zone", found, wire::zone)
    }
}
