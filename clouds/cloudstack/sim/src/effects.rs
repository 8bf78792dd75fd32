//! What jobs do when their time has come.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::behaviour::ProtocolUpdates;
use crate::error::ApiError;
use crate::jobs::{AclChange, Effect, RuleChange};
use crate::model::{AddressState, RuleState, Tag};
use crate::state::State;
use crate::wire;

fn success() -> Value {
    json!({ "success": true })
}

/// These are on their way out.
fn going<'a>(states: impl IntoIterator<Item = &'a mut RuleState>) {
    states.into_iter().for_each(|state| *state = RuleState::Revoke);
}

/// An object that went while the job waited.
fn gone(kind: &str, id: &str) -> ApiError {
    ApiError::parameter(format!("Unable to find {kind} {id}"))
}

impl State {
    /// Carries a job out; answers its result.
    pub(super) fn carry_out(&mut self, effect: &Effect) -> Result<Value, ApiError> {
        match effect {
            Effect::Associate(id) => {
                let address = self.addresses.get_mut(id);
                let address = address.filter(|it| it.owner.is_some());
                address.ok_or_else(|| gone("ip address", id))?.state = AddressState::Allocated;
                Ok(json!({ "ipaddress": wire::address(self, &self.addresses[id]) }))
            }
            Effect::Disassociate(id) => self.disassociate(id),
            Effect::CreateRule(id) => {
                let rule = self.rules.get(id).ok_or_else(|| gone("load balancer rule", id))?;
                Ok(json!({ "loadbalancer": wire::rule(self, rule) }))
            }
            Effect::UpdateRule { rule, change } => self.update_rule(rule, change),
            Effect::DeleteRule(id) => match self.remove_rule(id) {
                true => Ok(success()),
                false => Err(gone("load balancer rule", id)),
            },
            Effect::Assign { rule, vms } => self.assign(rule, vms),
            Effect::Remove { rule, vms } => {
                let found = self.rules.get_mut(rule);
                let found = found.ok_or_else(|| gone("load balancer rule", rule))?;
                found.lose_members(|member| vms.iter().any(|vm| vm == member));
                let network = found.network.clone();
                self.tell_router(&network);
                Ok(success())
            }
            Effect::CreatePolicy { rule, policy } => self.stick(rule, policy),
            Effect::DeletePolicy { rule, policy } => self.unstick(rule, policy),
            Effect::CreateFirewall(id) => {
                let rule = self
                    .firewall
                    .get_mut(id)
                    .ok_or_else(|| gone("firewall rule", id))?;
                rule.state.activate();
                Ok(json!({ "firewallrule": wire::firewall_rule(self, &self.firewall[id]) }))
            }
            Effect::DeleteFirewall(id) => match self.firewall.shift_remove(id) {
                Some(_) => Ok(success()),
                None => Err(gone("firewall rule", id)),
            },
            Effect::CreateAcl(id) => {
                let item = self.acl_items.get_mut(id).ok_or_else(|| gone("ACL item", id))?;
                item.state.activate();
                Ok(json!({ "networkacl": wire::acl_item(self, &self.acl_items[id]) }))
            }
            Effect::UpdateAcl { item, change } => self.update_acl(item, change),
            Effect::DeleteAcl(id) => match self.acl_items.shift_remove(id) {
                Some(_) => Ok(success()),
                None => Err(gone("ACL item", id)),
            },
            Effect::Tag { kind, ids, tags } => self.tag(kind, ids, tags),
            Effect::Untag { kind, ids, tags } => {
                for id in ids {
                    let found = self.tags_mut(kind, id).ok_or_else(|| gone(kind, id))?;
                    found.retain(|tag| !tags.iter().any(|it| it.key == tag.key));
                }
                Ok(success())
            }
        }
    }

    /// A job begins: what is to go is shown so from now on. Before that nothing tells.
    pub(super) fn begin(&mut self, effect: &Effect) {
        match effect {
            Effect::Disassociate(id) => self.begin_release(id),
            Effect::DeleteRule(id) => going(self.rules.get_mut(id).map(|it| &mut it.state)),
            Effect::DeleteFirewall(id) => going(self.firewall.get_mut(id).map(|it| &mut it.state)),
            Effect::DeleteAcl(id) => going(self.acl_items.get_mut(id).map(|it| &mut it.state)),
            _ => {}
        }
    }

