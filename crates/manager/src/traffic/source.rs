//! Whose address the workload sees.

use std::net::IpAddr;

use bowline_cloud_provider::Node;
use bowline_controllers::cluster_cidr::pod_network;

use super::ask::Answer;
use super::ground::Ground;
use super::{CLUSTER, LOCAL};
use crate::doctor::Check;

/// Whose a source address is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// That of this computer.
    Own,
    /// A public one that is no Node's: this computer's, as far as the network in between translates it.
    Public,
    /// A Node's, with its name.
    Node(String),
    /// Somebody's in a private network: the load balancer's, if it ends connections and opens new ones.
    Between,
}

/// Whose the source of an answer is.
pub(super) fn whose(answer: &Answer, ground: &Ground<'_>) -> Whose {
    let source = answer.source;
    if answer.own == Some(source) {
        return Whose::Own;
    }
    let has = |node: &&std::sync::Arc<Node>| {
        let addresses = node.addresses.iter().map(|it| it.address.parse::<IpAddr>());
        addresses.filter_map(Result::ok).any(|it| it == source)
            || node
                .pod_cidrs
                .iter()
                .filter_map(|text| pod_network(text))
                .any(|network| network.contains(&source))
    };
    if let Some(node) = ground.nodes.iter().find(has) {
        return Whose::Node(node.name.to_string());
    }
    match is_private(source) || source == ground.address.ip() {
        true => Whose::Between,
        false => Whose::Public,
    }
}

/// Whether the world has no way to this address.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            // 100.64.0.0/10 is what providers translate (RFC 6598).
            it.is_private() || it.is_loopback() || it.is_link_local() || first == 100 && second & 0xc0 == 64
        }
        IpAddr::V6(it) => it.is_unique_local() || it.is_loopback() || it.is_unicast_link_local(),
    }
}

/// What was seen, each address once.
fn seen(answers: &[Answer], ground: &Ground<'_>) -> Vec<(Whose, String)> {
    let mut all: Vec<(Whose, String)> = answers
        .iter()
        .map(|answer| {
            let whose = whose(answer, ground);
            let text = match &whose {
                Whose::Own => format!("{}, the client's own", answer.source),
                Whose::Public => format!(
                    "{}, which is the client's if its network translates to that",
                    answer.source
                ),
                Whose::Node(node) => format!("{}, which is Node {node}'s", answer.source),
                Whose::Between => format!("{}, neither the client's nor a Node's", answer.source),
            };
            (whose, text)
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

fn texts(seen: &[(Whose, String)]) -> String {
    let texts: Vec<&str> = seen.iter().map(|(_, text)| text.as_str()).collect();
    texts.join("; ")
}

/// With the policy Cluster any address will do.
pub(super) fn cluster(answers: &[Answer], ground: &Ground<'_>) -> Check {
    CLUSTER.ok(format!("the workload saw {}", texts(&seen(answers, ground))))
}

/// With the policy Local the client's is expected.
pub(super) fn local(answers: &[Answer], ground: &Ground<'_>) -> Check {
    let seen = seen(answers, ground);
    let text = format!("the workload saw {}", texts(&seen));
    let is = |wanted: fn(&Whose) -> bool| seen.iter().any(|(whose, _)| wanted(whose));
    if is(|whose| matches!(whose, Whose::Node(_))) {
        return LOCAL.failed(
            text,
            "a Node translates the address although the policy is Local: look at the mode of kube-proxy, or of what your network plugin has \
             in its place",
        );
    }
    match is(|whose| *whose == Whose::Between) {
        true => LOCAL.warning(
            text,
            "the load balancer opens connections of its own, so the workload does not see its clients: where that matters, use the PROXY \
             protocol, if the manual of the cloud has it",
        ),
        false => LOCAL.ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_world_has_no_way_to_is_private() {
        for (address, private) in [
            ("10.0.0.1", true),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("203.0.113.1", false),
            ("fd00::1", true),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_private(address.parse().unwrap()), private, "{address}");
        }
    }
}
