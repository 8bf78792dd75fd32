//! Why a Node is as it is.

use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, ErrorKind, Instance, InstanceAnswer, InstanceResult, Node, NodeAddress, PowerState,
    Readiness, Unmatched, keys,
};
use bowline_controllers::advice::untaint;
use bowline_controllers::events::{self, EVENTS, LOOK_FOR_ANOTHER};
use bowline_controllers::node::addresses::wished;
use bowline_controllers::node::{intent, labels};
use bowline_controllers::node_set::left_out_by;
use jiff::{SignedDuration, Timestamp};

use super::{Cause, EVENT, Known, SeenEvent, Why, remedy_of, remedy_of_error, span};
use crate::outcome::Outcome::{Failed, Warning};

/// The event of a Node whose provider ID is none of this cloud.
pub(super) const FOREIGN: &str = "ForeignProviderID";

/// The event of a Node of which the cloud knows the instance under another ID.
pub(crate) const REBUILT: &str = "ProviderIDMismatch";

/// The event of a Node of which the cloud names no address.
const WITHOUT_ADDRESS: &str = "NodeWithoutAddress";

/// The event that tells why a Node has no route.
pub(crate) const NO_ROUTE: &str = "FailedToCreateRoute";

/// The reason of the condition `NetworkUnavailable` of a Node that has no route.
pub(crate) const NOT_ROUTED: &str = "NoRouteCreated";

/// What to do about a Node whose network is not there.
pub(crate) const WITHOUT_NETWORK: &str = "NoRouteCreated is of the manager's routes: its log and the Node's event FailedToCreateRoute say why, mostly \
    a router that is full. Any other reason is of the network plugin: look at its pods";

/// What to do where the credentials show none of the instances; behind the question whether they are of another project.
pub(crate) const KEEP_NODES: &str = "Whoever runs the manager gives it those of this cluster; leave the Nodes as they are until that is known";

/// The cause that tells of a Node without an internal address.
const UNREACHED: &str = "node.no-internal-address";

/// The cause that tells of a Node of another cloud.
const OF_ANOTHER: &str = "node.foreign";

/// The cause that tells of an instance that was rebuilt under its Node's name.
const OTHER_ID: &str = "node.rebuilt";

/// What to do where settings choose addresses that no instance has.
pub(crate) const WRONG_CHOICE: &str = "whoever runs the manager corrects the setting that the text names, or takes it out; names are those of \
    networks as the cloud shows them. Or whoever owns the project gives the instances what it asks for";

/// What to do about a kubelet that does not report, while its instance runs.
const SILENT_KUBELET: &str =
    "look at the kubelet of that instance, and at the network between it and the API server";

/// What to do about a Node that is not ready while its instance does not run, where its state tells nothing more.
const NOT_RUNNING: &str = "look at the instance in the cloud: whoever owns the project repairs it, or rebuilds it and deletes the Node";

/// What to do about a Node whose instance is not listed, and not proved gone.
pub(crate) const UNPROVED: &str = "the manager keeps a Node whose instance is not proved gone: do what the text says; if it names nothing, look for the \
    instance, also in other projects, and delete the Node if it is gone";

/// What to do about a Node that waits for its turn.
pub(crate) const THROTTLED: &str = "nobody has to do anything: the manager deletes it when its turn comes. If many instances were removed on purpose, \
    delete their Nodes by hand, or raise --node-deletion-share";

/// What the cloud shows of one Node.
#[derive(Debug, Clone, Default)]
pub struct Shown<'a> {
    /// Its answer about the instance; `None`: it does not list its instances.
    pub answer: Option<&'a InstanceResult>,
    /// What is said of the instance that may be the one.
    pub near: String,
    /// The instance that has the Node's name, where none has its provider ID.
    pub namesake: Option<&'a Instance>,
    /// Whether the credentials show the instance of no Node at all.
    pub is_blind: bool,
    /// Why the Node is not deleted although its instance is not seen.
    pub frozen: Option<String>,
    /// Why it is not deleted yet although its instance is proved gone.
    pub throttled: Option<String>,
    /// Whether the cloud was asked for a proof, and gives none.
    pub is_unproved: bool,
    /// The program that wrote the taints last, if it is known.
    pub tainted_by: Option<String>,
}

