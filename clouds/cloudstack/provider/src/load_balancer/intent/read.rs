//! Reads a Service, and says everything that is wrong with it in one text.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{IpMode, Node, ServerVersion, Service, ServiceFacts, facts};
use bowline_plan::{Note, Refusal};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::ServiceSpec;

use super::{Absent, Identity, Intent, Port, Wanted, WantedNode};
use crate::annotations::{self, ADDRESS, HOSTNAME, IP_MODE, KEEP_IP, PROXY_PROTOCOL, SOURCE_CIDRS};
use crate::cidrs::Sources;
use crate::claim::Claim;
use crate::events::{IGNORED_ANNOTATIONS, IGNORED_FIELDS, NO_SOURCE_CIDRS};
use crate::fingerprint::fingerprint;
use crate::names::{self, Protocol};
use crate::objects::Algorithm;
use crate::provider_id;
use crate::replaced::ReplacedRules;

/// The first API server that knows `ipMode` without a feature gate.
const IP_MODE_SINCE: ServerVersion = ServerVersion { major: 1, minor: 30 };

/// Reads what is asked for.
pub(crate) fn read(facts: &ServiceFacts) -> Result<Intent, Refusal> {
    let service = &*facts.service;
    let identity = identity(facts)?;
    let mut problems = Vec::new();
    let sources = source_ranges(service, &mut problems);
    let empty = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&empty);
    let ports = ports(service, spec, &identity.name, &mut problems);
    if !facts.is_wanted {
        // A typo must not keep anything from going.
        return Ok(Intent::Absent(Box::new(Absent {
            identity,
            sources,
            ingress_ports: ports.iter().map(Port::ingress).collect(),
            nodes: nodes(facts),
        })));
    }
    let mut notes = notes(service, spec);
    let cidrs = source_cidrs(service, &mut problems, &mut notes);
    let affinity = spec.session_affinity.as_deref().unwrap_or_default();
    let algorithm = match affinity {
        "None" => Algorithm::RoundRobin,
        "ClientIP" => Algorithm::Source,
        other => {
            problems.push(format!("unsupported load balancer affinity: {other}"));
            Algorithm::RoundRobin
        }
    };
    let ip_mode = ip_mode(facts, &mut problems);
    let refusal = (!problems.is_empty()).then(|| Refusal::new(problems.join("; ")));
    if let Some(refusal) = &refusal
        && facts::published_addresses(service).is_empty()
    {
        return Err(refusal.clone());
    }
    let hostname = annotations::text(service, &HOSTNAME);
    Ok(Intent::Wanted(Box::new(Wanted {
        identity,
        ports,
        algorithm,
        cidrs,
        says_cidrs: facts::annotation(service, SOURCE_CIDRS.key).is_some(),
        sources,
        nodes: nodes(facts),
        asked: asked(service),
        hostname: Some(hostname.to_owned()).filter(|name| !name.is_empty()),
        ip_mode,
        notes,
        refusal,
    })))
}

fn identity(facts: &ServiceFacts) -> Result<Identity, Refusal> {
    let service = &*facts.service;
    let uid = service.metadata.uid.clone().unwrap_or_default();
    if uid.is_empty() {
        // Its rules would bear a name that every Service has.
        return Err(Refusal::new("the service has no UID"));
    }
    Ok(Identity {
        name: names::balancer(&uid),
        uid,
        requested: requested(service).map(str::to_owned),
        published: facts::published_addresses(service),
        stays: service.metadata.deletion_timestamp.is_none(),
        keeps_ip: annotations::flag(service, &KEEP_IP),
        claim: Claim::of(service),
        replaced: ReplacedRules::on(service),
        services: Arc::clone(&facts.services),
        now: facts.now,
    })
}

/// What people wrote on a Service, as a number.
fn asked(service: &Service) -> u64 {
    let spec = serde_json::to_string(&service.spec).unwrap_or_default();
    let annotations = service.metadata.annotations.iter().flatten();
    let of_people = annotations.filter(|(key, _)| !annotations::is_written(key));
    let annotations = of_people.flat_map(|(key, value)| [key.as_str(), value]);
    fingerprint(std::iter::once(spec.as_str()).chain(annotations))
}

