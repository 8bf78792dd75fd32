//! Why a Node is as it is.

use std::sync::Arc;

use bowline_cloud_provider::{
    ErrorKind, InstanceAnswer, InstanceMetadata, InstanceResult, Node, PowerState, Readiness, keys,
};
use bowline_controllers::events::EVENTS;
use bowline_controllers::node::addresses::wished;
use bowline_controllers::node_set::left_out_by;

use ipnet::IpNet;
use jiff::Timestamp;

use super::{Cause, Known, TRIED_WITHIN, Why, remedy_of, remedy_of_error, span};
use crate::outcome::Outcome::{Failed, Warning};

/// The event of a Node whose provider ID is none of this cloud.
pub(super) const FOREIGN: &str = "ForeignProviderID";

/// The event that tells why a Node has no route.
const NO_ROUTE: &str = "FailedToCreateRoute";

/// What to do about a Node whose network is not there.
pub(crate) const WITHOUT_NETWORK: &str = "NoRouteCreated is of the manager's routes: its log and the Node's events FailedToCreateRoute, PodNetworkShared and PodNetworkOutside \
    say why, mostly two Nodes with one pod network, one outside of --cluster-cidr, or a router that is full. Any other reason is of the network \
    plugin: look at its pods";

/// What to do about a Node whose instance was built anew: a provider ID cannot be changed.
pub(crate) const REBUILT: &str = "whoever runs the cluster drains the Node and deletes it: the kubelet of the new instance registers it again";

/// What keeps a Node from its cloud, by what the cloud says of its instance; `None`: nothing does. `near` is the name of an
/// instance without a Node that may be the one.
#[must_use]
pub fn of_answer(
    node: &Node,
    answer: Option<&InstanceResult>,
    near: Option<&str>,
    now: Timestamp,
) -> Option<Cause> {
    let waits = node.is_uninitialized();
    let missing = |text: String| {
        let is_rebuilt = node.provider_id.is_some() && near.is_some();
        let near = near.map_or(String::new(), |near| match is_rebuilt {
            true => {
                format!("; an instance of the name {near:?} is there with another ID, so it was built anew")
            }
            false => format!("; no Node bears the name of the instance {near:?}, which may be this one"),
        });
        let (outcome, remedy) = match (&node.provider_id, waits, node.readiness) {
            _ if is_rebuilt => (Warning, REBUILT),
            (None, ..) => (
                Failed,
                "an instance is found by the name of its Node: whoever made the Node registers it under the name of its instance, renames the \
                 instance, or has the kubelet give the provider ID. The credentials have to be of the project with the instance",
            ),
            (Some(_), true, _) => (
                Failed,
                "whoever made the Node looks whether the instance is there, and in the project of the credentials. A provider ID cannot be \
                 changed: if it is wrong, delete the Node, and its kubelet registers it again",
            ),
            (Some(_), false, Readiness::Ready) => (
                Warning,
                "a Node that is ready is never deleted: look for the instance, also in other projects. If it is gone and something else runs the \
                 kubelet, or its ID has changed, drain the Node and delete it",
            ),
            (Some(_), false, _) => (
                Warning,
                "the manager deletes it by itself when the cloud has proved that its instance is gone; it deletes no Node while the credentials show \
                 none of the instances of ready Nodes either (`doctor` says so)",
            ),
        };
        Some(Cause::new("node.no-instance", outcome, text + &near, remedy))
    };
    match answer {
        None => Some(Cause::new(
            "node.instances-not-listed",
            Failed,
            "the cloud does not list its instances",
            "`doctor` says why",
        )),
        Some(Ok(InstanceAnswer::Foreign)) => {
            let text = "it is of another cloud, which has to do it".to_owned();
            waits.then(|| {
                Cause::new(
                    "node.foreign",
                    Warning,
                    text,
                    remedy_of(FOREIGN).unwrap_or_default(),
                )
            })
        }
        Some(Ok(InstanceAnswer::Present(one))) if waits && wished(node, &one.metadata.addresses).is_err() => {
            let error = wished(node, &one.metadata.addresses).err();
            let text = error.map_or_else(String::new, |error| error.to_string());
            Some(Cause::new(
                "node.provided-ip",
                Failed,
                format!("{text} (annotation {})", keys::ANNOTATION_PROVIDED_NODE_IP),
                "whoever made the Node gives its kubelet a --node-ip that the instance has, or none, and restarts the kubelet",
            ))
        }
        Some(Ok(InstanceAnswer::Present(one))) if waits => Some(of_waiting(node, &one.metadata, now)),
        Some(Ok(InstanceAnswer::Present(one))) => {
            let (own, there) = (node.provider_id.as_deref(), one.metadata.provider_id.as_deref());
            match own.zip(there).filter(|(own, there)| own != there) {
                Some((own, there)) => Some(Cause::new(
                    "node.rebuilt",
                    Warning,
                    format!(
                        "its provider ID is {own}, and the instance of its name is {there}: it was built anew"
                    ),
                    REBUILT,
                )),
                None => of_power(node, one.power),
            }
        }
        Some(Ok(InstanceAnswer::Absent(proof))) => missing(proof.to_string()),
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => missing(error.to_string()),
        Some(Err(error)) => Some(Cause::new(
            "node.instance-unknown",
            Failed,
            error.to_string(),
            remedy_of_error(error),
        )),
    }
}

