//! Objects as the API writes them.

use serde_json::{Map, Value, json};

use crate::jobs::Job;
use crate::model::{
    AclItem, AclList, FirewallRule, LoadBalancerRule, Network, Owner, PortForwarding, Project, PublicAddress,
    StickinessPolicy, Tag, Vpc, Zone,
};
use crate::state::State;

mod vm;

pub(crate) use vm::{Details, virtual_machine};

/// Leaves out what is `null`: the API has no nulls.
fn object(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, it)| !it.is_null()).collect()),
        other => other,
    }
}

/// Adds whose something is.
fn owned(state: &State, owner: Option<&Owner>, mut value: Value) -> Value {
    match owner {
        Some(Owner::Account(name)) => value["account"] = json!(name),
        Some(Owner::Project(id)) => {
            value["projectid"] = json!(id);
            value["project"] = json!(state.projects.get(id).map(|it| &it.name));
        }
        None => return value,
    }
    value["domainid"] = json!(state.home.domain);
    value["domain"] = json!("ROOT");
    value
}

pub(crate) fn zone_name<'s>(state: &'s State, id: &str) -> Option<&'s str> {
    state.zones.get(id).map(|zone| zone.name.as_str())
}

pub(crate) fn zone(zone: &Zone) -> Value {
    json!({ "id": zone.id, "name": zone.name, "networktype": "Advanced", "securitygroupsenabled": false,
            "allocationstate": "Enabled", "localstorageenabled": false, "tags": [] })
}

pub(crate) fn project(state: &State, project: &Project) -> Value {
    json!({ "id": project.id, "name": project.name, "displaytext": project.name, "state": "Active",
            "domainid": state.home.domain, "domain": "ROOT", "tags": [] })
}

pub(crate) fn management_server(state: &State) -> Value {
    json!({ "id": state.home.management_server, "name": "mgmt-1", "state": "Up",
            "version": state.behaviour.version, "agentcount": 2, "collectiontime": state.now() })
}

pub(crate) fn capability(state: &State) -> Value {
    json!({ "cloudstackversion": state.behaviour.version, "securitygroupsenabled": false, "supportELB": "false",
            "dynamicrolesenabled": true, "userpublictemplateenabled": true, "projectinviterequired": false,
            "allowusercreateprojects": true, "kvmsnapshotenabled": false,
            "apilimitmax": state.behaviour.rate_limit.map(|it| it.requests),
            "defaultuipagesize": 20 })
}

/// A service of a network. `balancer`: who balances.
fn service(name: &str, balancer: &str) -> Value {
    let provider = match name {
        "Lb" => json!([{ "name": balancer }]),
        _ => json!([{ "name": "VirtualRouter" }]),
    };
    let capability = match name {
        "Lb" => json!([
            { "name": "SupportedLbAlgorithms", "value": "roundrobin,leastconn,source", "canchooseservicecapability": false },
            { "name": "SupportedProtocols", "value": "tcp, udp, tcp-proxy, ssl", "canchooseservicecapability": false },
        ]),
        "SourceNat" => json!([
            { "name": "SupportedSourceNatTypes", "value": "peraccount", "canchooseservicecapability": false },
        ]),
        _ => json!([]),
    };
    json!({ "name": name, "capability": capability, "provider": provider })
}

pub(crate) fn network(state: &State, network: &Network) -> Value {
    let balancer = match (state.behaviour.takes_udp, &network.vpc) {
        (true, _) => "Netscaler",
        (false, Some(_)) => "VpcVirtualRouter",
        (false, None) => "VirtualRouter",
    };
    let services = network.services.iter().map(|name| service(name, balancer));
    let services: Vec<Value> = services.collect();
    let acl = network.acl.as_ref().and_then(|id| state.acl_lists.get(id));
    let value = json!({
        "id": network.id,
        "name": network.name,
        "displaytext": network.name,
        "type": network.kind,
        "traffictype": "Guest",
        "state": "Implemented",
        "zoneid": network.zone,
        "zonename": zone_name(state, &network.zone),
        "cidr": network.cidr.to_string(),
        "gateway": bowline_cloud_kit::addresses::first_host(network.cidr),
        "netmask": network.cidr.netmask(),
        "vpcid": network.vpc,
        "aclid": acl.map(|it| &it.id),
        "aclname": acl.map(|it| &it.name),
        "issystem": false,
        "canusefordeploy": true,
        "service": services,
        "tags": [],
    });
    owned(state, Some(&network.owner), object(value))
}

