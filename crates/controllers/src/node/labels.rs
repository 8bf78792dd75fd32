//! The labels that tell a Node's type, zone and region, and those that a cloud adds. Pure.

use std::collections::BTreeMap;

use bowline_cloud_provider::{InstanceMetadata, Node, keys};

/// A label under its two names: the present one and the one it had in its beta.
struct Pair {
    present: &'static str,
    beta: &'static str,
    value: fn(&InstanceMetadata) -> &str,
}

const PAIRS: [Pair; 3] = [
    Pair {
        present: keys::LABEL_ZONE,
        beta: keys::LABEL_ZONE_BETA,
        value: |metadata| &metadata.zone,
    },
    Pair {
        present: keys::LABEL_REGION,
        beta: keys::LABEL_REGION_BETA,
        value: |metadata| &metadata.region,
    },
    Pair {
        present: keys::LABEL_INSTANCE_TYPE,
        beta: keys::LABEL_INSTANCE_TYPE_BETA,
        value: |metadata| &metadata.instance_type,
    },
];

/// Labels to set.
pub type Changes = BTreeMap<String, String>;

/// A label of the cloud that a Node does not get.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Skipped {
    /// Its prefix is, or ends in, one that belongs to Kubernetes.
    #[error("label {0}: its prefix belongs to Kubernetes")]
    Reserved(String),
    /// No label of Kubernetes is like this.
    #[error("label {key}={value:?}: Kubernetes takes no label like this")]
    Unfit {
        /// The key.
        key: String,
        /// The cloud's value.
        value: String,
    },
    /// The Node has the key already, with another value.
    #[error("label {key}={value}: the node has the value {present}")]
    Present {
        /// The key.
        key: String,
        /// The cloud's value.
        value: String,
        /// The Node's value.
        present: String,
    },
}

/// Whether a Node has what every cloud says of an instance: its type, and its zone or region. Under either name.
#[must_use]
pub fn are_of_a_cloud(node: &Node) -> bool {
    let [has_zone, has_region, has_type] =
        PAIRS.map(|pair| node.labels.contains(pair.present) || node.labels.contains(pair.beta));
    has_type && (has_zone || has_region)
}

/// What a new Node lacks: type, zone and region under both names, and the cloud's further labels where the Node does
/// not have the key. Beside it what the Node does not get.
#[must_use]
pub fn initial(node: &Node, metadata: &InstanceMetadata) -> (Changes, Vec<Skipped>) {
    let mut changes = Changes::new();
    let mut skipped = Vec::new();
    for (pair, value) in of_cloud(metadata, &mut skipped) {
        set(&mut changes, node, pair.present, value);
        set(&mut changes, node, pair.beta, value);
    }
    let labels = metadata.additional_labels.iter();
    further(&mut changes, node, labels, Present::Stays, &mut skipped);
    (changes, skipped)
}

/// What has changed in the cloud since: type, zone and region, those further labels of the Node that move, and all further ones if
/// they are `kept` true. A beta label that somebody took off stays off, and a further label that the cloud gives no longer stays on.
/// Beside it what the Node does not get.
#[must_use]
pub fn refreshed(node: &Node, metadata: &InstanceMetadata, kept: bool) -> (Changes, Vec<Skipped>) {
    let mut changes = Changes::new();
    let mut skipped = Vec::new();
    for (pair, value) in of_cloud(metadata, &mut skipped) {
        let is_new = node.labels.value(pair.present) != Some(value);
        set(&mut changes, node, pair.present, value);
        if is_new || node.labels.contains(pair.beta) {
            set(&mut changes, node, pair.beta, value);
        }
    }
    let moves = |key: &str| metadata.moving_labels.contains(&key) && node.labels.contains(key);
    let labels = metadata.additional_labels.iter();
    let labels = labels.filter(|(key, _)| kept || moves(key));
    further(&mut changes, node, labels, Present::Replaced, &mut skipped);
    (changes, skipped)
}