/// Why a Node waits whose instance is there.
fn of_waiting(node: &Node, metadata: &InstanceMetadata, now: Timestamp) -> Cause {
    // Provider ID and labels are written in one request with the removal of the taint.
    let has = |key: &str, value: &str| !value.is_empty() && node.labels.value(key) == Some(value);
    let is_labelled = has(keys::LABEL_INSTANCE_TYPE, &metadata.instance_type)
        || has(keys::LABEL_ZONE, &metadata.zone)
        || has(keys::LABEL_REGION, &metadata.region);
    if node.provider_id.is_some()
        && node.provider_id.as_deref() == metadata.provider_id.as_deref()
        && is_labelled
    {
        return Cause::new(
            "node.taint-returns",
            Failed,
            "it was initialised, as its provider ID and labels show, and has the taint again: something puts the taint back",
            "whoever runs the cluster finds the program that writes the taint (kubectl get node NAME -o yaml --show-managed-fields), such as a \
             second cloud controller manager or a tool that keeps the taints of Nodes, and has it leave the taint alone. Until then the manager \
             takes it off after up to five minutes only",
        );
    }
    if now.duration_since(node.created) > TRIED_WITHIN {
        return Cause::new(
            "node.waits",
            Failed,
            "an instance of its ID or name is there, and the manager has not initialised the Node for longer than that takes",
            "whoever runs the manager looks at its log for this Node, and whether the running process has the credentials that are deployed by \
             now: it reads them at its start, so after a change of the Secret restart its pods (kubectl rollout restart)",
        );
    }
    Cause::new(
        "node.waits",
        Warning,
        "an instance of its ID or name is there: see the Node's events, who leads, and what it may",
        "nobody has to do anything, unless it stays",
    )
}

/// What the state of an instance that is there has to do with its Node.
fn of_power(node: &Node, power: PowerState) -> Option<Cause> {
    match power {
        PowerState::Off => Some(Cause::new(
            "node.off",
            Warning,
            "its instance is switched off",
            "start it, or delete it",
        )),
        PowerState::Failed => Some(Cause::new(
            "node.instance-failed",
            Failed,
            "the cloud says that its instance has failed",
            "whoever owns the project looks at the instance in the cloud, and has the cloud's operator repair it; or drains the Node and deletes \
             the instance: the Node goes with it",
        )),
        PowerState::On if matches!(node.readiness, Readiness::NotReady | Readiness::Unknown) => {
            Some(Cause::new(
                "node.not-ready",
                Warning,
                "it is not ready, and the cloud says that its instance runs",
                "whoever runs the cluster looks at the kubelet there, and at the network between it and the API server",
            ))
        }
        PowerState::On => None,
    }
}

/// What is wrong with the pod networks of a Node, as far as the Nodes tell.
fn of_pod_networks(node: &Node, known: &Known<'_>) -> Option<String> {
    let shared = node.pod_cidrs.iter().find_map(|network| {
        let mut others = known.nodes.unwrap_or_default().iter();
        let other = others.find(|it| it.name != node.name && it.pod_cidrs.contains(network))?;
        Some(format!(
            "its pod network {network} is that of Node {}, too",
            other.name
        ))
    });
    let is_outside = |network: &&String| {
        let network: Option<IpNet> = network.parse().ok();
        let mut clusters = known.cluster_cidrs.iter();
        network.is_some_and(|network| !clusters.any(|it| it.contains(&network)))
    };
    let mut all = node.pod_cidrs.iter().filter(|_| !known.cluster_cidrs.is_empty());
    shared.or_else(|| {
        let network = all.find(is_outside)?;
        Some(format!("its pod network {network} is outside of --cluster-cidr"))
    })
}

