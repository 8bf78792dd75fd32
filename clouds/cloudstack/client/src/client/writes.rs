//! Commands that change something. Each is sent once, and starts a job.
//!
//! # Repeatability
//!
//! None: if [`ApiError::maybe_applied`], look for the effect before giving a command again.

use serde::Deserialize;

use super::{Client, Deleted};
use crate::error::ApiError;
use crate::jobs::Started;
use crate::sign::Parameters;
use crate::wire::{
    AclItemId, AclListId, Association, FirewallRuleId, JobId, NetworkId, NewFilter, NewLoadBalancerRule,
    NewStickinessPolicy, PublicIpId, RuleId, RuleUpdate, StickinessPolicyId, VirtualMachineId,
};

/// The answer to a command that starts a job.
#[derive(Deserialize)]
struct Taken {
    jobid: JobId,
    #[serde(default, deserialize_with = "crate::wire::id_or_none")]
    id: Option<String>,
}

impl Client {
    /// Acquires a public address, in the project: this one, or any.
    ///
    /// # Errors
    ///
    /// [`Class::Exhausted`](crate::Class::Exhausted) if there is none to be had.
    pub async fn associate_ip_address(
        &self,
        to: &Association,
        address: Option<&str>,
    ) -> Result<Started<PublicIpId>, ApiError> {
        let mut parameters = to.parameters();
        if let Some(address) = address {
            parameters.set("ipaddress", address);
        }
        let parameters = self.in_project(parameters).await?;
        self.start("associateIpAddress", parameters).await
    }

    /// Gives a public address back, with all rules on it.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); an address that is gone is none.
    pub async fn disassociate_ip_address(&self, id: &PublicIpId) -> Result<Deleted, ApiError> {
        self.delete("disassociateIpAddress", id.as_str()).await
    }

    /// Creates a load balancer rule, without members.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_rule_conflict`] if another rule has the port.
    pub async fn create_load_balancer_rule(
        &self,
        new: &NewLoadBalancerRule,
    ) -> Result<Started<RuleId>, ApiError> {
        self.start("createLoadBalancerRule", new.parameters()).await
    }

    /// Changes a load balancer rule.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn update_load_balancer_rule(
        &self,
        id: &RuleId,
        change: &RuleUpdate,
    ) -> Result<JobId, ApiError> {
        let mut parameters = change.parameters();
        parameters.set("id", id.as_str());
        self.change("updateLoadBalancerRule", parameters).await
    }

    /// Deletes a load balancer rule. Firewall rules stay.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); a rule that is gone is none.
    pub async fn delete_load_balancer_rule(&self, id: &RuleId) -> Result<Deleted, ApiError> {
        self.delete("deleteLoadBalancerRule", id.as_str()).await
    }

    /// Makes virtual machines members of a load balancer rule. If one of them cannot be, none becomes one.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn assign_to_load_balancer_rule(
        &self,
        rule: &RuleId,
        instances: &[VirtualMachineId],
    ) -> Result<JobId, ApiError> {
        self.change("assignToLoadBalancerRule", members(rule, instances))
            .await
    }

    /// Takes members out of a load balancer rule.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn remove_from_load_balancer_rule(
        &self,
        rule: &RuleId,
        instances: &[VirtualMachineId],
    ) -> Result<JobId, ApiError> {
        self.change("removeFromLoadBalancerRule", members(rule, instances))
            .await
    }

    /// Gives a load balancer rule a stickiness policy, in the place of the one that it has.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn create_stickiness_policy(
        &self,
        rule: &RuleId,
        new: &NewStickinessPolicy,
    ) -> Result<Started<StickinessPolicyId>, ApiError> {
        self.start("createLBStickinessPolicy", new.parameters(rule)).await
    }

    /// Deletes a stickiness policy.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); a policy that is gone is none.
    pub async fn delete_stickiness_policy(&self, id: &StickinessPolicyId) -> Result<Deleted, ApiError> {
        self.delete("deleteLBStickinessPolicy", id.as_str()).await
    }

    /// Opens a port of a public address.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_rule_conflict`] if another rule has the port and one of the sources.
    pub async fn create_firewall_rule(
        &self,
        address: &PublicIpId,
        filter: &NewFilter,
    ) -> Result<Started<FirewallRuleId>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("ipaddressid", address.as_str());
        filter.write(&mut parameters);
        self.start("createFirewallRule", parameters).await
    }

    /// Deletes a firewall rule.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); a rule that is gone is none.
    pub async fn delete_firewall_rule(&self, id: &FirewallRuleId) -> Result<Deleted, ApiError> {
        self.delete("deleteFirewallRule", id.as_str()).await
    }

    /// Adds an item to an ACL list that is in force for a network, behind all that are in it: it lets something in at one port.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn create_network_acl(
        &self,
        list: &AclListId,
        network: &NetworkId,
        filter: &NewFilter,
    ) -> Result<Started<AclItemId>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("aclid", list.as_str());
        parameters.set("networkid", network.as_str());
        filter.write(&mut parameters);
        parameters.set("action", "Allow");
        parameters.set("traffictype", "Ingress");
        self.start("createNetworkACL", parameters).await
    }

    /// Deletes an item of an ACL list.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); an item that is gone is none.
    pub async fn delete_network_acl(&self, id: &AclItemId) -> Result<Deleted, ApiError> {
        self.delete("deleteNetworkACL", id.as_str()).await
    }

    async fn start<Id: From<String>>(
        &self,
        command: &'static str,
        parameters: Parameters,
    ) -> Result<Started<Id>, ApiError> {
        let taken: Taken = self.caller.post(command, &parameters).await?.read()?;
        Ok(Started {
            job: taken.jobid,
            id: taken.id.map(Id::from),
        })
    }

    async fn change(&self, command: &'static str, parameters: Parameters) -> Result<JobId, ApiError> {
        let taken: Taken = self.caller.post(command, &parameters).await?.read()?;
        Ok(taken.jobid)
    }

    async fn delete(&self, command: &'static str, id: &str) -> Result<Deleted, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("id", id);
        match self.change(command, parameters).await {
            Ok(job) => Ok(Deleted::Started(job)),
            Err(error) if error.proves_absence_of(id) => Ok(Deleted::AlreadyGone),
            Err(error) => Err(error),
        }
    }
}

fn members(rule: &RuleId, instances: &[VirtualMachineId]) -> Parameters {
    let mut parameters = Parameters::default();
    parameters.set("id", rule.as_str());
    parameters.set("virtualmachineids", instances.join(","));
    parameters
}
