//! Objects as the APIs write them.

use serde_json::{Map, Value, json};

use crate::behaviour::Spelling;
use crate::model::{Block, BlockStatus, Network, Server, Tag, TagName};
use crate::state::State;

pub(crate) fn server(state: &State, server: &Server) -> Value {
    let memberships = |it: &&Network| it.members.iter().any(|member| member.server == server.id);
    let networks: Vec<Value> = (state.networks.values())
        .filter(memberships)
        .map(|network| {
            let member = network.members.iter().find(|member| member.server == server.id);
            let ips = member.map(|member| &member.ips);
            json!({ "id": network.id, "ips": ips, "statusDescription": "assigned" })
        })
        .collect();
    let kind = match (
        server.private_addresses.is_empty(),
        server.public_addresses.is_empty(),
    ) {
        (false, false) => "PUBLIC_AND_PRIVATE",
        (false, true) => "PRIVATE_ONLY",
        (true, false) => "PUBLIC_ONLY",
        (true, true) => "NONE",
    };
    let mut value = json!({
        "id": server.id,
        "status": server.status,
        "hostname": server.hostname,
        "os": "ubuntu/jammy",
        "type": server.instance_type,
        "location": server.location,
        "cpu": "Dual Gold 6258R",
        "cpuCount": 2,
        "coresPerCpu": 28,
        "cpuFrequency": 2.7,
        "ram": "128GB RAM",
        "storage": "1x 1TB NVMe",
        "privateIpAddresses": server.private_addresses,
        "pricingModel": "HOURLY",
        "networkType": kind,
        "tags": tags(state, &server.tags),
        "provisionedOn": server.provisioned_on,
        "osConfiguration": {},
        "networkConfiguration": { "publicNetworkConfiguration": { "publicNetworks": networks } },
        "storageConfiguration": { "rootPartition": { "raid": "NO_RAID", "size": -1 } },
    });
    // Optional in the API: a server without public addresses does not have the field.
    if !server.public_addresses.is_empty() {
        value["publicIpAddresses"] = json!(server.public_addresses);
    }
    value
}

pub(crate) fn block(state: &State, block: &Block) -> Value {
    let status = match state.behaviour.spelling {
        Spelling::Words => block.status.words().to_owned(),
        spelling @ Spelling::Constants => spelling.apply(block.status.words()),
    };
    let cidr = block.shown_cidr.clone().unwrap_or_else(|| block.cidr.to_string());
    let mut value = json!({
        "id": block.id,
        "location": block.location,
        "cidrBlockSize": format!("/{}", block.cidr.prefix_len()),
        "cidr": cidr,
        "ipVersion": if block.cidr.addr().is_ipv6() { "V6" } else { "V4" },
        "tags": tags(state, &block.tags),
        "isSystemManaged": false,
        "isBringYourOwn": false,
        "createdOn": block.created_on,
    });
    // An empty word stands for a field that is not there.
    set(
        &mut value,
        "status",
        Some(status.as_str()).filter(|it| !it.is_empty()),
    );
    let is_hidden = block.status == BlockStatus::Assigning && !state.behaviour.assigning_names_network;
    if let Some(assignment) = block.assignment.as_ref().filter(|_| !is_hidden) {
        set(
            &mut value,
            "assignedResourceId",
            assignment.resource_id.as_deref(),
        );
        set(
            &mut value,
            "assignedResourceType",
            assignment.resource_type.as_deref(),
        );
    }
    set(&mut value, "description", block.description.as_deref());
    value
}

pub(crate) fn network(state: &State, network: &Network) -> Value {
    let blocks: Vec<Value> = state
        .blocks_of(&network.id)
        .map(|it| network_block(state, &network.id, it))
        .collect();
    let members: Vec<Value> = (network.members.iter())
        .map(|it| json!({ "resourceId": it.server, "resourceType": "server", "ips": it.ips }))
        .collect();
    json!({
        "id": network.id,
        "name": network.name,
        "location": network.location,
        "vlanId": network.vlan_id,
        "status": State::network_status(network),
        "createdOn": network.created_on,
        "raEnabled": false,
        "ipBlocks": blocks,
        "memberships": members,
    })
}

/// A block as its network shows it. The count is text in the API.
pub(crate) fn network_block(state: &State, network: &str, block: &Block) -> Value {
    let used = state.used_addresses(network, block.cidr).to_string();
    json!({ "id": block.id, "cidr": block.cidr, "usedIpsCount": used })
}

pub(crate) fn tag(state: &State, tag: &TagName) -> Value {
    let blocks = state
        .blocks
        .values()
        .map(|it| ("/ips/ip-blocks/", &it.id, &it.tags));
    let servers = state
        .servers
        .values()
        .map(|it| ("/bmc/servers/", &it.id, &it.tags));
    let (mut values, mut assignments) = (Vec::new(), Vec::new());
    for (path, id, tags) in blocks.chain(servers) {
        for assigned in tags.iter().filter(|it| it.name == tag.name) {
            let mut assignment = json!({ "resourceName": format!("{path}{id}") });
            set(&mut assignment, "value", assigned.value.as_deref());
            assignments.push(assignment);
            values.extend(assigned.value.as_deref());
        }
    }
    values.sort_unstable();
    values.dedup();
    let mut value = json!({
        "id": tag.id,
        "name": tag.name,
        "values": values,
        "isBillingTag": tag.is_billing,
        "createdBy": "USER",
        "resourceAssignments": assignments,
    });
    set(&mut value, "description", tag.description.as_deref());
    value
}

fn tags(state: &State, tags: &[Tag]) -> Vec<Value> {
    let one = |tag: &Tag| {
        let known = state.tags.get(&tag.name);
        let mut value = json!({
            "id": known.map(|it| it.id.as_str()),
            "name": tag.name,
            "isBillingTag": known.is_some_and(|it| it.is_billing),
            "createdBy": "USER",
        });
        set(&mut value, "value", tag.value.as_deref());
        value
    };
    tags.iter().map(one).collect()
}

/// Sets an optional field, or leaves it out.
fn set(value: &mut Value, field: &str, text: Option<&str>) {
    if let (Some(map), Some(text)) = (value.as_object_mut(), text) {
        Map::insert(map, field.to_owned(), Value::from(text));
    }
}
