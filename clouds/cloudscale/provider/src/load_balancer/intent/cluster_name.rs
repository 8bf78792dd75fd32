//! The name of the cluster that people see in tags.

use std::collections::BTreeSet;

use bowline_cloud_provider::{ClusterFacts, Node};
use bowline_plan::Note;

use crate::load_balancer::names::MAX_TAG_VALUE;
use crate::messages::CLUSTER_NAME_AMBIGUOUS;

/// The value of `--cluster-name` that nobody chose.
const FLAG_DEFAULT: &str = "kubernetes";

/// The name of the cluster: the flag's value unless that is its default, else what all nodes that say something say.
pub(super) fn cluster_name<'a>(
    cluster: &ClusterFacts,
    nodes: impl Iterator<Item = &'a Node>,
    annotation: &str,
) -> (Option<String>, Option<Note>) {
    let fits = |name: &str| !name.is_empty() && name.chars().count() <= MAX_TAG_VALUE;
    if cluster.name != FLAG_DEFAULT && fits(&cluster.name) {
        return (Some(cluster.name.clone()), None);
    }
    let names: BTreeSet<&str> = nodes
        .filter_map(|node| node.annotations.value(annotation))
        .filter(|name| fits(name))
        .collect();
    if names.len() > 1 {
        let list: Vec<&str> = names.into_iter().collect();
        let text = format!(
            "nodes name different clusters in the annotation {annotation}: {}",
            list.join(", ")
        );
        return (None, Some(CLUSTER_NAME_AMBIGUOUS.note(text)));
    }
    (names.first().map(|name| (*name).to_owned()), None)
}

#[cfg(test)]
mod tests {
    use crate::config::DEFAULT_NODE_ANNOTATION;
    use bowline_cloud_provider::Labels;

    use super::*;

    fn name(flag: &str, annotations: &[Option<&str>]) -> (Option<String>, bool) {
        let nodes: Vec<Node> = annotations
            .iter()
            .map(|value| {
                let annotations: Labels = value
                    .iter()
                    .map(|value| (DEFAULT_NODE_ANNOTATION, *value))
                    .collect();
                Node {
                    annotations,
                    ..Node::named("n")
                }
            })
            .collect();
        let facts = ClusterFacts {
            name: flag.into(),
            uid: None,
            server_version: None,
            holder: String::new(),
        };
        let (name, note) = cluster_name(&facts, nodes.iter(), DEFAULT_NODE_ANNOTATION);
        (name, note.is_some())
    }

    #[test]
    fn the_flag_counts_unless_it_is_the_default_and_nodes_must_agree() {
        assert_eq!(name("prod", &[Some("other")]), (Some("prod".into()), false));
        assert_eq!(name("kubernetes", &[]), (None, false));
        assert_eq!(
            name("kubernetes", &[Some("a"), None, Some("a")]),
            (Some("a".into()), false)
        );
        assert_eq!(name("kubernetes", &[Some("a"), Some("b")]), (None, true));
        assert_eq!(name("", &[Some("")]), (None, false));
    }
}
