//! The table.

use super::{Part, Rule, Scope};

/// The lease of the cloud controller manager, and the one of leader migration.
const LEASES: &[&str] = &["cloud-controller-manager", "cloud-provider-extraction-migration"];
/// The ServiceAccounts of the controllers; a provider may add one.
const ACCOUNTS: &[&str] = &["node-controller", "service-controller", "route-controller"];
/// Where the API server publishes who vouches for clients.
const AUTHORITIES: &[&str] = &["extension-apiserver-authentication"];

const fn rule(part: Part, group: &'static str, resource: &'static str, verbs: &'static [&'static str], loses: &'static str) -> Rule {
    Rule {
        part,
        group,
        resource,
        verbs,
        names: &[],
        scope: Scope::Cluster,
        loses,
    }
}

impl Rule {
    const fn in_system(self, names: &'static [&'static str]) -> Self {
        Self {
            names,
            scope: Scope::System,
            ..self
        }
    }
}

/// Every rule of every part. There is no write verb on Services but for what providers write: finalizers and addresses
/// go through `services/status`.
pub static RULES: &[Rule] = &[
    rule(Part::Informers, "", "nodes", &["list", "watch"], "no controller knows any Node"),
    rule(Part::Informers, "", "services", &["list", "watch"], "no controller knows any Service"),
    rule(Part::CloudNode, "", "nodes", &["get"], "a Node that others change meanwhile is initialised late"),
    rule(Part::CloudNode, "", "nodes", &["patch"], "Nodes keep the uninitialized taint, without provider ID and labels"),
    rule(Part::CloudNode, "", "nodes/status", &["patch"], "Nodes get no addresses"),
    rule(Part::NodeLifecycle, "", "nodes", &["get"], "the shutdown taint of a Node that others change meanwhile comes and goes late"),
    rule(Part::NodeLifecycle, "", "nodes", &["patch"], "Nodes whose instance is powered off get no shutdown taint"),
    rule(Part::NodeLifecycle, "", "nodes", &["delete"], "Nodes whose instance is gone stay"),
    rule(Part::Service, "", "services/status", &["patch"], "Services get neither a finalizer nor addresses, and load balancers are not made"),
    rule(Part::ServiceAnnotations, "", "services", &["patch"], "the provider cannot note on a Service which load balancer is its own"),
    rule(Part::LoadBalancerIp, "", "services", &["patch"], "the provider cannot note on a Service which address it was given"),
    rule(Part::NodeAnnotations, "", "nodes", &["patch"], "the provider cannot note on a Node what its instance was given"),
    rule(Part::Route, "", "nodes/status", &["patch"], "the condition NetworkUnavailable of Nodes stays as it is"),
    rule(Part::NodeIpam, "", "nodes", &["patch"], "Nodes get no pod networks"),
    rule(Part::Events, "", "events", &["create", "patch"], "there are no events, only log lines"),
    rule(Part::Reviews, "authentication.k8s.io", "tokenreviews", &["create"], "no client can read metrics with a bearer token"),
    rule(Part::Reviews, "authorization.k8s.io", "subjectaccessreviews", &["create"], "only system:masters can read metrics"),
    rule(Part::LeaderElection, "coordination.k8s.io", "leases", &["create"], "the lease cannot be made, so no process leads and no controller runs").in_system(&[]),
    rule(Part::LeaderElection, "coordination.k8s.io", "leases", &["get", "update", "watch"], "the lease cannot be taken or kept, so no process leads and no controller runs; without watch alone, a lease that was given up is noticed some seconds later").in_system(LEASES),
    rule(Part::ClientAuthorities, "", "configmaps", &["get"], "a process in a pod ends at its start with exit code 1, unless --authentication-tolerate-lookup-failure or --authentication-skip-lookup is given; with them, client certificates and front proxies are not known on the secure port").in_system(AUTHORITIES),
    rule(Part::ClientAuthorities, "", "configmaps", &["list", "watch"], "a process knows the authorities of clients as they were at its start").in_system(AUTHORITIES),
    rule(Part::ServiceAccounts, "", "serviceaccounts", &["create"], "the ServiceAccount of a controller is not made, and the controller cannot write").in_system(&[]),
    rule(Part::ServiceAccounts, "", "serviceaccounts", &["get"], "it is not known whether the ServiceAccount of a controller exists, and the controller cannot write").in_system(ACCOUNTS),
    rule(Part::ServiceAccounts, "", "serviceaccounts/token", &["create"], "a controller gets no token for its ServiceAccount, and cannot write").in_system(ACCOUNTS),
    Rule {
        part: Part::ClusterUid,
        group: "",
        resource: "namespaces",
        verbs: &["get"],
        names: &["kube-system"],
        scope: Scope::Cluster,
        loses: "a provider that marks what it makes with the UID of the cluster does not start",
    },
];
