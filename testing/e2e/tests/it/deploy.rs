//! The manifests that are shipped: they can be read, have the names of the Go managers' ones, and their command lines are
//! understood.

mod cloudstack;
mod openstack;
mod phoenixnap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bowline::args::{self, Invocation};
use bowline_cloud_provider::CloudConfig;
use serde_json::Value;

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
    let text = std::fs::read_to_string(path).unwrap();
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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
            guide.contains("monitor.md#after-a-change-of-only-the-image") && guide.contains("auth-delegator"),
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
    for (cloud, provider, config) in [
        ("cloudscale", "cloudscale", None),
        ("phoenixnap", "phoenixnap", Some("/etc/cloud-sa/cloud-sa.json")),
        ("cloudstack", "external-cloudstack", Some("/config/cloud-config")),
        ("openstack", "openstack", Some("/etc/config/cloud.conf")),
    ] {
        let options = understood(&expanded(container(&former(cloud))));
        assert_eq!(options.provider.name, provider);
        assert_eq!(
            options.provider.config.as_deref(),
            config.map(AsRef::as_ref),
            "{cloud}"
        );
    }
}

/// The manifest of each cloud, and its pod's container with the program.
fn shipped() -> [(&'static str, Vec<Value>); 4] {
    [
        ("cloudscale", "cloudscale/config.yml"),
        ("phoenixnap", "phoenixnap/deployment.yaml"),
        ("cloudstack", "cloudstack/deployment.yaml"),
        ("openstack", "openstack/daemonset.yaml"),
    ]
    .map(|(cloud, path)| (cloud, documents(&root().join(path))))
}

fn of(cloud: &str) -> Vec<Value> {
    let mut all = shipped().into_iter();
    all.find(|it| it.0 == cloud).unwrap().1
}

/// What runs the program.
fn workload(all: &[Value]) -> &Value {
    let runs = |it: &&Value| it["kind"] == "DaemonSet" || it["kind"] == "Deployment";
    all.iter().find(runs).unwrap()
}

fn pod(all: &[Value]) -> &Value {
    &workload(all)["spec"]["template"]["spec"]
}

fn container(all: &[Value]) -> &Value {
    &pod(all)["containers"][0]
}

/// What an image is found by, what selectors and bindings go by, and what an operator has made for it.
#[test]
fn what_the_former_manifest_has_is_there_under_the_same_name() {
    for (cloud, ours) in shipped() {
        let former = former(cloud);
        for theirs in &former {
            let is_same = |it: &&Value| it["kind"] == theirs["kind"] && it["metadata"] == theirs["metadata"];
            let same = ours.iter().find(is_same);
            let same = same.unwrap_or_else(|| panic!("{cloud}: {} {}", theirs["kind"], theirs["metadata"]));
            for field in ["roleRef", "subjects"] {
                assert_eq!(same[field], theirs[field], "{cloud}: {field}");
            }
        }
        let (is, was) = (workload(&ours), workload(&former));
        for field in ["selector", "updateStrategy"] {
            assert_eq!(is["spec"][field], was["spec"][field], "{cloud}: {field}");
        }
        let labels = |it: &Value| it["spec"]["template"]["metadata"]["labels"].clone();
        assert_eq!(labels(is), labels(was), "{cloud}");
        for field in ["serviceAccountName", "nodeSelector", "affinity"] {
            assert_eq!(pod(&ours)[field], pod(&former)[field], "{cloud}: {field}");
        }
        assert_eq!(container(&ours)["name"], container(&former)["name"]);
        let kept = [
            (&pod(&ours)["volumes"], &pod(&former)["volumes"]),
            (
                &container(&ours)["volumeMounts"],
                &container(&former)["volumeMounts"],
            ),
            (&container(&ours)["env"], &container(&former)["env"]),
        ];
        for (is, was) in kept {
            let is: Vec<&Value> = is.as_array().into_iter().flatten().collect();
            for entry in was.as_array().into_iter().flatten() {
                assert!(is.contains(&entry), "{cloud}: {entry}");
            }
        }
    }
}

/// The pod waits neither for the network that it makes nor for what it takes away from Nodes itself.
#[test]
fn it_starts_on_a_node_that_waits_for_it() {
    for (cloud, all) in shipped() {
        let pod = pod(&all);
        assert_eq!(pod["hostNetwork"], true, "{cloud}");
        let tolerations = pod["tolerations"].as_array().unwrap();
        for key in [
            "node.cloudprovider.kubernetes.io/uninitialized",
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/not-ready",
            "CriticalAddonsOnly",
        ] {
            assert!(tolerations.iter().any(|it| it["key"] == key), "{cloud}: {key}");
        }
    }
    for cloud in ["cloudstack", "phoenixnap"] {
        assert_eq!(pod(&of(cloud))["dnsPolicy"], "Default", "{cloud}");
    }
    // Two of phoenixNAP's never run at once; the other one makes room where there is one node for it.
    let strategy = |cloud| workload(&of(cloud))["spec"]["strategy"].clone();
    assert_eq!(strategy("phoenixnap")["type"], "Recreate");
    assert_eq!(strategy("cloudstack")["rollingUpdate"]["maxSurge"], 0);
}

/// Each begins where the former image has its program, so that an image of either is found.
#[test]
fn the_command_lines_are_the_former_ones_and_understood() {
    for (cloud, program, provider, config) in [
        (
            "cloudscale",
            "cloudscale-cloud-controller-manager",
            "cloudscale",
            None,
        ),
        (
            "phoenixnap",
            "./cloud-provider-phoenixnap",
            "phoenixnap",
            Some("/etc/cloud-sa/cloud-sa.json"),
        ),
        (
            "cloudstack",
            "/app/cloudstack-ccm",
            "external-cloudstack",
            Some("/config/cloud-config"),
        ),
        (
            "openstack",
            "/bin/openstack-cloud-controller-manager",
            "openstack",
            Some("/etc/config/cloud.conf"),
        ),
    ] {
        let all = of(cloud);
        let container = container(&all);
        assert_eq!(container["command"][0], program);
        let options = understood(&expanded(container));
        assert_eq!(options.provider.name, provider);
        assert_eq!(
            options.provider.config.as_deref(),
            config.map(AsRef::as_ref),
            "{cloud}"
        );
        assert!(options.manager.election.is_some(), "{cloud}");
        if cloud != "openstack" {
            let port = options.serving.unwrap().port;
            assert_eq!(container["ports"][0]["containerPort"], port, "{cloud}");
        }
    }
    let options = understood(container(&of("cloudscale")));
    assert!(options.provider.allows_untagged);
    let workers = ("concurrent-service-syncs", "2".to_owned());
    assert!(options.flags.contains(&workers));
    assert_eq!(options.logging.verbosity, 3);
}

/// The roles give each right that is needed, and none with a word of those that are not.
#[test]
fn the_roles_give_what_is_needed_and_no_more() {
    let everywhere = [
        "patch nodes",
        "delete nodes",
        "patch nodes/status",
        "patch services",
        "patch services/status",
        "create events",
        "create leases",
        "get leases",
        "update leases",
    ];
    for (cloud, needed, unneeded) in [
        (
            "cloudscale",
            &[
                "list nodes",
                "watch nodes",
                "list services",
                "watch services",
                "patch events",
                "watch leases",
            ][..],
            &["*", "secrets"][..],
        ),
        (
            "phoenixnap",
            &["get namespaces"],
            &["*", "secrets", "endpoints", "configmaps", "update services"],
        ),
        // A return to the Go manager takes more.
        (
            "cloudstack",
            &[
                "* nodes",
                "get services",
                "update services",
                "update services/status",
                "update events",
                "watch configmaps",
                "list pods",
                "create serviceaccounts",
                "update endpoints",
                "patch persistentvolumes",
            ],
            &["secrets", "delete services"],
        ),
        (
            "openstack",
            &["watch leases"],
            &["*", "secrets", "serviceaccounts", "update events"],
        ),
    ] {
        assert_rights(&of(cloud), &[&everywhere[..], needed].concat(), unneeded);
    }
}

/// The text under a key of the Secret that a cloud's manifests come with.
#[track_caller]
fn secret(cloud: &str, name: &str, key: &str) -> String {
    let all = documents(&root().join(cloud).join("secret.yaml"));
    let secret = only(&all, "Secret");
    assert_eq!(secret["metadata"]["name"], name);
    assert_eq!(secret["metadata"]["namespace"], "kube-system");
    secret["stringData"][key].as_str().unwrap().to_owned()
}

/// A configuration file of this text.
fn given(text: &str) -> CloudConfig {
    CloudConfig::Given {
        path: "the file".to_owned(),
        contents: text.as_bytes().to_vec(),
    }
}

#[test]
fn every_service_of_the_examples_has_pods_behind_it_and_annotations_that_there_are() {
    for (cloud, table) in [
        ("cloudstack", bowline_cloudstack::annotation_table()),
        ("openstack", bowline_openstack::annotation_table()),
    ] {
        let files = manifests(&root().join(cloud).join("examples"));
        assert_eq!(files.len(), 3);
        for path in files {
            let all = documents(&path);
            let (service, file) = (only(&all, "Service"), path.display());
            let spec = &service["spec"];
            assert_eq!(spec["type"], "LoadBalancer", "{file}");
            let annotations = service["metadata"]["annotations"].as_object();
            for key in annotations.into_iter().flatten().map(|(key, _)| key) {
                assert!(table.iter().any(|spec| spec.key == key), "{key}");
            }
            assert!(
                spec["selector"].as_object().is_some_and(|it| !it.is_empty()),
                "{file}"
            );
            // What selects the pods is in the same file, or belongs to an installation of its own.
            if let Some(deployment) = of_kind(&all, "Deployment").first() {
                let labels = &deployment["spec"]["template"]["metadata"]["labels"];
                assert_eq!(labels, &spec["selector"], "{file}");
            }
        }
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
