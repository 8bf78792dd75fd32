//! Which Nodes are balanced over, and which changes of a Node concern the balancers. Pure.
//!
//! A Node is left out while it is being deleted, while it carries the exclusion label, and from when the cluster
//! autoscaler announces its removal. Nothing else counts for the *stable* set: not readiness, not a cordon, not other
//! taints, not a missing provider ID. So a Node that flaps does not rebuild balancers, and their own health checks
//! decide. The *ready* set, for clouds without health checks, asks for a Node that is ready besides: one that is drained
//! serves until it is gone.

use std::sync::Arc;

use bowline_cloud_provider::{LoadBalancer, Node, NodeSet, Readiness, Service, facts, keys};

use crate::advice;

/// What leaves out a Node that does not report that it is ready.
const NOT_READY: &str = "not ready";

/// Whether a Node is balanced over.
#[must_use]
pub fn is_balanced(node: &Node, set: NodeSet) -> bool {
    left_out_by(node, set).is_none()
}

/// What keeps a Node from being balanced over; `None`: it is.
#[must_use]
pub fn left_out_by(node: &Node, set: NodeSet) -> Option<&'static str> {
    if node.is_excluded_from_balancers() {
        Some(keys::LABEL_EXCLUDE_FROM_BALANCERS)
    } else if node.has_taint(keys::TAINT_TO_BE_DELETED) {
        Some(keys::TAINT_TO_BE_DELETED)
    } else if node.deleting {
        Some("deletionTimestamp")
    } else {
        (set == NodeSet::Ready && node.readiness != Readiness::Ready).then_some(NOT_READY)
    }
}

/// What to do where none of these Nodes is balanced over.
#[must_use]
pub fn let_in(nodes: &[Arc<Node>], set: NodeSet) -> String {
    let left_out = |by: &str| nodes.iter().find(|node| left_out_by(node, set) == Some(by));
    // The label may be on the control plane alone, and rightly.
    if let Some(node) = left_out(keys::TAINT_TO_BE_DELETED) {
        return advice::untaint(node.name.as_str());
    }
    if let Some(node) = left_out(NOT_READY) {
        return format!(
            "whoever runs the cluster looks at the kubelets of Nodes that are not ready, such as {}, or adds Nodes",
            node.name
        );
    }
    match left_out(keys::LABEL_EXCLUDE_FROM_BALANCERS) {
        Some(_) => format!(
            "whoever runs the cluster adds Nodes, or takes the label off those that are to serve: kubectl label node NAME {}-",
            keys::LABEL_EXCLUDE_FROM_BALANCERS
        ),
        None => "whoever runs the cluster adds Nodes".to_owned(),
    }
}

/// The Nodes that are balanced over, in the order given.
#[must_use]
pub fn balanced<'a>(nodes: impl IntoIterator<Item = &'a Arc<Node>>, set: NodeSet) -> Vec<Arc<Node>> {
    nodes
        .into_iter()
        .filter(|node| is_balanced(node, set))
        .cloned()
        .collect()
}

/// The Nodes that a Service's load balancer leads to, of those that are balanced over: the ones that are about to go are left out or
/// marked, so that no new connection meets a machine that ends; but for where that would leave none, or the Service or its cloud wants
/// it otherwise.
#[must_use]
pub fn of_service(
    balanced: Vec<Arc<Node>>,
    service: &Service,
    load_balancer: &dyn LoadBalancer,
) -> Vec<Arc<Node>> {
    let staying = match drains(service, load_balancer) {
        true => staying(balanced.clone(), |_| false),
        false => balanced.clone(),
    };
    match load_balancer.keeps_drained() {
        true => marked(balanced, &staying),
        false => staying,
    }
}