/// The address that a Service asks for: the annotation goes before the field, which Kubernetes deprecates.
pub(crate) fn requested(service: &Service) -> Option<&str> {
    let spec = service.spec.as_ref();
    let field = spec.and_then(|spec| spec.load_balancer_ip.as_deref());
    let both = [annotations::text(service, &ADDRESS), field.unwrap_or_default()];
    both.map(str::trim).into_iter().find(|ip| !ip.is_empty())
}

fn nodes(facts: &ServiceFacts) -> Vec<WantedNode> {
    let wanted = |node: &Arc<Node>| WantedNode {
        node: node.name.as_str().to_owned(),
        instance_id: node.provider_id.as_deref().and_then(provider_id::instance_id),
    };
    facts.nodes.iter().map(wanted).collect()
}

fn ports(service: &Service, spec: &ServiceSpec, balancer: &str, problems: &mut Vec<String>) -> Vec<Port> {
    let is_proxied = annotations::flag(service, &PROXY_PROTOCOL);
    let number = |port: i32| u16::try_from(port).ok().filter(|port| *port != 0);
    let mut ports = Vec::new();
    let mut ingress_ports = BTreeSet::new();
    for port in spec.ports.iter().flatten() {
        let protocol = match port.protocol.as_deref() {
            Some("TCP") if is_proxied => Protocol::TcpProxy,
            Some("TCP") => Protocol::Tcp,
            Some("UDP") => Protocol::Udp,
            other => {
                let other = other.unwrap_or_default();
                problems.push(format!("unsupported load balancer protocol: {other}"));
                continue;
            }
        };
        let Some(public) = number(port.port) else {
            problems.push(format!("port {} cannot be balanced", port.port));
            continue;
        };
        let Some(node_port) = port.node_port.and_then(number) else {
            problems.push(format!(
                "port {public} has no node port, which a load balancer rule leads to; set spec.allocateLoadBalancerNodePorts to true"
            ));
            continue;
        };
        let port = Port {
            name: names::rule(balancer, protocol, public),
            protocol,
            port: public,
            node_port,
        };
        if !ingress_ports.insert(port.ingress()) {
            problems.push(format!("port {public} is asked for twice as {protocol}"));
        }
        ports.push(port);
    }
    if ports.is_empty() && problems.is_empty() {
        problems.push("requested load balancer with no ports".to_owned());
    }
    ports
}

/// How Nodes shall treat the address, if that is asked for and the API server knows of it.
fn ip_mode(facts: &ServiceFacts, problems: &mut Vec<String>) -> Option<IpMode> {
    let mode = match annotations::text(&facts.service, &IP_MODE) {
        "" => return None,
        "Proxy" => IpMode::Proxy,
        "VIP" => IpMode::Vip,
        other => {
            let key = IP_MODE.key;
            problems.push(format!(
                "annotation {key} is `{other}`, and only `Proxy` or `VIP` can be"
            ));
            return None;
        }
    };
    // A version that could not be read is taken for a new one: all supported API servers know the field.
    let version = facts.cluster.server_version;
    version
        .is_none_or(|version| version >= IP_MODE_SINCE)
        .then_some(mode)
}

/// The networks of the annotation. Host bits may be set and are sent as they are.
fn source_cidrs(service: &Service, problems: &mut Vec<String>, notes: &mut Vec<Note>) -> Sources {
    let text = annotations::text(service, &SOURCE_CIDRS);
    // A blank is no word for everybody: what stood there was lost, and nothing is opened for that.
    let written = service.metadata.annotations.iter().flatten();
    let is_blank = |(key, value): (&String, &String)| key == SOURCE_CIDRS.key && !value.is_empty();
    if text.is_empty() && !written.into_iter().any(is_blank) {
        notes.push(NO_SOURCE_CIDRS.note(format!(
            "annotation {} is empty, which restricts nothing",
            SOURCE_CIDRS.key
        )));
        return Sources::new([]);
    }
    let place = format!("annotation {}", SOURCE_CIDRS.key);
    cidrs(text.split(','), &place, problems)
}