impl<'a> Shown<'a> {
    /// This answer, and nothing else is known.
    #[must_use]
    pub fn of(answer: Option<&'a InstanceResult>) -> Self {
        Self {
            answer,
            ..Self::default()
        }
    }

    /// The instance, by whatever it was found.
    fn instance(&self) -> Option<&'a Instance> {
        match self.answer {
            Some(Ok(InstanceAnswer::Present(one))) => Some(one),
            _ => self.namesake,
        }
    }

    /// The other provider ID under which the cloud knows the instance of a Node, if it was rebuilt.
    pub(crate) fn other_id(&self, node: &Node) -> Option<&'a str> {
        intent::other_provider_id(node, &self.instance()?.metadata)
    }

    /// What is said of such a Node.
    fn rebuilt(&self, node: &Node) -> Option<Cause> {
        let text = events::other_provider_id(self.other_id(node)?, node);
        let text = format!("its instance was rebuilt under its name: {text}");
        Some(Cause::new(OTHER_ID, Warning, text, remedy_of(REBUILT)))
    }
}

/// Whether the kubelet of a Node reports no readiness.
pub(crate) fn is_unready(node: &Node) -> bool {
    matches!(node.readiness, Readiness::NotReady | Readiness::Unknown)
}

/// There is no Node of a name, and this instance has it.
pub(crate) fn without_node(one: &Instance) -> Cause {
    let id = one.metadata.provider_id.as_deref().unwrap_or("without ID");
    let text = format!(
        "there is no such Node, and the cloud has an instance of this name: {id}, {}",
        one.state.word
    );
    let remedy = "if it is to be a Node, whoever runs the cluster looks at its kubelet: a Node object that was deleted is registered again when its \
        kubelet is restarted (systemctl restart kubelet)";
    Cause::new("object.missing", Failed, text, remedy)
}

impl Why {
    /// The deletion of a Node waits for what stands in another cause.
    pub(crate) fn hold_deletion(&mut self) {
        let of_deletion = |it: &&mut Cause| ["node.no-instance", "node.throttled"].contains(&&*it.id);
        for cause in self.causes.iter_mut().filter(of_deletion) {
            HELD.clone_into(&mut cause.remedy);
        }
    }
}

/// What to do about a Node that is to be deleted, where something keeps the manager from that.
const HELD: &str = "the manager deletes it by itself when the first cause is mended, and not before";

/// What keeps a Node from its cloud, by what the cloud says of its instance; `None`: nothing does.
#[must_use]
pub fn of_answer(node: &Node, shown: &Shown<'_>) -> Option<Cause> {
    let waits = node.is_uninitialized();
    match shown.answer {
        None => Some(Cause::new(
            "node.instances-not-listed",
            Failed,
            "the cloud does not list its instances",
            "`doctor` says why",
        )),
        Some(Ok(InstanceAnswer::Foreign)) => {
            let text = "it is of another cloud, which has to do it".to_owned();
            waits.then(|| Cause::new(OF_ANOTHER, Warning, text, remedy_of(FOREIGN)))
        }
        Some(Ok(InstanceAnswer::Present(one))) if waits => Some(of_waiting(node, one, shown)),
        Some(Ok(InstanceAnswer::Present(one))) => shown.rebuilt(node).or_else(|| of_state(node, one)),
        Some(Ok(InstanceAnswer::Absent(proof))) => Some(of_missing(node, shown, proof.to_string())),
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
            Some(of_missing(node, shown, error.to_string()))
        }
        Some(Err(error)) => Some(Cause::new(
            "node.instance-unknown",
            Failed,
            error.to_string(),
            remedy_of_error(error),
        )),
    }
}

