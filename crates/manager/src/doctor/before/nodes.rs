//! Nodes before the installation: whether their kubelets wait for a manager, and whether the cloud knows them by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::{CloudProvider, InstanceAnswer, Node, ServerVersion, Taint, TaintEffect, keys};
use bowline_kube_io::{Kube, KubeError};
use serde_json::Value;

use crate::doctor::answers::{Answers, is_missing};
use crate::doctor::nodes::{INSTANCES, READ};
use crate::doctor::{Check, some_lines, some_of, timed, unread};
use crate::why::of_answer;

topics! { pub(in crate::doctor) Nodes:
    EXTERNAL = "nodes.external", "Nodes wait for a manager of this cloud", "docs/guides/bootstrap.md";
    VERSIONS = "nodes.versions", "kubelets fit the API server", "docs/guides/bootstrap.md";
    PLACEMENT = "nodes.placement", "Nodes can take the manager's pod", "docs/guides/bootstrap.md";
}

/// The label that the manifests look for.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The taints that all manifests tolerate.
const TOLERATED: [&str; 5] = [
    CONTROL_PLANE,
    "node-role.kubernetes.io/master",
    "CriticalAddonsOnly",
    "node.kubernetes.io/not-ready",
    keys::TAINT_UNINITIALIZED,
];

/// How many minor versions a kubelet may be older than its API server: the version skew policy of Kubernetes.
const OLDER: u32 = 3;

/// The taint of a kubelet that waits for its cloud.
pub(super) fn uninitialized() -> Taint {
    Taint {
        key: keys::TAINT_UNINITIALIZED.to_owned(),
        value: Some("true".to_owned()),
        effect: TaintEffect::NoSchedule,
        time_added: None,
    }
}

/// The checks that need no further question. The Nodes of `answers` all have the taint, or a provider ID.
pub(super) fn checks(
    is_manager: bool,
    nodes: Option<&Result<Vec<Arc<Node>>, KubeError>>,
    provider: Option<&dyn CloudProvider>,
    answers: Option<&Answers>,
) -> Vec<Check> {
    let skipped = |read: Check, because: &str| {
        let rest = [&EXTERNAL, &INSTANCES, &PLACEMENT].map(|topic| topic.skipped(because));
        [read].into_iter().chain(rest).collect()
    };
    let nodes = match nodes {
        None => {
            return skipped(
                READ.skipped("the API server does not answer"),
                "Nodes are not read",
            );
        }
        Some(Err(error)) => {
            return skipped(unread(is_manager, &READ, error), "Nodes are not read");
        }
        Some(Ok(nodes)) if nodes.is_empty() => {
            let remedy =
                "look at the kubelets: they register their Nodes, and need --cloud-provider=external";
            return skipped(READ.warning("there is none", remedy), "there is no Node");
        }
        Some(Ok(nodes)) => nodes,
    };
    let platforms = provider.map_or_else(Vec::new, CloudProvider::platforms);
    let external = match provider {
        None => EXTERNAL.skipped("there is no provider"),
        Some(_) => judge_external(nodes, &platforms),
    };
    let instances = match answers.filter(|answers| answers.listing.is_ok()) {
        Some(answers) => judge_names(answers),
        None => INSTANCES.skipped("the cloud does not list its instances"),
    };
    vec![
        READ.ok(format!("{}", nodes.len())),
        external,
        instances,
        judge_placement(nodes),
    ]
}

/// Whether the kubelets were started with `--cloud-provider=external`, and nobody else gave their Nodes a provider ID.
fn judge_external(nodes: &[Arc<Node>], platforms: &[&str]) -> Check {
    let (mut waiting, mut done) = (0, 0);
    let mut bare = Vec::new();
    let mut foreign: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        let name = || node.name.to_string();
        match node.platform() {
            Some(platform) if !platforms.contains(&platform) => {
                foreign.entry(platform).or_default().push(name());
            }
            _ if node.is_uninitialized() => waiting += 1,
            _ if node.provider_id.is_some() => done += 1,
            _ => bare.push(name()),
        }
    }
    let of_others: usize = foreign.values().map(Vec::len).sum();
    let seen = format!(
        "{waiting} wait, {done} were initialised for this cloud before, {of_others} are of another cloud, {} wait for nobody",
        bare.len()
    );
    let mut lines: Vec<String> = foreign
        .iter()
        .map(|(platform, names)| {
            format!(
                "with a provider ID of {platform}: {}",
                some_of(names.iter().cloned())
            )
        })
        .collect();
    let mut remedies = Vec::new();
    if !bare.is_empty() {
        lines.push(format!(
            "without the taint and without provider ID: {}",
            some_of(bare.iter().cloned())
        ));
        remedies.push(format!(
            "start these kubelets with --cloud-provider=external, then ask for their cloud: kubectl taint node NAME {}=true:NoSchedule",
            keys::TAINT_UNINITIALIZED
        ));
    }
    if of_others > 0 {
        remedies.push(
            "a provider ID cannot be changed, and Nodes of other clouds are left alone. If they are of this cloud, switch off what gave them theirs (k3s and RKE2: --disable-cloud-controller), \
             drain and delete each Node, and restart its kubelet with --cloud-provider=external"
                .to_owned(),
        );
    }
    let check = if !bare.is_empty() || of_others == nodes.len() {
        EXTERNAL.failed(seen, remedies.join(". "))
    } else if of_others > 0 {
        EXTERNAL.warning(seen, remedies.join(". "))
    } else {
        EXTERNAL.ok(seen)
    };
    check.with(lines)
}

