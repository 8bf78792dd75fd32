//! RBAC: the page about it, and the rules in the charts, from the one table in `bowline_kube_io::rbac`.

use std::fmt::Write as _;

use bowline_kube_io::rbac::{Account, Grant, NAMESPACE, Part, RULES, Rule, Scope, grants};

use serde_json::Value;

use crate::reference::cell;

/// What a cloud's manager may do.
struct Cloud {
    /// Its name among the values of the chart.
    name: &'static str,
    /// What the provider needs beyond the controllers that all clouds have.
    extras: &'static [Part],
    /// The ServiceAccount that the provider's own writes are made with.
    account: &'static str,
    /// The Go manager's manifest, whose role is kept in its order where a return shall take nothing but its image.
    former: &'static str,
}

const CLOUDSCALE: Cloud = Cloud {
    name: "cloudscale",
    extras: &[Part::ServiceAnnotations],
    account: bowline_cloudscale::SERVICE_ACCOUNT,
    former: include_str!("../../former/cloudscale.yaml"),
};

/// Its annotation on Nodes comes with what the cloud-node controller writes, and needs no right of its own.
const PHOENIXNAP: Cloud = Cloud {
    name: "phoenixnap",
    extras: &[Part::ServiceAnnotations, Part::LoadBalancerIp, Part::ClusterUid],
    account: bowline_phoenixnap::SERVICE_ACCOUNT,
    former: include_str!("../../former/phoenixnap.yaml"),
};

const CLOUDSTACK: Cloud = Cloud {
    name: "cloudstack",
    extras: &[Part::ServiceAnnotations],
    account: bowline_cloudstack::SERVICE_ACCOUNT,
    former: include_str!("../../former/cloudstack.yaml"),
};

const OPENSTACK: Cloud = Cloud {
    name: "openstack",
    extras: &[Part::Route, Part::ServiceAnnotations],
    account: bowline_openstack::SERVICE_ACCOUNT,
    former: include_str!("../../former/openstack.yaml"),
};

const CLOUDS: [&Cloud; 4] = [&CLOUDSCALE, &PHOENIXNAP, &CLOUDSTACK, &OPENSTACK];

/// What every manager needs, whatever its cloud.
const PROCESS: &[Part] = &[
    Part::Informers,
    Part::Events,
    Part::LeaderElection,
    Part::Reviews,
    Part::ClientAuthorities,
];
const LOOPS: &[Part] = &[Part::CloudNode, Part::NodeLifecycle, Part::Service];

const NAME: &str = "cloud-controller-manager";
const ROLE: &str = "system:cloud-controller-manager";

const FORMER_MARK: &str = "  # From here on: what the Go manager's role has, so that a return takes nothing but its image. Nothing \
of it is used\n  # beyond the rules above: who does not want to go back takes it out.\n";

/// The rules of all clouds, as named templates of the chart. Each is of one role: for one identity (`all`) or for the process
/// beside accounts of controllers (`accounts`), in the cluster or in its namespace (`system`); of the provider's account; and
/// what the Go manager's role had.
const CHART: &str = "deploy/chart/templates/_rules.tpl";

/// The same of phoenixNAP for the chart that its Go manager had, which knows one identity.
const PHOENIXNAP_CHART: &str = "deploy/phoenixnap/chart/templates/_rules.tpl";

/// The files beside the page: each path with what it should hold.
pub(crate) fn templates() -> Vec<(&'static str, String)> {
    let mut text = NOTICE.to_owned();
    for cloud in CLOUDS {
        let (all, accounts) = (all_parts(cloud), process_parts(cloud));
        let name = |role: &str| format!("bowline.rules.{}.{role}", cloud.name);
        text.push_str(&template(&name("all.cluster"), &cluster_rules(&all)));
        text.push_str(&template(&name("all.system"), &system_rules(&all, &[])));
        text.push_str(&template(&name("accounts.cluster"), &cluster_rules(&accounts)));
        let system = system_rules(&accounts, &[cloud.account]);
        text.push_str(&template(&name("accounts.system"), &system));
        text.push_str(&template(
            &name("provider"),
            &cluster_rules(&provider_parts(cloud)),
        ));
        text.push_str(&template(&name("former"), &former_rules(cloud)));
    }
    let parts = all_parts(&PHOENIXNAP);
    let name = |role: &str| format!("cloud-provider-phoenixnap.{role}");
    let mut former_chart = NOTICE.to_owned();
    former_chart.push_str(&template(&name("clusterRules"), &cluster_rules(&parts)));
    former_chart.push_str(&template(&name("systemRules"), &system_rules(&parts, &[])));
    vec![(CHART, text), (PHOENIXNAP_CHART, former_chart)]
}