/// All that are balanced over, with what drains them on those that do not stay, and on no other. Both in one order.
#[must_use]
pub fn marked(balanced: Vec<Arc<Node>>, staying: &[Arc<Node>]) -> Vec<Arc<Node>> {
    let mut staying = staying.iter().peekable();
    let mark = |node: Arc<Node>| {
        let is_staying = staying.next_if(|it| it.name == node.name).is_some();
        if is_staying == node.draining.is_none() {
            return node;
        }
        // One that rests is drained no more.
        let draining = (!is_staying).then(|| node.drained_by().unwrap_or("drained a moment ago"));
        Arc::new(Node {
            draining,
            ..(*node).clone()
        })
    };
    balanced.into_iter().map(mark).collect()
}

/// Those of them that are not about to go, without those that still rest from it; all of them if there are no others.
#[must_use]
pub fn staying(mut balanced: Vec<Arc<Node>>, is_resting: impl Fn(&Node) -> bool) -> Vec<Arc<Node>> {
    let is_staying = |node: &Arc<Node>| node.drained_by().is_none();
    if balanced.iter().any(is_staying) {
        balanced.retain(is_staying);
    }
    let is_rested = |node: &Arc<Node>| !is_resting(node);
    if balanced.iter().any(is_rested) {
        balanced.retain(is_rested);
    }
    balanced
}

/// Whether members of a Service go before their machines do.
#[must_use]
pub fn drains(service: &Service, load_balancer: &dyn LoadBalancer) -> bool {
    match facts::annotation(service, keys::ANNOTATION_DRAIN) {
        Some("true") => true,
        Some("false") => false,
        _ => load_balancer.drains(service),
    }
}

/// Whether a Node that is balanced over begins to go, or stays after all.
#[must_use]
pub fn begins_or_ends_to_drain(old: &Node, new: &Node, set: NodeSet) -> bool {
    old.drained_by().is_some() != new.drained_by().is_some()
        && (is_balanced(old, set) || is_balanced(new, set))
}

/// Whether the change from one state of a Node to the next has the balancers looked at: somebody excludes it or takes that
/// back, or it is in the set and is another instance or has other addresses now; in the *ready* set also when it comes or
/// goes for any other reason.
///
/// What is about to be removed is another question: see [`begins_or_ends_to_drain`]. Upstream looks at the label and the provider ID only, so that a
/// Node that got its addresses late keeps a wrong member until something else happens.
#[must_use]
pub fn concerns_balancers(old: &Node, new: &Node, set: NodeSet) -> bool {
    match (is_balanced(old, set), is_balanced(new, set)) {
        (false, false) => false,
        (true, true) => {
            old.uid != new.uid
                || old.provider_id != new.provider_id
                || old.addresses != new.addresses
                || counts_as_ready(old, set) != counts_as_ready(new, set)
        }
        _ => set == NodeSet::Ready || old.is_excluded_from_balancers() != new.is_excluded_from_balancers(),
    }
}

/// Whether a Node is ready, where that counts beside the set.
#[must_use]
pub fn counts_as_ready(node: &Node, set: NodeSet) -> Option<bool> {
    (set == NodeSet::Both).then_some(node.readiness == Readiness::Ready)
}

