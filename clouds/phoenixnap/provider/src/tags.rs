//! How blocks are known: the tags that they bear.
//!
//! Names and values are those of the vendor's manager. They stand in the cloud, so they are fixed for ever.

use bowline_cloud_provider::ServiceKey;
use bowline_phoenixnap_client::{BlockTag, IpBlock, TagFilter};

const USAGE: &str = "usage";
const USAGE_VALUE: &str = "cloud-provider-phoenixnap-auto";
const CLUSTER: &str = "cluster";
const NAMESPACE: &str = "serviceNamespace";
const NAME: &str = "serviceName";
/// On a block that is to be given back, whatever its value.
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
        vec![
            TagFilter::new(CLUSTER, self.uid.as_str()),
            TagFilter::new(USAGE, USAGE_VALUE),
        ]
    }

    /// The conditions that find the blocks of one Service.
    pub(crate) fn conditions_of(&self, service: &ServiceKey) -> Vec<TagFilter> {
        let mut conditions = self.conditions();
        conditions.push(TagFilter::new(NAME, &*service.name));
        conditions.push(TagFilter::new(NAMESPACE, &*service.namespace));
        conditions
    }

    /// Whether a block is one of the cluster. The server's own filter is not trusted with it.
    pub(crate) fn owns(&self, block: &IpBlock) -> bool {
        self.conditions().iter().all(|tag| tag.is_met_by(&block.tags))
    }

    /// Whether a block is an active one of the Service.
    pub(crate) fn is_active_for(&self, block: &IpBlock, service: &ServiceKey) -> bool {
        !is_marked(block)
            && self
                .conditions_of(service)
                .iter()
                .all(|tag| tag.is_met_by(&block.tags))
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

/// Whether a block is to be given back.
pub(crate) fn is_marked(block: &IpBlock) -> bool {
    block.tags.iter().any(|tag| tag.name == DELETE)
}

/// The Service that a block's tags name.
pub(crate) fn service_of(block: &IpBlock) -> Option<ServiceKey> {
    let value = |name: &str| {
        block
            .tags
            .iter()
            .find(|tag| tag.name == name)
            .and_then(|tag| tag.value.as_deref())
    };
    Some(ServiceKey::new(value(NAMESPACE)?, value(NAME)?))
}

/// The tags of a block after it was marked: it no longer bears its Service's name, and everything else stays.
pub(crate) fn marked(tags: &[BlockTag]) -> Vec<BlockTag> {
    let mut tags: Vec<BlockTag> = tags
        .iter()
        .filter(|tag| ![NAMESPACE, NAME, DELETE].contains(&tag.name.as_str()))
        .cloned()
        .collect();
    tags.push(BlockTag::new(DELETE, "true"));
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterTags {
        ClusterTags {
            uid: "0b2f7f0e-6a58-4f0b-9a47-51f0a1c7c9d2".to_owned(),
        }
    }

    fn block(tags: Vec<BlockTag>) -> IpBlock {
        let mut block: IpBlock = serde_json::from_str(r#"{"id":"b","cidr":"198.51.100.8/29"}"#).unwrap();
        block.tags = tags;
        block
    }

    #[test]
    fn a_bought_block_is_found_and_a_marked_one_is_not() {
        let service = ServiceKey::new("shop", "checkout");
        let mut bought = block(cluster().of_new_block(&service));
        bought.tags.push(BlockTag::new("team", "blue"));
        assert!(cluster().owns(&bought) && cluster().is_active_for(&bought, &service));
        assert_eq!(service_of(&bought), Some(service.clone()));
        assert!(!cluster().is_active_for(&bought, &ServiceKey::new("shop", "Checkout")));

        let gone = block(marked(&bought.tags));
        assert!(cluster().owns(&gone) && is_marked(&gone));
        assert!(!cluster().is_active_for(&gone, &service));
        let names: Vec<&str> = gone.tags.iter().map(|tag| tag.name.as_str()).collect();
        assert_eq!(names, ["usage", "cluster", "team", "delete"]);
        assert_eq!(marked(&gone.tags), gone.tags);
    }

    #[test]
    fn a_delete_tag_marks_whatever_its_value() {
        assert!(is_marked(&block(vec![BlockTag::new("delete", "false")])));
        let bare = BlockTag {
            name: "delete".to_owned(),
            value: None,
        };
        assert!(is_marked(&block(vec![bare])));
        assert!(!is_marked(&block(vec![BlockTag::new("Delete", "true")])));
    }

    #[test]
    fn the_conditions_stand_in_the_vendors_order() {
        let shown: Vec<String> = cluster()
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