    /// With an address go the rules on it.
    fn begin_release(&mut self, id: &str) {
        let address = self.addresses.get_mut(id);
        let Some(address) = address.filter(|it| it.owner.is_some() && !it.is_source_nat) else {
            return;
        };
        address.state = AddressState::Releasing;
        if self.behaviour.releases_leave_rules {
            return;
        }
        let rules = self.rules.values_mut().filter(|it| it.address == id);
        let firewall = self.firewall.values_mut().filter(|it| it.address == id);
        going(rules.map(|it| &mut it.state));
        going(firewall.map(|it| &mut it.state));
    }

    /// Takes back what the acceptance of a job did, or its begin. Only the deletion of a load balancer rule is taken back: an
    /// address stays on its way out with the rules on it, and so do firewall rules and ACL items.
    pub(super) fn undo(&mut self, effect: &Effect) {
        match effect {
            Effect::Associate(id) => {
                if let Some(it) = self.addresses.get(id)
                    && it.state == AddressState::Allocating
                {
                    self.free(id);
                }
            }
            Effect::CreateRule(id) => {
                self.remove_rule(id);
            }
            Effect::DeleteRule(id) => self.keep_rule(id),
            // What it was to take the place of stays.
            Effect::CreatePolicy { rule, policy } => {
                if let Some(rule) = self.rules.get_mut(rule) {
                    rule.policies.retain(|known| known.id != *policy);
                }
            }
            // It is told to go, and goes with the next change that reaches the router.
            Effect::DeletePolicy { rule, policy } => {
                let policies = self
                    .rules
                    .get_mut(rule)
                    .into_iter()
                    .flat_map(|rule| &mut rule.policies);
                let policies = policies.filter(|known| known.id == *policy);
                policies.for_each(|known| known.is_revoked = true);
            }
            Effect::CreateFirewall(id) => {
                self.firewall.shift_remove(id);
            }
            Effect::CreateAcl(id) => {
                self.acl_items.shift_remove(id);
            }
            Effect::Disassociate(_)
            | Effect::DeleteFirewall(_)
            | Effect::DeleteAcl(_)
            | Effect::UpdateRule { .. }
            | Effect::Assign { .. }
            | Effect::Remove { .. }
            | Effect::UpdateAcl { .. }
            | Effect::Tag { .. }
            | Effect::Untag { .. } => {}
        }
    }

    /// Brings a rule back whose deletion failed, unless another one took its port meanwhile.
    fn keep_rule(&mut self, id: &str) {
        let Some(rule) = self.rules.get(id) else {
            return;
        };
        if self
            .holder(&rule.address, rule.public_port, &rule.protocol_word())
            .is_some()
        {
            return;
        }
        if let Some(rule) = self.rules.get_mut(id) {
            rule.state = match rule.members.is_empty() {
                true => RuleState::Add,
                false => RuleState::Active,
            };
            let network = rule.network.clone();
            self.tell_router(&network);
        }
    }

    fn disassociate(&mut self, id: &str) -> Result<Value, ApiError> {
        let address = self.addresses.get(id).filter(|it| it.owner.is_some());
        let address = address.ok_or_else(|| gone("ip address", id))?;
        if address.is_source_nat {
            return Err(ApiError::parameter(format!(
                "ip address {} is a source nat address and cannot be disassociated",
                address.address
            )));
        }
        self.free(id);
        Ok(success())
    }

    /// Stores what is new. The router is told of another algorithm or list of clients only.
    fn update_rule(&mut self, id: &str, change: &RuleChange) -> Result<Value, ApiError> {
        let protocols = self.behaviour.protocol_updates;
        let rule = self
            .rules
            .get_mut(id)
            .ok_or_else(|| gone("load balancer rule", id))?;
        let mut new = change.clone();
        if let Some(list) = &new.cidrs
            && list
                .split(',')
                .any(|it| !it.is_empty() && it.parse::<Ipv4Net>().is_err())
        {
            return Err(ApiError::parameter(format!("Invalid CIDR list: {list}")));
        }
        if protocols == ProtocolUpdates::Ignored {
            new.protocol = None;
        }
        let before = rule.clone();
        rule.name = new.name.unwrap_or_else(|| std::mem::take(&mut rule.name));
        rule.algorithm = new
            .algorithm
            .unwrap_or_else(|| std::mem::take(&mut rule.algorithm));
        rule.description = new.description.or_else(|| rule.description.take());
        rule.protocol = new.protocol.or_else(|| rule.protocol.take());
        rule.cidrs = new.cidrs.or_else(|| rule.cidrs.take());
        let is_told = rule.algorithm != before.algorithm
            || rule.cidrs != before.cidrs
            || (rule.protocol != before.protocol && protocols == ProtocolUpdates::Applied);
        if is_told {
            self.tell_router(&before.network);
        }
        Ok(json!({ "loadbalancer": wire::rule(self, &self.rules[id]) }))
    }

