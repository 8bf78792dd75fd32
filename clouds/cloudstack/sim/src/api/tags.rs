//! Tags of objects.

use serde_json::Value;

use super::firewall::named;
use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::Effect;
use crate::wire;

const KINDS: [&str; 3] = ["PublicIpAddress", "LoadBalancer", "FirewallRule"];

impl Call<'_> {
    pub(super) fn create_tags(&mut self) -> Answer {
        let (kind, ids) = self.tagged()?;
        let tags = self.params.tags();
        if tags.is_empty() {
            self.params.required("tags")?;
        }
        self.accept(None, None, Effect::Tag { kind, ids, tags })
    }

    pub(super) fn delete_tags(&mut self) -> Answer {
        let (kind, ids) = self.tagged()?;
        let tags = self.params.tags();
        self.accept(None, None, Effect::Untag { kind, ids, tags })
    }

    /// The type and the ids of what is tagged, all of it the caller's.
    fn tagged(&self) -> Result<(String, Vec<String>), ApiError> {
        let kind = self.params.required("resourcetype")?;
        let Some(kind) = KINDS.into_iter().find(|it| it.eq_ignore_ascii_case(kind)) else {
            return Err(ApiError::parameter(format!(
                "Invalid resource type {kind}: this simulator has tags of {}",
                KINDS.join(", ")
            )));
        };
        self.params.required("resourceids")?;
        let ids = named(self.params.list("resourceids"));
        for id in &ids {
            let owner = match kind {
                "PublicIpAddress" => self.state.addresses.get(id).and_then(|it| it.owner.as_ref()),
                "LoadBalancer" => self.state.rules.get(id).map(|it| &it.owner),
                _ => self.state.firewall.get(id).map(|it| &it.owner),
            };
            if let Some(owner) = owner {
                self.permit(owner, id)?;
            }
        }
        Ok((kind.to_owned(), ids))
    }

    pub(super) fn list_tags(&self) -> Answer {
        let scope = self.scope()?;
        let mut all: Vec<Value> = Vec::new();
        for it in self.state.addresses.values() {
            if it.owner.as_ref().is_some_and(|owner| self.sees(&scope, owner)) {
                all.extend(wire::tags(&it.tags, "PublicIpAddress", &it.id));
            }
        }
        for it in self
            .state
            .rules
            .values()
            .filter(|it| self.sees(&scope, &it.owner))
        {
            all.extend(wire::tags(&it.tags, "LoadBalancer", &it.id));
        }
        for it in self
            .state
            .firewall
            .values()
            .filter(|it| self.sees(&scope, &it.owner))
        {
            all.extend(wire::tags(&it.tags, "FirewallRule", &it.id));
        }
        let fits = |it: &&Value| {
            ["key", "value", "resourceid", "resourcetype"]
                .into_iter()
                .all(|name| self.fits(name, it[name].as_str()))
        };
        let found = all.iter().filter(fits).collect();
        self.page("tag", found, Value::clone)
    }
}