/// Whether the cloud has an instance for each Node; for one that has none, with the name that is near.
fn judge_names(answers: &Answers) -> Check {
    let of_here = || {
        let all = answers.of_nodes.iter();
        all.filter(|(_, answer)| !matches!(answer, Ok(InstanceAnswer::Foreign)))
    };
    let lines: Vec<String> = of_here()
        .filter(|(_, answer)| is_missing(answer) || answer.is_err())
        .map(|(node, _)| {
            let cause = of_answer(node, &answers.shown(node));
            format!("{}: {}", node.name, cause.map_or_else(String::new, |it| it.text))
        })
        .collect();
    let (count, missing) = (of_here().count(), lines.len());
    let seen = format!("{} of {count}", count - missing);
    if missing == 0 {
        return INSTANCES.ok(seen);
    }
    let remedy = match missing == count {
        true => {
            "the cloud shows none of the instances: are the credentials of their project, zone and region? Else compare the names: a Node without provider ID \
             is found by its name, so rename the instances, or register the kubelets with --hostname-override"
        }
        false => {
            "a Node without provider ID is found by its name: rename the instance, register the kubelet under the instance's name with --hostname-override, or give \
             the kubelet its --provider-id"
        }
    };
    INSTANCES.failed(seen, remedy).with(some_lines(lines))
}

/// Whether the manager's pod finds a Node: the manifests ask for one of the control plane, or any, and tolerate what is usual there.
fn judge_placement(nodes: &[Arc<Node>]) -> Check {
    let repels = |taint: &&Taint| {
        let is_hard = matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute);
        is_hard && !TOLERATED.contains(&&*taint.key)
    };
    let control_plane: Vec<&Arc<Node>> = nodes
        .iter()
        .filter(|node| node.labels.contains(CONTROL_PLANE))
        .collect();
    if control_plane.is_empty() {
        return PLACEMENT.warning(
            format!("no Node has the label {CONTROL_PLANE}, as under a managed control plane: a DaemonSet of the manifests would have no pod"),
            "set nodeSelector and affinity of the chart to {}, and kind to Deployment; or take the nodeSelector out of the manifest",
        );
    }
    let repelled: Vec<String> = control_plane
        .iter()
        .filter_map(|node| {
            let taints: Vec<&str> = node
                .taints
                .iter()
                .filter(repels)
                .map(|it| it.key.as_str())
                .collect();
            (!taints.is_empty()).then(|| format!("{}: {}", node.name, taints.join(", ")))
        })
        .collect();
    let seen = format!(
        "{} of {} of the control plane",
        control_plane.len() - repelled.len(),
        control_plane.len()
    );
    if repelled.is_empty() {
        return PLACEMENT.ok(seen);
    }
    let remedy =
        "add these taints to the tolerations of the manifest or the chart, or take them off the Nodes";
    let check = match repelled.len() == control_plane.len() {
        true => PLACEMENT.failed(seen, remedy),
        false => PLACEMENT.warning(seen, remedy),
    };
    check.with(some_lines(repelled))
}

/// Whether the kubelets' versions are within the skew that Kubernetes supports.
pub(super) async fn versions(kube: Option<&Kube>, server: Option<ServerVersion>) -> Check {
    let (Some(kube), Some(server)) = (kube, server) else {
        return VERSIONS.skipped("the version of the API server is not known");
    };
    match timed(kube.plain_objects("nodes")).await {
        Some((Ok(nodes), _)) => judge_versions(&nodes, server),
        _ => VERSIONS.skipped("Nodes are not read"),
    }
}

