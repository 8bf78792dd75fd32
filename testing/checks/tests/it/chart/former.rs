//! The charts that Go managers had: their values go on working.

use std::collections::BTreeSet;

use bowline_checks::chart::{Helm, HelmError, Release, chart, root};
use serde_json::{Value, json};

use crate::chart::{container, line, named, of, only, parsed, pod, rendered, rendered_as, workload};

/// A values file for the chart `openstack-cloud-controller-manager` 2.36 with every value that it has.
fn of_openstack() -> Value {
    json!({
        "commonAnnotations": { "note": "n" }, "imagePullSecrets": [{ "name": "pull" }], "extraInitContainers": [],
        "extraEnv": [{ "name": "OS_DEBUG", "value": "1" }], "resources": { "requests": { "cpu": "200m" } },
        "livenessProbe": {}, "readinessProbe": {}, "podAnnotations": { "pod": "p" }, "podLabels": { "tier": "control-plane" },
        "securityContext": {}, "controllerExtraArgs": "- --cluster-cidr=10.0.0.0/16\n", "serviceMonitor": {},
        "image": { "tag": "v9" }, "dnsPolicy": "ClusterFirst",
        "nodeSelector": { "node-role.kubernetes.io/control-plane": "" },
        "tolerations": [{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" }],
        "podSecurityContext": { "runAsUser": 1001 },
        "enabledControllers": ["cloud-node", "cloud-node-lifecycle", "route", "service"],
        "secret": { "enabled": true, "create": true, "name": "cloud-config" },
        "logVerbosityLevel": 2,
        "cloudConfig": {
            "global": { "auth-url": "https://cloud:5000/v3" }, "networking": {}, "loadBalancer": { "lb-provider": "ovn" },
            "blockStorage": {}, "metadata": {}, "route": {},
        },
        "cloudConfigContents": "", "priorityClassName": "system-node-critical", "hostAliases": [],
        "extraVolumes": [
            { "name": "flexvolume-dir", "hostPath": { "path": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec" } },
            { "name": "k8s-certs", "hostPath": { "path": "/etc/kubernetes/pki" } },
        ],
        "extraVolumeMounts": [
            { "name": "flexvolume-dir", "mountPath": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec", "readOnly": true },
            { "name": "k8s-certs", "mountPath": "/etc/kubernetes/pki", "readOnly": true },
        ],
        "cluster": { "name": "kubernetes" },
        "clusterRoleName": "system:cloud-controller-manager", "serviceAccountName": "cloud-controller-manager",
    })
}

#[test]
fn every_value_of_openstack_s_former_chart_is_understood_and_its_selector_is_kept() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let mut values = of("openstack", of_openstack());
    values["former"] = "chart".into();
    let chart = chart();
    let release = Release {
        chart: &chart,
        name: "occm",
        namespace: "kube-system",
    };
    let objects = rendered_as(&helm, release, &values);
    let set = workload(&objects);
    assert_eq!(set["kind"], "DaemonSet");
    assert_eq!(set["metadata"]["name"], "openstack-cloud-controller-manager");
    let selector = json!({ "app": "openstack-cloud-controller-manager", "component": "controllermanager", "release": "occm" });
    assert_eq!(set["spec"]["selector"]["matchLabels"], selector);
    let template = &set["spec"]["template"]["metadata"];
    assert_eq!(
        (&template["labels"]["tier"], &template["annotations"]["pod"]),
        (&"control-plane".into(), &"p".into())
    );
    assert_eq!(template["annotations"]["note"], "n");
    assert!(template["annotations"]["checksum/config"].is_string());
    let pod = pod(&objects);
    assert_eq!(pod["securityContext"], json!({ "runAsUser": 1001 }));
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert!(named(&pod["volumes"], "flexvolume-dir")["hostPath"].is_object());
    assert_eq!(container(&objects)["image"], "registry.example/bowline:v9");
    let line = line(&objects);
    for word in [
        "--v=2",
        "--controllers=cloud-node,cloud-node-lifecycle,route,service",
        "--cluster-cidr=10.0.0.0/16",
    ] {
        assert!(line.contains(word), "{line}");
    }
    let text = &only(&objects, "Secret")["stringData"]["cloud.conf"];
    assert!(
        text.as_str()
            .unwrap()
            .contains("[LoadBalancer]\nlb-provider = \"ovn\""),
        "{text}"
    );
}

/// What the templates of phoenixNAP's former chart read, with dots.
fn read_by_templates() -> BTreeSet<String> {
    let folder = root().join("deploy/phoenixnap/chart/templates");
    let files = std::fs::read_dir(folder).unwrap();
    let all: String = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let values = all.split(".Values.").skip(1);
    values
        .map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .collect()
}

#[test]
fn phoenixnap_s_former_chart_reads_the_values_that_it_documents_and_no_others() {
    let text = std::fs::read_to_string(root().join("deploy/phoenixnap/chart/values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let used = read_by_templates();
    for name in &used {
        let is_required = ["config.clientID", "config.clientSecret"].contains(&name.as_str());
        let path = format!("/{}", name.replace('.', "/"));
        assert!(is_required || values.pointer(&path).is_some(), "{name}");
    }
    for name in values.as_object().unwrap().keys() {
        let of_it = format!("{name}.");
        let is_used = used.iter().any(|used| used == name || used.starts_with(&of_it));
        assert!(is_used, "{name} has no effect");
    }
    // The others of the former chart are given below.
    for name in [
        "nameOverride",
        "serviceAccount.create",
        "clusterRole.create",
        "configSecret.create",
    ] {
        assert!(used.contains(name), "no template reads {name}");
    }
}

/// The chart that phoenixNAP's Go manager had goes on by itself: its objects are named after the release.
fn of_phoenixnap(helm: &Helm, values: &Value) -> Vec<Value> {
    parsed(&template_of_phoenixnap(helm, values).unwrap_or_else(|error| panic!("{error}\n{values}")))
}

fn template_of_phoenixnap(helm: &Helm, values: &Value) -> Result<String, HelmError> {
    let chart = root().join("deploy/phoenixnap/chart");
    let release = Release {
        chart: &chart,
        name: "ccm",
        namespace: "kube-system",
    };
    helm.template(release, values, &[])
}

#[test]
fn phoenixnap_s_former_chart_takes_no_number_for_a_credential() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let values = json!({ "config": { "clientID": "i", "clientSecret": 12_345_678, "apiServerPort": 6443 } });
    let refused = template_of_phoenixnap(&helm, &values).unwrap_err().to_string();
    assert!(
        refused.contains("config.clientSecret must be a text"),
        "{refused}"
    );
}

#[test]
fn phoenixnap_s_former_chart_runs_what_the_chart_runs() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let keys = json!({ "clientID": "i", "clientSecret": "s" });
    let former = of_phoenixnap(&helm, &json!({ "config": keys }));
    let ours = rendered(
        &helm,
        &of("phoenixnap", json!({ "cloudConfig": { "global": keys } })),
    );
    let set = only(&former, "Deployment");
    assert_eq!(set["metadata"]["name"], "ccm-cloud-provider-phoenixnap");
    assert_eq!(set["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(container(&former), container(&ours));
    for field in [
        "tolerations",
        "securityContext",
        "hostNetwork",
        "dnsPolicy",
        "priorityClassName",
    ] {
        assert_eq!(pod(&former)[field], pod(&ours)[field], "{field}");
    }
    for kind in ["ClusterRole", "Role"] {
        assert_eq!(only(&former, kind)["rules"], only(&ours, kind)["rules"], "{kind}");
    }
    let file = |objects: &[Value]| only(objects, "Secret")["stringData"]["cloud-sa.json"].clone();
    assert_eq!(file(&former), file(&ours));
}

#[test]
fn every_value_of_phoenixnap_s_former_chart_has_its_effect() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let values = json!({
        "fullnameOverride": "pnap", "image": { "repository": "r", "pullPolicy": "Always", "tag": "t" },
        "imagePullSecrets": [{ "name": "pull" }],
        "config": { "clientID": "i", "clientSecret": "s", "location": "PHX", "apiServerPort": 6443 },
        "configSecret": { "name": "keys" },
        "serviceAccount": { "annotations": { "a": "b" }, "name": "me" },
        "clusterRole": { "annotations": { "c": "d" }, "name": "role" },
        "additionalCommands": ["--v=5"], "env": { "PNAP_LOCATION": "ASH" }, "envFrom": [{ "configMapRef": { "name": "map" } }],
        "volumes": [{ "name": "v", "emptyDir": {} }], "volumeMounts": [{ "name": "v", "mountPath": "/v" }],
        "hostAliases": [{ "ip": "192.0.2.1", "hostnames": ["h"] }], "podAnnotations": { "e": "f" },
        "podSecurityContext": { "runAsUser": 5 }, "securityContext": { "privileged": false },
        "resources": { "limits": { "memory": "1Gi" } }, "nodeSelector": { "n": "s" },
        "tolerations": [{ "key": "mine", "operator": "Exists" }], "affinity": { "nodeAffinity": {} },
    });
    let objects = of_phoenixnap(&helm, &values);
    let set = only(&objects, "Deployment");
    let (pod, container) = (pod(&objects), container(&objects));
    assert_eq!(set["metadata"]["name"], "pnap");
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&"r:t".into(), &"Always".into())
    );
    assert_eq!(pod["imagePullSecrets"][0]["name"], "pull");
    let secret = only(&objects, "Secret");
    assert_eq!(secret["metadata"]["name"], "keys");
    let file: Value = serde_json::from_str(secret["stringData"]["cloud-sa.json"].as_str().unwrap()).unwrap();
    assert_eq!(file["apiServerPort"], 6443);
    let account = &only(&objects, "ServiceAccount")["metadata"];
    assert_eq!(
        (&account["name"], &account["annotations"]["a"]),
        (&"me".into(), &"b".into())
    );
    let role = &only(&objects, "ClusterRole")["metadata"];
    assert_eq!(
        (&role["name"], &role["annotations"]["c"]),
        (&"role".into(), &"d".into())
    );
    assert_eq!(container["command"].as_array().unwrap().last().unwrap(), "--v=5");
    assert_eq!(named(&container["env"], "PNAP_LOCATION")["value"], "ASH");
    assert_eq!(container["envFrom"][0]["configMapRef"]["name"], "map");
    assert!(named(&pod["volumes"], "v")["emptyDir"].is_object());
    assert_eq!(named(&container["volumeMounts"], "v")["mountPath"], "/v");
    assert_eq!(pod["hostAliases"][0]["ip"], "192.0.2.1");
    assert_eq!(set["spec"]["template"]["metadata"]["annotations"]["e"], "f");
    // Helm puts maps that are given into those of the chart.
    assert_eq!(pod["securityContext"]["runAsUser"], 5);
    assert_eq!(container["securityContext"]["privileged"], false);
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(
        (&pod["nodeSelector"], &pod["affinity"]),
        (&values["nodeSelector"], &values["affinity"])
    );
    assert!(
        pod["tolerations"]
            .as_array()
            .unwrap()
            .contains(&values["tolerations"][0])
    );
}
