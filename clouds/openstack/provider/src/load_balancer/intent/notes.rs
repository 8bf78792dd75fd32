//! What is told of a Service before anything is read.

use bowline_cloud_provider::Node;
use bowline_plan::Note;

use super::{Protocol, Wanted};
use crate::load_balancer::annotations::{self as keys, Reader};
use crate::load_balancer::members::{self, NodeFilter};
use crate::messages::{IGNORED_ANNOTATIONS, NO_VALID_NODES, NODES_LEFT_OUT, UNMONITORED};

/// What is told of annotations that have no effect, or another one than somebody meant.
pub(super) fn ignored_note(reader: Reader<'_>, wanted: &Wanted) -> Option<Note> {
    let selected = reader.given(&keys::NODE_SELECTOR).and_then(NodeFilter::nonsense);
    let selector = selected.map(|part| {
        format!(
            "no Node fits {}: no label can be `{part}`; write `key=value`, or `key` for any value, with commas between",
            keys::NODE_SELECTOR.key
        )
    });
    let ignored = reader.into_ignored();
    let ignored =
        (!ignored.is_empty()).then(|| format!("annotations without effect: {}", ignored.join("; ")));
    let texts = ignored.into_iter().chain(selector).chain(unproxied(wanted));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| IGNORED_ANNOTATIONS.note(texts.join("; ")))
}

/// Which ports get no PROXY header although one is asked for.
fn unproxied(wanted: &Wanted) -> Option<String> {
    wanted.pool.proxy.as_ref()?;
    let mut ports = wanted.ports.iter().filter(|port| port.protocol != Protocol::Tcp);
    let port = ports.next()?;
    Some(format!(
        "{} has no effect on port {} and others that are not TCP: Octavia has no PROXY header for them",
        keys::PROXY_PROTOCOL.key,
        port.port
    ))
}

/// Which nodes are no members because they have no address. Those that no provider has initialised yet have none by nature.
pub(super) fn unaddressed(wanted: &Wanted) -> Option<Note> {
    let has_none = |node: &Node| match &wanted.families[..] {
        [] => members::address(node, None).is_none(),
        families => families
            .iter()
            .all(|family| members::address(node, Some(*family)).is_none()),
    };
    let nodes = wanted.nodes.iter();
    let is_initialised = |node: &Node| node.provider_id.is_some() && !node.is_uninitialized();
    let without = nodes.filter(|node| is_initialised(node) && has_none(node));
    let names: Vec<&str> = without.map(|node| node.name.as_str()).collect();
    let first = names.first()?;
    let others = match names.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} other nodes"),
    };
    let of = match &wanted.families[..] {
        [only] => format!(" of {only}"),
        _ => String::new(),
    };
    // The others serve it.
    let event = match names.len() < wanted.nodes.len() {
        true => NODES_LEFT_OUT,
        false => NO_VALID_NODES,
    };
    Some(event.note(format!(
        "node {first}{others} cannot be members: status.addresses has no InternalIP or ExternalIP{of} that the load balancer could send to"
    )))
}

/// What is told where nothing tells the load balancer which nodes have endpoints, and those without drop what they get.
pub(super) fn unmonitored(wanted: &Wanted, is_of_service: bool) -> Option<Note> {
    wanted.health_check_port.filter(|_| wanted.monitor.is_none())?;
    let origin = match is_of_service {
        true => format!("{} of the Service is not true", keys::MONITOR.key),
        false => "create-monitor of [LoadBalancer] in cloud.conf is not true".to_owned(),
    };
    Some(UNMONITORED.note(format!(
        "Service {} has externalTrafficPolicy: Local and no health monitors, so connections to nodes without endpoints of it are lost: {origin}; set {}: \"true\" on the Service, or create-monitor = true in cloud.conf",
        wanted.identity.service,
        keys::MONITOR.key
    )))
}
