//! The rules of RBAC as they are shipped are enough, and each of them is needed: without it something says so.

use std::collections::BTreeSet;

use bowline_cloudscale_sim::ServerStatus;
use bowline_kube_io::rbac::{Grant, Part, Scope, grants};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::plane::Plane;
use super::scenarios::{addresses, web};
use crate::deploy;
use crate::process::cluster::{ask, free_port};
use crate::process::program::Running;

pub(super) fn manifest(name: &str) -> String {
    std::fs::read_to_string(deploy::root().join("cloudscale").join(name)).unwrap()
}

/// Everything that a manager of cloudscale.ch does: initialises a Node, taints and frees it, deletes another; makes,
/// changes and removes a balancer.
async fn lead_a_life(plane: &Plane, manager: &Running) {
    let server = plane.join("n1").await;
    manager
        .until("the node is initialised", async || {
            let spec = plane.node("n1").await.unwrap().spec.unwrap();
            spec.provider_id.is_some() && spec.taints.unwrap_or_default().is_empty()
        })
        .await;
    plane.add_service(web()).await;
    manager
        .until("the address", async || {
            !addresses(&plane.service("web").await.unwrap()).is_empty()
        })
        .await;
    let annotations = plane.service("web").await.unwrap().metadata.annotations.unwrap();
    assert!(
        annotations.contains_key("k8s.cloudscale.ch/loadbalancer-uuid"),
        "{annotations:?}"
    );
    plane
        .patch_service(
            "web",
            json!({ "metadata": { "annotations": { "k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms": "120000" } } }),
        )
        .await;
    manager
        .until("the listeners follow", async || {
            let listeners = plane.sim.listeners();
            listeners.iter().all(|it| it.timeout_member_data_ms == 120_000)
        })
        .await;
    plane.sim.set_server_status(server, ServerStatus::Stopped);
    plane.set_ready("n1", "Unknown").await;
    let is_tainted = async || {
        let taints = plane
            .node("n1")
            .await
            .unwrap()
            .spec
            .unwrap()
            .taints
            .unwrap_or_default();
        taints
            .iter()
            .any(|taint| taint.key == "node.cloudprovider.kubernetes.io/shutdown")
    };
    manager.until("it is tainted", is_tainted).await;
    plane.set_ready("n1", "True").await;
    manager.until("it is free", async || !is_tainted().await).await;
    plane.add_node(lost("n2")).await;
    manager
        .until("the lost node goes", async || plane.node("n2").await.is_none())
        .await;
    plane.delete_service("web").await;
    manager
        .until("the service is gone", async || {
            plane.service("web").await.is_none()
        })
        .await;
    manager
        .until("the events are written", async || {
            let events = plane.reasons("web").await;
            events.contains(&"DeletedLoadBalancer".to_owned())
        })
        .await;
}

/// A Node whose server never was.
fn lost(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "providerID": format!("cloudscale://{}", uuid::Uuid::from_u128(7)) },
        "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] },
    })
}

pub(super) async fn ended(manager: &mut Running) {
    manager.signal(Signal::TERM);
    assert_eq!(
        manager.ended().await.0.code(),
        Some(0),
        "{}",
        manager.log().join("\n")
    );
}

/// A manager that joined a Node, served a Service, and saw both go wrote as the shipped role lets it, and as nobody
/// else.
#[track_caller]
pub(super) fn assert_writes_of_a_life(plane: &Plane) {
    let wanted: BTreeSet<String> = [
        "create events",
        "create leases",
        "delete nodes",
        "patch nodes",
        "patch nodes/status",
        "patch services",
        "patch services/status",
        "update leases",
    ]
    .map(|what| format!("cloud-controller-manager {what}"))
    .into();
    let mut found = writers(plane);
    found.remove("cloud-controller-manager patch events"); // only where two events are alike
    assert_eq!(found, wanted);
}

/// Who wrote to what: `account verb resource`.
fn writers(plane: &Plane) -> BTreeSet<String> {
    let requests = plane.requests_of_accounts();
    let forbidden: Vec<_> = requests.iter().filter(|it| it.forbidden).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    let resource = |uri: &str| {
        let path = uri.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let at = parts
            .iter()
            .rposition(|part| ["nodes", "services", "events", "leases", "serviceaccounts"].contains(part));
        let Some(at) = at else { return path.to_owned() };
        match parts.get(at + 2) {
            Some(subresource) => format!("{}/{subresource}", parts[at]),
            None => parts[at].to_owned(),
        }
    };
    requests
        .iter()
        .filter(|it| !matches!(it.verb.as_str(), "get" | "list" | "watch"))
        .map(|it| format!("{} {} {}", it.user, it.verb, resource(&it.uri)))
        .collect()
}

