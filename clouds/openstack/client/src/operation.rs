//! The names of calls.

use std::time::Duration;

/// A kind of call, with its names in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its name in messages and in `cloud_api_requests_total`.
    pub name: &'static str,
    /// Its name in `openstack_api_requests_total` and its kin: that of the Go manager where it counts this call too.
    pub request: Option<&'static str>,
}

/// Is told of every call, whatever number of requests it took.
pub trait CallObserver: Send + Sync {
    /// A call with this name ended after this time. An absence that the caller can see as such is no failure.
    fn observe(&self, request: &'static str, took: Duration, has_failed: bool);
}

macro_rules! operations {
    ($($name:ident = $text:literal $(counted $request:literal)?;)*) => {
        $(pub(crate) const $name: Operation = Operation {
            name: $text,
            request: operations!(@request $($request)?),
        };)*

        #[cfg(test)]
        const ALL: &[Operation] = &[$($name),*];
    };
    (@request) => { None };
    (@request $request:literal) => { Some($request) };
}

operations!(
    LOGIN = "tokens.create";
    IDENTITY_VERSIONS = "identity-versions.list";
    COMPUTE_VERSIONS = "compute-versions.list";
    NETWORK_VERSIONS = "network-versions.list";
    BALANCER_VERSIONS = "load-balancer-versions.list";
    KEY_VERSIONS = "key-manager-versions.list";

    SERVERS_LIST = "servers.list" counted "server_list";
    SERVERS_GET = "servers.get" counted "server_get";
    FLAVORS_LIST = "flavors.list" counted "flavor_list";
    FLAVORS_GET = "flavors.get" counted "flavor_get";

    EXTENSIONS_LIST = "extensions.list" counted "network_extension_list";
    NETWORKS_LIST = "networks.list" counted "network_list";
    NETWORKS_GET = "networks.get" counted "network_get";
    SUBNETS_LIST = "subnets.list" counted "subnet_list";
    PORTS_LIST = "ports.list" counted "port_list";
    PORTS_GET = "ports.get" counted "port_get";
    PORTS_UPDATE = "ports.update" counted "port_update";
    PORTS_DELETE = "ports.delete" counted "port_delete";
    PORT_TAGS_DELETE = "port-tags.delete" counted "port_tag_delete";
    ROUTERS_GET = "routers.get" counted "router_get";
    ROUTERS_UPDATE = "routers.update" counted "router_update";
    ROUTERS_ADD_ROUTES = "routers.add-extraroutes" counted "router_update";
    ROUTERS_REMOVE_ROUTES = "routers.remove-extraroutes" counted "router_update";
    FLOATING_IPS_LIST = "floating-ips.list" counted "floating_ip_list";
    FLOATING_IPS_CREATE = "floating-ips.create" counted "floating_ip_create";
    FLOATING_IPS_UPDATE = "floating-ips.update" counted "floating_ip_update";
    FLOATING_IPS_DELETE = "floating-ips.delete" counted "floating_ip_delete";
    SECURITY_GROUPS_LIST = "security-groups.list" counted "security_group_list";
    SECURITY_GROUPS_CREATE = "security-groups.create" counted "security_group_create";
    SECURITY_GROUPS_DELETE = "security-groups.delete" counted "security_group_delete";
    SECURITY_GROUP_RULES_CREATE = "security-group-rules.create" counted "security_group_rule_create";
    SECURITY_GROUP_RULES_DELETE = "security-group-rules.delete" counted "security_group_rule_delete";

    API_VERSIONS_LIST = "versions.list" counted "version_list";
    LOAD_BALANCERS_LIST = "load-balancers.list" counted "loadbalancer_list";
    LOAD_BALANCERS_GET = "load-balancers.get" counted "loadbalancer_get";
    LOAD_BALANCERS_CREATE = "load-balancers.create" counted "loadbalancer_create";
    LOAD_BALANCERS_UPDATE = "load-balancers.update" counted "loadbalancer_update";
    LOAD_BALANCERS_DELETE = "load-balancers.delete" counted "loadbalancer_delete";
    LISTENERS_LIST = "listeners.list" counted "loadbalancer_listener_list";
    LISTENERS_CREATE = "listeners.create" counted "loadbalancer_listener_create";
    LISTENERS_UPDATE = "listeners.update" counted "loadbalancer_listener_update";
    LISTENERS_DELETE = "listeners.delete" counted "loadbalancer_listener_delete";
    POOLS_LIST = "pools.list" counted "loadbalancer_pool_list";
    POOLS_CREATE = "pools.create" counted "loadbalancer_pool_create";
    POOLS_UPDATE = "pools.update" counted "loadbalancer_pool_update";
    POOLS_DELETE = "pools.delete" counted "loadbalancer_pool_delete";
    MEMBERS_LIST = "members.list" counted "loadbalancer_member_list";
    MEMBERS_REPLACE = "members.replace" counted "loadbalancer_members_update";
    MEMBERS_CREATE = "members.create" counted "loadbalancer_member_create";
    MEMBERS_UPDATE = "members.update" counted "loadbalancer_member_update";
    MEMBERS_DELETE = "members.delete" counted "loadbalancer_member_delete";
    MONITORS_LIST = "health-monitors.list" counted "loadbalancer_healthmonitor_list";
    MONITORS_GET = "health-monitors.get" counted "loadbalancer_healthmonitor_get";
    MONITORS_CREATE = "health-monitors.create" counted "loadbalancer_healthmonitor_create";
    MONITORS_UPDATE = "health-monitors.update" counted "loadbalancer_healthmonitor_update";
    MONITORS_DELETE = "health-monitors.delete" counted "loadbalancer_healthmonitor_delete";

    CONTAINERS_GET = "containers.get";
    SECRETS_GET = "secrets.get";
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_call_of_the_go_manager_is_counted_under_its_name() {
        let counted: BTreeSet<_> = ALL.iter().filter_map(|operation| operation.request).collect();
        let listener =
            ["create", "list", "update", "delete"].map(|verb| format!("loadbalancer_listener_{verb}"));
        let pool = ["create", "list", "update", "delete"].map(|verb| format!("loadbalancer_pool_{verb}"));
        let balancer =
            ["create", "get", "list", "update", "delete"].map(|verb| format!("loadbalancer_{verb}"));
        let monitor =
            ["create", "get", "update", "delete"].map(|verb| format!("loadbalancer_healthmonitor_{verb}"));
        let floating = ["create", "list", "update", "delete"].map(|verb| format!("floating_ip_{verb}"));
        let other = [
            "version_list",
            "loadbalancer_member_list",
            "loadbalancer_members_update",
            "network_list",
            "subnet_list",
            "port_list",
            "port_update",
            "port_tag_delete",
            "security_group_create",
            "security_group_delete",
            "security_group_rule_create",
            "security_group_rule_delete",
            "server_get",
            "server_list",
            "flavor_get",
            "router_get",
            "router_update",
            "network_extension_list",
        ];
        let made = listener
            .iter()
            .chain(&pool)
            .chain(&balancer)
            .chain(&monitor)
            .chain(&floating);
        for request in made.map(String::as_str).chain(other) {
            assert!(counted.contains(request), "{request}");
        }
    }

    #[test]
    fn no_two_calls_share_a_name() {
        let names: BTreeSet<_> = ALL.iter().map(|operation| operation.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
