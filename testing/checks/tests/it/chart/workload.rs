//! What runs the program: the values that change it.

use bowline_checks::chart::{CLOUDS, Helm};
use serde_json::{Value, json};

use crate::chart::{all_of, container, line, named, of, only, pod, rendered, workload};

#[test]
fn flags_follow_the_preset_where_the_former_manifest_has_them() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let values = json!({
        "logVerbosityLevel": 4, "enabledControllers": ["cloud-node", "service"], "securePort": 10260,
        "flags": { "node-deletion-share": 0.1, "kube-api-qps": 2_000_000, "leader-elect": true },
        "controllerExtraArgs": ["--profiling=false"], "useServiceAccountCredentials": true,
    });
    for cloud in CLOUDS {
        let objects = rendered(&helm, &of(cloud, values.clone()));
        let line = line(&objects);
        let ours = "--secure-port=10260 --v=4 --controllers=cloud-node,service --use-service-account-credentials=true \
                    --kube-api-qps=2000000 --leader-elect=true --node-deletion-share=0.1 --profiling=false";
        assert!(line.ends_with(ours), "{line}");
        let in_command = ["cloudscale", "phoenixnap"].contains(&cloud);
        assert_eq!(container(&objects)["args"].is_null(), in_command, "{cloud}");
    }
}

/// An empty map is the default of OpenStack's own chart.
#[test]
fn no_words_may_be_said_in_any_form() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let with = |none: Value| rendered(&helm, &of("openstack", json!({ "controllerExtraArgs": none })));
    for none in [json!({}), json!("")] {
        assert_eq!(with(none), with(json!([])));
    }
}

#[test]
fn variables_volumes_and_mounts_of_the_preset_are_replaced_and_never_doubled() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let values = json!({
        "cluster": { "name": "harbour" },
        "extraEnv": [{ "name": "CLOUD_CONFIG", "value": "/elsewhere" }, { "name": "MORE", "value": "1" }],
        "extraVolumes": [{ "name": "k8s-certs", "emptyDir": {} }],
        "extraVolumeMounts": [{ "name": "k8s-certs", "mountPath": "/etc/kubernetes/pki" }],
    });
    let objects = rendered(&helm, &of("openstack", values));
    let container = container(&objects);
    assert_eq!(named(&container["env"], "CLUSTER_NAME")["value"], "harbour");
    assert_eq!(named(&container["env"], "CLOUD_CONFIG")["value"], "/elsewhere");
    assert_eq!(container["env"].as_array().unwrap().len(), 3);
    assert_eq!(pod(&objects)["volumes"].as_array().unwrap().len(), 3);
    assert!(named(&pod(&objects)["volumes"], "k8s-certs")["emptyDir"].is_object());
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 3);
    assert_eq!(
        named(&container["volumeMounts"], "k8s-certs")["readOnly"],
        Value::Null
    );
}

#[test]
fn the_name_of_the_cluster_is_a_flag_where_no_variable_holds_it() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let objects = rendered(
        &helm,
        &of("cloudscale", json!({ "cluster": { "name": "harbour" } })),
    );
    assert!(line(&objects).ends_with(" --cluster-name=harbour"));
}

#[test]
fn a_digest_decides_which_image_runs() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let digest = format!("sha256:{}", "0a".repeat(32));
    let image = json!({ "repository": "registry.example/bowline", "tag": "v9", "digest": digest });
    let objects = rendered(&helm, &of("cloudstack", json!({ "image": image })));
    let expected = format!("registry.example/bowline:v9@{digest}");
    assert_eq!(container(&objects)["image"], expected);
}

#[test]
fn a_port_on_the_loopback_interface_is_probed_there_and_not_declared() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let probe = |values: Value| {
        let objects = rendered(&helm, &of("openstack", values));
        let container = container(&objects);
        (
            container["livenessProbe"]["httpGet"].clone(),
            container["ports"].clone(),
        )
    };
    let (asked, ports) = probe(json!({}));
    assert_eq!(
        (&asked["host"], &asked["port"]),
        (&"127.0.0.1".into(), &10258.into())
    );
    assert_eq!(ports, Value::Null);
    for values in [
        json!({ "podMonitor": { "enabled": true } }),
        json!({ "hostNetwork": false }),
        json!({ "bindAddress": "0.0.0.0" }),
    ] {
        let (asked, ports) = probe(values);
        assert_eq!((&asked["host"], &asked["port"]), (&Value::Null, &"https".into()));
        assert_eq!(ports[0]["containerPort"], 10258);
    }
}