fn judge_versions(nodes: &[Value], server: ServerVersion) -> Check {
    let mut odd = Vec::new();
    let mut known = 0;
    for node in nodes {
        let Some(text) = node["status"]["nodeInfo"]["kubeletVersion"].as_str() else {
            continue;
        };
        let mut parts = text.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let Some(version) = ServerVersion::parse(major, minor) else {
            continue;
        };
        known += 1;
        let is_old = version.minor + OLDER < server.minor;
        if version > server || is_old || version.major != server.major {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            odd.push(format!("{name}: {text}"));
        }
    }
    if known == 0 {
        return VERSIONS.skipped("no Node tells the version of its kubelet");
    }
    let seen = format!(
        "{} of {known} are {OLDER} minor versions older at most, and none newer",
        known - odd.len()
    );
    if odd.is_empty() {
        return VERSIONS.ok(format!(
            "{known} are {OLDER} minor versions older at most, and none newer"
        ));
    }
    VERSIONS
        .warning(
            seen.trim_end_matches(", and none newer").to_owned(),
            format!(
                "upgrade what is older, or first the API server ({}.{}): Kubernetes supports no kubelet that is newer than it, or more than {OLDER} minor versions older",
                server.major, server.minor
            ),
        )
        .with(some_lines(odd))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::Outcome;

    fn node(name: &str, id: Option<&str>, taints: &[&str], labels: &[&str]) -> Arc<Node> {
        let taint = |key: &&str| Taint {
            key: (*key).to_owned(),
            ..uninitialized()
        };
        Arc::new(Node {
            provider_id: id.map(Into::into),
            taints: taints.iter().map(taint).collect(),
            labels: labels.iter().map(|key| (*key, "")).collect(),
            ..Node::named(name)
        })
    }

    #[test]
    fn a_kubelet_without_the_flag_and_nodes_of_another_cloud_are_told() {
        let waits = node("a", None, &[keys::TAINT_UNINITIALIZED], &[]);
        let done = node("b", Some("nimbus://1"), &[], &[]);
        let bare = node("c", None, &[], &[]);
        let k3s = node("d", Some("k3s://d"), &[], &[]);
        for (nodes, outcome, details) in [
            (vec![waits.clone(), done.clone()], Outcome::Ok, vec![]),
            (
                vec![waits.clone(), bare],
                Outcome::Failed,
                vec!["without the taint and without provider ID: c"],
            ),
            (
                vec![waits, k3s.clone()],
                Outcome::Warning,
                vec!["with a provider ID of k3s: d"],
            ),
            (vec![k3s], Outcome::Failed, vec!["with a provider ID of k3s: d"]),
        ] {
            let check = judge_external(&nodes, &["nimbus"]);
            assert_eq!(
                (check.outcome, check.details.clone()),
                (outcome, details.iter().map(ToString::to_string).collect()),
                "{check:?}"
            );
        }
    }

    #[test]
    fn a_pod_needs_a_node_of_the_control_plane_whose_taints_are_tolerated() {
        let well = node(
            "a",
            None,
            &[CONTROL_PLANE, keys::TAINT_UNINITIALIZED],
            &[CONTROL_PLANE],
        );
        let odd = node("b", None, &["etcd-only"], &[CONTROL_PLANE]);
        let worker = node("c", None, &["gpu"], &[]);
        for (nodes, outcome) in [
            (vec![well.clone(), worker.clone()], Outcome::Ok),
            (vec![well, odd.clone()], Outcome::Warning),
            (vec![odd, worker.clone()], Outcome::Failed),
            (vec![worker], Outcome::Warning),
        ] {
            let check = judge_placement(&nodes);
            assert_eq!(check.outcome, outcome, "{check:?}");
        }
    }

    #[test]
    fn a_kubelet_is_not_newer_than_its_api_server_and_not_much_older() {
        let nodes = |version: &str| {
            vec![
                json!({ "metadata": { "name": "n1" }, "status": { "nodeInfo": { "kubeletVersion": version } } }),
            ]
        };
        let server = ServerVersion { major: 1, minor: 37 };
        for (version, outcome) in [
            ("v1.37.1", Outcome::Ok),
            ("v1.34.0+k3s1", Outcome::Ok),
            ("v1.33.9", Outcome::Warning),
            ("v1.38.0", Outcome::Warning),
            ("odd", Outcome::Skipped),
        ] {
            let check = judge_versions(&nodes(version), server);
            assert_eq!(check.outcome, outcome, "{version}: {check:?}");
        }
    }
}