pub(crate) fn vpc(state: &State, vpc: &Vpc) -> Value {
    let value = json!({
        "id": vpc.id, "name": vpc.name, "displaytext": vpc.name, "state": "Enabled", "cidr": vpc.cidr.to_string(),
        "zoneid": vpc.zone, "zonename": zone_name(state, &vpc.zone), "tags": [],
    });
    owned(state, Some(&vpc.owner), object(value))
}

pub(crate) fn address(state: &State, address: &PublicAddress) -> Value {
    let has_rules = state.rules.values().any(|it| it.address == address.id)
        || state.forwardings.values().any(|it| it.address == address.id)
        || state.firewall.values().any(|it| it.address == address.id);
    let network = address.network.as_ref().and_then(|id| state.networks.get(id));
    let vm = address.static_nat.as_ref().and_then(|id| state.vms.get(id));
    let value = json!({
        "id": address.id,
        "ipaddress": address.address,
        "allocated": address.allocated,
        "state": address.state.name(),
        "zoneid": address.zone,
        "zonename": zone_name(state, &address.zone),
        "issourcenat": address.is_source_nat,
        "isstaticnat": address.static_nat.is_some(),
        "virtualmachineid": vm.map(|it| &it.id),
        "virtualmachinename": vm.map(|it| &it.name),
        "networkid": state.home.public_network,
        "associatednetworkid": network.map(|it| &it.id),
        "associatednetworkname": network.map(|it| &it.name),
        "vpcid": address.vpc,
        "forvirtualnetwork": true,
        "issystem": false,
        "hasrules": has_rules,
        "tags": tags(&address.tags, "PublicIpAddress", &address.id),
    });
    owned(state, address.owner.as_ref(), object(value))
}

pub(crate) fn rule(state: &State, rule: &LoadBalancerRule) -> Value {
    let address = state.addresses.get(&rule.address);
    let network = state.networks.get(&rule.network);
    let value = json!({
        "id": rule.id,
        "name": rule.name,
        "description": rule.description,
        "algorithm": rule.algorithm,
        "protocol": rule.protocol,
        "publicipid": rule.address,
        "publicip": address.map(|it| it.address),
        // Strings, unlike those of firewall rules.
        "publicport": rule.public_port.to_string(),
        "privateport": rule.private_port.to_string(),
        "networkid": rule.network,
        "cidrlist": rule.cidrs,
        "state": rule.state.name(),
        "zoneid": network.map(|it| &it.zone),
        "zonename": network.and_then(|it| zone_name(state, &it.zone)),
        "tags": tags(&rule.tags, "LoadBalancer", &rule.id),
    });
    owned(state, Some(&rule.owner), object(value))
}

/// The policies of a rule. Of a parameter that was sent several times the values stand in one text, the last one first.
pub(crate) fn policies<'a>(
    state: &State,
    rule: &LoadBalancerRule,
    shown: impl Iterator<Item = &'a StickinessPolicy>,
) -> Value {
    let policy = |it: &StickinessPolicy| {
        let mut params: Map<String, Value> = Map::new();
        for (name, value) in &it.params {
            let text = match params.get(name).and_then(Value::as_str) {
                Some(before) => format!("{value}:{before}"),
                None => value.clone(),
            };
            params.insert(name.clone(), json!(text));
        }
        object(json!({
            "id": it.id, "name": it.name, "methodname": it.method, "params": params, "fordisplay": true,
            "state": it.is_revoked.then_some("Revoked"),
        }))
    };
    let shown: Vec<Value> = shown.map(policy).collect();
    owned(
        state,
        Some(&rule.owner),
        json!({ "lbruleid": rule.id, "stickinesspolicy": shown }),
    )
}