/// What becomes of a further label that a Node has with another value.
#[derive(Clone, Copy)]
enum Present {
    Stays,
    Replaced,
}

/// These of the cloud's further labels. One with an empty value counts.
fn further<'a>(
    changes: &mut Changes,
    node: &Node,
    labels: impl Iterator<Item = (&'a str, &'a String)>,
    rule: Present,
    skipped: &mut Vec<Skipped>,
) {
    for (key, value) in labels {
        if is_reserved(key) {
            skipped.push(Skipped::Reserved(key.to_owned()));
            continue;
        }
        if !is_fit_key(key) || !is_fit_value(value) {
            skipped.push(Skipped::unfit(key, value));
            continue;
        }
        match (node.labels.value(key), rule) {
            (Some(present), _) if present == value => {}
            (Some(present), Present::Stays) => skipped.push(Skipped::Present {
                key: key.to_owned(),
                value: value.clone(),
                present: present.to_owned(),
            }),
            (None, _) | (Some(_), Present::Replaced) => {
                changes.insert(key.to_owned(), value.clone());
            }
        }
    }
}

/// Type, zone and region, where the cloud names them by a value that a label can have.
fn of_cloud<'a>(metadata: &'a InstanceMetadata, skipped: &mut Vec<Skipped>) -> Vec<(&'static Pair, &'a str)> {
    let named = PAIRS.iter().map(|pair| (pair, (pair.value)(metadata)));
    let (fit, unfit): (Vec<_>, Vec<_>) = named
        .filter(|(_, value)| !value.is_empty())
        .partition(|(_, value)| is_fit_value(value));
    skipped.extend(
        unfit
            .iter()
            .map(|(pair, value)| Skipped::unfit(pair.present, value)),
    );
    fit
}

/// What brings the two names of a label to one value: the present name is the master. One that is missing comes back
/// from the beta name; a beta name that is missing is not added.
#[must_use]
pub fn agreed(node: &Node) -> Changes {
    let mut changes = Changes::new();
    for pair in &PAIRS {
        match (node.labels.value(pair.present), node.labels.value(pair.beta)) {
            (Some(value), Some(beta)) if value != beta => set(&mut changes, node, pair.beta, value),
            (None, Some(beta)) => set(&mut changes, node, pair.present, beta),
            _ => {}
        }
    }
    changes
}

fn set(changes: &mut Changes, node: &Node, key: &str, value: &str) {
    if node.labels.value(key) != Some(value) {
        changes.insert(key.to_owned(), value.to_owned());
    }
}

