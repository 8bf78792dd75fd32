//! The services, and the calls: names and paths, each once.

use std::time::Duration;

/// A service of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Servers: Nova.
    Compute,
    /// Networks: Neutron.
    Network,
    /// Load balancers: Octavia.
    LoadBalancer,
    /// Certificates: Barbican.
    KeyManager,
}

/// A kind of call, with its names in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its name in messages and in `cloud_api_requests_total`.
    pub name: &'static str,
    /// Its name in `openstack_api_requests_total` and its kin: that of the Go manager where it counts this call too.
    pub request: Option<&'static str>,
    /// Which service is asked.
    pub(crate) service: Service,
    /// The path below the service's endpoint.
    pub(crate) path: &'static str,
}

/// Is told of every call, whatever number of requests it took.
pub trait CallObserver: Send + Sync {
    /// A call with this name ended after this time. An absence that the caller can see as such is no failure.
    fn observe(&self, request: &'static str, took: Duration, has_failed: bool);
}

macro_rules! operations {
    ($($service:ident {$($name:ident = $text:literal at $path:literal $(counted $request:literal)?;)*})*) => {
        $($(pub(crate) const $name: Operation = Operation {
            name: $text,
            request: operations!(@request $($request)?),
            service: Service::$service,
            path: $path,
        };)*)*

        #[cfg(test)]
        const ALL: &[Operation] = &[$($($name),*),*];
    };
    (@request) => { None };
    (@request $request:literal) => { Some($request) };
}

// Calls on the way to a service.
pub(crate) const LOGIN: &str = "tokens.create";
pub(crate) const IDENTITY_VERSIONS: &str = "identity-versions.list";
pub(crate) const COMPUTE_VERSIONS: &str = "compute-versions.list";
pub(crate) const NETWORK_VERSIONS: &str = "network-versions.list";
pub(crate) const BALANCER_VERSIONS: &str = "load-balancer-versions.list";
pub(crate) const KEY_VERSIONS: &str = "key-manager-versions.list";

operations!(
    Compute {
        SERVERS_LIST = "servers.list" at "servers/detail" counted "server_list";
        SERVERS_GET = "servers.get" at "servers" counted "server_get";
        FLAVORS_LIST = "flavors.list" at "flavors" counted "flavor_list";
        FLAVORS_GET = "flavors.get" at "flavors" counted "flavor_get";
    }
    Network {
        EXTENSIONS_LIST = "extensions.list" at "extensions" counted "network_extension_list";
        NETWORKS_LIST = "networks.list" at "networks" counted "network_list";
        NETWORKS_GET = "networks.get" at "networks" counted "network_get";
        SUBNETS_LIST = "subnets.list" at "subnets" counted "subnet_list";
        PORTS_LIST = "ports.list" at "ports" counted "port_list";
        PORTS_GET = "ports.get" at "ports" counted "port_get";
        PORTS_UPDATE = "ports.update" at "ports" counted "port_update";
        PORTS_DELETE = "ports.delete" at "ports" counted "port_delete";
        PORT_TAGS_DELETE = "port-tags.delete" at "ports" counted "port_tag_delete";
        ROUTERS_GET = "routers.get" at "routers" counted "router_get";
        ROUTERS_UPDATE = "routers.update" at "routers" counted "router_update";
        ROUTERS_ADD_ROUTES = "routers.add-extraroutes" at "routers" counted "router_update";
        ROUTERS_REMOVE_ROUTES = "routers.remove-extraroutes" at "routers" counted "router_update";
        QUOTA_DETAILS_GET = "quota-details.get" at "quotas" counted "network_quota_get";
        FLOATING_IPS_LIST = "floating-ips.list" at "floatingips" counted "floating_ip_list";
        FLOATING_IPS_CREATE = "floating-ips.create" at "floatingips" counted "floating_ip_create";
        FLOATING_IPS_UPDATE = "floating-ips.update" at "floatingips" counted "floating_ip_update";
        FLOATING_IPS_DELETE = "floating-ips.delete" at "floatingips" counted "floating_ip_delete";
        SECURITY_GROUPS_LIST = "security-groups.list" at "security-groups" counted "security_group_list";
        SECURITY_GROUPS_CREATE = "security-groups.create" at "security-groups" counted "security_group_create";
        SECURITY_GROUPS_DELETE = "security-groups.delete" at "security-groups" counted "security_group_delete";
        SECURITY_GROUP_RULES_CREATE = "security-group-rules.create" at "security-group-rules" counted "security_group_rule_create";
        SECURITY_GROUP_RULES_DELETE = "security-group-rules.delete" at "security-group-rules" counted "security_group_rule_delete";
    }
    LoadBalancer {
        API_VERSIONS_LIST = "versions.list" at "" counted "version_list";
        LOAD_BALANCERS_LIST = "load-balancers.list" at "loadbalancers" counted "loadbalancer_list";
        LOAD_BALANCERS_GET = "load-balancers.get" at "loadbalancers" counted "loadbalancer_get";
        LOAD_BALANCERS_CREATE = "load-balancers.create" at "loadbalancers" counted "loadbalancer_create";
        LOAD_BALANCERS_UPDATE = "load-balancers.update" at "loadbalancers" counted "loadbalancer_update";
        LOAD_BALANCERS_DELETE = "load-balancers.delete" at "loadbalancers" counted "loadbalancer_delete";
        QUOTAS_GET = "load-balancer-quotas.get" at "quotas" counted "loadbalancer_quota_get";
        LISTENERS_LIST = "listeners.list" at "listeners" counted "loadbalancer_listener_list";
        LISTENERS_CREATE = "listeners.create" at "listeners" counted "loadbalancer_listener_create";
        LISTENERS_UPDATE = "listeners.update" at "listeners" counted "loadbalancer_listener_update";
        LISTENERS_DELETE = "listeners.delete" at "listeners" counted "loadbalancer_listener_delete";
        POOLS_LIST = "pools.list" at "pools" counted "loadbalancer_pool_list";
        POOLS_CREATE = "pools.create" at "pools" counted "loadbalancer_pool_create";
        POOLS_UPDATE = "pools.update" at "pools" counted "loadbalancer_pool_update";
        POOLS_DELETE = "pools.delete" at "pools" counted "loadbalancer_pool_delete";
        MEMBERS_LIST = "members.list" at "pools" counted "loadbalancer_member_list";
        MEMBERS_REPLACE = "members.replace" at "pools" counted "loadbalancer_members_update";
        MEMBERS_CREATE = "members.create" at "pools" counted "loadbalancer_member_create";
        MEMBERS_UPDATE = "members.update" at "pools" counted "loadbalancer_member_update";
        MEMBERS_DELETE = "members.delete" at "pools" counted "loadbalancer_member_delete";
        MONITORS_LIST = "health-monitors.list" at "healthmonitors" counted "loadbalancer_healthmonitor_list";
        MONITORS_GET = "health-monitors.get" at "healthmonitors" counted "loadbalancer_healthmonitor_get";
        MONITORS_CREATE = "health-monitors.create" at "healthmonitors" counted "loadbalancer_healthmonitor_create";
        MONITORS_UPDATE = "health-monitors.update" at "healthmonitors" counted "loadbalancer_healthmonitor_update";
        MONITORS_DELETE = "health-monitors.delete" at "healthmonitors" counted "loadbalancer_healthmonitor_delete";
    }
    KeyManager {
        CONTAINERS_GET = "containers.get" at "containers";
        SECRETS_GET = "secrets.get" at "secrets";
    }
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