/// What the end of a job that creates a policy shows.
pub(crate) fn created_policy(state: &State, rule: &str, policy: &str) -> Value {
    let Some(found) = state.rules.get(rule) else {
        return json!({});
    };
    let shown = found.policies.iter().filter(|known| known.id == policy);
    json!({ "stickinesspolicies": policies(state, found, shown) })
}

pub(crate) fn firewall_rule(state: &State, rule: &FirewallRule) -> Value {
    let is_icmp = rule.protocol == "icmp";
    object(json!({
        "id": rule.id,
        "protocol": rule.protocol,
        "startport": rule.ports.map(|it| it.0),
        "endport": rule.ports.map(|it| it.1),
        "icmptype": is_icmp.then_some(-1),
        "icmpcode": is_icmp.then_some(-1),
        "ipaddressid": rule.address,
        "ipaddress": state.addresses.get(&rule.address).map(|it| it.address),
        "networkid": rule.network,
        "cidrlist": rule.cidrs.join(","),
        "state": rule.state.name(),
        "traffictype": "Ingress",
        "tags": tags(&rule.tags, "FirewallRule", &rule.id),
    }))
}

pub(crate) fn port_forwarding(state: &State, rule: &PortForwarding) -> Value {
    object(json!({
        "id": rule.id,
        "protocol": "tcp",
        "publicport": rule.ports.0.to_string(),
        "publicendport": rule.ports.1.to_string(),
        "privateport": rule.ports.0.to_string(),
        "privateendport": rule.ports.1.to_string(),
        "ipaddressid": rule.address,
        "ipaddress": state.addresses.get(&rule.address).map(|it| it.address),
        "virtualmachineid": rule.vm,
        "networkid": rule.network,
        "state": "Active",
        "tags": [],
    }))
}

pub(crate) fn acl_list(list: &AclList) -> Value {
    object(
        json!({ "id": list.id, "name": list.name, "description": list.name, "vpcid": list.vpc, "fordisplay": true }),
    )
}

pub(crate) fn acl_item(state: &State, item: &AclItem) -> Value {
    object(json!({
        "id": item.id,
        "protocol": item.protocol,
        "startport": item.ports.map(|it| it.0.to_string()),
        "endport": item.ports.map(|it| it.1.to_string()),
        "cidrlist": item.cidrs.join(","),
        "traffictype": if item.is_ingress { "Ingress" } else { "Egress" },
        "action": if item.is_allow { "Allow" } else { "Deny" },
        "number": item.number,
        "aclid": item.list,
        "aclname": state.acl_lists.get(&item.list).map(|it| &it.name),
        "reason": item.reason,
        "state": item.state.name(),
        "fordisplay": true,
        "tags": [],
    }))
}

pub(crate) fn tags(tags: &[Tag], kind: &str, id: &str) -> Vec<Value> {
    let show =
        |tag: &Tag| json!({ "key": tag.key, "value": tag.value, "resourcetype": kind, "resourceid": id });
    tags.iter().map(show).collect()
}

/// A job as a poll is told.
pub(crate) fn job(job: &Job) -> Value {
    let operation = job.order.operation;
    let mut name = operation.name().to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mut value = Map::new();
    let mut set = |key: &str, field: Value| value.insert(key.to_owned(), field);
    set("userid", json!(job.order.user));
    set(
        "cmd",
        json!(format!(
            "org.apache.cloudstack.api.command.user.{}.{name}Cmd",
            operation.package()
        )),
    );
    set("jobid", json!(job.id));
    set("jobprocstatus", json!(0));
    set("created", json!(job.created));
    if let Some((kind, id)) = &job.order.instance {
        set("jobinstancetype", json!(kind));
        set("jobinstanceid", json!(id));
    }
    let (status, code, result) = match job.told() {
        None => (0, 0, None),
        Some(Ok(result)) => (1, 0, Some(result.clone())),
        Some(Err(error)) => {
            let result = json!({ "errorcode": error.code, "errortext": error.text });
            (2, error.code, Some(result))
        }
    };
    set("jobstatus", json!(status));
    set("jobresultcode", json!(code));
    if let Some(result) = result {
        set("completed", json!(job.completed));
        set("jobresulttype", json!("object"));
        set("jobresult", result);
    }
    Value::Object(value)
}
