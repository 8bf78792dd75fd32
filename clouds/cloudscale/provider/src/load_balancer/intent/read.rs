//! Reads a Service, and says everything that is wrong with it in one text.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::k8s::{Service, ServicePort};
use bowline_cloud_provider::{IpMode, ServerVersion, ServiceFacts, facts, spelling};
use bowline_cloudscale_client::{LoadBalancerId, Tags};
use bowline_plan::{Note, Refusal};
use ipnet::IpNet;
use serde::Deserialize;

use crate::load_balancer::annotations::{self as keys, Fields, Reader};
use crate::load_balancer::floating_ips;
use crate::load_balancer::intent::{
    Backend, Identity, Intent, ListenerSettings, Port, Publish, VipWish, Wanted, cluster_name,
};
use crate::load_balancer::names;
use crate::messages::IGNORED_ANNOTATIONS;
use crate::nodes::provider_id;

mod ignored;
mod membership;
mod monitor;

use crate::load_balancer::intent::read::ignored::ignored_fields;
use crate::load_balancer::intent::read::membership::membership;
use crate::load_balancer::intent::read::monitor::{monitor, warn_of_udp};

/// The first API server that knows `ipMode`.
const IP_MODE_SINCE: ServerVersion = ServerVersion { major: 1, minor: 30 };

/// The only version of defaults.
const CONFIG_VERSION: &str = "1";

/// What is told of a served Service where it cannot be read who is a member.
const MEMBERS_STAY: &str = "until the node selector and the allowed subnets can be read, the members of the load balancer do not follow the Nodes";

/// What reading needs besides the facts.
pub(crate) struct Context<'a> {
    /// The annotation of Nodes that names their cluster.
    pub(crate) cluster_name_annotation: &'a str,
}

/// Reads what is asked for: as a whole, or, where something is wrong with a Service that is served, as far as it goes. Members then
/// follow the nodes, unless just that is wrong which decides who is a member.
pub(crate) fn read(context: &Context<'_>, facts: &ServiceFacts) -> Result<Intent, Refusal> {
    let service = &*facts.service;
    if !facts.is_wanted {
        return Ok(Intent::Absent(absent(context, facts)));
    }
    let classes = facts.services.classes();
    if let Some(class) = facts::class(service).filter(|_| !classes.serves(service)) {
        return Err(Refusal::new(format!("not supported LoadBalancerClass: {class}")));
    }
    let mut reader = Reader::new(service);
    let wanted = wanted(context, facts, &mut reader);
    let problems = reader.into_problems();
    let refusal = Refusal::new(problems.join("; "));
    // Nobody but the service controller shows an address: then something was made, and settled.
    let is_served = !facts::published_addresses(service).is_empty();
    match wanted {
        Some(wanted) if problems.is_empty() => Ok(Intent::Wanted(Box::new(wanted))),
        Some(wanted) if is_served => Ok(Intent::Unclear(Box::new(wanted.unclear(refusal)))),
        None if is_served => Err(refusal.with_remedy(MEMBERS_STAY)),
        _ => Err(refusal),
    }
}

/// Who is to go. Nothing here can fail: a typo must not block a removal.
fn absent(context: &Context<'_>, facts: &ServiceFacts) -> Identity {
    let service = &*facts.service;
    let (cluster_name, _) = cluster_name::cluster_name(
        &facts.cluster,
        facts.nodes.iter().map(|node| &**node),
        context.cluster_name_annotation,
    );
    Identity {
        annotated: annotated(service),
        adopts_unmarked: !facts.services.classes().leaves_to_others(service),
        ..identity(facts, cluster_name)
    }
}

fn identity(facts: &ServiceFacts, cluster_name: Option<String>) -> Identity {
    let service = &*facts.service;
    let uid = service.metadata.uid.clone().unwrap_or_default();
    Identity {
        service: service.metadata.name.clone().unwrap_or_default(),
        annotated: None,
        is_published: !facts::published_addresses(service).is_empty(),
        name: effective_name(service),
        adopts_unmarked: true,
        cluster_name,
        services: Arc::clone(&facts.services),
        uid,
    }
}

/// The name of a Service's balancer.
pub(crate) fn effective_name(service: &Service) -> String {
    facts::annotation(service, keys::NAME.key).map_or_else(
        || names::balancer(service.metadata.uid.as_deref().unwrap_or_default()),
        ToOwned::to_owned,
    )
}

/// The balancer that a Service names by its UUID.
pub(crate) fn annotated(service: &Service) -> Option<LoadBalancerId> {
    facts::annotation(service, keys::UUID.key)
        .and_then(provider_id::parse_uuid)
        .map(LoadBalancerId)
}