    /// Adds all members or none.
    fn assign(&mut self, id: &str, vms: &[String]) -> Result<Value, ApiError> {
        // A rule that is being deleted takes nobody.
        let rule = self.rules.get(id).filter(|it| it.state != RuleState::Revoke);
        let rule = rule.ok_or_else(|| gone("load balancer rule", id))?;
        for vm in vms {
            let found = self.vms.get(vm).filter(|it| !it.state.is_going());
            let Some(found) = found else {
                return Err(ApiError::parameter(format!(
                    "Invalid instance id specified: {vm} is not there or being removed"
                )));
            };
            if found.owner != rule.owner {
                return Err(ApiError::parameter(format!(
                    "Rule id={id} and vm id={} belong to different accounts",
                    found.number
                )));
            }
            let Some(nic) = found.nic_in(&rule.network) else {
                return Err(ApiError::parameter(
                    "VM with id specified cannot be added because it doesn't belong in the same network.",
                ));
            };
            if rule.members.contains(vm) {
                return Err(ApiError::parameter(format!(
                    "VM {} with {} is already mapped to load balancer.",
                    found.number, nic.address
                )));
            }
        }
        if let Some(rule) = self.rules.get_mut(id).filter(|_| !vms.is_empty()) {
            rule.members.extend(vms.iter().cloned());
            rule.state = RuleState::Active;
            let network = rule.network.clone();
            self.tell_router(&network);
        }
        Ok(success())
    }

    /// A new policy is in force in the place of all others.
    fn stick(&mut self, rule: &str, policy: &str) -> Result<Value, ApiError> {
        let found = self.rules.get_mut(rule);
        let found = found.filter(|rule| rule.policies.iter().any(|known| known.id == policy));
        let found = found.ok_or_else(|| gone("stickiness policy", policy))?;
        let others = found.policies.iter_mut().filter(|known| known.id != policy);
        others.for_each(|known| known.is_revoked = true);
        let network = found.network.clone();
        self.tell_router(&network);
        Ok(wire::created_policy(self, rule, policy))
    }

    fn unstick(&mut self, rule: &str, policy: &str) -> Result<Value, ApiError> {
        let found = self.rules.get_mut(rule);
        let found = found.filter(|rule| rule.policies.iter().any(|known| known.id == policy));
        let found = found
            .ok_or_else(|| ApiError::parameter(format!("Invalid Stickiness policy id value: {policy}")))?;
        found.policies.retain(|known| known.id != policy);
        let network = found.network.clone();
        self.tell_router(&network);
        Ok(success())
    }

    fn update_acl(&mut self, id: &str, change: &AclChange) -> Result<Value, ApiError> {
        let item = self.acl_items.get_mut(id).ok_or_else(|| gone("ACL item", id))?;
        let new = change.clone();
        item.number = new.number.unwrap_or(item.number);
        item.protocol = new.protocol.unwrap_or_else(|| std::mem::take(&mut item.protocol));
        item.ports = new.ports.or(item.ports);
        item.cidrs = new.cidrs.unwrap_or_else(|| std::mem::take(&mut item.cidrs));
        item.is_allow = new.is_allow.unwrap_or(item.is_allow);
        item.is_ingress = new.is_ingress.unwrap_or(item.is_ingress);
        item.reason = new.reason.or_else(|| item.reason.take());
        Ok(json!({ "networkacl": wire::acl_item(self, &self.acl_items[id]) }))
    }

    fn tag(&mut self, kind: &str, ids: &[String], tags: &[Tag]) -> Result<Value, ApiError> {
        for id in ids {
            let found = self.tags_mut(kind, id).ok_or_else(|| gone(kind, id))?;
            if let Some(tag) = tags.iter().find(|it| found.iter().any(|tag| tag.key == it.key)) {
                return Err(ApiError::new(
                    530,
                    format!("tag {} already on {kind} {id}", tag.key),
                ));
            }
        }
        for id in ids {
            if let Some(found) = self.tags_mut(kind, id) {
                found.extend(tags.iter().cloned());
            }
        }
        Ok(success())
    }
}
