//! The commands that are simulated.

bowline_cloud_kit::operations! {
    /// A command of the API.
    Operation {
        ListManagementServersMetrics "listManagementServersMetrics",
        ListCapabilities "listCapabilities",
        ListProjects "listProjects",
        ListZones "listZones",
        ListVirtualMachines "listVirtualMachines",
        ListNetworks "listNetworks",
        ListVpcs "listVPCs",
        ListPublicIpAddresses "listPublicIpAddresses",
        AssociateIpAddress "associateIpAddress",
        DisassociateIpAddress "disassociateIpAddress",
        ListLoadBalancerRules "listLoadBalancerRules",
        CreateLoadBalancerRule "createLoadBalancerRule",
        UpdateLoadBalancerRule "updateLoadBalancerRule",
        DeleteLoadBalancerRule "deleteLoadBalancerRule",
        AssignToLoadBalancerRule "assignToLoadBalancerRule",
        RemoveFromLoadBalancerRule "removeFromLoadBalancerRule",
        ListLoadBalancerRuleInstances "listLoadBalancerRuleInstances",
        ListStickinessPolicies "listLBStickinessPolicies",
        CreateStickinessPolicy "createLBStickinessPolicy",
        DeleteStickinessPolicy "deleteLBStickinessPolicy",
        ListPortForwardingRules "listPortForwardingRules",
        ListFirewallRules "listFirewallRules",
        CreateFirewallRule "createFirewallRule",
        DeleteFirewallRule "deleteFirewallRule",
        ListNetworkAclLists "listNetworkACLLists",
        ListNetworkAcls "listNetworkACLs",
        CreateNetworkAcl "createNetworkACL",
        UpdateNetworkAclItem "updateNetworkACLItem",
        DeleteNetworkAcl "deleteNetworkACL",
        CreateTags "createTags",
        DeleteTags "deleteTags",
        ListTags "listTags",
        QueryAsyncJobResult "queryAsyncJobResult",
    }
}

impl Operation {
    /// The command of this name, which is case-sensitive.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// Whether it changes something; it is a job then.
    pub fn is_write(self) -> bool {
        !is_read(self.name())
    }

    /// The package of its class on the server, which answers about jobs show.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::AssociateIpAddress | Self::DisassociateIpAddress => "address",
            Self::CreateFirewallRule | Self::DeleteFirewallRule => "firewall",
            Self::CreateNetworkAcl | Self::UpdateNetworkAclItem | Self::DeleteNetworkAcl => "network",
            Self::CreateTags | Self::DeleteTags => "tag",
            _ => "loadbalancer",
        }
    }
}

/// Whether a command, known or not, only reads, by its name.
pub(crate) fn is_read(command: &str) -> bool {
    ["list", "query", "get"]
        .iter()
        .any(|verb| command.starts_with(verb))
}
