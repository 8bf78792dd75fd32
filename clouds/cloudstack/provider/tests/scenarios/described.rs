//! What a request may have in it.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloudstack_sim::kit::Entry;

/// What the API's description lists for each command; `projectid`, `listall`, `page` and `pagesize` go with every list.
fn documented() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    [
        (
            "listVirtualMachines",
            &["id", "ids", "name", "networkid", "state", "details"][..],
        ),
        ("listNetworks", &["id"]),
        (
            "listPublicIpAddresses",
            &["id", "ipaddress", "allocatedonly", "state", "zoneid"],
        ),
        (
            "associateIpAddress",
            &["networkid", "vpcid", "ipaddress", "projectid"],
        ),
        ("disassociateIpAddress", &["id"]),
        (
            "listLoadBalancerRules",
            &["keyword", "publicipid", "id", "name", "networkid"],
        ),
        (
            "createLoadBalancerRule",
            &[
                "algorithm",
                "name",
                "privateport",
                "publicport",
                "networkid",
                "publicipid",
                "protocol",
                "openfirewall",
                "cidrlist",
            ],
        ),
        (
            "updateLoadBalancerRule",
            &["id", "algorithm", "protocol", "cidrlist", "name"],
        ),
        ("deleteLoadBalancerRule", &["id"]),
        ("assignToLoadBalancerRule", &["id", "virtualmachineids"]),
        ("removeFromLoadBalancerRule", &["id", "virtualmachineids"]),
        ("listLoadBalancerRuleInstances", &["id"]),
        ("listFirewallRules", &["ipaddressid"]),
        (
            "createFirewallRule",
            &["ipaddressid", "protocol", "cidrlist", "startport", "endport"],
        ),
        ("deleteFirewallRule", &["id"]),
        ("listPortForwardingRules", &["ipaddressid"]),
        ("listNetworkACLLists", &["id"]),
        ("listNetworkACLs", &["aclid", "networkid"]),
        (
            "createNetworkACL",
            &[
                "protocol",
                "aclid",
                "action",
                "cidrlist",
                "startport",
                "endport",
                "networkid",
                "traffictype",
            ],
        ),
        ("deleteNetworkACL", &["id"]),
        ("listLBStickinessPolicies", &["lbruleid"]),
        (
            "createLBStickinessPolicy",
            &["lbruleid", "methodname", "name", "param"],
        ),
        ("deleteLBStickinessPolicy", &["id"]),
        ("queryAsyncJobResult", &["jobid"]),
        ("listManagementServersMetrics", &[]),
        ("listCapabilities", &[]),
    ]
    .into_iter()
    .map(|(command, parameters)| (command, parameters.iter().copied().collect()))
    .collect()
}

/// What requests have in them that the API does not describe.
pub(crate) fn undescribed(requests: &[Entry]) -> Vec<String> {
    let known = documented();
    let of = |request: &Entry| {
        let body = request.body.as_ref().and_then(serde_json::Value::as_object);
        let names = request.query.iter().map(|(name, _)| name.as_str());
        let names = names.chain(body.into_iter().flat_map(|body| body.keys().map(String::as_str)));
        let command = request.operation.as_str();
        let is_described = |name: &str| {
            let name = name.split_once('[').map_or(name, |(name, _)| name);
            ALWAYS.contains(&name)
                || known.get(command).is_some_and(|names| names.contains(name))
                || (command.starts_with("list") && OF_LISTS.contains(&name))
        };
        let odd = names.filter(|name| !is_described(name));
        odd.map(|name| format!("{command}: {name}")).collect::<Vec<_>>()
    };
    requests.iter().flat_map(of).collect()
}

const ALWAYS: [&str; 6] = [
    "apiKey",
    "command",
    "response",
    "signatureversion",
    "expires",
    "signature",
];
const OF_LISTS: [&str; 4] = ["listall", "projectid", "page", "pagesize"];