/// Whether a change of a Node alters the set, or something of a Node in it that providers read. A heartbeat does not.
#[must_use]
pub fn alters(old: &Node, new: &Node, set: NodeSet) -> bool {
    // All that there is, so that a new field has to be thought of here.
    let Node {
        name,
        uid,
        deleting,
        labels,
        annotations,
        provider_id,
        taints,
        pod_cidrs,
        addresses,
        resource_version: _,
        created: _,
        readiness: _,
        draining,
        network_unavailable: _,
    } = new;
    let is_read_otherwise = old.name != *name
        || old.uid != *uid
        || old.deleting != *deleting
        || old.labels != *labels
        || old.annotations != *annotations
        || old.provider_id != *provider_id
        || old.taints != *taints
        || old.draining != *draining
        || old.pod_cidrs != *pod_cidrs
        || old.addresses != *addresses
        || counts_as_ready(old, set) != counts_as_ready(new, set);
    let are_balanced = [old, new].map(|node| is_balanced(node, set));
    are_balanced[0] != are_balanced[1] || are_balanced[1] && is_read_otherwise
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{AddressType, Labels, NodeAddress, Taint, TaintEffect};
    use proptest::prelude::*;

    use super::*;

    fn tainted(key: &str) -> Vec<Taint> {
        vec![Taint {
            key: key.into(),
            value: None,
            effect: TaintEffect::NoSchedule,
            time_added: None,
        }]
    }

    fn ready() -> Node {
        Node {
            readiness: Readiness::Ready,
            ..Node::named("a")
        }
    }

    #[test]
    fn membership_follows_the_table() {
        let excluded = |value: &str| Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_BALANCERS, value)]);
        let table: Vec<(&str, Node, bool, bool)> = vec![
            ("ready", ready(), true, true),
            (
                "not ready",
                Node {
                    readiness: Readiness::NotReady,
                    ..ready()
                },
                true,
                false,
            ),
            ("without conditions", Node::named("a"), true, false),
            (
                "being deleted",
                Node {
                    deleting: true,
                    ..ready()
                },
                false,
                false,
            ),
            (
                "excluded",
                Node {
                    labels: excluded(""),
                    ..ready()
                },
                false,
                false,
            ),
            (
                "not excluded",
                Node {
                    labels: excluded("false"),
                    ..ready()
                },
                true,
                true,
            ),
            (
                "about to be scaled down",
                Node {
                    taints: tainted(keys::TAINT_TO_BE_DELETED),
                    ..ready()
                },
                false,
                false,
            ),
            (
                "uninitialized",
                Node {
                    taints: tainted(keys::TAINT_UNINITIALIZED),
                    ..ready()
                },
                true,
                true,
            ),
            (
                "shut down",
                Node {
                    taints: tainted(keys::TAINT_SHUTDOWN),
                    ..ready()
                },
                true,
                true,
            ),
        ];
        for (case, node, stable, ready) in table {
            assert_eq!(is_balanced(&node, NodeSet::Stable), stable, "stable: {case}");
            assert_eq!(is_balanced(&node, NodeSet::Ready), ready, "ready: {case}");
        }
    }

    #[test]
    fn who_is_about_to_go_is_left_out_unless_nobody_stays() {
        let going = |name: &str| {
            Arc::new(Node {
                draining: Some("DrainInProgress"),
                ..Node::named(name)
            })
        };
        let names = |nodes: Vec<Arc<Node>>| {
            staying(nodes, |_| false)
                .iter()
                .map(|node| node.name.to_string())
                .collect::<String>()
        };
        assert_eq!(names(vec![going("a"), Arc::new(Node::named("b"))]), "b");
        assert_eq!(names(vec![going("a"), going("b")]), "ab");
        let tainted = Node {
            taints: tainted(keys::TAINT_TO_BE_DELETED),
            ..ready()
        };
        for (old, new, begins) in [
            (&ready(), &*going("a"), true),
            (&*going("a"), &ready(), true),
            (&*going("a"), &tainted, false),
            (&ready(), &tainted, true),
        ] {
            assert_eq!(begins_or_ends_to_drain(old, new, NodeSet::Stable), begins);
        }
    }

    #[test]
    fn who_is_kept_is_marked_if_it_does_not_stay_and_only_then() {
        let node = |name: &str, draining| {
            Arc::new(Node {
                draining,
                ..Node::named(name)
            })
        };
        let all = vec![
            node("a", None),
            node("b", Some("DrainInProgress")),
            node("c", None),
        ];
        let marks = |staying: &[Arc<Node>]| {
            let marked = marked(all.clone(), staying);
            marked
                .iter()
                .map(|node| node.draining.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(marks(&all), [false; 3], "the Service does not drain");
        assert_eq!(marks(&staying(all.clone(), |_| false)), [false, true, false]);
        let rests = |node: &Node| node.name.as_str() == "c";
        assert_eq!(marks(&staying(all.clone(), rests)), [false, true, true]);
    }

    #[test]
    fn a_balanced_node_concerns_the_balancers_by_instance_and_addresses_only() {
        let node = ready();
        let changed = |change: fn(&mut Node)| {
            let mut new = node.clone();
            change(&mut new);
            concerns_balancers(&node, &new, NodeSet::Stable)
        };
        assert!(changed(|node| node.provider_id = Some("fake://1".into())));
        assert!(changed(|node| node
            .addresses
            .push(NodeAddress::new(AddressType::InternalIp, "10.0.0.1"))));
        assert!(changed(|node| node.uid = "other".into()));
        assert!(changed(
            |node| node.labels = Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_BALANCERS, "")])
        ));
        assert!(!changed(|node| node.deleting = true));
        assert!(!changed(|node| node.taints = tainted(keys::TAINT_TO_BE_DELETED)));
        assert!(!changed(|node| node.readiness = Readiness::Unknown));
        assert!(!changed(|node| node.resource_version = "7".into()));
        assert!(!changed(|node| node.labels = Labels::from_iter([("a", "b")])));
    }

    #[test]
    fn a_heartbeat_alters_nothing_and_what_providers_read_does() {
        let node = ready();
        let altered = |change: fn(&mut Node), set| {
            let mut new = node.clone();
            change(&mut new);
            alters(&node, &new, set)
        };
        for set in [NodeSet::Stable, NodeSet::Ready] {
            assert!(!altered(|node| node.resource_version = "7".into(), set));
            assert!(altered(|node| node.labels = Labels::from_iter([("a", "b")]), set));
            assert!(altered(
                |node| node.annotations = Labels::from_iter([("a", "b")]),
                set
            ));
            assert!(altered(
                |node| node.taints = tainted(keys::TAINT_UNINITIALIZED),
                set
            ));
            assert!(altered(|node| node.deleting = true, set));
            assert!(altered(|node| node.provider_id = Some("fake://1".into()), set));
        }
        assert!(!altered(
            |node| node.readiness = Readiness::NotReady,
            NodeSet::Stable
        ));
        assert!(altered(
            |node| node.readiness = Readiness::NotReady,
            NodeSet::Ready
        ));
        let unready = Node {
            readiness: Readiness::NotReady,
            ..ready()
        };
        assert!(is_balanced(&unready, NodeSet::Both) && concerns_balancers(&node, &unready, NodeSet::Both));
        assert!(altered(
            |node| node.readiness = Readiness::NotReady,
            NodeSet::Both
        ));
    }

    #[test]
    fn a_node_outside_the_set_concerns_no_balancer() {
        let gone = Node {
            deleting: true,
            ..ready()
        };
        let new = Node {
            provider_id: Some("fake://1".into()),
            ..gone.clone()
        };
        assert!(!concerns_balancers(&gone, &new, NodeSet::Stable));
    }

    prop_compose! {
        fn node()(ready: bool, deleting: bool, tainted_down: bool, id in 0..2_u8) -> Node {
            Node {
                readiness: if ready { Readiness::Ready } else { Readiness::Unknown },
                deleting,
                taints: if tainted_down { tainted(keys::TAINT_TO_BE_DELETED) } else { Vec::new() },
                provider_id: (id > 0).then(|| "fake://1".into()),
                ..Node::named("a")
            }
        }
    }

    proptest! {
        #[test]
        fn the_ready_set_is_within_the_stable_set(node in node()) {
            prop_assert!(!is_balanced(&node, NodeSet::Ready) || is_balanced(&node, NodeSet::Stable));
        }

        #[test]
        fn every_change_of_the_ready_set_is_noticed(old in node(), new in node()) {
            let before = balanced([&Arc::new(old.clone())], NodeSet::Ready);
            let after = balanced([&Arc::new(new.clone())], NodeSet::Ready);
            let differs = before.len() != after.len()
                || before.iter().zip(&after).any(|(a, b)| a.provider_id != b.provider_id);
            prop_assert!(!differs || concerns_balancers(&old, &new, NodeSet::Ready));
            prop_assert!(!concerns_balancers(&old, &old, NodeSet::Stable));
        }
    }
}
