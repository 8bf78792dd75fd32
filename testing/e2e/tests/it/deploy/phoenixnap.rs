//! What is shipped for phoenixNAP: the manifests, the Secret, and the chart as far as it can be read without Helm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_phoenixnap::{Given, Options, OptionsError, Setting};
use serde_json::Value;

use super::{assert_named, assert_rights, assert_runs, documents, only, parsed, root, understood};

const NAME: &str = "cloud-provider-phoenixnap";

fn folder() -> PathBuf {
    root().join("phoenixnap")
}

fn manifest() -> Vec<Value> {
    documents(&folder().join("deployment.yaml"))
}

#[test]
fn what_the_former_manifest_named_is_named_the_same() {
    let all = manifest();
    let pod = assert_named(&all, "Deployment", NAME, "app");
    let annotations = &only(&all, "ClusterRole")["metadata"]["annotations"];
    assert_eq!(annotations["rbac.authorization.kubernetes.io/autoupdate"], "true");

    assert_eq!(
        (&pod["hostNetwork"], &pod["dnsPolicy"]),
        (&true.into(), &"Default".into())
    );
    let container = &pod["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/cloud-sa");
    assert_eq!(
        pod["volumes"][0]["secret"]["secretName"],
        "phoenixnap-cloud-config"
    );
}

#[test]
fn two_managers_never_run_at_once_and_the_command_line_is_understood() {
    let all = manifest();
    let spec = &only(&all, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["type"], "Recreate");
    let container = &spec["template"]["spec"]["containers"][0];
    // As the former manifest has it, so that an image of either is found.
    assert_eq!(container["command"][0], format!("./{NAME}"));
    assert_runs(container, "phoenixnap", "/etc/cloud-sa/cloud-sa.json");
}

#[test]
fn the_role_has_what_blocks_and_leases_need_and_nothing_of_old() {
    let needed = [
        "get namespaces",
        "patch services",
        "patch services/status",
        "patch nodes",
        "create leases",
        "get leases",
        "update leases",
    ];
    let unneeded = ["*", "secrets", "endpoints", "configmaps", "update services"];
    assert_rights(&manifest(), &needed, &unneeded);
}

#[test]
fn the_secret_holds_json_that_needs_nothing_but_credentials() {
    let all = documents(&folder().join("secret.yaml"));
    let secret = only(&all, "Secret");
    assert_eq!(secret["metadata"]["name"], "phoenixnap-cloud-config");
    assert_eq!(secret["metadata"]["namespace"], "kube-system");
    let text = secret["stringData"]["cloud-sa.json"].as_str().unwrap();
    let mut file: Value = serde_json::from_str(text).unwrap();
    let known: Vec<&str> = Setting::ALL.iter().map(|setting| setting.key()).collect();
    for key in file.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "{key}");
    }
    let read = |file: &Value| {
        let config = CloudConfig::Given {
            path: "cloud-sa.json".to_owned(),
            contents: file.to_string().into_bytes(),
        };
        Options::read(&Given::default(), &Environment::default(), &config)
    };
    assert!(matches!(
        read(&file),
        Err(OptionsError::Missing {
            setting: Setting::ClientId,
            ..
        })
    ));
    file["clientID"] = "id".into();
    file["clientSecret"] = "secret".into();
    assert_eq!(read(&file).unwrap().settings.credentials.client_id, "id");
}

/// The values of the chart `cloud-provider-phoenixnap` 0.1.0.
const FORMER_VALUES: [&str; 30] = [
    "nameOverride",
    "fullnameOverride",
    "image.repository",
    "image.pullPolicy",
    "image.tag",
    "podAnnotations",
    "imagePullSecrets",
    "podSecurityContext",
    "securityContext",
    "additionalCommands",
    "envFrom",
    "env",
    "resources",
    "hostAliases",
    "volumes",
    "volumeMounts",
    "serviceAccount.create",
    "serviceAccount.annotations",
    "serviceAccount.name",
    "clusterRole.create",
    "clusterRole.annotations",
    "clusterRole.name",
    "nodeSelector",
    "tolerations",
    "affinity",
    "configSecret.create",
    "configSecret.name",
    "config",
    "config.clientID",
    "config.clientSecret",
];