/// What is asked for; something without a meaning stands where the reader has a problem. `None` if who may be a member cannot be read.
fn wanted(context: &Context<'_>, facts: &ServiceFacts, reader: &mut Reader<'_>) -> Option<Wanted> {
    let service = &*facts.service;
    let mut notes = Vec::new();
    let (cluster_name, note) = cluster_name::cluster_name(
        &facts.cluster,
        facts.nodes.iter().map(|node| &**node),
        context.cluster_name_annotation,
    );
    notes.extend(note);
    let identity = Identity {
        annotated: annotated(service),
        ..identity(facts, cluster_name)
    };
    let uuid = reader.text(&keys::UUID);
    if !uuid.is_empty() && identity.annotated.is_none() {
        reader.problem(format!("not a UUID: {uuid} ({})", keys::UUID.key));
    }
    if identity.name.trim().is_empty() {
        reader.problem(format!(
            "unable to get load balancer for {}: no load balancer with empty name found ({} must not be blank)",
            identity.service,
            keys::NAME.key
        ));
    }
    let version = reader.text(&keys::CONFIG_VERSION);
    if version != CONFIG_VERSION {
        reader.problem(format!(
            "unsupported config version '{version}', must be '{CONFIG_VERSION}' ({})",
            keys::CONFIG_VERSION.key
        ));
    }
    let floating_ips::Wishes {
        addresses: floating_ips,
        networks: floating_networks,
    } = floating_ips(reader);
    let conflict = floating_ips::conflict(service, &floating_ips, &*facts.services);
    let membership = membership(facts, reader, &mut notes);
    let ports = ports(service, reader);
    let monitor = monitor(service, reader, &mut notes);
    warn_of_udp(service, reader, &monitor, &mut notes);
    notes.extend(ignored_fields(service));
    notes.extend(unknown(reader));
    let written = [keys::UUID.key, keys::CONFIG_VERSION.key, keys::ZONE.key]
        .into_iter()
        .filter_map(|key| Some((key, facts::annotation(service, key)?.to_owned())))
        .collect();
    let tags = tags(&identity);
    let (vips, listener, publish) = (vips(reader), listener(reader), publish(facts, reader));
    // Only now, so that everything that is wrong has been found.
    let membership = membership?;
    Some(Wanted {
        flavor: reader.text(&keys::FLAVOR).to_owned(),
        zone: Some(reader.text(&keys::ZONE).to_owned()).filter(|zone| !zone.is_empty()),
        vips,
        listener,
        membership,
        balancer_tags: Arc::new(tags.clone().into_iter().chain(origin(facts)).collect()),
        tags: Arc::new(tags),
        publish,
        identity,
        floating_ips,
        floating_networks,
        conflict,
        ports,
        monitor,
        written,
        notes,
    })
}

fn tags(identity: &Identity) -> Tags {
    let uid =
        Some((names::TAG_SERVICE_UID.to_owned(), identity.uid.clone())).filter(|(_, uid)| !uid.is_empty());
    let cluster = identity
        .cluster_name
        .clone()
        .map(|name| (names::TAG_CLUSTER_NAME.to_owned(), name));
    uid.into_iter().chain(cluster).collect()
}

/// What proves, together, that this cluster made a balancer, and for which Service: it is asked for by its name later.
fn origin(facts: &ServiceFacts) -> Tags {
    let tags = |cluster_uid| {
        [
            (names::TAG_CLUSTER_UID.to_owned(), cluster_uid),
            (names::TAG_SERVICE_NAME.to_owned(), facts.key().to_string()),
        ]
    };
    facts.services.cluster_uid().into_iter().flat_map(tags).collect()
}

fn floating_ips(reader: &mut Reader<'_>) -> floating_ips::Wishes {
    let parsed = keys::parse_list(reader.text(&keys::FLOATING_IPS))
        .map_err(|error| error.to_string())
        .and_then(|texts| floating_ips::parse(&texts));
    parsed.unwrap_or_else(|error| {
        reader.problem_of(
            &keys::FLOATING_IPS,
            &format!("could not parse {}: {error}", keys::FLOATING_IPS.key),
        );
        floating_ips::Wishes::default()
    })
}

#[derive(Deserialize)]
struct VipJson {
    subnet: Option<String>,
    address: Option<String>,
}