/// A Node, with what the cloud says of its instance.
#[must_use]
pub fn of_node(node: &Node, answer: Option<&InstanceResult>, near: Option<&str>, known: &Known<'_>) -> Why {
    let mut why = Why::new(format!("node/{}", node.name));
    why.is.push(match node.is_uninitialized() {
        true => format!(
            "waits for its cloud for {}: it has the taint {}",
            span(known.now, node.created),
            keys::TAINT_UNINITIALIZED
        ),
        false => "initialised".to_owned(),
    });
    why.is.push(match node.readiness {
        Readiness::Ready => "ready".to_owned(),
        _ => "not ready".to_owned(),
    });
    why.is.push(match &node.provider_id {
        Some(id) => format!("provider ID {id}"),
        None => "no provider ID".to_owned(),
    });
    if node.deleting {
        why.is.push("being deleted".to_owned());
    }
    if node.is_excluded_from_lifecycle() {
        why.is.push(format!(
            "never deleted because its instance is gone, by the label {}",
            keys::LABEL_EXCLUDE_FROM_LIFECYCLE
        ));
    }
    if let Some(by) = node.draining {
        why.is.push(format!(
            "about to go, and no member of load balancers that drain: {by}"
        ));
    }
    if let Some(by) = known.node_set.and_then(|set| left_out_by(node, set)) {
        why.is
            .push(format!("no member of load balancers: left out by {by}"));
    }
    if let Some(Ok(InstanceAnswer::Present(one))) = answer {
        let addresses = one.metadata.addresses.iter();
        let addresses: Vec<&str> = addresses.map(|it| it.address.as_str()).collect();
        why.should.push(format!(
            "instance {}, addresses {}",
            one.metadata.provider_id.as_deref().unwrap_or("without ID"),
            addresses.join(", ")
        ));
    }
    why.causes.extend(of_answer(node, answer, near, known.now));
    if node.provider_id.is_none() && !node.is_uninitialized() {
        let text = "it has neither a provider ID nor the taint, so no controller looks at it";
        why.causes.push(Cause::new(
            "node.without-provider-id",
            Warning,
            text,
            without_cloud(),
        ));
    }
    let is_same = |it: &&Arc<Node>| it.name != node.name && it.provider_id == node.provider_id;
    let others = known.nodes.unwrap_or_default().iter().filter(is_same);
    let others: Vec<&str> = others.map(|it| it.name.as_str()).collect();
    if node.provider_id.is_some() && !others.is_empty() {
        let text = format!("its provider ID is that of {} as well", others.join(", "));
        why.causes
            .push(Cause::new("node.shared-provider-id", Warning, text, TWINS));
    }
    // Kubelets warn of much else.
    let is_ours = |reason: &str| EVENTS.iter().any(|it| it.reason == reason);
    let warnings = known
        .warnings(node.name.as_str())
        .filter(|it| is_ours(&it.reason));
    let before = why.causes.len();
    why.causes.extend(warnings.map(|it| known.cause(it)));
    let is_told = why.causes[before..].iter().any(|it| it.id.ends_with(NO_ROUTE));
    if let Some(network) = node
        .network_unavailable
        .as_ref()
        .filter(|it| it.is_unavailable && !is_told)
    {
        let mut text = format!(
            "its pods are not reached: the condition NetworkUnavailable is True ({})",
            network.reason
        );
        let mut remedy = WITHOUT_NETWORK;
        if let Some(more) = of_pod_networks(node, known) {
            text = format!("{text}: {more}");
            remedy = "whoever runs the cluster drains the Node and deletes it: its kubelet registers it again, and it gets a network of its own; \
                      or corrects --cluster-cidr";
        }
        why.causes
            .push(Cause::new("node.no-network", Failed, text, remedy));
    }
    if matches!(answer, Some(Ok(InstanceAnswer::Foreign))) {
        "nothing from this manager: the Node is another cloud's".clone_into(&mut why.next);
    } else if node.is_uninitialized() {
        "the manager tries again by itself, after 1 to 60 s".clone_into(&mut why.next);
    }
    why
}

/// What to do about Nodes that share a provider ID.
pub(crate) const TWINS: &str = "an instance is one Node: of those with one provider ID, delete the Node objects that no kubelet of that instance keeps";

/// What to do about a Node that does not wait for its cloud and has no provider ID.
pub(crate) fn without_cloud() -> String {
    format!(
        "start their kubelets with --cloud-provider=external, and ask for their cloud: kubectl taint node NAME {}=true:NoSchedule",
        keys::TAINT_UNINITIALIZED
    )
}
