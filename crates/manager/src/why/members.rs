//! Who stands behind a Service: the Nodes that may be members, the pods that answer, and what holds its deletion.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::k8s::IntOrString;
use bowline_cloud_provider::{Node, NodeSet, Readiness, Service, facts, keys};
use bowline_controllers::node::addresses::can_be_reached;
use bowline_controllers::node_set::{left_out_by, let_in};
use bowline_kube_io::Endpoints;

use super::{Known, Why};
use crate::outcome::Outcome;

/// Whose finalizers hold a Service that is being deleted, besides this manager's.
pub(super) fn of_finalizers(why: &mut Why, service: &Service, known: &Known<'_>) {
    if service.metadata.deletion_timestamp.is_none() {
        return;
    }
    let all = service.metadata.finalizers.as_deref().unwrap_or_default();
    let (own, others): (Vec<&String>, Vec<&String>) =
        all.iter().partition(|it| *it == keys::FINALIZER_LOAD_BALANCER);
    let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
    if !own.is_empty() {
        // A class goes with the type, and whoever saw it before leaves the Service to the manager of that class.
        let is_classless = !facts::is_type(service, "LoadBalancer") && facts::noted_class(service).is_none();
        let by = match known.classes.concern(service) {
            true if is_classless => "this manager, or that of the class that it had before its type changed",
            true => "this manager",
            false => "the manager that made its load balancer",
        };
        why.is.push(format!(
            "its deletion waits for {by}, by the finalizer {}",
            keys::FINALIZER_LOAD_BALANCER
        ));
    }
    if !others.is_empty() {
        let text = format!(
            "its deletion waits for somebody else, by the finalizer {}",
            others.join(", ")
        );
        let remedy = "whoever set that finalizer takes it off when his work is done: look for the controller of that name, and whether it runs";
        why.add("service.finalizer-of-another", Outcome::Warning, text, remedy);
    }
}

/// Who may connect: whoever is left out takes it for a load balancer that does not answer.
pub(super) fn of_sources(why: &mut Why, service: &Service, known: &Known<'_>) {
    if known
        .load_balancer
        .is_some_and(|it| !it.heeds_source_ranges(service))
    {
        return;
    }
    let spec = service.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.load_balancer_source_ranges.as_deref());
    let is_open = |range: &String| range.trim().ends_with("/0");
    if let Some(ranges) = ranges.filter(|it| !it.is_empty() && !it.iter().any(is_open)) {
        why.is.push(format!(
            "spec.loadBalancerSourceRanges asks that only clients of {} be let in",
            ranges.join(", ")
        ));
    }
}

/// Whether there are pods that answer, and where: no cloud that checks no health tells it.
pub(super) fn of_endpoints(why: &mut Why, service: &Service, known: &Known<'_>) {
    let Some(endpoints) = known.endpoints else {
        return;
    };
    let has_address = !facts::published_addresses(service).is_empty();
    if endpoints.ready == 0 {
        let (id, text, remedy) = match endpoints.unready {
            0 => (
                "service.no-pods",
                "no pod is behind it: its selector matches none".to_owned(),
                "whoever owns the Service compares spec.selector with the labels of the pods (kubectl get pods --show-labels), and has them run",
            ),
            count => (
                "service.pods-not-ready",
                format!("none of the {count} pods behind it is ready"),
                "whoever owns the Service looks at the pods (kubectl describe pod) and their readiness probe",
            ),
        };
        let outcome = if has_address {
            Outcome::Failed
        } else {
            Outcome::Warning
        };
        why.add(id, outcome, text, remedy);
        return;
    }
    why.is.push(format!(
        "{} of {} pods behind it are ready",
        endpoints.ready,
        endpoints.ready + endpoints.unready
    ));
    of_port_names(why, service, endpoints);
    if !facts::is_local_traffic_only(service) || endpoints.nodes.is_empty() {
        return;
    }
    let (nodes, set) = (known.nodes.unwrap_or_default(), known.node_set);
    let is_member = |name: &&String| {
        let node = nodes.iter().find(|it| it.name.as_str() == name.as_str());
        node.is_some_and(|node| set.is_none_or(|set| left_out_by(node, set).is_none()))
    };
    let answer: Vec<&str> = endpoints
        .nodes
        .iter()
        .filter(is_member)
        .map(String::as_str)
        .collect();
    why.is.push(format!(
        "externalTrafficPolicy is Local: of the members only those with a ready pod answer: {}",
        if answer.is_empty() {
            "none".to_owned()
        } else {
            answer.join(", ")
        }
    ));
    if answer.is_empty() && !nodes.is_empty() {
        let pods: Vec<&str> = endpoints.nodes.iter().map(String::as_str).collect();
        let text = format!(
            "externalTrafficPolicy is Local, and its pods run only on Nodes that are no members: {}",
            pods.join(", ")
        );
        let remedy = "whoever owns the Service has pods run on Nodes that may be members, or sets externalTrafficPolicy to Cluster";
        why.add("service.pods-on-no-member", Outcome::Failed, text, remedy);
    }
}

/// Ports that lead to a port of the pods by its name: which no pod has.
fn of_port_names(why: &mut Why, service: &Service, endpoints: &Endpoints) {
    let spec = service.spec.as_ref();
    let ports = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    for port in ports {
        let name = port.name.as_deref().unwrap_or_default();
        let Some(IntOrString::String(target)) = &port.target_port else {
            continue;
        };
        if endpoints.ports.contains(name) {
            continue;
        }
        let of = match name {
            "" => format!("port {}", port.port),
            name => name.to_owned(),
        };
        why.add(
            "service.no-such-port",
            Outcome::Warning,
            format!("no pod behind it has the port `{target}` (targetPort of {of})"),
            "whoever owns the Service names a port that the pods have (ports[].name of their containers), or the number of one",
        );
    }
}

