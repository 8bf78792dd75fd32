//! RBAC: the page about it, and the objects in the manifests, from the one table in `bowline_kube_io::rbac`.

use std::fmt::Write as _;

use bowline_kube_io::rbac::{Account, Grant, NAMESPACE, Part, RULES, Rule, Scope, grants};

use crate::cell;

/// A manifest that is shipped.
struct Manifest {
    /// Where the process's own objects are, between two marks.
    path: &'static str,
    /// Where the objects are that take their place with `--use-service-account-credentials`: a file of its own.
    with_accounts: &'static str,
    /// Where the rules are for a Helm chart, as named templates, and the chart's name.
    chart: Option<(&'static str, &'static str)>,
    /// What the provider needs beyond the controllers that all clouds have.
    extras: &'static [Part],
    /// The ServiceAccount that the provider's own writes are made with.
    account: &'static str,
    /// Annotations of the process's ClusterRole.
    annotations: &'static [(&'static str, &'static str)],
    /// Labels of it.
    labels: &'static [(&'static str, &'static str)],
    /// The name of the binding to the role that lets the authorities of clients be read.
    reader: &'static str,
    /// What the former manager's role has, in its order, where a return shall take nothing but its image.
    former: &'static [FormerRule],
}

/// A rule of a Go manager's role: the API group, the resource and the verbs.
type FormerRule = (&'static str, &'static str, &'static str);

/// The role of CloudStack's Go manager 1.2.0.
const FORMER_CLOUDSTACK: &[FormerRule] = &[
    ("coordination.k8s.io", "leases", "get, create, update"),
    ("", "configmaps", "list, watch"),
    ("", "events", "create, patch, update"),
    ("", "nodes", "\"*\""),
    ("", "nodes/status", "patch"),
    ("", "pods", "list, get"),
    ("", "services", "get, list, patch, update, watch"),
    ("", "services/status", "list, patch, update, watch"),
    ("", "serviceaccounts", "create"),
    ("", "endpoints", "create, get, list, watch, update"),
    ("", "persistentvolumes", "list, watch, patch"),
];

/// The role of OpenStack's Go manager 1.36.
const FORMER_OPENSTACK: &[FormerRule] = &[
    ("coordination.k8s.io", "leases", "get, create, update"),
    ("", "events", "create, patch, update"),
    ("", "nodes", "\"*\""),
    ("", "nodes/status", "patch"),
    ("", "services", "list, patch, update, watch"),
    ("", "services/status", "patch"),
    ("", "serviceaccounts", "create, get"),
    ("", "serviceaccounts/token", "create"),
    ("", "persistentvolumes", "\"*\""),
    ("", "endpoints", "create, get, list, watch, update"),
    ("", "configmaps", "get, list, watch"),
    ("", "secrets", "list, get, watch"),
];

const CLOUDSCALE: Manifest = Manifest {
    path: "deploy/cloudscale/config.yml",
    with_accounts: "deploy/cloudscale/service-account-credentials.yml",
    chart: None,
    extras: &[Part::ServiceAnnotations],
    account: bowline_cloudscale::SERVICE_ACCOUNT,
    annotations: &[],
    labels: &[],
    reader: "cloud-controller-manager:extension-apiserver-authentication-reader",
    former: &[],
};

/// Its annotation on Nodes comes with what the cloud-node controller writes, and needs no right of its own.
const PHOENIXNAP: Manifest = Manifest {
    path: "deploy/phoenixnap/deployment.yaml",
    with_accounts: "deploy/phoenixnap/service-account-credentials.yaml",
    chart: Some((
        "deploy/phoenixnap/chart/templates/_rules.tpl",
        "cloud-provider-phoenixnap",
    )),
    extras: &[Part::ServiceAnnotations, Part::LoadBalancerIp, Part::ClusterUid],
    account: bowline_phoenixnap::SERVICE_ACCOUNT,
    annotations: &[("rbac.authorization.kubernetes.io/autoupdate", "true")],
    labels: &[],
    reader: "cloud-controller-manager:extension-apiserver-authentication-reader",
    former: &[],
};

const CLOUDSTACK: Manifest = Manifest {
    path: "deploy/cloudstack/deployment.yaml",
    with_accounts: "deploy/cloudstack/service-account-credentials.yaml",
    chart: None,
    extras: &[Part::ServiceAnnotations],
    account: bowline_cloudstack::SERVICE_ACCOUNT,
    annotations: &[("rbac.authorization.kubernetes.io/autoupdate", "true")],
    labels: &[("k8s-app", "cloud-controller-manager")],
    reader: "system:cloud-controller-manager:extension-apiserver-authentication-reader",
    former: FORMER_CLOUDSTACK,
};

const OPENSTACK: Manifest = Manifest {
    path: "deploy/openstack/daemonset.yaml",
    with_accounts: "deploy/openstack/service-account-credentials.yaml",
    chart: None,
    extras: &[Part::Route, Part::ServiceAnnotations],
    account: bowline_openstack::SERVICE_ACCOUNT,
    annotations: &[("rbac.authorization.kubernetes.io/autoupdate", "true")],
    labels: &[],
    reader: "cloud-controller-manager:extension-apiserver-authentication-reader",
    former: FORMER_OPENSTACK,
};

const MANIFESTS: [&Manifest; 4] = [&CLOUDSCALE, &PHOENIXNAP, &CLOUDSTACK, &OPENSTACK];

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

const BEGIN: &str = "# BEGIN RBAC: written by `cargo xtask generate`";
const END: &str = "# END RBAC\n";

/// The files beside the page: each path with what it should hold, given what it holds now.
pub(crate) fn manifests(present: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    let mut files = Vec::new();
    for manifest in MANIFESTS {
        let path = manifest.path;
        files.push((path, replaced(&present(path), &single(manifest))));
        files.push((manifest.with_accounts, accounts(manifest)));
        if let Some((path, name)) = manifest.chart {
            files.push((path, templates(manifest, name)));
        }
    }
    files
}

/// The text with what is between the marks replaced; without marks there is nothing to replace.
fn replaced(text: &str, block: &str) -> String {
    let parts = text
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    match parts {
        Some((before, after)) => format!("{before}{BEGIN}\n{block}{END}{after}"),
        None => format!("the marks are missing:\n{BEGIN}\n{END}"),
    }
}

/// One identity for everything: the default.
fn single(manifest: &Manifest) -> String {
    process_objects(manifest, &all_parts(manifest), &[], manifest.former)
}

/// Everything that one identity needs.
fn all_parts(manifest: &Manifest) -> Vec<Part> {
    [PROCESS, LOOPS, manifest.extras].concat()
}

/// The rules of one identity as named templates, for a chart that chooses the names of roles.
fn templates(manifest: &Manifest, chart: &str) -> String {
    let parts = all_parts(manifest);
    format!(
        "{{{{/* Written by `cargo xtask generate`. */}}}}\n\
         {{{{- define \"{chart}.clusterRules\" }}}}\n{}{{{{- end }}}}\n\
         {{{{- define \"{chart}.systemRules\" }}}}\n{}{{{{- end }}}}\n",
        rules(&grants(&parts, Scope::Cluster)),
        rules(&grants(&without_bound(&parts), Scope::System)),
    )
}

/// What every cluster has a role for is bound, not written again.
fn without_bound(parts: &[Part]) -> Vec<Part> {
    parts
        .iter()
        .copied()
        .filter(|part| *part != Part::ClientAuthorities)
        .collect()
}

/// An identity of its own for each controller.
fn accounts(manifest: &Manifest) -> String {
    let of = |account| {
        let parts = manifest.extras.iter().copied();
        parts
            .filter(|part| part.account() == account)
            .collect::<Vec<Part>>()
    };
    let (of_process, of_provider) = (of(Account::Process), of(Account::Provider));
    let parts = [PROCESS, &[Part::ServiceAccounts], &of_process].concat();
    let mut text = format!(
        "# Written by `cargo xtask generate`.\n#\n\
         # For --use-service-account-credentials, applied after {}: the process itself may do less, and each controller\n\
         # works with a ServiceAccount of its own. Those of the controllers have their rights from roles that every cluster has\n\
         # (system:controller:node-controller, ...:service-controller, ...:route-controller).\n\
         {}",
        manifest.path.rsplit('/').next().unwrap_or_default(),
        process_objects(manifest, &parts, &[manifest.account], &[])
    );
    let name = manifest.account;
    text.push_str(&role(
        "ClusterRole",
        name,
        &[],
        &grants(&of_provider, Scope::Cluster),
    ));
    text.push_str(&binding("ClusterRoleBinding", name, "ClusterRole", name, name));
    text
}

/// The roles and bindings of the process.
fn process_objects(
    manifest: &Manifest,
    parts: &[Part],
    more_accounts: &[&str],
    former: &[FormerRule],
) -> String {
    let of_cluster = grants(parts, Scope::Cluster);
    let marks = [("annotations", manifest.annotations), ("labels", manifest.labels)];
    let mut text = role("ClusterRole", ROLE, &marks, &of_cluster);
    if !former.is_empty() {
        text.push_str(FORMER_MARK);
    }
    for (group, resource, verbs) in former {
        let _ = writeln!(text, "  - apiGroups: [{}]", quoted(group));
        let _ = writeln!(text, "    resources: [{resource}]\n    verbs: [{verbs}]");
    }
    text.push_str(&binding("ClusterRoleBinding", ROLE, "ClusterRole", ROLE, NAME));
    let mut in_system = grants(&without_bound(parts), Scope::System);
    for grant in in_system
        .iter_mut()
        .filter(|grant| grant.resource.starts_with("serviceaccounts"))
    {
        if !grant.names.is_empty() {
            grant
                .names
                .extend(more_accounts.iter().map(|&name| name.to_owned()));
        }
    }
    text.push_str(&role("Role", NAME, &[], &in_system));
    text.push_str(&binding("RoleBinding", NAME, "Role", NAME, NAME));
    let reader = "extension-apiserver-authentication-reader";
    text.push_str(&binding("RoleBinding", manifest.reader, "Role", reader, NAME));
    text
}

/// Pairs of the metadata, under the field that holds them.
type Marks = (&'static str, &'static [(&'static str, &'static str)]);

fn role(kind: &str, name: &str, marks: &[Marks], grants: &[Grant]) -> String {
    let mut text = head(kind, name);
    for (field, pairs) in marks.iter().filter(|(_, pairs)| !pairs.is_empty()) {
        let _ = writeln!(text, "  {field}:");
        for (key, value) in *pairs {
            let _ = writeln!(text, "    {key}: \"{value}\"");
        }
    }
    text.push_str("rules:\n");
    text.push_str(&rules(grants));
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

fn binding(kind: &str, name: &str, role_kind: &str, role: &str, account: &str) -> String {
    format!(
        "{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role_kind}\n  name: {role}\n\
         subjects:\n  - kind: ServiceAccount\n    name: {account}\n    namespace: {NAMESPACE}\n",
        head(kind, name)
    )
}

fn head(kind: &str, name: &str) -> String {
    let namespace = if kind.starts_with("Cluster") {
        String::new()
    } else {
        format!("  namespace: {NAMESPACE}\n")
    };
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}"
    )
}

