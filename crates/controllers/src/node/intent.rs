//! What is to be written to a Node, as data. Pure.

use bowline_cloud_provider::{InstanceMetadata, Node, NodeAddress, Taint, keys};
use bowline_kube_io::NodePatch;

use super::addresses::{self, ProvidedIpError};
use super::labels;

/// The writes that a Node needs: its addresses first, the rest in one patch after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeUpdate {
    /// All of `status.addresses`, if they change.
    pub addresses: Option<Vec<NodeAddress>>,
    /// `spec.providerID`, if it is still empty.
    pub provider_id: Option<String>,
    /// Labels to set.
    pub labels: labels::Changes,
    /// All of `spec.taints`, if they change.
    pub taints: Option<Vec<Taint>>,
    /// Labels of the cloud that are left out, for the log.
    pub skipped: Vec<labels::Skipped>,
}

/// Why nothing can be written to a Node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The IPs given to the kubelet are wrong.
    #[error(
        "failed to get node modifiers from cloud provider: provided node ip for node \"{node}\" is not valid: {reason}"
    )]
    ProvidedIp {
        /// The Node.
        node: String,
        /// What is wrong.
        reason: ProvidedIpError,
    },
    /// Neither the cloud nor the Node names a provider ID.
    #[error("cloud provider does not set node provider ID for node {0}")]
    NoProviderId(String),
}

impl NodeUpdate {
    /// Whether anything but addresses is to be written.
    #[must_use]
    pub fn has_patch(&self) -> bool {
        self.provider_id.is_some() || !self.labels.is_empty() || self.taints.is_some()
    }

    /// All but the addresses, in one patch.
    #[must_use]
    pub fn into_patch(self) -> NodePatch {
        let labels = self.labels.into_iter().map(|(key, value)| (key, Some(value)));
        NodePatch {
            labels: labels.collect(),
            provider_id: self.provider_id,
            taints: self.taints,
            ..NodePatch::default()
        }
    }
}

/// What a Node needs that waits for its cloud. The taint goes whatever its value and effect; other taints stay in order.
///
/// # Errors
///
/// There is no provider ID to be had, or the IPs given to the kubelet are wrong.
pub fn initialize(node: &Node, metadata: &InstanceMetadata) -> Result<NodeUpdate, IntentError> {
    let provider_id = match (&node.provider_id, given_id(metadata)) {
        (Some(_), _) => None,
        (None, Some(id)) => Some(id.to_owned()),
        (None, None) => return Err(IntentError::NoProviderId(node.name.to_string())),
    };
    let wished = addresses::check(node, &metadata.addresses)
        .and_then(|()| addresses::wished(node, &metadata.addresses))
        .map_err(|reason| IntentError::ProvidedIp {
            node: node.name.to_string(),
            reason,
        })?;
    let taints = node.is_uninitialized().then(|| initialized_taints(node));
    let (labels, skipped) = labels::initial(node, metadata);
    Ok(NodeUpdate {
        addresses: wished.filter(|wished| *wished != node.addresses),
        provider_id,
        labels,
        taints,
        skipped,
    })
}

/// The taints of a Node but for the one that it waits with.
#[must_use]
pub fn initialized_taints(node: &Node) -> Vec<Taint> {
    let others = node
        .taints
        .iter()
        .filter(|taint| taint.key != keys::TAINT_UNINITIALIZED);
    others.cloned().collect()
}

/// What has changed about an initialised Node: addresses, type, zone and region, and further labels if they are `kept` true. Wrong
/// IPs given to the kubelet leave the addresses as they are and come back beside the rest.
#[must_use]
pub fn refresh(
    node: &Node,
    metadata: &InstanceMetadata,
    kept: bool,
) -> (NodeUpdate, Option<ProvidedIpError>) {
    let (wished, problem) = match addresses::wished(node, &metadata.addresses) {
        Ok(wished) => (wished, None),
        Err(problem) => (None, Some(problem)),
    };
    let (labels, skipped) = labels::refreshed(node, metadata, kept);
    let update = NodeUpdate {
        addresses: wished.filter(|wished| *wished != node.addresses),
        labels,
        skipped,
        ..NodeUpdate::default()
    };
    (update, problem)
}

