//! `listVirtualMachines`

use super::{Answer, Call, contains};
use crate::error::ApiError;
use crate::model::VirtualMachine;
use crate::options::Role;
use crate::wire::{self, Details};

impl Call<'_> {
    pub(super) fn list_virtual_machines(&self) -> Answer {
        let scope = self.scope()?;
        let params = self.params;
        self.check_id("id", |id| self.state.vms.contains_key(id))?;
        self.check_id("networkid", |id| self.state.networks.contains_key(id))?;
        let ids = params.list("ids").filter(|it| !it.is_empty());
        if ids.is_some() && params.text("id").is_some() {
            return Err(ApiError::parameter(
                "Specify either id or ids but not both parameters",
            ));
        }
        if let Some(unknown) = ids.iter().flatten().find(|id| !self.state.vms.contains_key(**id)) {
            return Err(self.unknown("ids", unknown));
        }
        let details = Details::parse(params.list("details"), self.caller.role)?;
        let sees_going = self.caller.role == Role::Admin || self.state.behaviour.users_see_destroyed;
        let fits = |it: &&VirtualMachine| {
            self.sees(&scope, &it.owner)
                && (sees_going || !it.state.is_going())
                && self.fits("id", Some(&it.id))
                && ids.as_ref().is_none_or(|ids| ids.contains(&it.id.as_str()))
                && self.passes("name", |part| contains(&it.name, part))
                && self.passes("keyword", |part| {
                    contains(&it.name, part)
                        || contains(&it.display_name, part)
                        || contains(it.state.name(), part)
                })
                && self.passes("state", |state| it.state.name().eq_ignore_ascii_case(state))
                && self.passes("networkid", |network| it.nic_in(network).is_some())
                && self.fits("zoneid", Some(&it.zone))
        };
        let found = self.state.vms.values().filter(fits).collect();
        self.page("virtualmachine", found, |it| {
            wire::virtual_machine(self.state, it, &details)
        })
    }
}
