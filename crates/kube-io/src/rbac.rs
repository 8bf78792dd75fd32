//! What each part of the program asks the API server for, as the rules of RBAC.
//!
//! The one table: manifests and the page of reference are written from it, the text of a refused request looks up its
//! remedy here, and a test on a real API server runs with exactly these rules and with each of them missing.

use std::collections::BTreeMap;
use std::fmt;

mod question;
mod remedy;
// A rule a line.
#[rustfmt::skip]
mod rules;

pub use question::{Named, Question, questions};
pub(crate) use remedy::Asked;
pub use rules::RULES;

/// The namespace of the lease, of the ServiceAccounts, and of the cluster's certificate authorities.
pub const NAMESPACE: &str = "kube-system";

/// A part of the program that asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The caches of Nodes and Services that all controllers work from.
    Informers,
    /// The cloud-node controller.
    CloudNode,
    /// The cloud-node-lifecycle controller.
    NodeLifecycle,
    /// The service controller.
    Service,
    /// The route controller.
    Route,
    /// The allocation of pod networks to Nodes.
    NodeIpam,
    /// Events, of the controllers and about the lease.
    Events,
    /// Leader election.
    LeaderElection,
    /// Whose token this is, and whether its user may read the secure port.
    Reviews,
    /// The certificate authorities of clients of the secure port.
    ClientAuthorities,
    /// A ServiceAccount of its own for each controller (`--use-service-account-credentials`).
    ServiceAccounts,
    /// Annotations that a provider puts on Services.
    ServiceAnnotations,
    /// `spec.loadBalancerIP`, which a provider fills in.
    LoadBalancerIp,
    /// Annotations that a provider puts on Nodes.
    NodeAnnotations,
    /// The cluster's UID, which a provider marks its objects with.
    ClusterUid,
}

impl Part {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Informers => "informers",
            Self::CloudNode => "cloud-node",
            Self::NodeLifecycle => "cloud-node-lifecycle",
            Self::Service => "service",
            Self::Route => "route",
            Self::NodeIpam => "node-ipam",
            Self::Events => "events",
            Self::LeaderElection => "leader election",
            Self::Reviews => "reviews",
            Self::ClientAuthorities => "client authorities",
            Self::ServiceAccounts => "service accounts",
            Self::ServiceAnnotations => "provider's Service annotations",
            Self::LoadBalancerIp => "provider's load balancer IP",
            Self::NodeAnnotations => "provider's Node annotations",
            Self::ClusterUid => "provider's cluster UID",
        }
    }

    /// Who asks when each controller has a ServiceAccount of its own.
    pub fn account(self) -> Account {
        match self {
            Self::CloudNode | Self::NodeLifecycle | Self::NodeIpam => Account::Node,
            Self::Service => Account::Service,
            Self::Route => Account::Route,
            Self::ServiceAnnotations | Self::LoadBalancerIp | Self::NodeAnnotations => Account::Provider,
            Self::Informers
            | Self::Events
            | Self::LeaderElection
            | Self::Reviews
            | Self::ClientAuthorities
            | Self::ServiceAccounts
            | Self::ClusterUid => Account::Process,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asks when each controller has a ServiceAccount of its own, as Kubernetes' cloud-provider library has them. The first
/// three are bound to a built-in role in every cluster, `system:controller:NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The process's own identity.
    Process,
    /// `node-controller`: the two node controllers.
    Node,
    /// `service-controller`: the service controller.
    Service,
    /// `route-controller`: the route controller.
    Route,
    /// The one that the provider names, else the service loop's: what a provider's plans write to Kubernetes.
    Provider,
}

impl Account {
    /// The ServiceAccount's name where it is the same for every provider.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Process | Self::Provider => None,
            Self::Node => Some("node-controller"),
            Self::Service => Some("service-controller"),
            Self::Route => Some("route-controller"),
        }
    }
}

/// Where a rule has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In all namespaces, or for objects that have none.
    Cluster,
    /// In the namespace `kube-system`.
    System,
}

/// One rule of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Whose it is.
    pub part: Part,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The objects' names; empty: all.
    pub names: &'static [&'static str],
    /// Where it has to hold.
    pub scope: Scope,
    /// What stops working without it, as the end of a sentence that begins with "without it".
    pub loses: &'static str,
}

/// What one rule of a role looks like: the rules of several parts about one resource, put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The objects' names; empty: all.
    pub names: Vec<String>,
    /// The verbs, in the order in which people write them.
    pub verbs: Vec<&'static str>,
    /// The parts that need it, each with its verbs.
    pub parts: Vec<(Part, Vec<&'static str>)>,
}

/// The verbs in the order in which people write them.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The rules of these parts in this scope, one per resource and set of names, in the table's order.
pub fn grants(parts: &[Part], scope: Scope) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    let mut places: BTreeMap<(&str, &str, &[&str]), usize> = BTreeMap::new();
    for rule in RULES
        .iter()
        .filter(|rule| rule.scope == scope && parts.contains(&rule.part))
    {
        let place = *places
            .entry((rule.group, rule.resource, rule.names))
            .or_insert_with(|| {
                grants.push(Grant {
                    group: rule.group,
                    resource: rule.resource,
                    names: rule.names.iter().map(|&name| name.to_owned()).collect(),
                    verbs: Vec::new(),
                    parts: Vec::new(),
                });
                grants.len() - 1
            });
        let grant = &mut grants[place];
        match grant.parts.iter_mut().find(|(part, _)| *part == rule.part) {
            Some((_, verbs)) => verbs.extend(rule.verbs),
            None => grant.parts.push((rule.part, rule.verbs.to_vec())),
        }
        grant.verbs = VERBS
            .into_iter()
            .filter(|verb| grant.verbs.contains(verb) || rule.verbs.contains(verb))
            .collect();
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_read_aloud() {
        for rule in RULES {
            assert!(
                rule.verbs.iter().all(|verb| VERBS.contains(verb)) && !rule.verbs.is_empty(),
                "{rule:?}"
            );
            assert!(!rule.loses.is_empty() && !rule.loses.ends_with('.'), "{rule:?}");
            let creates_by_name = rule.verbs.contains(&"create") && !rule.resource.contains('/');
            assert!(
                !creates_by_name || rule.names.is_empty(),
                "a create has no name to be allowed by: {rule:?}"
            );
        }
    }

    #[test]
    fn rules_about_one_resource_become_one_and_names_stay_apart() {
        let found = grants(&[Part::CloudNode, Part::NodeLifecycle], Scope::Cluster);
        let nodes = &found[0];
        assert_eq!((nodes.resource, nodes.parts.len()), ("nodes", 2));
        assert_eq!(nodes.verbs, ["get", "patch", "delete"]);
        let leases = grants(&[Part::LeaderElection], Scope::System);
        let verbs: Vec<_> = leases.iter().map(|lease| lease.verbs.clone()).collect();
        assert_eq!(verbs, [vec!["create"], vec!["get", "watch", "update"]]);
    }
}
