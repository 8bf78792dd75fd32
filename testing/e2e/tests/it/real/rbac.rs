//! The rules of RBAC as they are shipped are enough, and each of them is needed: without it something says so.

use std::collections::BTreeSet;

use bowline_kube_io::rbac::{Grant, Part, Scope, grants};
use serde_json::{Value, json};

use super::cloudscale::Site;
use super::life::{writers, writers_but_for};
use super::site::{addresses, ended, named};
use crate::deploy;
use crate::process::cluster::{ask, free_port};
use crate::process::program::Running;

pub(super) fn manifest(name: &str) -> String {
    std::fs::read_to_string(deploy::root().join("cloudscale").join(name)).unwrap()
}

#[tokio::test]
async fn with_an_account_for_each_loop_the_built_in_roles_are_enough() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.apply(&manifest("service-account-credentials.yml")).await;
    site.allowed_as("cloud-controller-manager").await;
    let flags = ["--node-monitor-period=1s", "--use-service-account-credentials"];
    let mut manager = site.manager_with(&flags);
    site.lead_a_life(&manager).await;
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
    let mut found = writers(&site);
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
        let requests = site.requests_of_accounts();
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
async fn shows(site: &Site, manager: &Running, name: &str, missing: Missing, port: u16) {
    let rule = missing.rule();
    let event = async |object: &str, reason: &str| {
        manager
            .until("the event", async || {
                let messages = site.messages(object).await;
                messages
                    .iter()
                    .any(|message| message.starts_with(reason) && message.contains(&rule))
            })
            .await;
    };
    let service = named(name);
    let lost = format!("cloudscale://{}", uuid::Uuid::from_u128(7));
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
            site.join(name).await;
            tokio::select! {
                biased;
                () = event(name, "NodeInitFailed") => {}
                () = site.disturb(name) => {}
                () = site.disturb(name) => {}
                () = site.disturb(name) => {}
                () = manager.until("it is initialised undisturbed", async || {
                    // Then the next one may be disturbed.
                    if site.node(name).await.is_some_and(|node| node.spec.unwrap().taints.unwrap_or_default().is_empty()) {
                        site.taint_again(name).await;
                    }
                    false
                }) => {}
            }
        }
        ("nodes" | "nodes/status", "patch") => {
            site.join(name).await;
            event(name, "NodeInitFailed").await;
        }
        ("nodes", "delete") => {
            site.add_lost_node(name, &lost).await;
            event(name, "DeletingNodeFailed").await;
        }
        ("services" | "services/status", "patch") => {
            site.add_service(service).await;
            event(name, "SyncLoadBalancerFailed").await;
        }
        ("events", "create") | ("serviceaccounts" | "serviceaccounts/token", _) => {
            site.join(name).await;
        }
        ("events", "patch") => {
            site.add_service(service).await;
            manager
                .until("it has an address", async || {
                    !addresses(&site.service(name).await.unwrap()).is_empty()
                })
                .await;
            for milliseconds in ["120000", "130000"] {
                let key = "k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms";
                site.patch_service(
                    name,
                    json!({ "metadata": { "annotations": { key: milliseconds } } }),
                )
                .await;
            }
        }
        ("tokenreviews" | "subjectaccessreviews", "create") => {
            let token = site.token("reader").await;
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
async fn matrix(site: &Site, prefix: &str, parts: &[Part], tried: &[Part], flags: &[&str]) {
    let all = Missing::all(tried);
    for (index, missing) in all.iter().enumerate() {
        site.apply(&rights(&format!("{prefix}-{index}"), parts, Some(*missing)))
            .await;
    }
    let last = format!("{prefix}-all");
    site.apply(&rights(&last, parts, None)).await;
    site.allowed_as(&last).await;
    for (index, missing) in all.into_iter().enumerate() {
        let name = format!("{prefix}-{index}");
        let port = free_port();
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
            site.lease_to_somebody(&name).await;
        }
        let manager = site.manager_as(&name, &all_flags).await;
        shows(site, &manager, &name, missing, port).await;
    }
}

#[tokio::test]
async fn each_missing_rule_is_named_in_the_log_and_on_the_object() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.join("witness").await;
    matrix(&site, "one", LOOPS, LOOPS, &[]).await;
}

#[tokio::test]
async fn each_missing_rule_for_accounts_of_loops_is_named_in_the_log() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    let flags = ["--use-service-account-credentials"];
    matrix(&site, "own", WITH_ACCOUNTS, &[Part::ServiceAccounts], &flags).await;
}

/// What a real authorizer answers to the doctor's questions, those about single objects among them.
#[tokio::test]
async fn the_doctor_finds_the_shipped_rules_whole_and_names_the_one_that_is_missing() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.may_look_clients_up().await;
    site.join("fresh").await;
    let told = site.doctor_as("cloud-controller-manager", &[]).await;
    assert!(
        told.contains("ok       the manager has its permissions: all 21;"),
        "{told}"
    );
    assert!(told.contains("ok       the API server answers: "), "{told}");
    assert!(
        told.contains("fresh, for 0 min: an instance of its ID or name is there"),
        "{told}"
    );

    let missing = Missing {
        group: "",
        resource: "nodes",
        verb: "delete",
    };
    site.apply(&rights("mute", LOOPS, Some(missing))).await;
    site.allowed_as("mute").await;
    let flags = ["--secure-port=0", "--leader-elect-resource-namespace=mute"];
    let told = site.doctor_as("mute", &flags).await;
    assert!(
        told.contains("failed   the manager has its permissions: 1 of "),
        "{told}"
    );
    assert!(
        told.contains(&format!("delete nodes, by the rule {}", missing.rule())),
        "{told}"
    );
    // Questions, and dry runs.
    let asked = [
        "create /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "patch nodes",
        "patch nodes/status",
    ];
    let wanted = ["cloud-controller-manager", "mute"]
        .into_iter()
        .flat_map(|account| asked.map(|asked| format!("{account} {asked}")));
    // It looks for deployed managers, which a manager's own role does not grant.
    let of_managers = [
        "/apis/apps/v1/daemonsets",
        "/api/v1/namespaces/kube-system/serviceaccounts/",
    ];
    assert_eq!(writers_but_for(&site, &of_managers), wanted.collect());
    assert!(told.contains("ok       writes are admitted: as a dry run that changes nothing: patch nodes fresh, patch nodes/status fresh"), "{told}");
}