/// The instance's provider ID, if the Node says another one. It cannot be changed.
#[must_use]
pub fn other_provider_id<'a>(node: &Node, metadata: &'a InstanceMetadata) -> Option<&'a str> {
    let id = given_id(metadata)?;
    let shown = node.provider_id.as_deref()?;
    (id != shown).then_some(id)
}

fn given_id(metadata: &InstanceMetadata) -> Option<&str> {
    metadata.provider_id.as_deref().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{AddressType, Labels, TaintEffect};

    use super::*;

    fn taint(key: &str, value: Option<&str>, effect: TaintEffect) -> Taint {
        Taint {
            key: key.into(),
            value: value.map(Into::into),
            effect,
            time_added: None,
        }
    }

    fn metadata() -> InstanceMetadata {
        InstanceMetadata {
            provider_id: Some("fake://1".into()),
            addresses: vec![NodeAddress::new(AddressType::InternalIp, "10.1.0.1")],
            ..InstanceMetadata::default()
        }
    }

    #[test]
    fn every_uninitialized_taint_goes_and_the_others_keep_their_order() {
        let other = taint("other", Some("x"), TaintEffect::NoSchedule);
        let last = taint("last", None, TaintEffect::NoExecute);
        let node = Node {
            taints: vec![
                other.clone(),
                taint(keys::TAINT_UNINITIALIZED, Some("true"), TaintEffect::NoSchedule),
                last.clone(),
                taint(keys::TAINT_UNINITIALIZED, Some("foo"), TaintEffect::NoExecute),
            ],
            ..Node::named("n1")
        };
        let update = initialize(&node, &metadata()).unwrap();
        assert_eq!(update.taints, Some(vec![other, last]));
        assert_eq!(update.provider_id.as_deref(), Some("fake://1"));
        assert_eq!(update.addresses, Some(metadata().addresses));
    }

    #[test]
    fn a_provider_id_is_written_once_and_needed() {
        let with_id = Node {
            provider_id: Some("fake://old".into()),
            ..Node::named("n1")
        };
        let without = InstanceMetadata {
            provider_id: Some(String::new()),
            ..metadata()
        };
        assert_eq!(initialize(&with_id, &metadata()).unwrap().provider_id, None);
        assert_eq!(initialize(&with_id, &without).unwrap().provider_id, None);
        assert_eq!(
            initialize(&Node::named("n1"), &without).unwrap_err().to_string(),
            "cloud provider does not set node provider ID for node n1"
        );
        assert_eq!(other_provider_id(&with_id, &metadata()), Some("fake://1"));
        assert_eq!(other_provider_id(&with_id, &without), None);
        assert_eq!(other_provider_id(&Node::named("n1"), &metadata()), None);
    }

    #[test]
    fn wrong_provided_ips_stop_an_initialisation_and_spare_a_refresh() {
        let node = Node {
            annotations: Labels::from_iter([(keys::ANNOTATION_PROVIDED_NODE_IP, "10.9.9.9")]),
            ..Node::named("n1")
        };
        assert_eq!(
            initialize(&node, &metadata()).unwrap_err().to_string(),
            "failed to get node modifiers from cloud provider: provided node ip for node \"n1\" is not valid: \
             failed to get node address from cloud provider that matches ip: 10.9.9.9"
        );
        let (update, problem) = refresh(&node, &metadata(), false);
        assert_eq!(update.addresses, None);
        assert!(problem.is_some());
    }

    #[test]
    fn addresses_are_compared_in_order() {
        let two = vec![
            NodeAddress::new(AddressType::InternalIp, "10.1.0.1"),
            NodeAddress::new(AddressType::InternalIp, "fd00::1"),
        ];
        let metadata = InstanceMetadata {
            addresses: two.clone(),
            ..metadata()
        };
        let mut node = Node {
            addresses: two,
            ..Node::named("n1")
        };
        assert_eq!(refresh(&node, &metadata, false).0, NodeUpdate::default());
        node.addresses.reverse();
        assert_eq!(
            refresh(&node, &metadata, false).0.addresses,
            Some(metadata.addresses)
        );
    }

    #[test]
    fn a_patch_sets_labels_and_removes_none() {
        let update = NodeUpdate {
            labels: labels::Changes::from([("a".to_owned(), "b".to_owned())]),
            ..NodeUpdate::default()
        };
        assert!(update.has_patch());
        assert_eq!(update.into_patch().labels.get("a"), Some(&Some("b".to_owned())));
        assert!(!NodeUpdate::default().has_patch());
    }
}