fn vips(reader: &mut Reader<'_>) -> Vec<VipWish> {
    let listed: Option<Option<Vec<Fields<VipJson>>>> = reader.json(&keys::VIP_ADDRESSES, "failed to parse");
    let mut vips = Vec::new();
    for Fields(VipJson { subnet, address }) in listed.flatten().unwrap_or_default() {
        let address = address.filter(|text| !text.is_empty()).and_then(|text| {
            let parsed = text.parse::<IpAddr>();
            if parsed.is_err() {
                reader.problem(format!(
                    "failed to parse {}: `{text}` is not an IP address",
                    keys::VIP_ADDRESSES.key
                ));
            }
            parsed.ok()
        });
        vips.push(VipWish {
            subnet: subnet.filter(|text| !text.is_empty()),
            address,
        });
    }
    vips
}

fn listener(reader: &mut Reader<'_>) -> ListenerSettings {
    let mut allowed_cidrs = Vec::new();
    for text in reader.list(&keys::LISTENER_ALLOWED_CIDRS).unwrap_or_default() {
        // In its one spelling, each once: the API may keep no other, or refuse the bits of a host.
        let cidr = spelling::of_network(&text);
        if cidr.parse::<IpNet>().is_err() {
            reader.problem(format!(
                "`{text}` is not a network in CIDR notation, such as 192.0.2.0/24 ({})",
                keys::LISTENER_ALLOWED_CIDRS.key
            ));
        }
        if !allowed_cidrs.contains(&cidr) {
            allowed_cidrs.push(cidr);
        }
    }
    ListenerSettings {
        allowed_cidrs,
        timeout_client_data_ms: reader.int(&keys::TIMEOUT_CLIENT_DATA),
        timeout_member_connect_ms: reader.int(&keys::TIMEOUT_MEMBER_CONNECT),
        timeout_member_data_ms: reader.int(&keys::TIMEOUT_MEMBER_DATA),
    }
}

fn ports(service: &Service, reader: &mut Reader<'_>) -> Vec<Port> {
    let algorithm = reader.word(&keys::POOL_ALGORITHM);
    let pool_protocol = reader.word(&keys::POOL_PROTOCOL);
    let listener_protocol = reader.word(&keys::LISTENER_PROTOCOL);
    let health_check = facts::health_check_node_port(service);
    let mut ports = Vec::new();
    for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let (pool_protocol, listener_protocol) = match protocol {
            "TCP" => (pool_protocol, listener_protocol),
            "UDP" => ("udp", "udp"),
            other => {
                reader.problem(format!(
                    "service {name}: cannot use {other} for {}, only TCP and UDP are supported",
                    port.port
                ));
                continue;
            }
        };
        let (Some(number), Some(node_port)) = (valid_port(port.port), node_port(port)) else {
            // The Go manager says the first half only.
            reader.problem(format!(
                "service {name}: unknown port: {}; port {} has no node port, which members listen on; set \
                 spec.allocateLoadBalancerNodePorts to true",
                port.node_port.unwrap_or_default(),
                port.port
            ));
            continue;
        };
        ports.push(Port {
            backend: Backend {
                pool_name: names::pool(protocol, port.name.as_deref().unwrap_or_default()),
                node_port,
                monitor_port: health_check.unwrap_or(node_port),
            },
            algorithm: algorithm.into(),
            pool_protocol: pool_protocol.into(),
            listener_name: names::listener(listener_protocol, number),
            listener_protocol: listener_protocol.into(),
            port: number,
        });
    }
    ports
}

fn valid_port(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}

fn node_port(port: &ServicePort) -> Option<u16> {
    port.node_port.and_then(valid_port)
}

/// One note for both, so that the Service has one event of this reason.
fn unknown(reader: &Reader<'_>) -> Option<Note> {
    let (annotations, fields) = (reader.unknown().join(", "), reader.unknown_fields().join(", "));
    let sentences: Vec<String> = [("annotations", annotations), ("fields", fields)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("unknown {what} have no effect: {names}"))
        .collect();
    (!sentences.is_empty()).then(|| IGNORED_ANNOTATIONS.note(sentences.join("; ")))
}

fn publish(facts: &ServiceFacts, reader: &mut Reader<'_>) -> Publish {
    let hostname = reader.text(&keys::FORCE_HOSTNAME);
    if !hostname.is_empty() {
        return Publish::Hostname(hostname.to_owned());
    }
    let mode = match reader.text(&keys::IP_MODE) {
        "Proxy" => IpMode::Proxy,
        "VIP" => IpMode::Vip,
        other => {
            reader.problem(format!(
                "unsupported IP mode: '{other}', must be 'Proxy' or 'VIP' ({})",
                keys::IP_MODE.key
            ));
            IpMode::Proxy
        }
    };
    // A version that could not be read is taken for a new one: all supported API servers know the field.
    let has_mode = facts
        .cluster
        .server_version
        .is_none_or(|version| version >= IP_MODE_SINCE);
    Publish::Addresses(has_mode.then_some(mode))
}

#[cfg(test)]
mod tests;
