//! Whether the credentials see the instances of this cluster at all. Pure.

use std::sync::Arc;

use bowline_cloud_provider::{
    CloudError, ErrorKind, InstanceAnswer, InstanceQuery, InstanceResult, Node, Purpose,
};

/// What the instances of Nodes that should be there say about an answer that denies others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialCheck {
    /// One of them at least was seen: the credentials are those of this cluster.
    Seen,
    /// There is no such Node of this cloud: nothing is to be held against the answer.
    NoWitness,
    /// None of them was seen: the token or the project is wrong.
    Blind {
        /// How many were looked for.
        missing: usize,
    },
    /// None was seen, but not every one was looked for: the cloud may be down.
    Unclear,
}

impl CredentialCheck {
    /// Reads the answers about these Nodes.
    pub(crate) fn of<'a>(answers: impl IntoIterator<Item = &'a InstanceResult>) -> Self {
        let mut missing = 0;
        let mut is_clear = true;
        for answer in answers {
            match answer {
                Ok(InstanceAnswer::Present(_)) => return Self::Seen,
                Ok(InstanceAnswer::Foreign) => {}
                Ok(InstanceAnswer::Absent(_)) => missing += 1,
                Err(error) if error.kind() == ErrorKind::NotFound || error.is_of_credentials() => {
                    missing += 1
                }
                Err(_) => is_clear = false,
            }
        }
        match (missing, is_clear) {
            (_, false) => Self::Unclear,
            (0, true) => Self::NoWitness,
            (missing, true) => Self::Blind { missing },
        }
    }
}

/// The answers about those witnesses that say something about a cloud: not those of another one. A Node that does not name its cloud
/// may be of any.
pub(crate) fn of_cloud<'a>(
    platform: Option<&str>,
    witnesses: &[Arc<Node>],
    answers: &'a [InstanceResult],
) -> impl Iterator<Item = &'a InstanceResult> {
    let is_near = move |node: &Node| {
        let named = node.platform();
        platform.is_none() || named.is_none() || named == platform
    };
    let near = witnesses
        .iter()
        .zip(answers)
        .filter(move |(node, _)| is_near(node));
    near.map(|(_, answer)| answer)
}

/// What the cloud said when it refused to show an instance, rather than not to have it.
pub(crate) fn refusal<'a>(answers: impl IntoIterator<Item = &'a InstanceResult>) -> Option<&'a CloudError> {
    answers
        .into_iter()
        .filter_map(|answer| answer.as_ref().err())
        .find(|error| error.is_of_credentials())
}

/// The same question about each of these Nodes.
pub(crate) fn questions(nodes: &[Arc<Node>], purpose: Purpose) -> impl Iterator<Item = InstanceQuery> {
    nodes.iter().map(move |node| InstanceQuery {
        node: Arc::clone(node),
        purpose,
    })
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{
        AbsenceProof, FoundBy, Instance, InstanceMetadata, InstanceState, PowerState,
    };

    use super::*;

    #[test]
    fn one_instance_seen_makes_the_answer_credible() {
        let present = || {
            Ok(InstanceAnswer::Present(Box::new(Instance {
                metadata: InstanceMetadata::default(),
                power: PowerState::On,
                state: InstanceState::default(),
                found_by: FoundBy::Id,
            })))
        };
        let missing = || Err(CloudError::not_found("no such server"));
        let denied = || Err(CloudError::new(ErrorKind::Denied, "forbidden"));
        let down = || Err(CloudError::transient("bad gateway"));
        let foreign = || Ok(InstanceAnswer::Foreign);
        let absent = || Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
        for (answers, check) in [
            (vec![], CredentialCheck::NoWitness),
            (vec![foreign(), foreign()], CredentialCheck::NoWitness),
            (vec![missing(), down(), present()], CredentialCheck::Seen),
            (
                vec![missing(), absent(), foreign()],
                CredentialCheck::Blind { missing: 2 },
            ),
            (vec![denied()], CredentialCheck::Blind { missing: 1 }),
            (vec![missing(), down()], CredentialCheck::Unclear),
            (vec![down(), foreign()], CredentialCheck::Unclear),
        ] {
            assert_eq!(CredentialCheck::of(&answers), check, "{answers:?}");
        }
    }
}