/// The instance is there, and the Node waits all the same.
fn of_waiting(node: &Node, one: &Instance, shown: &Shown<'_>) -> Cause {
    if let Err(error) = wished(node, &one.metadata.addresses) {
        return Cause::new(
            "node.provided-ip",
            Failed,
            format!("{error} (annotation {})", keys::ANNOTATION_PROVIDED_NODE_IP),
            "whoever made the Node gives its kubelet a --node-ip that the instance has, or none, and restarts the kubelet",
        );
    }
    let is_complete = intent::initialize(node, &one.metadata).is_ok_and(|update| {
        update.addresses.is_none() && update.provider_id.is_none() && update.labels.is_empty()
    });
    if is_complete && labels::are_of_a_cloud(node) {
        let by = shown.tainted_by.as_deref();
        let by = by.map_or(String::new(), |by| {
            format!("; its taints were written last by {by}")
        });
        return Cause::new(
            "node.tainted-again",
            Failed,
            format!(
                "it was initialised before, as it has the provider ID, labels and addresses of its instance, and has the taint again: something \
                 puts it back, or no manager works{by}"
            ),
            LOOK_FOR_ANOTHER,
        );
    }
    Cause::new(
        "node.waits",
        Warning,
        "an instance of its ID or name is there: see the Node's events, who leads, and what it may",
        "nobody has to do anything, unless it stays",
    )
}

/// The instance is there: how it is, where that is not as a Node that is ready shows.
fn of_state(node: &Node, one: &Instance) -> Option<Cause> {
    let state = &one.state.word;
    if one.power == PowerState::Off {
        let text = "its instance is switched off";
        return Some(Cause::new("node.off", Warning, text, "start it, or delete it"));
    }
    let remedy = remedy_of_state(one);
    let text = format!("it is not ready, and the state of its instance is {state}");
    is_unready(node).then(|| Cause::new("node.not-ready", Warning, text, remedy))
}

/// What to do about a Node that is not ready, by the state of its instance.
pub(crate) fn remedy_of_state(one: &Instance) -> &'static str {
    let usual = match one.state.is_running {
        true => SILENT_KUBELET,
        false => NOT_RUNNING,
    };
    one.state.remedy.unwrap_or(usual)
}

/// Why load balancers do not reach a Node although its instance is there: that has no internal address, and others have, or the settings
/// that choose addresses choose none.
pub(crate) fn unreached<'a>(
    node: &Node,
    one: &Instance,
    mut all: impl Iterator<Item = &'a Node>,
) -> Option<Cause> {
    let is_internal = |it: &NodeAddress| it.kind == AddressType::InternalIp;
    let Unmatched { lacks, networks } = &one.metadata.unmatched;
    let is_other = |it: &Node| it.name != node.name && it.platform() == node.platform();
    let mut has_other = || all.any(|it| is_other(it) && it.addresses.iter().any(is_internal));
    // An answer without any address says that nobody asked for them, unless a setting is why.
    let addresses = &one.metadata.addresses;
    let mut is_unknown = || addresses.is_empty() || !has_other();
    if addresses.iter().any(is_internal) || lacks.is_empty() && is_unknown() {
        return None;
    }
    let (text, remedy) = match lacks.is_empty() {
        true => (
            "its instance has no internal address, as those of other Nodes have: load balancers do not reach it".to_owned(),
            "whoever owns the project gives the instance its interface in the private network of the others back",
        ),
        false => (
            format!(
                "the cloud names no internal address of its instance, which lacks {} and is in: {}",
                lacks.join(", "),
                networks.join(", ")
            ),
            WRONG_CHOICE,
        ),
    };
    Some(Cause::new(UNREACHED, Warning, text, remedy))
}

