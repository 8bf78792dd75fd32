//! Instances: one answer about an instance, for many Nodes at once.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{CloudError, Node, NodeAddress, Pairs, Question};

mod directory;
mod index;

pub use directory::{InstanceDirectory, Sought};
pub use index::InstanceIndex;

/// The instances of a cloud.
///
/// They are asked for in batches, so that a cloud can answer a thousand Nodes with one listing. Whether an instance exists,
/// whether it is shut down and its metadata all come from one answer.
///
/// A cloud that can list its instances implements [`InstanceDirectory`], and has this by it.
pub trait InstancesV2: Send + Sync + 'static {
    /// Answers every query, in the order asked.
    ///
    /// # Errors
    ///
    /// Per query, and an error means *unknown*: never "gone". A Node is only deleted on [`InstanceAnswer::Absent`].
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await: it only reads.
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>>;

    /// Which of several clouds answers for a Node. Questions about Nodes of different clouds are asked apart, so that one cloud that is
    /// slow holds up no other. `None`: any may, or there is only one.
    fn cloud_of(&self, node: &Node) -> Option<usize> {
        let _ = node;
        None
    }

    /// The names of all instances, for whoever looks for the one that a Node was meant to have. Empty where a cloud does not tell.
    fn names(&self) -> Vec<Question<'_, String>> {
        Vec::new()
    }
}

/// One question about one Node's instance.
#[derive(Debug, Clone)]
pub struct InstanceQuery {
    /// The Node.
    pub node: Arc<Node>,
    /// Why it is asked, which decides what an answer must prove.
    pub purpose: Purpose,
}

/// Why an instance is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// To initialise or refresh the Node. An instance may be found by name if the Node has no provider ID.
    Metadata,
    /// To taint or delete the Node. A name is too weak for that: without a provider ID the answer is an error where the
    /// cloud's specification says so. *Absent* must be proven.
    Existence,
    /// To learn whether the credentials see the cluster's instances at all. A miss proves nothing, so it costs no call
    /// beyond a listing and is answered with a *not found* error.
    CredentialCheck,
}

/// The answer to one query, or an error, which means unknown.
pub type InstanceResult = Result<InstanceAnswer, CloudError>;

/// What a cloud knows about the instance of one Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceAnswer {
    /// The instance is there.
    Present(Box<Instance>),
    /// The instance is gone, and here is why that is certain.
    Absent(AbsenceProof),
    /// The Node belongs to another cloud: it is left alone.
    Foreign,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// What goes into the Node object.
    pub metadata: InstanceMetadata,
    /// Whether it runs.
    pub power: PowerState,
    /// Its state in the cloud's own word.
    pub state: InstanceState,
    /// What it was found by.
    pub found_by: FoundBy,
}

/// What the instance of a Node was found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoundBy {
    /// The Node's provider ID, in whatever spelling.
    Id,
    /// The Node's name: weak evidence, because other credentials may show another instance of that name.
    Name,
}

/// What an instance contributes to its Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceMetadata {
    /// `spec.providerID`, written only while that is empty. Customary form: `<provider>://<id>`. Of an instance that was found by
    /// the Node's own, it is that, in the Node's spelling.
    pub provider_id: Option<String>,
    /// The label `node.kubernetes.io/instance-type` and its beta twin. Empty: not touched.
    pub instance_type: String,
    /// The label `topology.kubernetes.io/zone` and its beta twin. Empty: not touched.
    pub zone: String,
    /// The label `topology.kubernetes.io/region` and its beta twin. Empty: not touched.
    pub region: String,
    /// `status.addresses` in order.
    pub addresses: Vec<NodeAddress>,
    /// Further labels, set only where the Node does not have the key.
    pub additional_labels: Pairs<String>,
    /// The keys of those that tell where the instance is at the moment: a Node that has one gets its new value, too.
    pub moving_labels: &'static [&'static str],
    /// What the operator's settings choose addresses by and the instance does not have.
    pub unmatched: Unmatched,
}

/// What settings look for in an instance that is not there. For people: a setting that chooses nothing anywhere is mistyped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unmatched {
    /// What it lacks, each with its setting, such as "an address in the network `privat` (internal-network-name)".
    pub lacks: Vec<String>,
    /// The networks that it is in instead.
    pub networks: Vec<String>,
}

/// Whether an instance runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerState {
    /// It runs, or is on its way somewhere.
    On,
    /// It is powered off: its Node gets the shutdown taint.
    Off,
}

/// The state of an instance as its cloud tells it: for people, and no controller goes by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceState {
    /// The cloud's own word, such as `ACTIVE`.
    pub word: String,
    /// Whether that word says that it runs.
    pub is_running: bool,
    /// What to do about a Node that is not ready while its instance is in this state, where that is something of its own.
    pub remedy: Option<&'static str>,
}

impl InstanceState {
    /// The remedy of a state that ends by itself.
    pub const AT_WORK: &'static str = "nobody has to do anything at first: the cloud is at work on the instance, and the Node comes back by itself. If it stays so, \
         ask whoever runs the cloud";

    /// The state of this word. `running` is the word of an instance that runs; `remedies` has the states that need something of their
    /// own.
    #[must_use]
    pub fn new(word: impl Into<String>, running: &str, remedies: &[(&str, &'static str)]) -> Self {
        let word = word.into();
        let remedy = remedies.iter().find(|(state, _)| *state == word);
        Self {
            is_running: word == running,
            remedy: remedy.map(|(_, remedy)| *remedy),
            word,
        }
    }
}

/// Why it is certain that an instance is gone, in words: what was asked and what was answered.
///
/// Only a provider can make one, where its cloud's specification says what counts as proof. An error, a denied call, a
/// truncated or an empty listing never does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsenceProof(String);

impl AbsenceProof {
    /// States what proved the absence, such as `the API answered 404 to server <id>`.
    #[must_use]
    pub fn new(evidence: impl Into<String>) -> Self {
        Self(evidence.into())
    }
}

impl fmt::Display for AbsenceProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
