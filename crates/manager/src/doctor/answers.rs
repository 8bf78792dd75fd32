//! What the cloud says about the instances of Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    CloudError, ErrorKind, Instance, InstanceAnswer, InstanceQuery, InstanceResult, InstancesV2, Node,
    NodeName, Purpose, Readiness,
};
use bowline_transport::meant;

use super::{Cloud, ask_each, no_answer, some_of, timed};
use crate::why::Shown;
use crate::why::node::is_unready;

/// A name that no instance has. To look for it takes a listing of all.
pub(super) const NOBODY: &str = "bowline-doctor";

/// Of so many Nodes it is asked whether their instances are proved gone, each with a call to some clouds.
const PROVED: usize = 20;

/// A Node, and what the cloud says about its instance.
pub(super) type Answered = (Arc<Node>, InstanceResult);

/// Whether the Node is of another cloud.
pub(super) fn is_foreign(answer: &InstanceResult) -> bool {
    matches!(answer, Ok(InstanceAnswer::Foreign))
}

/// Whether there is no instance, proved or not.
pub(super) fn is_missing(answer: &InstanceResult) -> bool {
    match answer {
        Ok(InstanceAnswer::Absent(_)) => true,
        Ok(InstanceAnswer::Present(_) | InstanceAnswer::Foreign) => false,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// What the cloud says about the instances of Nodes, from one listing.
pub(super) struct Answers {
    pub(super) of_nodes: Vec<Answered>,
    /// How long it took; or why there is no listing.
    pub(super) listing: Result<Duration, CloudError>,
    /// What a cloud answers that refuses everything; the listing is that of the others.
    pub(super) refused: Option<CloudError>,
    /// The names of instances that no Node bears, looked for only if one waits for its instance by name.
    pub(super) unborne: Vec<String>,
    /// Instances with the name of a Node of whose provider ID there is none: rebuilt ones, as it seems.
    pub(super) namesakes: BTreeMap<NodeName, Instance>,
    /// Whether the credentials show the instance of no Node.
    pub(super) is_blind: bool,
    /// The Nodes of whose instances the cloud was asked to prove that they are gone, and does not.
    pub(super) unproved: BTreeSet<NodeName>,
}

impl Answers {
    /// What failed where instances are listed.
    pub(super) fn cause(&self) -> Option<&CloudError> {
        self.refused.as_ref().or(self.listing.as_ref().err())
    }

    /// What there is of one Node.
    pub(super) fn shown(&self, node: &Node) -> Shown<'_> {
        let asked = self.of_nodes.iter().find(|(it, _)| it.name == node.name);
        self.about(node, asked.map(|(_, answer)| answer))
    }

    /// The same, with the answer about it.
    pub(super) fn about<'a>(&'a self, node: &Node, answer: Option<&'a InstanceResult>) -> Shown<'a> {
        Shown {
            answer,
            near: self.near(node),
            namesake: self.namesakes.get(&node.name),
            is_blind: self.is_blind,
            is_unproved: self.unproved.contains(&node.name),
            ..Shown::default()
        }
    }

    /// What is said of the instance that a Node may be of, where it goes by its name and there is none of it.
    fn near(&self, node: &Node) -> String {
        if node.provider_id.is_some() {
            return String::new();
        }
        let names: Vec<&str> = self.unborne.iter().map(String::as_str).collect();
        let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let is_alike = |it: &&&str| label(it) == label(node.name.as_str());
        let alike = names.iter().find(is_alike).copied();
        if let Some(near) = alike.or_else(|| meant(node.name.as_str(), &names)) {
            return format!("; no Node bears the name of the instance {near:?}, which may be this one");
        }
        if !names.is_empty() {
            let names = some_of(self.unborne.iter().cloned());
            return format!("; no Node bears the name of these instances, of which it may be one: {names}");
        }
        let is_silent = |(node, answer): &&Answered| is_unready(node) && !is_missing(answer);
        let silent = self.of_nodes.iter().filter(is_silent);
        let silent = some_of(silent.map(|(node, _)| node.name.to_string()));
        match silent.is_empty() {
            true => String::new(),
            false => format!(
                "; each instance has the name of a Node. If this is the machine of one that is not ready ({silent}), its host name has changed"
            ),
        }
    }
}

/// Asks about all Nodes at once, as the controllers do: those that wait for their cloud apart from the others, because what the
/// others prove to be wrong says nothing about them. Both share one listing. What is more is asked of Nodes that wait: whether all
/// is there that they need.
pub(super) async fn ask(cloud: &Cloud, nodes: &[Arc<Node>]) -> Option<Answers> {
    let instances = cloud.provider()?.instances()?;
    let about = |purpose| {
        move |node: &Arc<Node>| InstanceQuery {
            node: Arc::clone(node),
            purpose,
        }
    };
    let (waiting, known): (Vec<_>, Vec<_>) = nodes.iter().cloned().partition(|node| node.is_uninitialized());
    let nobody = Arc::new(Node::named(NOBODY));
    let of_known: Vec<_> = known.iter().map(about(Purpose::CredentialCheck)).collect();
    let of_waiting: Vec<_> = waiting
        .iter()
        .chain([&nobody])
        .map(about(Purpose::Metadata))
        .collect();
    let both = async { tokio::join!(instances.instances(&of_known), instances.instances(&of_waiting)) };
    let Some(((of_known, mut of_waiting), time)) = timed(both).await else {
        return Some(Answers {
            of_nodes: Vec::new(),
            listing: Err(CloudError::transient(no_answer())),
            refused: None,
            unborne: Vec::new(),
            namesakes: BTreeMap::new(),
            is_blind: false,
            unproved: BTreeSet::new(),
        });
    };
    let (listing, refused) = match of_waiting.pop() {
        Some(Err(error)) if cloud.is_of_refused(&error) => (Ok(time), Some(error)),
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => (Err(error), None),
        _ => (Ok(time), None),
    };
    let answered = known.into_iter().zip(of_known);
    let mut of_nodes: Vec<_> = answered.chain(waiting.into_iter().zip(of_waiting)).collect();
    let is_sought = |(node, answer): &Answered| {
        let is_missing = answer.as_ref().is_err_and(|it| it.kind() == ErrorKind::NotFound);
        node.is_uninitialized() && node.provider_id.is_none() && is_missing
    };
    let mut unborne = Vec::new();
    if of_nodes.iter().any(is_sought) {
        (unborne, _) = ask_each(instances.names()).await;
        unborne.retain(|name| {
            !nodes
                .iter()
                .any(|node| node.name.as_str().eq_ignore_ascii_case(name))
        });
    }
    let is_blind = sees_none(&of_nodes);
    // Credentials that show nothing are asked nothing more: what else they show is of another project, whatever it is called.
    let (namesakes, unproved) = match is_blind {
        true => Default::default(),
        false => (
            namesakes(&*instances, &of_nodes).await,
            prove(&*instances, &mut of_nodes).await,
        ),
    };
    Some(Answers {
        of_nodes,
        listing,
        refused,
        unborne,
        namesakes,
        is_blind,
        unproved,
    })
}

/// Has the cloud prove that the instances of Nodes are gone that may be deleted for it. Answers for which it does not.
async fn prove(instances: &dyn InstancesV2, of_nodes: &mut [Answered]) -> BTreeSet<NodeName> {
    let is_suspect = |(node, answer): &&mut Answered| {
        is_unready(node) && node.provider_id.is_some() && !node.is_uninitialized() && is_missing(answer)
    };
    let mut suspects: Vec<_> = of_nodes.iter_mut().filter(is_suspect).take(PROVED).collect();
    let query = |(node, _): &&mut Answered| InstanceQuery {
        node: Arc::clone(node),
        purpose: Purpose::Existence,
    };
    let queries: Vec<InstanceQuery> = suspects.iter().map(query).collect();
    let mut unproved = BTreeSet::new();
    if queries.is_empty() {
        return unproved;
    }
    let answers = timed(instances.instances(&queries)).await;
    let answers = answers.map_or_else(Vec::new, |(answers, _)| answers);
    for (suspect, answer) in suspects.iter_mut().zip(answers) {
        match answer {
            Ok(InstanceAnswer::Absent(_)) => {}
            Err(ref error) if error.kind() == ErrorKind::NotFound => {
                unproved.insert(suspect.0.name.clone());
            }
            _ => continue,
        }
        suspect.1 = answer;
    }
    unproved
}

/// The instance with the name of a Node that is not there.
pub(super) async fn by_name(cloud: &Cloud, name: &NodeName) -> Option<Instance> {
    let instances = cloud.provider()?.instances()?;
    let query = InstanceQuery {
        node: Arc::new(Node::named(name.as_str())),
        purpose: Purpose::Metadata,
    };
    let (mut answers, _) = timed(instances.instances(std::slice::from_ref(&query))).await?;
    match answers.pop()? {
        Ok(InstanceAnswer::Present(one)) => Some(*one),
        _ => None,
    }
}

/// The instances with the names of Nodes of whose provider IDs there are none.
async fn namesakes(instances: &dyn InstancesV2, of_nodes: &[Answered]) -> BTreeMap<NodeName, Instance> {
    let is_gone = |(node, answer): &&Answered| node.provider_id.is_some() && is_missing(answer);
    let by_name = of_nodes.iter().filter(is_gone).map(|(node, _)| InstanceQuery {
        node: Arc::new(Node {
            provider_id: None,
            ..Node::clone(node)
        }),
        purpose: Purpose::Metadata,
    });
    let queries: Vec<InstanceQuery> = by_name.collect();
    if queries.is_empty() {
        return BTreeMap::new();
    }
    let answers = timed(instances.instances(&queries)).await;
    let answers = answers.map_or_else(Vec::new, |(answers, _)| answers);
    let found = queries
        .into_iter()
        .zip(answers)
        .filter_map(|(query, answer)| match answer {
            Ok(InstanceAnswer::Present(one)) => Some((query.node.name.clone(), *one)),
            _ => None,
        });
    found.collect()
}

/// Whether the credentials show the instance of no Node. As the controller sees it: what was found for a Node that waits may have its
/// name only. One other Node alone may have gone, and so may all if none is Ready.
pub(super) fn sees_none(answers: &[Answered]) -> bool {
    let of_ours = || answers.iter().filter(|(_, answer)| !is_foreign(answer));
    let known = || of_ours().filter(|(node, _)| !node.is_uninitialized());
    let are_others_missing = known().count() > 1
        && known().all(|(_, answer)| is_missing(answer))
        && known().any(|(node, _)| node.readiness == Readiness::Ready);
    let are_all_missing = of_ours().all(|(_, answer)| is_missing(answer))
        && of_ours().any(|(node, _)| node.provider_id.is_some());
    are_others_missing || are_all_missing
}