/// The cloud shows no instance of the Node.
fn of_missing(node: &Node, shown: &Shown<'_>, text: String) -> Cause {
    let has_id = node.provider_id.is_some();
    if shown.is_blind && has_id {
        let text = match shown.frozen.clone() {
            Some(frozen) if !node.is_uninitialized() => frozen,
            _ => format!("{text}; the credentials show none of the instances of the other Nodes either"),
        };
        let remedy = format!("are the credentials of another project, account, zone or region? {KEEP_NODES}");
        return Cause::new("node.credentials", Failed, text, remedy);
    }
    if let Some(cause) = shown.rebuilt(node) {
        return cause;
    }
    let is_proved = matches!(shown.answer, Some(Ok(InstanceAnswer::Absent(_))));
    let (outcome, remedy) = match (has_id, node.is_uninitialized(), node.readiness) {
        (false, ..) => (
            Failed,
            "an instance is found by the name of its Node: whoever made the Node registers it under the name of its instance, renames the \
             instance, or has the kubelet give the provider ID. The credentials have to be of the project with the instance",
        ),
        (true, true, _) => (
            Failed,
            "whoever made the Node looks whether the instance is there, and in the project of the credentials. A provider ID cannot be \
             changed: if it is wrong, delete the Node, and its kubelet registers it again",
        ),
        (true, false, Readiness::Ready) => (
            Warning,
            "a Node that is ready is never deleted: look for the instance, also in other projects. If it is gone and something else runs the \
             kubelet, or its ID has changed, drain the Node and delete it",
        ),
        (true, false, _) if node.is_excluded_from_lifecycle() => (
            Warning,
            "the manager never deletes it, by its label: take the label off, or delete the Node",
        ),
        (true, false, _) if shown.is_unproved => (Warning, UNPROVED),
        (true, false, _) if is_proved => match shown.throttled.clone() {
            Some(throttled) => return Cause::new("node.throttled", Warning, throttled, THROTTLED),
            None => (
                Warning,
                "nobody has to do anything: it is proved that its instance is gone, and the manager deletes it by itself",
            ),
        },
        (true, false, _) => (
            Warning,
            "the manager deletes it by itself when the cloud has proved that its instance is gone",
        ),
    };
    Cause::new("node.no-instance", outcome, text + &shown.near, remedy)
}

