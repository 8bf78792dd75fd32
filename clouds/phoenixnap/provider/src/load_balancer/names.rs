//! The tags that blocks bear. Names and values are those of the vendor's manager. They stand in the cloud, so they are fixed for ever.

use bowline_cloud_provider::ServiceKey;
use bowline_phoenixnap_client::{BlockTag, TagFilter};

const USAGE: &str = "usage";
const USAGE_VALUE: &str = "cloud-provider-phoenixnap-auto";
pub(super) const CLUSTER: &str = "cluster";
pub(super) const NAMESPACE: &str = "serviceNamespace";
pub(super) const NAME: &str = "serviceName";
/// On a block that is to be given back: with the value `true`, or without any.
pub(crate) const DELETE: &str = "delete";

/// The names that must be known to the account, in the order in which they are made known.
pub(crate) const NAMES: [&str; 5] = [USAGE, CLUSTER, NAMESPACE, NAME, DELETE];

/// What finds the blocks of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterTags {
    /// The UID of the namespace `kube-system`.
    pub(crate) uid: String,
}

impl ClusterTags {
    /// The conditions that find all blocks of the cluster.
    pub(crate) fn conditions(&self) -> Vec<TagFilter> {
        vec![TagFilter::new(CLUSTER, self.uid.as_str()), of_managers()]
    }

    /// The conditions that find the blocks of one Service.
    pub(crate) fn conditions_of(&self, service: &ServiceKey) -> Vec<TagFilter> {
        let mut conditions = self.conditions();
        conditions.push(TagFilter::new(NAME, &*service.name));
        conditions.push(TagFilter::new(NAMESPACE, &*service.namespace));
        conditions
    }

    /// The tags of a block that is bought for a Service.
    pub(crate) fn of_new_block(&self, service: &ServiceKey) -> Vec<BlockTag> {
        vec![
            BlockTag::new(USAGE, USAGE_VALUE),
            BlockTag::new(CLUSTER, self.uid.as_str()),
            BlockTag::new(NAMESPACE, &*service.namespace),
            BlockTag::new(NAME, &*service.name),
        ]
    }
}

/// What every block bears that a manager bought, of whatever cluster.
pub(crate) fn of_managers() -> TagFilter {
    TagFilter::new(USAGE, USAGE_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_stand_in_the_vendors_order() {
        let shown: Vec<String> = ClusterTags {
            uid: "0b2f7f0e-6a58-4f0b-9a47-51f0a1c7c9d2".to_owned(),
        }
        .conditions_of(&ServiceKey::new("shop", "checkout"))
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(
            shown,
            [
                "cluster.0b2f7f0e-6a58-4f0b-9a47-51f0a1c7c9d2",
                "usage.cloud-provider-phoenixnap-auto",
                "serviceName.checkout",
                "serviceNamespace.shop",
            ]
        );
    }
}