impl Skipped {
    fn unfit(key: &str, value: &str) -> Self {
        Self::Unfit {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }
}

/// The rules of `k8s.io/apimachinery/pkg/util/validation`: `IsQualifiedName` and `IsValidLabelValue`.
fn is_fit_key(key: &str) -> bool {
    let is_domain = |prefix: &str| {
        let parts = || prefix.split('.');
        let is_lower = |part: &str| !part.contains(|c: char| c.is_ascii_uppercase() || c == '_');
        prefix.len() <= 253 && parts().all(|part| !part.is_empty() && is_lower(part) && is_fit(part))
    };
    let is_name = |name: &str| !name.is_empty() && name.len() <= 63 && is_fit(name);
    match key.split_once('/') {
        Some((prefix, name)) => is_domain(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_fit_value(value: &str) -> bool {
    value.len() <= 63 && is_fit(value)
}

/// Letters and digits at both ends, also `-`, `_` and `.` between.
fn is_fit(text: &str) -> bool {
    let is_end = |end: Option<u8>| end.is_none_or(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = text.bytes();
    is_end(text.bytes().next())
        && is_end(text.bytes().last())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Whether the prefix is, or ends in, one that belongs to Kubernetes.
fn is_reserved(key: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| {
        ["kubernetes.io", "k8s.io"].iter().any(|domain| {
            prefix
                .strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    })
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::Labels;
    use proptest::prelude::*;

    use super::*;

    fn node(labels: &[(&str, &str)]) -> Node {
        Node {
            labels: labels.iter().copied().collect::<Labels>(),
            ..Node::named("n1")
        }
    }

    fn metadata(instance_type: &str, zone: &str, region: &str) -> InstanceMetadata {
        InstanceMetadata {
            instance_type: instance_type.into(),
            zone: zone.into(),
            region: region.into(),
            ..InstanceMetadata::default()
        }
    }

    fn further_labels(pairs: &[(&str, &str)]) -> bowline_cloud_provider::Pairs<String> {
        changes(pairs).into_iter().collect()
    }

    fn changes(pairs: &[(&str, &str)]) -> Changes {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_new_node_gets_both_names_and_an_empty_value_touches_nothing() {
        assert_eq!(
            initial(&node(&[(keys::LABEL_ZONE, "old")]), &metadata("flex-4", "z1", "")).0,
            changes(&[
                (keys::LABEL_INSTANCE_TYPE, "flex-4"),
                (keys::LABEL_INSTANCE_TYPE_BETA, "flex-4"),
                (keys::LABEL_ZONE, "z1"),
                (keys::LABEL_ZONE_BETA, "z1"),
            ])
        );
    }

    #[test]
    fn further_labels_are_set_where_the_key_is_free_and_not_reserved() {
        let metadata = InstanceMetadata {
            additional_labels: further_labels(&[
                ("example.com/rack", "a1"),
                ("node.kubernetes.io/bad", "x"),
                ("kubernetes.io/bad", "x"),
                ("foo.k8s.io/y", "z"),
                ("notkubernetes.io/fine", "x"),
                ("existing", "cloud"),
            ]),
            ..InstanceMetadata::default()
        };
        let (set, skipped) = initial(&node(&[("existing", "kubelet")]), &metadata);
        assert_eq!(
            set,
            changes(&[("example.com/rack", "a1"), ("notkubernetes.io/fine", "x")])
        );
        let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
        assert_eq!(
            skipped,
            [
                "label existing=cloud: the node has the value kubelet",
                "label foo.k8s.io/y: its prefix belongs to Kubernetes",
                "label kubernetes.io/bad: its prefix belongs to Kubernetes",
                "label node.kubernetes.io/bad: its prefix belongs to Kubernetes",
            ]
        );
    }

    #[test]
    fn a_resized_instance_gets_its_new_type_and_nothing_else() {
        let node = node(&[
            (keys::LABEL_INSTANCE_TYPE, "flex-4"),
            (keys::LABEL_INSTANCE_TYPE_BETA, "flex-4"),
            (keys::LABEL_ZONE, "z1"),
        ]);
        assert_eq!(
            refreshed(&node, &metadata("flex-8", "z1", ""), true).0,
            changes(&[
                (keys::LABEL_INSTANCE_TYPE, "flex-8"),
                (keys::LABEL_INSTANCE_TYPE_BETA, "flex-8"),
            ])
        );
        assert!(refreshed(&node, &metadata("", "", ""), true).0.is_empty());
    }

    #[test]
    fn further_labels_are_kept_true_where_that_is_asked_for() {
        let metadata = InstanceMetadata {
            additional_labels: further_labels(&[
                ("example.com/host", "b"),
                ("example.com/empty", ""),
                ("example.com/same", "x"),
                ("topology.kubernetes.io/host", "b"),
                ("example.com/unfit", "a b"),
            ]),
            ..InstanceMetadata::default()
        };
        let node = node(&[
            ("example.com/host", "a"),
            ("example.com/same", "x"),
            ("example.com/no-longer-given", "stays"),
        ]);
        let (set, skipped) = refreshed(&node, &metadata, true);
        assert_eq!(
            set,
            changes(&[("example.com/host", "b"), ("example.com/empty", "")])
        );
        assert_eq!(
            skipped,
            [
                Skipped::unfit("example.com/unfit", "a b"),
                Skipped::Reserved("topology.kubernetes.io/host".to_owned()),
            ]
        );
        assert_eq!(refreshed(&node, &metadata, false), (Changes::new(), Vec::new()));
    }

    #[test]
    fn a_label_that_moves_follows_its_instance_and_comes_to_no_node_that_lacks_it() {
        let metadata = InstanceMetadata {
            additional_labels: further_labels(&[("example.com/host", "h2"), ("example.com/rack", "r2")]),
            moving_labels: &["example.com/host", "example.com/gone"],
            ..InstanceMetadata::default()
        };
        let moved = |labels: &[(&str, &str)]| refreshed(&node(labels), &metadata, false).0;
        assert_eq!(
            moved(&[("example.com/host", "h1"), ("example.com/rack", "r1")]),
            changes(&[("example.com/host", "h2")])
        );
        assert!(moved(&[("example.com/host", "h2")]).is_empty());
        assert!(moved(&[]).is_empty(), "as the Go manager left it");
    }

    #[test]
    fn what_no_label_can_be_is_left_out_and_the_others_are_set() {
        let long = "x".repeat(64);
        for value in ["a b", "-a", "a.", "ä", &*long] {
            let metadata = metadata("flex-4", value, "r1");
            for (set, skipped) in [
                initial(&node(&[]), &metadata),
                refreshed(&node(&[]), &metadata, false),
            ] {
                assert_eq!(set.len(), 4, "{value}");
                assert_eq!(skipped, [Skipped::unfit(keys::LABEL_ZONE, value)]);
            }
        }
        for (key, is_fit) in [
            ("rack", true),
            ("example.com/Rack_1", true),
            ("", false),
            ("a/b/c", false),
            ("/b", false),
            ("a/", false),
            ("Example.com/b", false),
            ("a..b/c", false),
            (&*long, false),
        ] {
            assert_eq!(is_fit_key(key), is_fit, "{key}");
        }
    }

    #[test]
    fn the_present_name_is_the_master() {
        let agreed = |labels: &[(&str, &str)]| super::agreed(&node(labels));
        let (present, beta) = (keys::LABEL_ZONE, keys::LABEL_ZONE_BETA);
        assert_eq!(
            agreed(&[(present, "new"), (beta, "old")]),
            changes(&[(beta, "new")])
        );
        assert_eq!(agreed(&[(beta, "z1")]), changes(&[(present, "z1")]));
        assert!(agreed(&[(present, "z1")]).is_empty(), "a beta label is not added");
        assert!(agreed(&[(present, "z1"), (beta, "z1")]).is_empty());
        assert!(agreed(&[]).is_empty());
    }

    fn labels() -> impl Strategy<Value = Vec<(usize, u8)>> {
        proptest::collection::vec((0..6_usize, 0..3_u8), 0..6)
    }

    proptest! {
        #[test]
        fn every_rule_settles_at_once(labels in labels(), cloud in proptest::array::uniform3(0..3_u8)) {
            let names = [
                keys::LABEL_ZONE, keys::LABEL_ZONE_BETA, keys::LABEL_REGION,
                keys::LABEL_REGION_BETA, keys::LABEL_INSTANCE_TYPE, keys::LABEL_INSTANCE_TYPE_BETA,
            ];
            let value = |n: u8| if n == 0 { String::new() } else { format!("v{n}") };
            let metadata = metadata(&value(cloud[0]), &value(cloud[1]), &value(cloud[2]));
            let before: BTreeMap<String, String> =
                labels.into_iter().map(|(name, n)| (names[name].to_owned(), value(n))).collect();
            let rules: [&dyn Fn(&Node) -> Changes; 3] =
                [&|node| initial(node, &metadata).0, &|node| refreshed(node, &metadata, true).0, &|node| agreed(node)];
            for rule in rules {
                let mut labels = before.clone();
                let shown = |labels: &BTreeMap<String, String>| Node {
                    labels: labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
                    ..Node::named("n1")
                };
                labels.extend(rule(&shown(&labels)));
                prop_assert!(rule(&shown(&labels)).is_empty());
            }
        }
    }
}
