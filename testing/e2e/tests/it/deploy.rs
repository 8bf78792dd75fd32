//! The manifests that are shipped: they can be read, have the names of the Go managers' ones, and their command lines are
//! understood.

mod cloudscale;
mod cloudstack;
mod openstack;
mod phoenixnap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bowline::args::{self, Invocation};
use serde_json::{Value, json};

/// The account of every manager; its role and binding have the name too.
const ACCOUNT: &str = "cloud-controller-manager";

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

/// The manifest of a cloud's Go manager.
fn former(cloud: &str) -> Vec<Value> {
    let path = format!("testing/checks/former/{cloud}.yaml");
    documents(&root().parent().unwrap().join(path))
}

/// The former role has no right to ask who scrapes; where it is kept, each guide says how to add it.
#[test]
fn what_a_former_role_lacks_for_metrics_is_in_the_guide() {
    let docs = root().parent().unwrap().join("docs/guides");
    let read = |page: &str| std::fs::read_to_string(docs.join(page)).unwrap();
    for cloud in ["cloudscale", "phoenixnap", "cloudstack", "openstack"] {
        let role = only(&former(cloud), "ClusterRole").to_string();
        assert!(!role.contains("tokenreviews"), "{cloud}");
        let guide = read(&format!("migrate-{cloud}.md"));
        assert!(
            guide.contains("monitor.md#after-a-change-of-nothing-but-the-image")
                && guide.contains("auth-delegator"),
            "{cloud}"
        );
    }
    let command = format!("--clusterrole=system:auth-delegator --serviceaccount=kube-system:{ACCOUNT}");
    assert!(read("monitor.md").contains(&command));
}

/// The manifests of the Go managers, word for word: two have a `command`, CloudStack's has flags for the former image's
/// entry point, and OpenStack's has the program's path as its first argument.
#[test]
fn our_image_in_a_former_manifest_understands_its_words() {
    for (file, kind, provider, config) in [
        ("cloudscale", "DaemonSet", "cloudscale", None),
        (
            "phoenixnap",
            "Deployment",
            "phoenixnap",
            Some("/etc/cloud-sa/cloud-sa.json"),
        ),
        (
            "cloudstack",
            "Deployment",
            "external-cloudstack",
            Some("/config/cloud-config"),
        ),
        (
            "openstack",
            "DaemonSet",
            "openstack",
            Some("/etc/config/cloud.conf"),
        ),
    ] {
        let all = former(file);
        let container = &only(&all, kind)["spec"]["template"]["spec"]["containers"][0];
        let options = understood(&expanded(container));
        assert_eq!(options.provider.name, provider);
        assert_eq!(
            options.provider.config.as_deref(),
            config.map(AsRef::as_ref),
            "{file}"
        );
    }
}

/// The names that an image is found by and that selectors and bindings go by: of what runs the program, of its account,
/// and of that account's rights. Answers the pod.
#[track_caller]
fn assert_named<'a>(all: &'a [Value], kind: &str, name: &str, label: &str) -> &'a Value {
    let account = &only(all, "ServiceAccount")["metadata"];
    let expected = json!({ "name": ACCOUNT, "namespace": "kube-system" });
    assert_eq!(account, &expected);
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        assert_eq!(only(all, kind)["metadata"]["name"], format!("system:{ACCOUNT}"));
    }
    let binding = only(all, "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], format!("system:{ACCOUNT}"));
    let subject = &binding["subjects"][0];
    assert_eq!(
        (&subject["name"], &subject["namespace"]),
        (&expected["name"], &expected["namespace"])
    );

    let set = only(all, kind);
    assert_eq!(set["metadata"]["name"], name);
    assert_eq!(set["metadata"]["namespace"], "kube-system");
    for labels in [
        "/metadata/labels",
        "/spec/selector/matchLabels",
        "/spec/template/metadata/labels",
    ] {
        assert_eq!(set.pointer(labels).unwrap(), &json!({ label: name }), "{labels}");
    }
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], ACCOUNT);
    assert_eq!(pod["containers"][0]["name"], name);
    pod
}

/// The pod waits neither for the network that it makes nor for what it takes away from Nodes itself.
#[track_caller]
fn assert_starts_first(pod: &Value, tolerated: &[&str]) {
    assert_eq!(pod["hostNetwork"], true);
    let tolerations = pod["tolerations"].as_array().unwrap();
    for key in tolerated {
        assert!(tolerations.iter().any(|it| it["key"] == *key), "{key}");
    }
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

/// A container with its variables in its command line, as a kubelet puts them there.
fn expanded(container: &Value) -> Value {
    let variables = container["env"].as_array().into_iter().flatten();
    let text = variables.fold(container.to_string(), |text, variable| {
        let name = format!("$({})", variable["name"].as_str().unwrap());
        text.replace(&name, variable["value"].as_str().unwrap_or_default())
    });
    serde_json::from_str(&text).unwrap()
}

/// What starts where a manifest has no `command`: the entry point of our image.
const ENTRY_POINT: &str = "/bin/cloud-controller-manager";

/// The options that a container's command line is read as, in our image.
fn understood(container: &Value) -> Box<args::Options> {
    let words = |field: &str| -> Vec<String> {
        let all = container[field].as_array().into_iter().flatten();
        all.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut line = words("command");
    if line.is_empty() {
        line.push(ENTRY_POINT.to_owned());
    }
    line.extend(words("args"));
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
