//! What is shipped for OpenStack: the manifests, the Secret, and the examples.

use std::path::PathBuf;

use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_openstack::{Options, annotation_table};
use serde_json::Value;

use super::{
    assert_named, assert_rights, assert_starts_first, documents, expanded, manifests, of_kind, only, root,
    understood,
};

const NAME: &str = "openstack-cloud-controller-manager";

fn folder() -> PathBuf {
    root().join("openstack")
}

fn manifest() -> Vec<Value> {
    documents(&folder().join("daemonset.yaml"))
}

#[test]
fn what_the_former_manifest_named_is_named_the_same() {
    let all = manifest();
    let pod = assert_named(&all, "DaemonSet", NAME, "k8s-app");
    assert_eq!(
        only(&all, "DaemonSet")["spec"]["updateStrategy"]["type"],
        "RollingUpdate"
    );
    let terms = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expression = &terms["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(expression["key"], "node-role.kubernetes.io/control-plane");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "cloud-config");
    let container = &pod["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/config");
}

#[test]
fn it_starts_on_a_node_that_waits_for_it() {
    let all = manifest();
    let pod = &only(&all, "DaemonSet")["spec"]["template"]["spec"];
    let tolerated = [
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node-role.kubernetes.io/control-plane",
        "node.kubernetes.io/not-ready",
    ];
    assert_starts_first(pod, &tolerated);
}

#[test]
fn the_command_lines_are_the_former_ones_and_understood() {
    let all = manifest();
    let of_set = &only(&all, "DaemonSet")["spec"]["template"]["spec"]["containers"][0];
    let all = documents(&folder().join("static-pod.yaml"));
    let of_pod = &only(&all, "Pod")["spec"]["containers"][0];
    for container in [of_set, of_pod] {
        // Where the former image has its program, so that an image of either is found.
        assert_eq!(container["command"][0], format!("/bin/{NAME}"));
        let options = understood(&expanded(container));
        assert_eq!(options.provider.name, "openstack");
        let config = options.provider.config.as_deref();
        assert_eq!(config, Some("/etc/config/cloud.conf".as_ref()));
        assert!(options.manager.election.is_some());
        // It serves on the loopback interface only, where a kubelet asks on behalf of a Pod of the host's network.
        let port = options.serving.unwrap().port;
        for probe in ["livenessProbe", "readinessProbe"] {
            let asked = &container[probe]["httpGet"];
            assert_eq!(
                (&asked["host"], &asked["port"]),
                (&"127.0.0.1".into(), &port.into())
            );
        }
    }
}

#[test]
fn the_files_of_the_static_pod_are_given_to_the_user_that_it_runs_as() {
    let file = folder().join("static-pod.yaml");
    let all = documents(&file);
    let user = &only(&all, "Pod")["spec"]["securityContext"]["runAsUser"];
    let runbook = root().join("../docs/runbooks/BowlineCredentialExpiring.md");
    for path in [file, runbook] {
        let text = std::fs::read_to_string(&path).unwrap();
        for words in [
            format!("chown {user} /etc/kubernetes/"),
            "chmod 600 /etc/kubernetes/".to_owned(),
        ] {
            assert!(text.contains(&words), "{}: {words}", path.display());
        }
    }
}

#[test]
fn the_role_gives_no_right_that_the_program_does_not_use() {
    let needed = [
        "patch nodes",
        "delete nodes",
        "patch nodes/status",
        "patch services",
        "patch services/status",
        "create events",
        "create leases",
        "get leases",
        "update leases",
        "watch leases",
    ];
    assert_rights(
        &manifest(),
        &needed,
        &["*", "secrets", "serviceaccounts", "update events"],
    );
}

#[test]
fn the_secret_holds_a_file_that_needs_nothing_but_a_credential() {
    let all = documents(&folder().join("secret.yaml"));
    let secret = only(&all, "Secret");
    assert_eq!(secret["metadata"]["name"], "cloud-config");
    assert_eq!(secret["metadata"]["namespace"], "kube-system");
    let text = secret["stringData"]["cloud.conf"].as_str().unwrap();
    let read = |text: &str| {
        let config = CloudConfig::Given {
            path: "cloud.conf".to_owned(),
            contents: text.as_bytes().to_vec(),
        };
        Options::read(&config, &Environment::default(), &|path| std::fs::read(path))
    };
    assert!(read(text).is_err(), "the credential is left to fill in");
    // What is commented out is no riddle either.
    let filled = text.replace("\"\"", "\"p;q\"").replace("CLOUD", "cloud.example");
    let uncommented: String = filled
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(option) if option.contains(" = ") || option.starts_with('[') => format!("{option}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let options = read(&uncommented).unwrap_or_else(|error| panic!("{error}: {uncommented}"));
    assert_eq!(options.warnings, Vec::<String>::new());
    assert!(options.router.is_some());
    assert!(options.load_balancer.unwrap().manages_security_groups);
}

#[test]
fn every_service_of_the_examples_has_annotations_that_there_are() {
    let files = manifests(&folder().join("examples"));
    assert_eq!(files.len(), 3);
    for path in files {
        let all = documents(&path);
        let service = only(&all, "Service");
        assert_eq!(service["spec"]["type"], "LoadBalancer", "{}", path.display());
        let annotations = service["metadata"]["annotations"].as_object().unwrap();
        for key in annotations.keys() {
            assert!(annotation_table().iter().any(|spec| spec.key == key), "{key}");
        }
        // What selects the pods is in the same file, or belongs to an installation of its own.
        if let Some(deployment) = of_kind(&all, "Deployment").first() {
            let labels = &deployment["spec"]["template"]["metadata"]["labels"];
            assert_eq!(labels, &service["spec"]["selector"], "{}", path.display());
        }
    }
}
