//! Why a Node could not be initialised.

use bowline_cloud_provider::{AbsenceProof, CloudError, ErrorKind, Node};
use bowline_kube_io::KubeError;

use super::intent::IntentError;
use crate::events;
use crate::queue::RetryAfter;

/// Why a Node could not be initialised.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The cloud did not answer.
    #[error("{0}")]
    Cloud(CloudError),
    /// The cloud does not know the instance. That may be because it is too new.
    #[error("instance not found: {0}")]
    Absent(AbsenceProof),
    /// The provider left the question out.
    #[error("the cloud did not answer")]
    Unanswered,
    /// An instance has the Node's name, but what else is shown is not this cluster.
    #[error(
        "the cloud has an instance of this name, but with these credentials it shows none of the instances of the initialised nodes. Check that the credentials belong to the project of this cluster, and leave the nodes as they are until that is known"
    )]
    OnlyName,
    /// There is nothing sensible to write.
    #[error(transparent)]
    Intent(#[from] IntentError),
    /// The API server refused a write.
    #[error("{1}")]
    Write(&'static str, KubeError),
    /// Somebody writes the opposite.
    #[error(
        "something puts the taint back, or takes the two names of a label apart, as often as this is mended; {}",
        events::LOOK_FOR_ANOTHER
    )]
    Reverted,
    /// This process may not write any more.
    #[error("this process does not lead")]
    NotLeading,
}

impl Failure {
    /// The text for people, in upstream's words where upstream has some.
    pub(super) fn for_node(&self, node: &Node) -> String {
        let name = &node.name;
        match self {
            Self::Cloud(_) | Self::Absent(_) | Self::Unanswered | Self::OnlyName => {
                format!("failed to get instance metadata for node {name}: {self}")
            }
            Self::Write(what, error) => format!("failed to write {what} of node {name}: {error}"),
            Self::Intent(_) | Self::NotLeading => self.to_string(),
            Self::Reverted => format!("node {name} does not stay initialized: {self}"),
        }
    }

    /// What the cloud or the API server said about the next try.
    pub(super) fn retry_after(&self) -> RetryAfter {
        match self {
            Self::Cloud(error) => RetryAfter::by_cloud(error),
            Self::Write(_, error) => RetryAfter::by_kube(error),
            _ => RetryAfter::Nothing,
        }
    }

    /// Whether it is only that no instance was found.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            Self::Absent(_) => true,
            Self::Cloud(error) => error.kind() == ErrorKind::NotFound,
            _ => false,
        }
    }

    /// What became of a write of this part.
    pub(super) fn write(what: &'static str) -> impl Fn(KubeError) -> Self {
        move |error| match error {
            KubeError::GateClosed => Self::NotLeading,
            error => Self::Write(what, error),
        }
    }
}
