//! What is shipped for CloudStack: the manifests, the Secret, and the examples.

use std::path::PathBuf;

use bowline_cloud_provider::CloudConfig;
use bowline_cloudstack::{Options, OptionsError, Setting, annotation_table};
use serde_json::Value;

use super::{
    assert_named, assert_rights, assert_runs, assert_starts_first, documents, manifests, of_kind, only, root,
};

const NAME: &str = "cloud-controller-manager";

fn folder() -> PathBuf {
    root().join("cloudstack")
}

fn manifest() -> Vec<Value> {
    documents(&folder().join("deployment.yaml"))
}

#[test]
fn what_the_former_manifest_named_is_named_the_same() {
    let all = manifest();
    let pod = assert_named(&all, "Deployment", NAME, "k8s-app");
    let role = &only(&all, "ClusterRole")["metadata"];
    assert_eq!(
        role["annotations"]["rbac.authorization.kubernetes.io/autoupdate"],
        "true"
    );
    assert_eq!(role["labels"]["k8s-app"], NAME);
    let reader = "system:cloud-controller-manager:extension-apiserver-authentication-reader";
    let bindings = of_kind(&all, "RoleBinding");
    assert!(
        bindings
            .iter()
            .any(|binding| binding["metadata"]["name"] == reader)
    );

    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "cloudstack-secret");
    let container = &pod["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/config");
}

#[test]
fn it_starts_on_a_node_that_waits_for_it_and_rolls_where_there_is_one_such_node() {
    let all = manifest();
    let spec = &only(&all, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["rollingUpdate"]["maxSurge"], 0);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["dnsPolicy"], "Default");
    let tolerated = [
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node-role.kubernetes.io/control-plane",
        "node.kubernetes.io/not-ready",
    ];
    assert_starts_first(pod, &tolerated);
}

#[test]
fn the_command_line_is_the_former_ones_and_understood() {
    let all = manifest();
    let container = &only(&all, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    // Where the former image has its program, so that an image of either is found.
    assert_eq!(container["command"][0], "/app/cloudstack-ccm");
    assert_runs(container, "external-cloudstack", "/config/cloud-config");
}

#[test]
fn the_pod_is_told_who_it_is_where_the_host_has_another_name() {
    let all = manifest();
    let container = &only(&all, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let told: Vec<(&str, &str)> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| {
            let path = &variable["valueFrom"]["fieldRef"]["fieldPath"];
            (variable["name"].as_str().unwrap(), path.as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("HOSTNAME", "metadata.name"),
            ("POD_NAMESPACE", "metadata.namespace")
        ]
    );
}

#[test]
fn the_role_has_what_claims_and_leases_need_and_what_a_return_to_the_go_manager_needs() {
    let needed = [
        "patch services",
        "patch services/status",
        "patch nodes",
        "delete nodes",
        "create leases",
        "get leases",
        "update leases",
        // Of the Go manager alone.
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
    ];
    assert_rights(&manifest(), &needed, &["secrets", "delete services"]);
}

#[test]
fn the_roles_of_loops_with_accounts_of_their_own_have_nothing_of_old() {
    let all = documents(&folder().join("service-account-credentials.yaml"));
    let unneeded = [
        "*",
        "secrets",
        "endpoints",
        "persistentvolumes",
        "pods",
        "update services",
    ];
    let process = ["ClusterRole", "Role"].map(|kind| {
        let named = |it: &&Value| {
            it["kind"] == kind
                && it["metadata"]["name"]
                    .as_str()
                    .is_some_and(|name| name.ends_with(NAME))
        };
        all.iter().find(named).unwrap().clone()
    });
    assert_rights(&process, &["create leases"], &unneeded);
}

#[test]
fn the_secret_holds_a_file_that_needs_nothing_but_keys() {
    let all = documents(&folder().join("secret.yaml"));
    let secret = only(&all, "Secret");
    assert_eq!(secret["metadata"]["name"], "cloudstack-secret");
    assert_eq!(secret["metadata"]["namespace"], "kube-system");
    let text = secret["stringData"]["cloud-config"].as_str().unwrap();
    let read = |text: &str| {
        Options::read(&CloudConfig::Given {
            path: "cloud-config".to_owned(),
            contents: text.as_bytes().to_vec(),
        })
    };
    let Err(OptionsError::Missing { settings, .. }) = read(text) else {
        panic!("the keys are left to fill in");
    };
    assert_eq!(settings, [Setting::ApiKey, Setting::SecretKey]);
    // What is commented out is no riddle either.
    let filled = text
        .replace("\"\"", "\"p;q\"")
        .replace("# project-id", "project-id");
    let filled = filled
        .replace("# region", "region")
        .replace("# ssl-no-verify", "ssl-no-verify");
    let options = read(&filled).unwrap();
    assert_eq!(options.settings.keys.secret_key.expose(), "p;q");
    assert!(
        options.verifies_certificates && options.nodes.region.is_some() && options.settings.project.is_some()
    );
}

#[test]
fn every_service_of_the_examples_has_pods_behind_it_and_annotations_that_there_are() {
    let files = manifests(&folder().join("examples"));
    assert_eq!(files.len(), 3);
    for path in files {
        let all = documents(&path);
        let service = only(&all, "Service");
        assert_eq!(service["spec"]["type"], "LoadBalancer", "{}", path.display());
        assert!(
            service["spec"]["selector"]
                .as_object()
                .is_some_and(|labels| !labels.is_empty()),
            "{}",
            path.display()
        );
        let annotations = service["metadata"]["annotations"].as_object();
        for key in annotations.into_iter().flatten().map(|(key, _)| key) {
            assert!(annotation_table().iter().any(|spec| spec.key == key), "{key}");
        }
    }
}

#[test]
fn traefik_gets_the_ports_of_its_service() {
    let all = documents(&folder().join("examples/traefik.yaml"));
    let pod = &only(&all, "DaemonSet")["spec"]["template"];
    let service = &only(&all, "Service")["spec"];
    assert_eq!(pod["metadata"]["labels"], service["selector"]);
    let config: Value =
        serde_saphyr::from_str(only(&all, "ConfigMap")["data"]["traefik.yaml"].as_str().unwrap()).unwrap();
    let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
    for (port, entry) in service["ports"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["web", "websecure"])
    {
        let target = ports.iter().find(|it| it["name"] == port["targetPort"]).unwrap();
        let entry = &config["entryPoints"][entry];
        assert_eq!(entry["address"], format!(":{}", target["containerPort"]));
        assert!(
            !entry["proxyProtocol"]["trustedIPs"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
}
