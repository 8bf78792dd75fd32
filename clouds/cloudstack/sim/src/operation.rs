//! The commands that are simulated.

/// A command of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `listManagementServersMetrics`
    ListManagementServersMetrics,
    /// `listCapabilities`
    ListCapabilities,
    /// `listProjects`
    ListProjects,
    /// `listZones`
    ListZones,
    /// `listVirtualMachines`
    ListVirtualMachines,
    /// `listNetworks`
    ListNetworks,
    /// `listVPCs`
    ListVpcs,
    /// `listPublicIpAddresses`
    ListPublicIpAddresses,
    /// `associateIpAddress`
    AssociateIpAddress,
    /// `disassociateIpAddress`
    DisassociateIpAddress,
    /// `listLoadBalancerRules`
    ListLoadBalancerRules,
    /// `createLoadBalancerRule`
    CreateLoadBalancerRule,
    /// `updateLoadBalancerRule`
    UpdateLoadBalancerRule,
    /// `deleteLoadBalancerRule`
    DeleteLoadBalancerRule,
    /// `assignToLoadBalancerRule`
    AssignToLoadBalancerRule,
    /// `removeFromLoadBalancerRule`
    RemoveFromLoadBalancerRule,
    /// `listLoadBalancerRuleInstances`
    ListLoadBalancerRuleInstances,
    /// `listPortForwardingRules`
    ListPortForwardingRules,
    /// `listFirewallRules`
    ListFirewallRules,
    /// `createFirewallRule`
    CreateFirewallRule,
    /// `deleteFirewallRule`
    DeleteFirewallRule,
    /// `listNetworkACLLists`
    ListNetworkAclLists,
    /// `listNetworkACLs`
    ListNetworkAcls,
    /// `createNetworkACL`
    CreateNetworkAcl,
    /// `updateNetworkACLItem`
    UpdateNetworkAclItem,
    /// `deleteNetworkACL`
    DeleteNetworkAcl,
    /// `createTags`
    CreateTags,
    /// `deleteTags`
    DeleteTags,
    /// `listTags`
    ListTags,
    /// `queryAsyncJobResult`
    QueryAsyncJobResult,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::ListManagementServersMetrics,
        Self::ListCapabilities,
        Self::ListProjects,
        Self::ListZones,
        Self::ListVirtualMachines,
        Self::ListNetworks,
        Self::ListVpcs,
        Self::ListPublicIpAddresses,
        Self::AssociateIpAddress,
        Self::DisassociateIpAddress,
        Self::ListLoadBalancerRules,
        Self::CreateLoadBalancerRule,
        Self::UpdateLoadBalancerRule,
        Self::DeleteLoadBalancerRule,
        Self::AssignToLoadBalancerRule,
        Self::RemoveFromLoadBalancerRule,
        Self::ListLoadBalancerRuleInstances,
        Self::ListPortForwardingRules,
        Self::ListFirewallRules,
        Self::CreateFirewallRule,
        Self::DeleteFirewallRule,
        Self::ListNetworkAclLists,
        Self::ListNetworkAcls,
        Self::CreateNetworkAcl,
        Self::UpdateNetworkAclItem,
        Self::DeleteNetworkAcl,
        Self::CreateTags,
        Self::DeleteTags,
        Self::ListTags,
        Self::QueryAsyncJobResult,
    ];

    /// Its name on the wire, in the journal and in fault rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::ListManagementServersMetrics => "listManagementServersMetrics",
            Self::ListCapabilities => "listCapabilities",
            Self::ListProjects => "listProjects",
            Self::ListZones => "listZones",
            Self::ListVirtualMachines => "listVirtualMachines",
            Self::ListNetworks => "listNetworks",
            Self::ListVpcs => "listVPCs",
            Self::ListPublicIpAddresses => "listPublicIpAddresses",
            Self::AssociateIpAddress => "associateIpAddress",
            Self::DisassociateIpAddress => "disassociateIpAddress",
            Self::ListLoadBalancerRules => "listLoadBalancerRules",
            Self::CreateLoadBalancerRule => "createLoadBalancerRule",
            Self::UpdateLoadBalancerRule => "updateLoadBalancerRule",
            Self::DeleteLoadBalancerRule => "deleteLoadBalancerRule",
            Self::AssignToLoadBalancerRule => "assignToLoadBalancerRule",
            Self::RemoveFromLoadBalancerRule => "removeFromLoadBalancerRule",
            Self::ListLoadBalancerRuleInstances => "listLoadBalancerRuleInstances",
            Self::ListPortForwardingRules => "listPortForwardingRules",
            Self::ListFirewallRules => "listFirewallRules",
            Self::CreateFirewallRule => "createFirewallRule",
            Self::DeleteFirewallRule => "deleteFirewallRule",
            Self::ListNetworkAclLists => "listNetworkACLLists",
            Self::ListNetworkAcls => "listNetworkACLs",
            Self::CreateNetworkAcl => "createNetworkACL",
            Self::UpdateNetworkAclItem => "updateNetworkACLItem",
            Self::DeleteNetworkAcl => "deleteNetworkACL",
            Self::CreateTags => "createTags",
            Self::DeleteTags => "deleteTags",
            Self::ListTags => "listTags",
            Self::QueryAsyncJobResult => "queryAsyncJobResult",
        }
    }

    /// The command of this name, which is case-sensitive.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
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
