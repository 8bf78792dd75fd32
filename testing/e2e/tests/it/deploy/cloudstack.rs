//! What is shipped for CloudStack: the manifests, the Secret, and the examples.

use std::path::PathBuf;

use bowline_cloudstack::{Options, OptionsError, Setting};
use serde_json::Value;

use super::{ACCOUNT, assert_rights, container, documents, given, of, only, root, secret};

fn folder() -> PathBuf {
    root().join("cloudstack")
}

#[test]
fn the_pod_is_told_who_it_is_where_the_host_has_another_name() {
    let all = of("cloudstack");
    let told: Vec<(&str, &str)> = container(&all)["env"]
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
                    .is_some_and(|name| name.ends_with(ACCOUNT))
        };
        all.iter().find(named).unwrap().clone()
    });
    assert_rights(&process, &["create leases"], &unneeded);
}

#[test]
fn the_secret_holds_a_file_that_needs_nothing_but_keys() {
    let text = secret("cloudstack", "cloudstack-secret", "cloud-config");
    let read = |text: &str| Options::read(&given(text));
    let Err(OptionsError::Missing { settings, .. }) = read(&text) else {
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
