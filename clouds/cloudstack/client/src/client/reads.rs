//! Commands that change nothing.

use super::Client;
use crate::error::ApiError;
use crate::jobs::{Job, Status};
use crate::paging::{Counted, Listed, Lookup};
use crate::sign::Parameters;
use crate::wire::{
    AclListId, Capabilities, FirewallRule, JobId, LoadBalancerRule, ManagementServer, Network, NetworkAcl,
    NetworkAclList, NetworkId, PoliciesOfRules, PortForwardingRule, PublicIpAddress, PublicIpId,
    PublicIpQuery, RuleId, RuleQuery, StickinessPolicy, VirtualMachine, VirtualMachineId,
    VirtualMachineQuery, is_or_unsaid,
};

impl Client {
    /// The virtual machines that fulfil the query; not those that say that they are another project's.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every command.
    pub async fn virtual_machines(
        &self,
        query: &VirtualMachineQuery,
    ) -> Result<Counted<VirtualMachine>, ApiError> {
        let parameters = self.in_project(query.parameters()).await?;
        let mut instances: Counted<VirtualMachine> =
            self.caller.counted("listVirtualMachines", &parameters).await?;
        // The ID -1 stands for all projects.
        let project = self.project().await?.filter(|id| id.as_str() != "-1");
        instances
            .items
            .retain(|instance| is_or_unsaid(&instance.project_id, project));
        Ok(instances)
    }

    /// One virtual machine, with all that the server shows.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn virtual_machine(&self, id: &VirtualMachineId) -> Result<Lookup<VirtualMachine>, ApiError> {
        self.look_up("listVirtualMachines", id.as_str()).await
    }

    /// One network. `None`: the API itself says that there is none with this id that these keys may see in this project.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn network(&self, id: &NetworkId) -> Result<Option<Network>, ApiError> {
        self.one("listNetworks", id.as_str()).await
    }

    /// The public addresses that fulfil the query.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn public_ip_addresses(&self, query: &PublicIpQuery) -> Result<Vec<PublicIpAddress>, ApiError> {
        let mut addresses: Vec<PublicIpAddress> =
            self.list("listPublicIpAddresses", query.parameters()).await?;
        addresses.retain(|address| query.admits(address));
        Ok(addresses)
    }

    /// One public address. `None`: it does not exist, or is free, since only allocated ones are listed by id.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn public_ip_address(&self, id: &PublicIpId) -> Result<Option<PublicIpAddress>, ApiError> {
        self.one("listPublicIpAddresses", id.as_str()).await
    }

    /// The load balancer rules that fulfil the query.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn load_balancer_rules(&self, query: &RuleQuery) -> Result<Vec<LoadBalancerRule>, ApiError> {
        let mut rules: Vec<LoadBalancerRule> = self.list("listLoadBalancerRules", query.parameters()).await?;
        rules.retain(|rule| query.admits(rule));
        Ok(rules)
    }

    /// The members of a load balancer rule.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn load_balancer_rule_instances(&self, rule: &RuleId) -> Result<Vec<VirtualMachine>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("id", rule.as_str());
        // This command knows no projects: the rule says it.
        let members: Vec<crate::wire::Member> = self
            .caller
            .list("listLoadBalancerRuleInstances", &parameters)
            .await?;
        Ok(members.into_iter().map(|member| member.0).collect())
    }

    /// The stickiness policies of a load balancer rule.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn stickiness_policies(&self, rule: &RuleId) -> Result<Vec<StickinessPolicy>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("lbruleid", rule.as_str());
        // This command knows no projects and no pages: a rule has one policy, or two for a moment.
        let answer = self.caller.get("listLBStickinessPolicies", &parameters).await?;
        Ok(answer.read::<PoliciesOfRules>()?.policies())
    }

    /// The firewall rules of a public address.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn firewall_rules(&self, address: &PublicIpId) -> Result<Vec<FirewallRule>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("ipaddressid", address.as_str());
        parameters.set("listall", "true");
        let mut rules: Vec<FirewallRule> = self.list("listFirewallRules", parameters).await?;
        rules.retain(|rule| is_or_unsaid(&rule.public_ip_id, Some(address)));
        Ok(rules)
    }

    /// What a public address, or any, forwards to virtual machines, port by port.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn port_forwarding_rules(
        &self,
        address: Option<&PublicIpId>,
    ) -> Result<Vec<PortForwardingRule>, ApiError> {
        let mut parameters = Parameters::default();
        if let Some(address) = address {
            parameters.set("ipaddressid", address.as_str());
        }
        parameters.set("listall", "true");
        let mut rules: Vec<PortForwardingRule> = self.list("listPortForwardingRules", parameters).await?;
        rules.retain(|rule| address.is_none() || is_or_unsaid(&rule.public_ip_id, address));
        Ok(rules)
    }

    /// One ACL list. `None`: as for [networks](Self::network).
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn network_acl_list(&self, id: &AclListId) -> Result<Option<NetworkAclList>, ApiError> {
        self.one("listNetworkACLLists", id.as_str()).await
    }

    /// The items of an ACL list.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn network_acls(&self, list: &AclListId) -> Result<Vec<NetworkAcl>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("aclid", list.as_str());
        parameters.set("listall", "true");
        let mut items: Vec<NetworkAcl> = self.list("listNetworkACLs", parameters).await?;
        items.retain(|item| is_or_unsaid(&item.list_id, Some(list)));
        Ok(items)
    }

    /// The management servers. Ordinary users are normally refused.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn management_servers(&self) -> Result<Vec<ManagementServer>, ApiError> {
        self.caller
            .list("listManagementServersMetrics", &Parameters::default())
            .await
    }

    /// What the server can do, and its version. Every user may ask.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn capabilities(&self) -> Result<Capabilities, ApiError> {
        let answer = self
            .caller
            .get("listCapabilities", &Parameters::default())
            .await?;
        answer.read()
    }

    /// Asks once after a job.
    ///
    /// # Errors
    ///
    /// The question itself failed: nothing is known of the job. A job that failed is no error here.
    pub async fn query_job(&self, job: &JobId) -> Result<Job, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("jobid", job.as_str());
        let answer = self.caller.get("queryAsyncJobResult", &parameters).await?;
        let status: Status = answer.read()?;
        Ok(status.job(&answer.response))
    }

    async fn list<T: Listed>(
        &self,
        command: &'static str,
        parameters: Parameters,
    ) -> Result<Vec<T>, ApiError> {
        let parameters = self.in_project(parameters).await?;
        self.caller.list(command, &parameters).await
    }

    /// The one object with an id, or none if the API itself says that there is none: by an empty list, or by a refusal that
    /// names this id.
    async fn one<T: Listed>(&self, command: &'static str, id: &str) -> Result<Option<T>, ApiError> {
        Ok(self.look_up(command, id).await?.found())
    }

    async fn look_up<T: Listed>(&self, command: &'static str, id: &str) -> Result<Lookup<T>, ApiError> {
        let mut parameters = Parameters::default();
        parameters.set("id", id);
        // Without it an administrator's keys see no more than their own account's, and nothing is no proof of anything.
        parameters.set("listall", "true");
        let parameters = self.in_project(parameters).await?;
        match self.caller.find(command, &parameters, id).await {
            Ok(found) => Ok(found.map_or(Lookup::Unlisted, Lookup::Found)),
            Err(error) if error.proves_absence_of(id) => Ok(Lookup::Unknown),
            Err(error) => Err(error),
        }
    }
}