const NOTICE: &str = "{{/* Written by `cargo xtask generate`. */}}\n";

fn template(name: &str, rules: &str) -> String {
    format!("{{{{- define \"{name}\" }}}}\n{rules}{{{{- end }}}}\n")
}

/// Everything that one identity needs: the default.
fn all_parts(cloud: &Cloud) -> Vec<Part> {
    [PROCESS, LOOPS, cloud.extras].concat()
}

/// What the process itself needs where each controller has an identity of its own.
fn process_parts(cloud: &Cloud) -> Vec<Part> {
    [
        PROCESS,
        &[Part::ServiceAccounts],
        &extras_of(cloud, Account::Process),
    ]
    .concat()
}

/// What the provider's own account needs then.
fn provider_parts(cloud: &Cloud) -> Vec<Part> {
    extras_of(cloud, Account::Provider)
}

fn extras_of(cloud: &Cloud, account: Account) -> Vec<Part> {
    let parts = cloud.extras.iter().copied();
    parts.filter(|part| part.account() == account).collect()
}

/// What every cluster has a role for is bound, not written again.
fn without_bound(parts: &[Part]) -> Vec<Part> {
    parts
        .iter()
        .copied()
        .filter(|part| *part != Part::ClientAuthorities)
        .collect()
}

fn cluster_rules(parts: &[Part]) -> String {
    rules(&grants(parts, Scope::Cluster))
}

/// The rules in `kube-system`; tokens are made for these accounts too, beside those of the controllers.
fn system_rules(parts: &[Part], more_accounts: &[&str]) -> String {
    let mut granted = grants(&without_bound(parts), Scope::System);
    for grant in &mut granted {
        if grant.resource.starts_with("serviceaccounts") && !grant.names.is_empty() {
            let names = more_accounts.iter().map(|&name| name.to_owned());
            grant.names.extend(names);
        }
    }
    rules(&granted)
}

