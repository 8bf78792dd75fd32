//! Whose a block is, as the tags tell that it bears.

use bowline_cloud_provider::ServiceKey;
use bowline_phoenixnap_client::{BlockTag, IpBlock, TagFilter};
use serde_json::Value;

use crate::load_balancer::names::{CLUSTER, ClusterTags, DELETE, NAME, NAMESPACE};

impl ClusterTags {
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

    /// Whether an entry of a list that cannot be read may be an active block of the Service: each condition that it does not
    /// fulfil may be told by a tag that cannot be read.
    pub(crate) fn may_be_active_for(&self, odd: &Value, service: &ServiceKey) -> bool {
        let tags = match odd.get("tags") {
            Some(Value::Array(tags)) => tags.as_slice(),
            // As for a block that can be read: no tags are no tags.
            Some(Value::Null) | None if odd.is_object() => return false,
            _ => return true,
        };
        let name = |tag: &Value| tag.get("name").and_then(Value::as_str).map(str::to_owned);
        let marks = |tag: &Value| match tag.get("value") {
            Some(Value::String(value)) => is_mark(Some(value)),
            value => value.is_none_or(Value::is_null),
        };
        if tags
            .iter()
            .any(|tag| name(tag).as_deref() == Some(DELETE) && marks(tag))
        {
            return false;
        }
        let is_open = |condition: &TagFilter| {
            let mut same_name = tags
                .iter()
                .filter(|tag| name(tag).as_ref() == Some(&condition.name));
            !same_name.any(|tag| match tag.get("value") {
                Some(Value::String(value)) => *value == condition.value,
                Some(Value::Null) | None => false,
                Some(_) => true,
            })
        };
        let open = self
            .conditions_of(service)
            .iter()
            .filter(|it| is_open(it))
            .count();
        open <= tags.iter().filter(|tag| name(tag).is_none()).count()
    }
}

/// The UID of the cluster that a block's tags name.
pub(crate) fn cluster_of(block: &IpBlock) -> Option<&str> {
    value(block, CLUSTER)
}

fn value<'a>(block: &'a IpBlock, name: &str) -> Option<&'a str> {
    let tag = block.tags.iter().find(|tag| tag.name == name)?;
    tag.value.as_deref()
}

/// Whether a block is to be given back.
pub(crate) fn is_marked(block: &IpBlock) -> bool {
    let mut tags = block.tags.iter();
    tags.any(|tag| tag.name == DELETE && is_mark(tag.value.as_deref()))
}

/// Whether a value of the tag says that a block is to be given back. Somebody who writes `false` wants the opposite.
fn is_mark(value: Option<&str>) -> bool {
    let value = value.unwrap_or_default().trim();
    value.is_empty() || value.eq_ignore_ascii_case("true")
}

/// The value of a tag that does not mark the block, though a Go manager gives the block back for it.
pub(crate) fn unclear_mark(block: &IpBlock) -> Option<&str> {
    let mut tags = block.tags.iter().filter(|tag| tag.name == DELETE);
    tags.find_map(|tag| tag.value.as_deref().filter(|value| !is_mark(Some(value))))
}

/// What people are told of that.
pub(crate) fn unclear(block: &IpBlock) -> Option<String> {
    let IpBlock { id, cidr, .. } = block;
    unclear_mark(block).map(|value| {
        format!("IP block {id} ({cidr}) has the tag {DELETE}={value} and is not given back: only the value true, or none, marks it")
    })
}

/// The tags of a Service's block that a block does not have, each as `name=value`.
pub(crate) fn missing(block: &IpBlock, cluster: &ClusterTags, service: &ServiceKey) -> Vec<String> {
    let tags = cluster.of_new_block(service).into_iter();
    let missing = tags.filter(|tag| !block.tags.contains(tag));
    missing
        .map(|tag| format!("{}={}", tag.name, tag.value.unwrap_or_default()))
        .collect()
}

/// The Service that a block's tags name.
pub(crate) fn service_of(block: &IpBlock) -> Option<ServiceKey> {
    Some(ServiceKey::new(value(block, NAMESPACE)?, value(block, NAME)?))
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
    use serde_json::json;

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
    fn an_entry_that_cannot_be_read_may_be_the_services_unless_its_tags_say_otherwise() {
        let service = ServiceKey::new("shop", "checkout");
        let own = serde_json::to_value(cluster().of_new_block(&service)).unwrap();
        let with = |position: usize, tag: Value| {
            let mut tags = own.clone();
            tags[position] = tag;
            json!({ "id": null, "tags": tags })
        };
        for (odd, may_be) in [
            (json!(null), true),
            (json!("b1"), true),
            (json!({ "id": 5, "tags": 7 }), true),
            (json!({ "id": "b1", "status": 7, "tags": own }), true),
            (with(0, json!(null)), true),
            (with(1, json!({ "value": "x" })), true),
            (with(3, json!({ "name": "serviceName", "value": 7 })), true),
            (json!({ "id": null, "tags": [null, null, null, null] }), true),
            (json!({ "id": null, "tags": null }), false),
            (json!({ "id": "b1", "status": 7 }), false),
            (json!({ "id": "b1", "tags": [{ "value": "x" }] }), false),
            (
                json!({ "id": "b1", "tags": [{ "name": "team", "value": 7 }] }),
                false,
            ),
            (with(1, json!({ "name": "cluster", "value": "another" })), false),
            (
                with(3, json!({ "name": "serviceName", "value": "search" })),
                false,
            ),
            (with(3, json!({ "name": "serviceName" })), false),
        ] {
            assert_eq!(cluster().may_be_active_for(&odd, &service), may_be, "{odd}");
        }
        let mut marked = json!({ "id": 5, "tags": own });
        marked["tags"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "name": "delete" }));
        assert!(!cluster().may_be_active_for(&marked, &service));
        let tags = marked["tags"].as_array_mut().unwrap();
        tags.last_mut().unwrap()["value"] = json!("false");
        assert!(cluster().may_be_active_for(&marked, &service));
    }

    #[test]
    fn a_delete_tag_marks_unless_its_value_says_something_else_than_true() {
        let unclear = block(vec![BlockTag::new("delete", "false")]);
        assert_eq!(
            (is_marked(&unclear), unclear_mark(&unclear)),
            (false, Some("false"))
        );
        for value in ["true", "True", " "] {
            let marked = block(vec![BlockTag::new("delete", value)]);
            assert_eq!(
                (is_marked(&marked), unclear_mark(&marked)),
                (true, None),
                "{value:?}"
            );
        }
        let bare = BlockTag {
            name: "delete".to_owned(),
            value: None,
        };
        assert!(is_marked(&block(vec![bare])));
        assert!(!is_marked(&block(vec![BlockTag::new("Delete", "true")])));
    }
}