/// A Node, with what the cloud says of its instance.
#[must_use]
pub fn of_node(node: &Node, shown: &Shown<'_>, known: &Known<'_>) -> Why {
    let mut why = Why::new(format!("node/{}", node.name));
    why.is.push(match node.is_uninitialized() {
        true => format!(
            "waits for its cloud for {}: it has the taint {}",
            span(known.now, node.created),
            keys::TAINT_UNINITIALIZED
        ),
        false if node.provider_id.is_none() => "not initialised: it asks for no cloud".to_owned(),
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
    why.causes.extend(of_autoscaler(node, known.now));
    if let Some(Ok(InstanceAnswer::Present(one))) = shown.answer {
        let addresses = one.metadata.addresses.iter();
        let addresses: Vec<&str> = addresses.map(|it| it.address.as_str()).collect();
        let addresses = match addresses.is_empty() {
            true => "no address".to_owned(),
            false => format!("addresses {}", addresses.join(", ")),
        };
        let id = one.metadata.provider_id.as_deref().unwrap_or("without ID");
        why.should.push(format!("instance {id}, {addresses}"));
        let all = known.nodes.unwrap_or_default().iter().map(|it| &**it);
        why.causes.extend(unreached(node, one, all));
    }
    let of_here = match shown.answer {
        Some(Err(error)) => known.of_here(&error.to_string()),
        _ => None,
    };
    match of_here {
        Some(text) => why.is.push(text),
        None => why.causes.extend(of_answer(node, shown)),
    }
    known.tell_unled(&mut why, "node.waits");
    if node.provider_id.is_none() && !node.is_uninitialized() {
        let text = "it has neither a provider ID nor the taint, so no controller looks at it";
        why.add("node.without-provider-id", Warning, text, without_cloud());
    }
    let is_same = |it: &&Arc<Node>| it.name != node.name && it.provider_id == node.provider_id;
    let others = known.nodes.unwrap_or_default().iter().filter(is_same);
    let others: Vec<&str> = others.map(|it| it.name.as_str()).collect();
    if node.provider_id.is_some() && !others.is_empty() {
        let text = format!("its provider ID is that of {} as well", others.join(", "));
        why.add("node.shared-provider-id", Warning, text, TWINS);
    }
    of_network(&mut why, node, known);
    // Kubelets warn of much else.
    let is_ours = |reason: &str| EVENTS.iter().any(|it| it.reason == reason);
    let told: Vec<String> = why.causes.iter().map(|it| it.text.clone()).collect();
    // Events that say what a cause says in other words.
    let same = [
        (UNREACHED, WITHOUT_ADDRESS),
        (OF_ANOTHER, FOREIGN),
        (OTHER_ID, REBUILT),
    ];
    let has = |id: &str| why.causes.iter().any(|it| it.id == id);
    let same: Vec<&str> = same
        .into_iter()
        .filter(|(id, _)| has(id))
        .map(|(_, reason)| reason)
        .collect();
    let is_told =
        |it: &SeenEvent| same.contains(&&*it.reason) || told.iter().any(|text| text.contains(&*it.message));
    let warnings = known
        .warnings(node.name.as_str())
        .filter(|it| is_ours(&it.reason) && !is_told(it));
    why.causes.extend(warnings.map(|it| known.cause(it)));
    why.put_in_order();
    if matches!(shown.answer, Some(Ok(InstanceAnswer::Foreign))) {
        "nothing from this manager: the Node is another cloud's".clone_into(&mut why.next);
    } else if node.is_uninitialized() {
        "the manager tries again by itself, after 1 to 60 s".clone_into(&mut why.next);
    }
    why
}

/// Within this time an autoscaler takes a Node away that it has chosen: its pods have ten minutes to end.
const TAKEN_AWAY_WITHIN: SignedDuration = SignedDuration::from_mins(15);

/// The taint of an autoscaler, which keeps a Node from load balancers. One that ended in the middle leaves it; its value is the time in
/// seconds.
pub(crate) fn of_autoscaler(node: &Node, now: Timestamp) -> Option<Cause> {
    let taint = node
        .taints
        .iter()
        .find(|it| it.key == keys::TAINT_TO_BE_DELETED)?;
    let since = taint.value.as_ref().and_then(|it| it.parse().ok());
    let since = since.and_then(|it| Timestamp::from_second(it).ok());
    if since.is_some_and(|since| now.duration_since(since) < TAKEN_AWAY_WITHIN) {
        return None;
    }
    let since = since.map_or(String::new(), |since| format!(", since {since}"));
    let text = format!(
        "it has the taint {} of the cluster autoscaler{since}, so it is no member of load balancers",
        taint.key
    );
    Some(Cause::new(
        "node.autoscaled",
        Warning,
        text,
        untaint(node.name.as_str()),
    ))
}

/// Whether the pods of a Node are reached: what is wrong with its pod networks is seen in those of all Nodes, without any event.
fn of_network(why: &mut Why, node: &Node, known: &Known<'_>) {
    let nodes = known.nodes.unwrap_or_default();
    let odd = known.routes.map(|routes| routes.odd_networks(node, nodes));
    let mut odd = odd.unwrap_or_default().into_iter().peekable();
    let is_told = known.warnings(node.name.as_str()).any(|it| it.reason == NO_ROUTE);
    let network = node.network_unavailable.as_ref();
    if let Some(network) = network.filter(|it| it.is_unavailable && !is_told) {
        let remedy = match odd.peek() {
            Some(_) if &*network.reason == NOT_ROUTED => "the cause that names the pod network says why",
            _ => WITHOUT_NETWORK,
        };
        let text = format!(
            "its pods are not reached: the condition NetworkUnavailable is True ({})",
            network.reason
        );
        why.add("node.no-network", Failed, text, remedy);
    }
    why.causes.extend(odd.map(|(event, text)| {
        let id = format!("{EVENT}{}", event.reason);
        Cause::new(id, Warning, text, event.remedy)
    }));
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