fn former_rules(cloud: &Cloud) -> String {
    let mut text = FORMER_MARK.to_owned();
    let objects: Vec<Value> = serde_saphyr::from_multiple(cloud.former).unwrap_or_default();
    let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
    for rule in roles.filter_map(|role| role["rules"].as_array()).flatten() {
        let list = |key: &str| {
            let words = rule[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            words.map(quoted).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(text, "  - apiGroups: [{}]", list("apiGroups"));
        let _ = writeln!(
            text,
            "    resources: [{}]\n    verbs: [{}]",
            list("resources"),
            list("verbs")
        );
    }
    text
}

fn rules(grants: &[Grant]) -> String {
    let mut text = String::new();
    for grant in grants {
        for (part, verbs) in &grant.parts {
            let _ = writeln!(text, "  # {part}: {}", verbs.join(", "));
        }
        let _ = writeln!(text, "  - apiGroups: [{}]", quoted(grant.group));
        let _ = writeln!(text, "    resources: [{}]", grant.resource);
        if !grant.names.is_empty() {
            let _ = writeln!(text, "    resourceNames: [{}]", grant.names.join(", "));
        }
        let _ = writeln!(text, "    verbs: [{}]", grant.verbs.join(", "));
    }
    text
}

/// A word of YAML, in quotes where it needs some.
fn quoted(word: &str) -> String {
    match word {
        "" | "*" => format!("\"{word}\""),
        _ => word.to_owned(),
    }
}

/// The page of reference.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# RBAC\n\nWhat each part of the program asks the API server for, and what stops working without it. The log reports a\n\
         refused request with the missing rule. If it is about an object, an event on the object does too. While Nodes or\n\
         Services may not be read, `/readyz` fails.\n\n\
         | part | API group | resource | verbs | names | in | without it | account |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for rule in RULES {
        let Rule {
            part,
            group,
            resource,
            verbs,
            names,
            scope,
            loses,
        } = rule;
        let place = match scope {
            Scope::Cluster => "cluster",
            Scope::System => "`kube-system`",
        };
        let group = if group.is_empty() { "core" } else { group };
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            page,
            "| {part} | {group} | `{resource}` | {} | {} | {place} | {} | {} |",
            verbs.join(", "),
            names.join(", "),
            cell(loses),
            account(part.account())
        );
    }
    let _ = write!(
        page,
        "\n`/version` and `/healthz` are read too, and `selfsubjectaccessreviews` are created, which ask what one may oneself; a cluster with its\n\
         usual roles lets everybody who is known do so.\n\n\
         A lease of another name (`--leader-elect-resource-name`) or namespace needs its rule to name that one.\n\n\
         ## One identity\n\nThe default: everything is asked by the ServiceAccount `{NAME}`. These are the rules of its\n\
         ClusterRole `{ROLE}` for cloudscale.ch:\n\n```yaml\n{}```\n\n\
         and of its Role `{NAME}` in `{NAMESPACE}`:\n\n```yaml\n{}```\n\n\
         A RoleBinding to `extension-apiserver-authentication-reader` in `{NAMESPACE}` lets it read the authorities of clients.\n\n\
         ## A ServiceAccount for each controller\n\nWith `--use-service-account-credentials` the column *account* counts. ServiceAccounts are made in\n\
         `{NAMESPACE}` where they are missing. `node-controller`, `service-controller` and `route-controller` have their rights\n\
         from roles that every cluster has; what a provider writes itself is done by an account of its own, for cloudscale.ch\n\
         `{}`. Events are written by the controller that they come from. For cloudscale.ch the\n\
         ClusterRole of the process is then:\n\n```yaml\n{}```\n\nits Role in `{NAMESPACE}`:\n\n```yaml\n{}```\n\n\
         and the ClusterRole of the provider's account:\n\n```yaml\n{}```\n\n\
         ## All clouds\n\nThe objects are in the manifests under `deploy/`, and those for `--use-service-account-credentials` in\n\
         `service-account-credentials` beside them. The chart in `deploy/chart` makes the same ones.\n",
        cluster_rules(&all_parts(&CLOUDSCALE)),
        system_rules(&all_parts(&CLOUDSCALE), &[]),
        CLOUDSCALE.account,
        cluster_rules(&process_parts(&CLOUDSCALE)),
        system_rules(&process_parts(&CLOUDSCALE), &[CLOUDSCALE.account]),
        cluster_rules(&provider_parts(&CLOUDSCALE)),
    );
    page
}

fn account(account: Account) -> String {
    match account {
        Account::Process => "the process".to_owned(),
        Account::Provider => "the provider's".to_owned(),
        Account::Node | Account::Service | Account::Route => {
            format!("`{}`", account.name().unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_role_gives_more_than_the_table() {
        for cloud in CLOUDS {
            let all = cluster_rules(&all_parts(cloud));
            let process = cluster_rules(&process_parts(cloud));
            let provider = cluster_rules(&provider_parts(cloud));
            for text in [&all, &process, &provider] {
                assert!(!text.contains('*') && !text.contains("secrets"), "{text}");
            }
            // The process itself writes nothing to Nodes and Services when the controllers have accounts of their own.
            assert!(
                !process.contains("delete") && !process.contains("nodes/status"),
                "{process}"
            );
        }
    }

    #[test]
    fn each_role_of_each_cloud_has_a_template() {
        let files = templates();
        let [(CHART, text), _] = files.as_slice() else {
            panic!("the chart's rules come first");
        };
        assert_eq!(text.matches("{{- define ").count(), CLOUDS.len() * 6);
        assert_eq!(text.matches("{{- end }}").count(), CLOUDS.len() * 6);
        assert!(text.contains("resourceNames: [node-controller, service-controller, route-controller, cloudscale-cloud-controller-manager]"));
    }
}
