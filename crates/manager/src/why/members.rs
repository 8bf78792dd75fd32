//! Who stands behind a Service: the Nodes that may be members, the pods that answer, and what holds its deletion.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::{Node, NodeSet, Readiness, Service, facts, keys};
use bowline_controllers::node_set::left_out_by;

use super::{Cause, Known, Why};
use crate::outcome::Outcome;

/// Whose finalizers hold a Service that is being deleted, besides this manager's.
pub(super) fn of_finalizers(why: &mut Why, service: &Service) {
    if service.metadata.deletion_timestamp.is_none() {
        return;
    }
    let all = service.metadata.finalizers.as_deref().unwrap_or_default();
    let (own, others): (Vec<&String>, Vec<&String>) =
        all.iter().partition(|it| *it == keys::FINALIZER_LOAD_BALANCER);
    let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
    if !own.is_empty() {
        why.is.push(format!(
            "its deletion waits for this manager, by the finalizer {}",
            keys::FINALIZER_LOAD_BALANCER
        ));
    }
    if !others.is_empty() {
        let text = format!(
            "its deletion waits for somebody else, by the finalizer {}",
            others.join(", ")
        );
        let remedy = "whoever set that finalizer takes it off when his work is done: look for the controller of that name, and whether it runs";
        why.causes.push(Cause::new(Outcome::Warning, text, remedy));
    }
}

/// Whether there are pods that answer, and where: no cloud that checks no health tells it.
pub(super) fn of_endpoints(why: &mut Why, service: &Service, known: &Known<'_>) {
    let Some(endpoints) = known.endpoints else {
        return;
    };
    let has_address = !facts::published_addresses(service).is_empty();
    if endpoints.ready == 0 {
        let (text, remedy) = match endpoints.unready {
            0 => (
                "no pod is behind it: its selector matches none".to_owned(),
                "whoever owns the Service compares spec.selector with the labels of the pods (kubectl get pods --show-labels), and has them run",
            ),
            count => (
                format!("none of the {count} pods behind it is ready"),
                "whoever owns the Service looks at the pods (kubectl describe pod) and their readiness probe",
            ),
        };
        let outcome = if has_address {
            Outcome::Failed
        } else {
            Outcome::Warning
        };
        why.causes.push(Cause::new(outcome, text, remedy));
        return;
    }
    why.is.push(format!(
        "{} of {} pods behind it are ready",
        endpoints.ready,
        endpoints.ready + endpoints.unready
    ));
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
        why.causes.push(Cause::new(Outcome::Failed, text, remedy));
    }
}

/// How many Nodes may be members, and what keeps the others out.
pub(super) fn of_nodes(why: &mut Why, known: &Known<'_>) {
    let (Some(nodes), Some(set)) = (known.nodes, known.node_set) else {
        return;
    };
    let mut out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let by = left_out_by(node, set);
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
        let remedy = match text.contains(keys::LABEL_EXCLUDE_FROM_BALANCERS) {
            true => format!(
                "whoever runs the cluster adds Nodes, or takes the label off: kubectl label node NAME {}-",
                keys::LABEL_EXCLUDE_FROM_BALANCERS
            ),
            false => "whoever runs the cluster adds Nodes, or lets some in".to_owned(),
        };
        why.causes.push(Cause::new(Outcome::Failed, text, remedy));
    } else {
        why.is.extend(out);
        of_health(why, nodes, set);
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
            why.causes.push(Cause::new(
                Outcome::Failed,
                format!("no member is ready: {}", unready.join(", ")),
                remedy,
            ));
        } else {
            why.is.push(text);
        }
    }
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    for node in members() {
        *zones
            .entry(node.labels.value(keys::LABEL_ZONE).unwrap_or("none"))
            .or_default() += 1;
    }
    if zones.len() > 1 {
        let zones: Vec<String> = zones
            .iter()
            .map(|(zone, count)| format!("{zone} ({count})"))
            .collect();
        why.is
            .push(format!("they are in several zones: {}", zones.join(", ")));
    }
}