#[tokio::test]
async fn a21_the_shipped_role_is_enough_and_nothing_is_forbidden() {
    let Some(plane) = Plane::start_with("the shipped role", &manifest("config.yml")).await else {
        return;
    };
    let mut manager = plane.manager_with(&["--node-monitor-period=1s"]);
    lead_a_life(&plane, &manager).await;
    ended(&mut manager).await;
    let of_process = |what: &str| format!("cloud-controller-manager {what}");
    let wanted: BTreeSet<String> = [
        "create events",
        "create leases",
        "delete nodes",
        "patch events",
        "patch nodes",
        "patch nodes/status",
        "patch services",
        "patch services/status",
        "update leases",
    ]
    .map(of_process)
    .into();
    assert_eq!(writers(&plane), wanted);
}

#[tokio::test]
async fn a20_with_an_account_for_each_loop_the_built_in_roles_are_enough() {
    let Some(plane) = Plane::start_with("accounts of loops", &manifest("config.yml")).await else {
        return;
    };
    plane.apply(&manifest("service-account-credentials.yml")).await;
    plane.allowed_as("cloud-controller-manager").await;
    let flags = ["--node-monitor-period=1s", "--use-service-account-credentials"];
    let mut manager = plane.manager_with(&flags);
    lead_a_life(&plane, &manager).await;
    ended(&mut manager).await;
    let wanted: BTreeSet<String> = [
        "cloud-controller-manager create events", // about the lease
        "cloud-controller-manager create leases",
        "cloud-controller-manager update leases",
        "cloud-controller-manager create serviceaccounts",
        "cloud-controller-manager create serviceaccounts/token",
        "cloudscale-cloud-controller-manager patch services",
        "node-controller create events",
        "node-controller delete nodes",
        "node-controller patch nodes",
        "node-controller patch nodes/status",
        "service-controller create events",
        "service-controller patch events",
        "service-controller patch services/status",
    ]
    .map(str::to_owned)
    .into();
    let mut found = writers(&plane);
    found.remove("node-controller patch events"); // only where two events are alike
    assert_eq!(found, wanted);
    for (account, agent) in [
        ("node-controller", "/node-controller"),
        ("service-controller", "/service-controller"),
        (
            "cloudscale-cloud-controller-manager",
            "/cloudscale-cloud-controller-manager",
        ),
    ] {
        let requests = plane.requests_of_accounts();
        let of_account: Vec<_> = requests.iter().filter(|it| it.user == account).collect();
        assert!(
            !of_account.is_empty() && of_account.iter().all(|it| it.user_agent.ends_with(agent)),
            "{of_account:#?}"
        );
    }
}

/// One rule that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Missing {
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
}

impl Missing {
    fn all(parts: &[Part]) -> Vec<Self> {
        let mut all = Vec::new();
        for scope in [Scope::Cluster, Scope::System] {
            for Grant {
                group,
                resource,
                verbs,
                ..
            } in grants(parts, scope)
            {
                all.extend(verbs.into_iter().map(|verb| Self {
                    group,
                    resource,
                    verb,
                }));
            }
        }
        all
    }

    /// What the log and the event have to name.
    fn rule(&self) -> String {
        let Self {
            group,
            resource,
            verb,
        } = self;
        format!("{{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{verb:?}]}}")
    }
}

const LOOPS: &[Part] = &[
    Part::Informers,
    Part::CloudNode,
    Part::NodeLifecycle,
    Part::Service,
    Part::ServiceAnnotations,
    Part::Events,
    Part::Reviews,
    Part::LeaderElection,
];
const WITH_ACCOUNTS: &[Part] = &[
    Part::Informers,
    Part::Events,
    Part::Reviews,
    Part::ServiceAccounts,
];

