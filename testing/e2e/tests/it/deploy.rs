//! The manifests that are shipped: they can be read, have the names of the Go managers' ones, and their command lines are
//! understood.

mod cloudstack;
mod phoenixnap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bowline::args::{self, Invocation};
use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .join("deploy")
}

/// All YAML files below a directory, in order; a chart's are no manifests before they are rendered.
pub(crate) fn manifests(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Chart.yaml").exists() {
            continue;
        }
        if path.is_dir() {
            found.extend(manifests(&path));
        } else if path.extension().is_some_and(|it| it == "yml" || it == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn documents(path: &Path) -> Vec<Value> {
    parsed(&std::fs::read_to_string(path).unwrap(), path)
}

fn parsed(text: &str, path: &Path) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    documents
        .into_iter()
        .filter(|document| !document.is_null()) // a file may begin with a comment and a separator
        .collect()
}

fn cloudscale() -> Vec<Value> {
    documents(&root().join("cloudscale/config.yml"))
}

fn of_kind<'a>(all: &'a [Value], kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|object| object["kind"] == kind).collect()
}

fn only<'a>(all: &'a [Value], kind: &str) -> &'a Value {
    let [one] = of_kind(all, kind)[..] else {
        panic!("not one {kind}");
    };
    one
}

#[test]
fn every_manifest_holds_named_objects_and_nothing_else() {
    let all = manifests(&root());
    assert!(all.len() >= 14, "{all:?}");
    for path in all {
        let objects = documents(&path);
        assert!(!objects.is_empty(), "{}", path.display());
        for object in objects {
            for field in ["/apiVersion", "/kind", "/metadata/name"] {
                let value = object.pointer(field).and_then(Value::as_str);
                assert!(
                    value.is_some_and(|it| !it.is_empty()),
                    "{}: no {field}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn what_the_go_manager_s_manifest_named_is_named_the_same() {
    let all = cloudscale();
    let account = only(&all, "ServiceAccount");
    assert_eq!(account["metadata"]["name"], "cloud-controller-manager");
    assert_eq!(account["metadata"]["namespace"], "kube-system");
    assert_eq!(
        only(&all, "ClusterRole")["metadata"]["name"],
        "system:cloud-controller-manager"
    );
    let binding = only(&all, "ClusterRoleBinding");
    assert_eq!(binding["metadata"]["name"], "system:cloud-controller-manager");
    assert_eq!(binding["roleRef"]["name"], "system:cloud-controller-manager");
    assert_eq!(binding["subjects"][0]["name"], "cloud-controller-manager");
    assert_eq!(binding["subjects"][0]["namespace"], "kube-system");

    let set = only(&all, "DaemonSet");
    let name = "cloudscale-cloud-controller-manager";
    assert_eq!(set["metadata"]["name"], name);
    assert_eq!(set["metadata"]["namespace"], "kube-system");
    for labels in [
        "/metadata/labels",
        "/spec/selector/matchLabels",
        "/spec/template/metadata/labels",
    ] {
        assert_eq!(set.pointer(labels).unwrap()["k8s-app"], name, "{labels}");
    }
    assert_eq!(set["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "cloud-controller-manager");
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["nodeSelector"]["node-role.kubernetes.io/control-plane"], "");
    let tolerated: BTreeSet<&str> = pod["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["key"].as_str())
        .collect();
    for key in [
        "node-role.kubernetes.io/control-plane",
        "CriticalAddonsOnly",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
    ] {
        assert!(tolerated.contains(key), "{key}");
    }
    let container = &pod["containers"][0];
    assert_eq!(container["name"], name);
    let variable = |name: &str| {
        let all = container["env"].as_array().unwrap();
        all.iter()
            .find(|it| it["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .clone()
    };
    assert_eq!(
        variable("CLOUDSCALE_API_URL")["value"],
        "https://api.cloudscale.ch/"
    );
    let token = variable("CLOUDSCALE_ACCESS_TOKEN");
    let secret = &token["valueFrom"]["secretKeyRef"];
    assert_eq!(
        (&secret["name"], &secret["key"]),
        (&"cloudscale".into(), &"access-token".into())
    );
}

/// What the two roles of the process allow, as `verb resource`.
fn rights(all: &[Value]) -> BTreeSet<String> {
    let rules = [only(all, "ClusterRole"), only(all, "Role")]
        .into_iter()
        .flat_map(|role| role["rules"].as_array().unwrap());
    let mut rights = BTreeSet::new();
    for rule in rules {
        for resource in rule["resources"].as_array().unwrap() {
            for verb in rule["verbs"].as_array().unwrap() {
                rights.insert(format!(
                    "{} {}",
                    verb.as_str().unwrap(),
                    resource.as_str().unwrap()
                ));
            }
        }
    }
    rights
}

/// The options that a container's command line is read as.
fn understood(container: &Value) -> Box<args::Options> {
    let words = |field: &str| {
        let all = container[field].as_array().cloned().unwrap_or_default();
        all.into_iter().map(|word| word.as_str().unwrap().to_owned())
    };
    let line: Vec<String> = words("command").chain(words("args")).collect();
    match args::read(&line) {
        Invocation::Run(options) => options,
        other => panic!("{line:?}: {other:?}"),
    }
}

/// The command line is understood as that of a provider with this configuration file, elected, probed where it serves.
#[track_caller]
fn assert_runs(container: &Value, provider: &str, config: &str) {
    let options = understood(container);
    assert_eq!(options.provider.name, provider);
    assert_eq!(options.provider.config.as_deref(), Some(config.as_ref()));
    assert!(options.manager.election.is_some());
    assert_eq!(
        container["ports"][0]["containerPort"],
        options.serving.unwrap().port
    );
}

/// The roles give each right that is needed, and none with a word of those that are not.
#[track_caller]
fn assert_rights(all: &[Value], needed: &[&str], unneeded: &[&str]) {
    let rights = rights(all);
    for right in needed {
        assert!(rights.contains(*right), "{right}: {rights:?}");
    }
    for word in unneeded {
        assert!(
            !rights.iter().any(|right| right.contains(word)),
            "{word}: {rights:?}"
        );
    }
}

#[test]
fn the_role_gives_no_right_that_the_program_does_not_use() {
    let needed = [
        "list nodes",
        "watch nodes",
        "patch nodes",
        "delete nodes",
        "patch nodes/status",
        "list services",
        "watch services",
        "patch services",
        "patch services/status",
        "create events",
        "patch events",
        "get leases",
        "create leases",
        "update leases",
        "watch leases",
    ];
    assert_rights(&cloudscale(), &needed, &["*", "secrets"]);
}

#[test]
fn the_command_line_in_the_manifest_is_understood() {
    let all = cloudscale();
    let container = only(&all, "DaemonSet")["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["command"][0], "cloudscale-cloud-controller-manager");
    let options = understood(&container);
    assert_eq!(options.provider.name, "cloudscale");
    assert!(options.provider.allows_untagged);
    assert_eq!(options.manager.settings.service_workers, 2);
    assert_eq!(options.logging.verbosity, 3);
    // The probes ask the port that the program serves.
    let port = options.serving.unwrap().port;
    assert_eq!(container["ports"][0]["containerPort"], port);
}