#[test]
fn placement_is_the_former_one_until_it_is_given() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let objects = rendered(&helm, &of("cloudscale", json!({})));
    assert_eq!(
        pod(&objects)["nodeSelector"]["node-role.kubernetes.io/control-plane"],
        ""
    );
    let values = json!({
        "nodeSelector": { "disk": "fast" }, "tolerations": [], "priorityClassName": "mine", "dnsPolicy": "None",
        "affinity": { "podAntiAffinity": {} }, "resources": { "limits": { "memory": "1Gi" } },
    });
    let objects = rendered(&helm, &of("cloudscale", values));
    let pod = pod(&objects);
    assert_eq!(pod["nodeSelector"], json!({ "disk": "fast" }));
    assert_eq!(pod["tolerations"], Value::Null);
    assert_eq!(
        (&pod["priorityClassName"], &pod["dnsPolicy"]),
        (&"mine".into(), &"None".into())
    );
    assert_eq!(
        pod["containers"][0]["resources"],
        json!({ "limits": { "memory": "1Gi" } })
    );
}

#[test]
fn several_replicas_are_a_deployment_s_and_are_not_all_evicted_at_once() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let objects = rendered(&helm, &of("cloudstack", json!({})));
    assert!(all_of(&objects, "PodDisruptionBudget").is_empty());
    let objects = rendered(
        &helm,
        &of("cloudscale", json!({ "kind": "Deployment", "replicas": 3 })),
    );
    let set = only(&objects, "Deployment");
    assert_eq!(set["spec"]["replicas"], 3);
    assert_eq!(set["spec"]["strategy"]["rollingUpdate"]["maxSurge"], 0);
    let budget = only(&objects, "PodDisruptionBudget");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    assert_eq!(budget["spec"]["selector"], workload(&objects)["spec"]["selector"]);
    let objects = rendered(
        &helm,
        &of("cloudscale", json!({ "kind": "Deployment", "replicas": 0 })),
    );
    assert_eq!(only(&objects, "Deployment")["spec"]["replicas"], 0);
}

/// Two pods on one node would want the same port.
#[test]
fn an_update_in_the_hosts_network_has_no_surge_unless_one_is_asked_for() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let strategy = |values: Value| {
        let objects = rendered(&helm, &of("phoenixnap", values));
        only(&objects, "Deployment")["spec"]["strategy"].clone()
    };
    let rolling = json!({ "type": "RollingUpdate" });
    let none = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } });
    assert_eq!(strategy(json!({})), json!({ "type": "Recreate" }));
    assert_eq!(strategy(json!({ "strategy": rolling })), none);
    assert_eq!(
        strategy(json!({ "strategy": rolling, "hostNetwork": false })),
        rolling
    );
    let asked = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } });
    assert_eq!(strategy(json!({ "strategy": asked })), asked);
    let objects = rendered(&helm, &of("phoenixnap", json!({ "replicas": 0 })));
    assert_eq!(only(&objects, "Deployment")["spec"]["replicas"], 0);
}