/// Whom the firewall or the network ACL lets in. Addresses are IPv4, so nobody comes from a network of IPv6. Servers refuse these, or
/// take them for a router that has no use for them.
pub(super) fn source_ranges(service: &Service, problems: &mut Vec<String>) -> Sources {
    let spec = service.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.load_balancer_source_ranges.as_deref());
    let ranges = ranges.unwrap_or_default().iter().map(String::as_str);
    if ranges.len() == 0 {
        return Sources::everything();
    }
    let all = cidrs(ranges, SOURCE_RANGES, problems);
    let usable: Vec<String> = all.texts.iter().filter(|text| !is_ipv6(text)).cloned().collect();
    if usable.is_empty() && !all.texts.is_empty() {
        problems.push(format!(
            "{SOURCE_RANGES} has networks of IPv6 only, and nobody reaches an address of IPv4 from these"
        ));
    }
    Sources::new(usable)
}

const SOURCE_RANGES: &str = "spec.loadBalancerSourceRanges";

fn is_ipv6(network: &str) -> bool {
    matches!(network.parse(), Ok(IpNet::V6(_)))
}

fn cidrs<'a>(items: impl Iterator<Item = &'a str>, place: &str, problems: &mut Vec<String>) -> Sources {
    let mut texts = Vec::new();
    for item in items.map(str::trim) {
        match check_cidr(item) {
            Ok(()) => texts.push(item.to_owned()),
            Err(error) => problems.push(format!("invalid CIDR {item} in {place}: {error}")),
        }
    }
    Sources::new(texts)
}

/// Whether the cloud takes a network as it is written.
fn check_cidr(text: &str) -> Result<(), String> {
    text.parse::<IpNet>().map_err(|error| error.to_string())?;
    let (address, _) = text.split_once('/').unwrap_or((text, ""));
    // Octets with leading zeros are decimal to some and octal to others, so the parser of the standard library takes none.
    match address.parse::<IpAddr>() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{error}; leading zeros are not allowed")),
    }
}

/// What has no effect, or not the one that was meant.
fn notes(service: &Service, spec: &ServiceSpec) -> Vec<Note> {
    let mut notes = Vec::new();
    for (flag, effect) in [
        (PROXY_PROTOCOL, "switch the PROXY protocol on"),
        (KEEP_IP, "keep the address"),
    ] {
        if let Some(value) = annotations::misread_flag(service, &flag) {
            let key = flag.key;
            notes.push(IGNORED_ANNOTATIONS.note(format!(
                "annotation {key} has the value `{value}`, which does not {effect}; only `true` does"
            )));
        }
    }
    let unknown = annotations::unknown_keys(service);
    if !unknown.is_empty() {
        notes.push(IGNORED_ANNOTATIONS.note(format!(
            "unknown annotations have no effect: {}",
            unknown.join(", ")
        )));
    }
    let mut ignored = Vec::new();
    let affinity = spec.session_affinity_config.as_ref();
    let client = affinity.and_then(|config| config.client_ip.as_ref());
    let timeout = client.and_then(|client| client.timeout_seconds);
    // The API server fills in its default.
    if timeout.is_some_and(|seconds| seconds != DEFAULT_AFFINITY_SECONDS) {
        ignored.push("spec.sessionAffinityConfig (the cloud sets no time)");
    }
    if facts::is_local_traffic_only(service) {
        ignored
            .push("spec.externalTrafficPolicy Local (the cloud does not check which nodes have endpoints)");
    }
    let ranges = spec.load_balancer_source_ranges.iter().flatten();
    if ranges.map(|range| range.trim()).any(is_ipv6) {
        ignored.push("networks of IPv6 in spec.loadBalancerSourceRanges (addresses are IPv4)");
    }
    if facts::has_source_ranges_annotation(service) {
        ignored.push("annotation service.beta.kubernetes.io/load-balancer-source-ranges (give the networks in spec.loadBalancerSourceRanges)");
    }
    if spec.ip_families.iter().flatten().any(|family| family == "IPv6") {
        ignored.push("spec.ipFamilies IPv6 (addresses are IPv4)");
    }
    if !ignored.is_empty() {
        notes.push(IGNORED_FIELDS.note(format!("no effect on the load balancer: {}", ignored.join(", "))));
    }
    notes
}

/// `timeoutSeconds` of the session affinity, unless said otherwise (Kubernetes API, `ClientIPConfig`).
const DEFAULT_AFFINITY_SECONDS: i32 = 10_800;
