//! Reads a Service, and says everything that is wrong with it in one text.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use bowline_cloud_provider::k8s::ServiceSpec;
use bowline_cloud_provider::{IpMode, Node, ServerVersion, Service, ServiceFacts, facts};
use bowline_plan::{Note, Refusal};

use crate::load_balancer::annotations::{self, HOSTNAME, IP_MODE, KEEP_IP, PROXY_PROTOCOL, SOURCE_CIDRS};
use crate::load_balancer::claim::Claim;
use crate::load_balancer::intent::sources::{is_ipv6, source_cidrs, source_ranges};
use crate::load_balancer::intent::{Absent, Identity, Intent, Port, Wanted, WantedNode};
use crate::load_balancer::names::{self, Protocol};
use crate::load_balancer::objects::Algorithm;
use crate::load_balancer::replaced_rules::ReplacedRules;
use crate::load_balancer::stickiness::Stickiness;
use crate::messages::{IGNORED_ANNOTATIONS, IGNORED_FIELDS};
use crate::provider_id;

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
    let mut sticky_problems = Vec::new();
    let stickiness = Stickiness::of(service, &mut sticky_problems);
    if facts::published_addresses(service).is_empty() {
        problems.append(&mut sticky_problems);
    }
    let cannot_stick = (!sticky_problems.is_empty()).then(|| Refusal::new(sticky_problems.join("; ")));
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
        stickiness: stickiness.filter(|_| cannot_stick.is_none()),
        cannot_stick,
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
    let claim = Claim::of(service);
    Ok(Identity {
        name: names::balancer(&uid),
        uid,
        leaseweb_name: names::leaseweb_balancer(&facts.cluster.name, &facts.key()),
        in_spec: spec_address(service),
        requested: annotations::requested(service).map(str::to_owned),
        published: facts::published_addresses(service),
        stays: service.metadata.deletion_timestamp.is_none(),
        keeps_ip: annotations::flag(service, &KEEP_IP),
        noted: claim.clone(),
        claim,
        replaced: ReplacedRules::on(service),
        services: Arc::clone(&facts.services),
        now: facts.now,
    })
}

fn spec_address(service: &Service) -> Option<String> {
    let ip = service.spec.as_ref()?.load_balancer_ip.as_deref()?.trim();
    (!ip.is_empty()).then(|| ip.to_owned())
}

/// What people wrote on a Service, as a number.
fn asked(service: &Service) -> u64 {
    let annotations = service.metadata.annotations.iter().flatten();
    let of_people: Vec<_> = annotations
        .filter(|(key, _)| !annotations::is_written(key))
        .collect();
    BuildHasherDefault::<DefaultHasher>::new().hash_one((&service.spec, of_people))
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
    let service = &facts.service;
    let mode = match annotations::text(service, &IP_MODE) {
        // As Leaseweb's manager publishes it.
        "" if annotations::is_of_leaseweb(service) && annotations::flag(service, &PROXY_PROTOCOL) => {
            IpMode::Proxy
        }
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
    let unknown = annotations::unknown(service).into_iter();
    let unknown: Vec<String> = unknown.map(|it| it.to_string()).collect();
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
    if facts::has_source_ranges_annotation(service) && !annotations::is_of_leaseweb(service) {
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