fn values() -> Value {
    documents(&folder().join("chart/values.yaml")).remove(0)
}

fn templates() -> Vec<(PathBuf, String)> {
    let mut found: Vec<_> = std::fs::read_dir(folder().join("chart/templates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

/// The values that the templates name, with dots.
fn used() -> BTreeSet<String> {
    let all: String = templates().into_iter().map(|(_, text)| text).collect();
    all.split(".Values.")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .collect()
}

fn value<'a>(values: &'a Value, name: &str) -> Option<&'a Value> {
    values.pointer(&format!("/{}", name.replace('.', "/")))
}

/// A template with every action on a line of its own left out and every other one replaced: by its value where it is
/// nothing but one, else by a word. Enough to tell whether it is YAML, and for what stands there as it is.
fn substituted(text: &str, values: &Value) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("{{") && trimmed.ends_with("}}") && trimmed.matches("{{").count() == 1 {
            continue;
        }
        let mut rest = line;
        while let Some((before, action, after)) = rest.split_once("{{").and_then(|(before, rest)| {
            rest.split_once("}}")
                .map(|(action, after)| (before, action, after))
        }) {
            out.push_str(before);
            let found = action
                .trim()
                .strip_prefix(".Values.")
                .and_then(|name| value(values, name));
            match found {
                Some(Value::String(text)) => out.push_str(text),
                Some(value) => out.push_str(&value.to_string()),
                None => out.push('x'),
            }
            rest = after;
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

#[test]
fn the_chart_understands_every_value_of_the_former_one() {
    let used = used();
    for name in FORMER_VALUES {
        assert!(used.contains(name), "no template reads {name}");
    }
}

#[test]
fn the_chart_reads_the_values_that_it_documents_and_no_others() {
    let values = values();
    let used = used();
    for name in &used {
        let is_required = ["config.clientID", "config.clientSecret"].contains(&name.as_str());
        assert!(is_required || value(&values, name).is_some(), "{name}");
    }
    for name in values.as_object().unwrap().keys() {
        let of_it = format!("{name}.");
        let is_used = used.iter().any(|used| used == name || used.starts_with(&of_it));
        assert!(is_used, "{name} has no effect");
    }
}

#[test]
fn the_chart_s_templates_are_yaml_and_its_deployment_is_ours() {
    let values = values();
    let mut all = Vec::new();
    for (path, text) in templates() {
        if path.extension().is_some_and(|it| it == "yaml") {
            all.extend(parsed(&substituted(&text, &values), &path));
        }
    }
    let annotations = &only(&all, "ClusterRole")["metadata"]["annotations"];
    assert_eq!(annotations["rbac.authorization.kubernetes.io/autoupdate"], "true");
    only(&all, "Secret");
    let spec = &only(&all, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["type"], "Recreate");
    let container = &spec["template"]["spec"]["containers"][0];
    let options = understood(container);
    assert_eq!(options.provider.name, "phoenixnap");
    assert!(options.manager.election.is_some());

    let plain = manifest();
    let plain = &only(&plain, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(spec["template"]["spec"]["tolerations"], plain["tolerations"]);
    for field in ["command", "ports", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[field], plain["containers"][0][field], "{field}");
    }
    for field in ["resources", "securityContext"] {
        assert_eq!(values[field], plain["containers"][0][field], "{field}");
    }
    assert_eq!(values["podSecurityContext"], plain["securityContext"]);
}

#[test]
fn the_chart_and_the_manifest_are_of_one_version() {
    let chart = documents(&folder().join("chart/Chart.yaml")).remove(0);
    assert_eq!(chart["name"], NAME);
    let image = format!(
        "{}:{}",
        values()["image"]["repository"].as_str().unwrap(),
        chart["appVersion"].as_str().unwrap()
    );
    let plain = manifest();
    let container = &only(&plain, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], image);
}