fn quoted(group: &str) -> String {
    if group.is_empty() {
        "\"\"".to_owned()
    } else {
        group.to_owned()
    }
}

/// The page of reference.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# RBAC\n\nWhat each part of the program asks the API server for, and what stops working without it. A request that is\n\
         refused says so in the log and, where it is about an object, in an event on it, with the rule that is missing. While\n\
         Nodes or Services may not be read, `/readyz` fails.\n\n\
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
        "\n`/version` and `/healthz` are read too; every cluster lets everybody who is known read them.\n\n\
         A lease of another name (`--leader-elect-resource-name`) or namespace needs its rule to name that one.\n\n\
         ## One identity\n\nThe default: everything is asked by the ServiceAccount `{NAME}`. These are the objects for\n\
         cloudscale.ch, as `{}` has them.\n\n```yaml\n{}```\n\n\
         ## A ServiceAccount for each controller\n\nWith `--use-service-account-credentials` the column *account* counts. ServiceAccounts are made in\n\
         `{NAMESPACE}` where they are missing. `node-controller`, `service-controller` and `route-controller` have their rights\n\
         from roles that every cluster has; what a provider writes itself is done by an account of its own, for cloudscale.ch\n\
         `{}`. Events are written by the controller that they come from. These are the objects for cloudscale.ch, as\n\
         `{}` has them.\n\n```yaml\n{}```\n\n\
         ## Other clouds\n\nThe same with what their providers need: phoenixNAP's are in `{}` and\n`{}`, CloudStack's in `{}` and\n`{}`.\n",
        CLOUDSCALE.path,
        single(&CLOUDSCALE),
        CLOUDSCALE.account,
        CLOUDSCALE.with_accounts,
        accounts(&CLOUDSCALE),
        PHOENIXNAP.path,
        PHOENIXNAP.with_accounts,
        CLOUDSTACK.path,
        CLOUDSTACK.with_accounts,
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
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}\nold\n{END}after\n");
        assert_eq!(
            replaced(&text, "new\n"),
            format!("before\n{BEGIN}\nnew\n{END}after\n")
        );
        assert!(replaced("no marks", "new\n").starts_with("the marks are missing"));
    }

    #[test]
    fn no_role_gives_more_than_the_table() {
        for manifest in MANIFESTS {
            // But for what a return to the Go manager needs.
            let text = single(manifest);
            let own = text.split(FORMER_MARK).next().unwrap_or_default().to_owned();
            for text in [own, accounts(manifest)] {
                assert!(!text.contains('*') && !text.contains("secrets"), "{text}");
            }
            // The process itself writes nothing to Nodes and Services when the controllers have accounts of their own.
            let own = accounts(manifest);
            let process = own.split("kind: ClusterRoleBinding").next().unwrap_or_default();
            assert!(
                !process.contains("delete") && !process.contains("nodes/status"),
                "{process}"
            );
        }
    }
}
