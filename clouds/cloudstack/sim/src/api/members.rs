//! The members of load balancer rules.

use serde_json::json;

use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::Effect;
use crate::model::{VirtualMachine, VmState};
use crate::options::Role;
use crate::wire::{self, Details};

impl Call<'_> {
    pub(super) fn list_members(&self) -> Answer {
        let id = self.params.required("id")?;
        let rule = self.known(&self.state.rules, "id", id)?;
        if !self.sees_rule(&rule.owner) {
            return Err(ApiError::permission(&self.caller.account, id));
        }
        let is_shown = |it: &&VirtualMachine| {
            !it.state.is_going() && !matches!(it.state, VmState::Error | VmState::Unknown)
        };
        let members = rule.members.iter().filter_map(|id| self.state.vms.get(id));
        let members = members.filter(is_shown).collect();
        // An ordinary member of a rule shows nothing of the hypervisor, whoever asks.
        let details = Details::all(Role::User);
        self.page("loadbalancerruleinstance", members, |it| {
            let mut value = wire::virtual_machine(self.state, it, &details);
            value["servicestate"] = json!("Up");
            value
        })
    }

    fn sees_rule(&self, owner: &crate::model::Owner) -> bool {
        self.state.may(&self.caller.account, self.caller.role, owner)
    }

    pub(super) fn assign_members(&mut self) -> Answer {
        let (rule, lane) = self.rule_to_change()?;
        let vms = self.named_members()?;
        self.accept(
            lane,
            Some(("FirewallRule", &rule.clone())),
            Effect::Assign { rule, vms },
        )
    }

    pub(super) fn remove_members(&mut self) -> Answer {
        let (rule, lane) = self.rule_to_change()?;
        let vms = self.named_members()?;
        self.accept(
            lane,
            Some(("FirewallRule", &rule.clone())),
            Effect::Remove { rule, vms },
        )
    }

    /// Ids of virtual machines that there are; one that was expunged is none.
    fn named_members(&self) -> Result<Vec<String>, ApiError> {
        let ids = self.params.list("virtualmachineids").unwrap_or_default();
        ids.into_iter()
            .map(|id| {
                let vm = self.known(&self.state.vms, "virtualmachineids", id)?;
                self.permit(&vm.owner, &vm.id)?;
                Ok(id.to_owned())
            })
            .collect()
    }
}