#[test]
fn a_lease_of_another_name_or_place_has_a_role_of_its_own() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let leases = |values: Value| {
        let objects = rendered(&helm, &of("openstack", values));
        let roles = all_of(&objects, "Role");
        let roles = roles
            .into_iter()
            .filter(|role| role["metadata"]["name"] == "cloud-controller-manager-lease");
        roles
            .map(|role| {
                let (namespace, name) = (
                    &role["metadata"]["namespace"],
                    &role["rules"][1]["resourceNames"][0],
                );
                format!("{}/{}", namespace.as_str().unwrap(), name.as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    for (values, lease) in [
        (
            json!({ "flags": { "leader_elect_resource_name": "mine" } }),
            "kube-system/mine",
        ),
        (
            json!({ "controllerExtraArgs": ["--leader-elect-resource-name=mine"], "useServiceAccountCredentials": true }),
            "kube-system/mine",
        ),
        (
            json!({ "flags": { "leader-elect-resource-namespace": "default" } }),
            "default/cloud-controller-manager",
        ),
    ] {
        assert_eq!(leases(values), [lease]);
    }
    let as_it_is = json!({ "flags": { "leader-elect-resource-name": "cloud-controller-manager" } });
    assert!(leases(as_it_is).is_empty() && leases(json!({})).is_empty());
}

#[test]
fn whoever_installs_without_roles_is_told_what_the_controllers_accounts_need() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let chart = bowline_checks::chart::chart();
    let notes = |values: &str| {
        let set = format!("cloud=phoenixnap,{values}");
        let words = [
            "install",
            "bowline",
            chart.to_str().unwrap(),
            "--dry-run=client",
            "--namespace=kube-system",
            "--set",
            &set,
        ];
        let told = helm.run(&words).unwrap();
        told.split_once("NOTES:").unwrap().1.to_owned()
    };
    let told = "rbac.create=false makes no roles";
    assert!(notes("useServiceAccountCredentials=true,rbac.create=false").contains(told));
    for values in ["useServiceAccountCredentials=true", "rbac.create=false"] {
        assert!(!notes(values).contains(told), "{values}");
    }
}

#[test]
fn the_secure_port_is_closed_to_all_but_those_who_are_named() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let from = json!([{ "namespaceSelector": { "matchLabels": { "name": "monitoring" } } }]);
    let values = json!({ "hostNetwork": false, "networkPolicy": { "enabled": true, "from": from } });
    let objects = rendered(&helm, &of("cloudstack", values));
    let policy = &only(&objects, "NetworkPolicy")["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress"]));
    assert_eq!(policy["ingress"][0]["from"], from);
    assert_eq!(policy["ingress"][0]["ports"][0]["port"], 10258);
    assert_eq!(policy["podSelector"], workload(&objects)["spec"]["selector"]);
}

#[test]
fn a_scraper_gets_the_right_to_read_metrics_and_no_other() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let objects = rendered(&helm, &of(cloud, json!({ "podMonitor": { "enabled": true } })));
        let endpoint = &only(&objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0];
        assert_eq!(
            (&endpoint["scheme"], &endpoint["port"]),
            (&"https".into(), &"https".into())
        );
        let secret = only(&objects, "Secret");
        assert_eq!(
            endpoint["authorization"]["credentials"]["name"],
            secret["metadata"]["name"]
        );
        let roles = all_of(&objects, "ClusterRole");
        let role = roles
            .iter()
            .find(|it| it["metadata"]["name"] == secret["metadata"]["name"])
            .unwrap();
        assert_eq!(
            role["rules"],
            json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }])
        );
        // A token of somebody else needs none of that.
        let values = json!({ "podMonitor": { "enabled": true, "tokenSecret": "theirs" } });
        let objects = rendered(&helm, &of(cloud, values));
        assert!(all_of(&objects, "Secret").is_empty());
    }
}

#[test]
fn rules_and_dashboards_come_out_of_the_chart_s_files() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let copy = crate::chart::documents::copy_of_the_chart();
    let files = copy.path().join("files");
    std::fs::create_dir_all(&files).unwrap();
    let rule = "groups:\n  - name: bowline\n    rules:\n      - {alert: Down, expr: 'up == 0', annotations: {text: '{{ $labels.pod }}'}}\n";
    std::fs::write(files.join("rules.yaml"), rule).unwrap();
    std::fs::write(files.join("overview.json"), "{\"title\": \"{{pod}}\"}").unwrap();
    let values = of(
        "cloudscale",
        json!({ "prometheusRule": { "enabled": true }, "dashboard": { "enabled": true } }),
    );
    let objects = crate::chart::rendered_as(&helm, crate::chart::release(copy.path()), &values);
    let found = &only(&objects, "PrometheusRule")["spec"]["groups"][0]["rules"][0];
    assert_eq!(found["annotations"]["text"], "{{ $labels.pod }}");
    let map = only(&objects, "ConfigMap");
    assert_eq!(map["data"]["overview.json"], "{\"title\": \"{{pod}}\"}");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
}