/// The rights of these parts but for one rule, for an account; its lease is in a namespace of its own.
fn rights(account: &str, parts: &[Part], missing: Option<Missing>) -> String {
    let rules = |scope, lease: bool| -> Vec<Value> {
        grants(parts, scope)
            .into_iter()
            .filter(|grant| (grant.resource == "leases") == lease)
            .map(|grant| {
                let verbs: Vec<&str> = grant
                    .verbs
                    .into_iter()
                    .filter(|verb| {
                        missing
                            != Some(Missing {
                                group: grant.group,
                                resource: grant.resource,
                                verb,
                            })
                    })
                    .collect();
                let mut rule =
                    json!({ "apiGroups": [grant.group], "resources": [grant.resource], "verbs": verbs });
                if !grant.names.is_empty() {
                    rule["resourceNames"] = json!(grant.names);
                }
                rule
            })
            .filter(|rule| rule["verbs"] != json!([]))
            .collect()
    };
    let api = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{ "kind": "ServiceAccount", "name": account, "namespace": "kube-system" }]);
    let reference =
        |kind: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account });
    let role = |namespace: &str, rules: Vec<Value>| {
        let metadata = json!({ "name": account, "namespace": namespace });
        [
            json!({ "apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules }),
            json!({
                "apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
                "roleRef": reference("Role"), "subjects": subjects,
            }),
        ]
    };
    let mut objects =
        vec![json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": account } })];
    objects.extend(role(account, rules(Scope::System, true)));
    objects.extend(role("kube-system", rules(Scope::System, false)));
    objects.push(json!({
        "apiVersion": api, "kind": "ClusterRole", "metadata": { "name": account },
        "rules": rules(Scope::Cluster, false),
    }));
    objects.push(json!({
        "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": { "name": account },
        "roleRef": reference("ClusterRole"), "subjects": subjects,
    }));
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

/// Does what needs the rule, and waits until the symptom shows.
async fn shows(plane: &Plane, manager: &Running, name: &str, missing: Missing, port: u16) {
    let rule = missing.rule();
    let event = async |object: &str, reason: &str| {
        manager
            .until("the event", async || {
                let messages = plane.messages(object).await;
                messages
                    .iter()
                    .any(|message| message.starts_with(reason) && message.contains(&rule))
            })
            .await;
    };
    let mut service = web();
    service["metadata"]["name"] = json!(name);
    match (missing.resource, missing.verb) {
        ("nodes" | "services", "list" | "watch") => {
            manager
                .until("it is not ready", async || {
                    matches!(ask(port, None, "/readyz").await, Some((500, _)))
                })
                .await;
        }
        ("nodes", "get") => {
            // Only a Node that changes under the loop's hands is read.
            plane.join(name).await;
            tokio::select! {
                biased;
                () = event(name, "NodeInitFailed") => {}
                () = plane.disturb(name) => {}
                () = plane.disturb(name) => {}
                () = plane.disturb(name) => {}
                () = manager.until("it is initialised undisturbed", async || {
                    // Then the next one may be disturbed.
                    if plane.node(name).await.is_some_and(|node| node.spec.unwrap().taints.unwrap_or_default().is_empty()) {
                        plane.taint_again(name).await;
                    }
                    false
                }) => {}
            }
        }
        ("nodes" | "nodes/status", "patch") => {
            plane.join(name).await;
            event(name, "NodeInitFailed").await;
        }
        ("nodes", "delete") => {
            plane.add_node(lost(name)).await;
            event(name, "DeletingNodeFailed").await;
        }
        ("services" | "services/status", "patch") => {
            plane.add_service(service).await;
            event(name, "SyncLoadBalancerFailed").await;
        }
        ("events", "create") | ("serviceaccounts" | "serviceaccounts/token", _) => {
            plane.join(name).await;
        }
        ("events", "patch") => {
            plane.add_service(service).await;
            manager
                .until("it has an address", async || {
                    !addresses(&plane.service(name).await.unwrap()).is_empty()
                })
                .await;
            for milliseconds in ["120000", "130000"] {
                let key = "k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms";
                plane
                    .patch_service(
                        name,
                        json!({ "metadata": { "annotations": { key: milliseconds } } }),
                    )
                    .await;
            }
        }
        ("tokenreviews" | "subjectaccessreviews", "create") => {
            let token = plane.token("reader").await;
            manager
                .until("metrics are refused", async || {
                    ask(port, Some(&token), "/metrics")
                        .await
                        .is_some_and(|(code, _)| code != 200)
                })
                .await;
        }
        ("leases", _) => {}
        other => panic!("nobody said how to notice that {other:?} is missing"),
    }
    // A quote in a value is escaped in the log.
    manager.until_logged(&rule.replace('"', "\\\"")).await;
}

/// One manager for each rule of `tried` that is missing from those of `parts`.
async fn matrix(plane: &Plane, prefix: &str, parts: &[Part], tried: &[Part], flags: &[&str]) {
    let all = Missing::all(tried);
    for (index, missing) in all.iter().enumerate() {
        plane
            .apply(&rights(&format!("{prefix}-{index}"), parts, Some(*missing)))
            .await;
    }
    let last = format!("{prefix}-all");
    plane.apply(&rights(&last, parts, None)).await;
    plane.allowed_as(&last).await;
    for (index, missing) in all.into_iter().enumerate() {
        let name = format!("{prefix}-{index}");
        let port = free_port().await;
        let election = if missing.resource == "leases" {
            format!("--leader-elect-resource-namespace={name}")
        } else {
            "--leader-elect=false".to_owned()
        };
        let mut all_flags = vec![
            election,
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--node-monitor-period=1s".to_owned(),
        ];
        all_flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        let all_flags: Vec<&str> = all_flags.iter().map(String::as_str).collect();
        if (missing.resource, missing.verb) == ("leases", "watch") {
            // Only who waits for a lease watches it.
            plane.lease_to_somebody(&name).await;
        }
        let manager = plane.manager_as(&name, &all_flags).await;
        shows(plane, &manager, &name, missing, port).await;
    }
}

#[tokio::test]
async fn each_missing_rule_is_named_in_the_log_and_on_the_object() {
    let Some(plane) = Plane::start_with("missing rules", &manifest("config.yml")).await else {
        return;
    };
    plane.join("witness").await;
    matrix(&plane, "one", LOOPS, LOOPS, &[]).await;
}

#[tokio::test]
async fn each_missing_rule_for_accounts_of_loops_is_named_in_the_log() {
    let Some(plane) = Plane::start_with("missing rules for accounts", &manifest("config.yml")).await else {
        return;
    };
    let flags = ["--use-service-account-credentials"];
    matrix(&plane, "own", WITH_ACCOUNTS, &[Part::ServiceAccounts], &flags).await;
}