/// No Node may be a member.
pub(super) const NO_MEMBER: &str = "service.no-member";

/// What leaves Nodes out that the Service, or its cloud's configuration, does not ask for.
pub(super) const SELECTOR: &str = "the selector of Nodes";

/// What a Node lacks that is not initialised yet, or has no network.
const NO_ADDRESS: &str = "the lack of an address (`explain` with node/NAME says why)";

/// How many Nodes may be members, and what keeps the others out.
pub(super) fn of_nodes(why: &mut Why, service: &Service, known: &Known<'_>) {
    let (Some(nodes), Some(set)) = (known.nodes, known.node_set) else {
        return;
    };
    let takes_addresses = known.load_balancer.is_some_and(|it| it.takes_addresses());
    let mut out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let unselected = || (!known.selects(service, node)).then_some(SELECTOR);
        let unaddressed = || (takes_addresses && !can_be_reached(&node.addresses)).then_some(NO_ADDRESS);
        let by = left_out_by(node, set).or_else(unselected).or_else(unaddressed);
        if let Some(by) = by {
            out.entry(by).or_default().push(node.name.as_str());
        } else if let Some(by) = node.drained_by() {
            why.is.push(format!(
                "Node {} is about to go ({by}): it is a member only if the others are too, or {} is false",
                node.name,
                keys::ANNOTATION_DRAIN
            ));
        }
    }
    let count = nodes.len() - out.values().map(Vec::len).sum::<usize>();
    let out: Vec<String> = out
        .into_iter()
        .map(|(by, names)| {
            let rest = names.len().saturating_sub(5);
            let more = if rest > 0 {
                format!(" and {rest} more")
            } else {
                String::new()
            };
            format!(
                "left out by {by}: {}{more}",
                names[..names.len() - rest].join(", ")
            )
        })
        .collect();
    why.is
        .push(format!("{count} of {} Nodes may be members", nodes.len()));
    if count == 0 {
        let text = match out.is_empty() {
            true => "there is no Node".to_owned(),
            false => format!("no Node may be a member: {}", out.join("; ")),
        };
        let remedy = if text.contains(SELECTOR) {
            "whoever owns the Service corrects its selector of Nodes, an annotation of the cloud or, without one, an option of the cloud's \
             configuration; or whoever runs the cluster gives Nodes the labels that it asks for"
                .to_owned()
        } else {
            let_in(nodes, set)
        };
        why.add(NO_MEMBER, Outcome::Failed, text, remedy);
    } else {
        why.is.extend(out);
        of_health(why, &known.selected(service).unwrap_or_default(), set);
    }
}

/// How many Nodes are no members because another cloud or manager has them.
pub(super) fn of_others(why: &mut Why, count: usize) {
    if count > 0 {
        why.is.push(format!(
            "{count} more Nodes are of another cloud or manager, and no members here"
        ));
    }
}

/// Whether the Nodes that may be members can answer, and where they are.
fn of_health(why: &mut Why, nodes: &[Arc<Node>], set: NodeSet) {
    let members = || nodes.iter().filter(|node| left_out_by(node, set).is_none());
    let unready: Vec<&str> = members()
        .filter(|node| matches!(node.readiness, Readiness::NotReady | Readiness::Unknown))
        .map(|node| node.name.as_str())
        .collect();
    let count = members().count();
    if !unready.is_empty() {
        let text = format!(
            "{} of these {count} are not ready: {}",
            unready.len(),
            unready.join(", ")
        );
        if unready.len() == count {
            let remedy = "whoever runs the cluster looks at the kubelets of these Nodes: behind a Node that is not ready, pods mostly do not answer";
            why.add(
                "service.no-member-ready",
                Outcome::Failed,
                format!("no member is ready: {}", unready.join(", ")),
                remedy,
            );
        } else {
            why.is.push(text);
        }
    }
    let zones = zones(nodes, set);
    if zones.len() > 1 {
        why.is
            .push(format!("they are in several zones: {}", in_words(&zones)));
    }
}

/// The zones of the Nodes that may be members, by the label; a Node that waits for its cloud has none yet.
fn zones(nodes: &[Arc<Node>], set: NodeSet) -> BTreeMap<&str, usize> {
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    let members = nodes.iter().filter(|node| left_out_by(node, set).is_none());
    for zone in members.filter_map(|node| node.labels.value(keys::LABEL_ZONE)) {
        *zones.entry(zone).or_default() += 1;
    }
    zones
}

fn in_words(zones: &BTreeMap<&str, usize>) -> String {
    let zones = zones.iter().map(|(zone, count)| format!("{zone} ({count})"));
    zones.collect::<Vec<_>>().join(", ")
}

/// Compares the zone of the load balancer with those of its members.
pub(super) fn of_zone(why: &mut Why, zone: Option<&str>, known: &Known<'_>) {
    let (Some(zone), Some(nodes), Some(set)) = (zone, known.nodes, known.node_set) else {
        return;
    };
    let zones = zones(nodes, set);
    if zones.is_empty() {
        return;
    }
    if !zones.contains_key(zone) {
        let text = format!(
            "the load balancer is in the zone {zone}, and no member is: they are in {}",
            in_words(&zones)
        );
        let remedy = "if they share a private network only within their zone, no member can be reached. Whoever owns the Service has the load balancer made in the \
                      zone of the Nodes (see the cloud's annotations), or whoever runs the cluster adds Nodes in its zone";
        why.add("service.zone-differs", Outcome::Warning, text, remedy);
    } else if zones.len() > 1 {
        why.is.push(format!("the load balancer is in the zone {zone}"));
    }
}
