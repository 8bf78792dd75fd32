//! Values that are refused, and that the words say which one and what to do.

use bowline_checks::chart::{Helm, Release, chart};
use serde_json::{Value, json};

use crate::chart::{nothing, of, pod, refusal, release, rendered};

#[test]
fn wrong_values_are_refused_with_their_name_and_what_is_allowed() {
    let Some(helm) = Helm::or_leave_out("wrong values") else {
        return;
    };
    let digest = "sha256:abc";
    let cases = [
        (
            nothing(),
            &[
                "cloud is not given",
                "cloudscale, phoenixnap, cloudstack or openstack",
            ][..],
        ),
        (
            of("hetzner", nothing()),
            &[
                "'/cloud'",
                "one of 'cloudscale', 'phoenixnap', 'cloudstack', 'openstack'",
            ],
        ),
        (
            of(
                "openstack",
                json!({ "cloudConfig": { "global": { "application-credential-secret": 83 } } }),
            ),
            &[
                "'/cloudConfig/global/application-credential-secret'",
                "got number, want null or string",
            ],
        ),
        (
            of(
                "cloudstack",
                json!({ "cloudConfig": { "global": { "api-key": true } } }),
            ),
            &["'/cloudConfig/global/api-key'", "got boolean"],
        ),
        (
            of(
                "phoenixnap",
                json!({ "cloudConfig": { "global": { "clientSecret": 12345678 } } }),
            ),
            &["'/cloudConfig/global/clientSecret'"],
        ),
        (
            of("cloudscale", json!({ "image": { "repository": "r:5000/x:v1" } })),
            &["'/image/repository'"],
        ),
        (
            of("cloudscale", json!({ "image": { "tag": "v1 " } })),
            &["'/image/tag'"],
        ),
        (
            of(
                "cloudscale",
                json!({ "extraEnv": [{ "name": "A", "value": 30 }] }),
            ),
            &["'/extraEnv/0/value'", "want string"],
        ),
        (
            of("openstack", json!({ "bindAddress": "banana" })),
            &["bindAddress is \"banana\"", "no IP address", "0.0.0.0"],
        ),
        (
            of("openstack", json!({ "bindAddress": "10.0.0.256" })),
            &["bindAddress is \"10.0.0.256\""],
        ),
        (
            of("openstack", json!({ "bindAddress": "10.0.0.1:10258" })),
            &["bindAddress is", "The port is securePort"],
        ),
        (
            of("openstack", json!({ "cluster": { "name": "a b, c/d" } })),
            &["'/cluster/name'", "'a b, c/d'"],
        ),
        (
            of("openstack", json!({ "cluster": { "name": "a\nb" } })),
            &["'/cluster/name'"],
        ),
        (
            of("openstack", json!({ "flags": { "concurent-service-syncs": 3 } })),
            &["'/flags'", "'concurent-service-syncs' not allowed"],
        ),
        (
            of("openstack", json!({ "flags": { "--v": 3 } })),
            &["'/flags'", "'--v' not allowed"],
        ),
        (of("openstack", json!({ "flags": { "v": {} } })), &["'/flags/v'"]),
        (
            of("openstack", json!({ "clowdConfig": {} })),
            &["'clowdConfig' not allowed"],
        ),
        (
            of("openstack", json!({ "cloudConfig": { "Global": {} } })),
            &["/cloudConfig", "'Global' not allowed"],
        ),
        (
            of("openstack", json!({ "image": { "digest": digest } })),
            &["/image/digest", "does not match pattern"],
        ),
        (
            of("openstack", json!({ "logVerbosityLevel": "high" })),
            &["/logVerbosityLevel", "want null or integer"],
        ),
        (
            of("openstack", json!({ "logVerbosityLevel": 11 })),
            &["/logVerbosityLevel", "maximum"],
        ),
        (
            of("openstack", json!({ "enabledControllers": ["cloudnode"] })),
            &["/enabledControllers/0"],
        ),
        (
            of("openstack", json!({ "admissionPolicies": { "action": "deny" } })),
            &["/admissionPolicies/action", "'Deny'"],
        ),
        (
            of("openstack", json!({ "securePort": 0 })),
            &["/securePort", "minimum"],
        ),
        (
            of("openstack", json!({ "extraVolumeMounts": [{ "name": "a" }] })),
            &["mountPath"],
        ),
        (
            of("openstack", json!({ "serviceMonitor": { "enabled": true } })),
            &["set podMonitor.enabled=true"],
        ),
        (
            of("openstack", json!({ "accessToken": "t" })),
            &["accessToken is for cloudscale", "cloudConfig.global"],
        ),
        (
            of("cloudscale", json!({ "cloudConfig": { "global": { "a": "b" } } })),
            &["no configuration file", "give accessToken"],
        ),
        (
            of("cloudstack", json!({ "cloudConfig": { "route": { "a": "b" } } })),
            &["cloudConfig.route is for openstack"],
        ),
        (
            of(
                "openstack",
                json!({ "cluster": { "name": "prod-1" }, "flags": { "cluster_name": "prod-2" } }),
            ),
            &["flags.cluster_name is prod-2, and cluster.name is prod-1"],
        ),
        (
            of("cloudscale", json!({ "secret": { "create": true } })),
            &["secret.create is true", "give accessToken"],
        ),
        (
            of("cloudstack", json!({ "secret": { "create": true } })),
            &["give cloudConfig.global"],
        ),
        (
            of("phoenixnap", json!({ "former": "chart" })),
            &["former=chart is for openstack", "deploy/phoenixnap/chart"],
        ),
        (
            of(
                "openstack",
                json!({ "former": "chart", "image": {
                    "repository": "registry.k8s.io/provider-os/openstack-cloud-controller-manager", "tag": "v1.36.0",
                } }),
            ),
            &[
                "image.repository is registry.k8s.io/",
                "--set image.repository=REGISTRY/bowline",
            ],
        ),
        (
            of("openstack", json!({ "controllerExtraArgs": "--v=3" })),
            &["controllerExtraArgs", "--v=3", "give a list of words"],
        ),
        (
            of("openstack", json!({ "replicas": 2 })),
            &["replicas is for a Deployment"],
        ),
        (
            of("openstack", json!({ "podDisruptionBudget": { "enabled": true } })),
            &["podDisruptionBudget is for a Deployment"],
        ),
        (
            of("openstack", json!({ "networkPolicy": { "enabled": true } })),
            &["networkPolicy has no effect", "hostNetwork=false"],
        ),
        (
            of(
                "openstack",
                json!({ "podMonitor": { "enabled": true }, "bindAddress": "127.0.0.1" }),
            ),
            &["podMonitor cannot reach bindAddress=127.0.0.1"],
        ),
        (
            of("openstack", json!({ "kind": "Daemonset" })),
            &["'/kind'", "one of 'DaemonSet', 'Deployment'"],
        ),
        (
            of(
                "openstack",
                json!({ "bindAddress": "127.0.0.1", "hostNetwork": false }),
            ),
            &["probes cannot reach bindAddress=127.0.0.1", "hostNetwork=true"],
        ),
        (
            of("openstack", json!({ "flags": { "secure-port": 10300 } })),
            &["flags.secure-port", "set securePort instead"],
        ),
        (
            of("cloudscale", json!({ "flags": { "bind_address": "0.0.0.0" } })),
            &["flags.bind_address", "set bindAddress instead"],
        ),
        (
            of(
                "cloudstack",
                json!({ "flags": { "use-service-account-credentials": true } }),
            ),
            &["set useServiceAccountCredentials instead"],
        ),
        (
            of(
                "cloudstack",
                json!({ "flags": { "cloud-provider": "openstack" } }),
            ),
            &["set cloud and additionalClouds instead"],
        ),
        (
            of(
                "phoenixnap",
                json!({ "controllerExtraArgs": ["--v=3", "--secure-port=10300"] }),
            ),
            &["--secure-port in controllerExtraArgs", "set securePort instead"],
        ),
        (
            of(
                "phoenixnap",
                json!({ "controllerExtraArgs": "[--use_service_account_credentials]" }),
            ),
            &["set useServiceAccountCredentials instead"],
        ),
        (
            of(
                "cloudscale",
                json!({ "accessToken": "t", "secret": { "create": false } }),
            ),
            &["secret.create is false", "accessToken would be in no Secret"],
        ),
        (
            of(
                "openstack",
                json!({ "cloudConfigContents": "[Global]", "secret": { "enabled": false } }),
            ),
            &["secret.enabled is false", "cloudConfigContents"],
        ),
        (
            of(
                "phoenixnap",
                json!({ "cloudConfig": { "global": { "apiServerPort": "x" } } }),
            ),
            &["cloudConfig.global.apiServerPort is x", "from 0 to 65535"],
        ),
        (
            of("openstack", json!({ "strategy": { "type": "Recreate" } })),
            &["strategy.type is Recreate", "kind is DaemonSet", "OnDelete"],
        ),
        (
            of("cloudstack", json!({ "strategy": { "type": "OnDelete" } })),
            &["strategy.type is OnDelete", "kind is Deployment", "Recreate"],
        ),
        (
            of("openstack", json!({ "flags": { "leader_elect": "yes please" } })),
            &["'/flags/leader_elect'"],
        ),
        (
            of("openstack", json!({ "flags": { "node-monitor-period": "5" } })),
            &["'/flags/node-monitor-period'", "pattern"],
        ),
        (
            of("openstack", json!({ "flags": { "node-monitor-period": 5 } })),
            &["'/flags/node-monitor-period'"],
        ),
        (
            of(
                "openstack",
                json!({ "flags": { "concurrent-service-syncs": "many" } }),
            ),
            &["'/flags/concurrent-service-syncs'", "pattern"],
        ),
        (
            of("openstack", json!({ "controllerExtraArgs": ["--v=3", "4"] })),
            &["the word \"4\"", "write --flag=value"],
        ),
        (
            of(
                "cloudstack",
                json!({ "cloudConfig": { "global": { "api-url": "https://c/client/api", "API-Key": "k" } } }),
            ),
            &["cloudConfig.global has no secret-key"],
        ),
        (
            of(
                "phoenixnap",
                json!({ "cloudConfig": { "global": { "clientID": "a" } } }),
            ),
            &[
                "cloudConfig.global has no clientSecret",
                "or PNAP_CLIENT_SECRET in extraEnv",
            ],
        ),
        (
            of("phoenixnap", json!({ "cloudConfigContents": "clientID=a" })),
            &["cloudConfigContents is no JSON object"],
        ),
        (
            of("cloudstack", json!({ "cloudConfigContents": "api-key = k" })),
            &["cloudConfigContents has no section [Global]"],
        ),
        (
            of("cloudscale", json!({ "secret": { "enabled": false } })),
            &["nothing else brings the credentials", "give extraEnv or envFrom"],
        ),
        (
            of("openstack", json!({ "secret": { "enabled": false } })),
            &["nothing else brings the credentials", "flags.cloud-config"],
        ),
        (
            of(
                "cloudstack",
                json!({ "flags": { "cloud-config": "/nowhere/file" } }),
            ),
            &[
                "cloud-config is /nowhere/file, where nothing is mounted",
                "/config/cloud-config",
            ],
        ),
        (
            of(
                "openstack",
                json!({ "controllerExtraArgs": ["--cloud-config", "/nowhere/file"] }),
            ),
            &["cloud-config is /nowhere/file"],
        ),
    ];
    for (values, expected) in cases {
        let words = refusal(&helm, &values);
        for part in expected {
            assert!(words.contains(part), "{values}: no {part:?} in: {words}");
        }
    }
}

#[test]
fn values_that_contradict_each_other_are_refused_and_not_decided() {
    let Some(helm) = Helm::or_leave_out("contradictions") else {
        return;
    };
    let variable = |name: &str| json!([{ "name": name, "value": "b" }]);
    let cases = [
        (
            of(
                "phoenixnap",
                json!({ "replicas": 2, "flags": { "leader-elect": false } }),
            ),
            "replicas is 2, and leader-elect is false",
        ),
        (
            of(
                "cloudstack",
                json!({ "replicas": 2, "controllerExtraArgs": ["--leader_elect=False"] }),
            ),
            "replicas is 2, and leader-elect is false",
        ),
        (
            of(
                "phoenixnap",
                json!({ "logVerbosityLevel": 2, "flags": { "v": 3 } }),
            ),
            "flags.v is 3, and logVerbosityLevel is 2: leave the flag out",
        ),
        (
            of(
                "phoenixnap",
                json!({ "enabledControllers": ["service", "cloud-node"], "flags": { "controllers": "service" } }),
            ),
            "flags.controllers is service, and enabledControllers is service,cloud-node",
        ),
        (
            of(
                "cloudscale",
                json!({ "cluster": { "name": "a" }, "controllerExtraArgs": ["--cluster-name=b"] }),
            ),
            "--cluster-name in controllerExtraArgs is b, and cluster.name is a",
        ),
        (
            of(
                "phoenixnap",
                json!({ "flags": { "v": 3 }, "controllerExtraArgs": ["-v=4"] }),
            ),
            "--v in controllerExtraArgs is 4, and flags.v is 3",
        ),
        (
            of(
                "openstack",
                json!({ "cluster": { "name": "a" }, "extraEnv": variable("CLUSTER_NAME") }),
            ),
            "extraEnv has CLUSTER_NAME, and cluster.name is a",
        ),
        (
            of(
                "cloudscale",
                json!({ "accessToken": "t", "extraEnv": variable("CLOUDSCALE_ACCESS_TOKEN") }),
            ),
            "extraEnv has CLOUDSCALE_ACCESS_TOKEN, and accessToken is given",
        ),
        (
            of(
                "cloudstack",
                json!({ "rbac": { "create": false, "legacy": true } }),
            ),
            "rbac.legacy is true, and rbac.create is false",
        ),
    ];
    for (values, expected) in cases {
        let words = refusal(&helm, &values);
        assert!(words.contains(expected), "{values}: {words}");
    }
    let elsewhere = json!({
        "secret": { "enabled": false }, "flags": { "cloud-config": "/vault/secrets/file" },
        "extraVolumes": [{ "name": "v", "emptyDir": {} }],
        "extraVolumeMounts": [{ "name": "v", "mountPath": "/vault" }],
    });
    let comma = "{\n  \"clientID\": \"a\",\n}\n";
    for good in [
        of("openstack", elsewhere),
        of("phoenixnap", json!({ "cloudConfigContents": comma })),
        of(
            "openstack",
            json!({ "controllerExtraArgs": ["--cloud-config=$(CLOUD_CONFIG)"] }),
        ),
        of(
            "phoenixnap",
            json!({ "cloudConfig": { "global": { "clientid": "a" } }, "extraEnv": variable("PNAP_CLIENT_SECRET") }),
        ),
        of(
            "cloudstack",
            json!({ "cloudConfigContents": "; mine\n [global]\napi-key = k" }),
        ),
        of(
            "cloudscale",
            json!({ "flags": {
                "node-monitor-period": "1m30s", "node-sync-period": 0, "leader-elect": "True",
                "concurrent-service-syncs": "5", "kube-api-qps": 7.5, "v": 4,
            } }),
        ),
        of(
            "phoenixnap",
            json!({ "replicas": 1, "flags": { "leader-elect": false } }),
        ),
        of(
            "phoenixnap",
            json!({ "replicas": 3, "controllerExtraArgs": ["--leader-elect"] }),
        ),
        of(
            "phoenixnap",
            json!({ "logVerbosityLevel": 2, "flags": { "v": 2 } }),
        ),
        of(
            "cloudscale",
            json!({ "extraEnv": variable("CLOUDSCALE_ACCESS_TOKEN") }),
        ),
        of(
            "openstack",
            json!({ "former": "chart", "logVerbosityLevel": 2, "controllerExtraArgs": "[--v=3]" }),
        ),
    ] {
        rendered(&helm, &good);
    }
}

#[test]
fn what_is_good_is_not_refused() {
    let Some(helm) = Helm::or_leave_out("good values") else {
        return;
    };
    for address in [
        "0.0.0.0",
        "10.1.2.3",
        "::",
        "::1",
        "2001:db8::1:2",
        "fe80:1:2:3:4:5:6:7",
    ] {
        let values = of("openstack", json!({ "bindAddress": address }));
        assert!(
            words(&helm, &values).contains(&format!("--bind-address={address}")),
            "{address}"
        );
    }
    for name in ["kubernetes", "Prod_1.k8s.example.com", "a"] {
        let values = of("openstack", json!({ "cluster": { "name": name } }));
        assert!(words(&helm, &values).contains(name), "{name}");
    }
    // The former chart took these, so an upgrade with its values goes through.
    let former = json!({
        "former": "chart", "controllerExtraArgs": "- --bind-address=0.0.0.0",
        "secret": { "enabled": false, "create": true }, "cloudConfig": { "global": { "region": "r" } },
    });
    assert!(words(&helm, &of("openstack", former)).contains("--bind-address=0.0.0.0"));
    let mirror = json!({ "former": "chart", "image": { "repository": "mirror.example/bowline", "tag": "" } });
    assert!(words(&helm, &of("openstack", mirror)).contains("mirror.example/bowline:v"));
    let same = json!({ "cluster": { "name": "prod-1" }, "flags": { "cluster-name": "prod-1" } });
    rendered(&helm, &of("openstack", same));
    let flags = json!({ "concurrent_service_syncs": 3, "node-deletion-share": 0.1, "v": 4 });
    let words = words(&helm, &of("openstack", json!({ "flags": flags })));
    for word in [
        "--concurrent_service_syncs=3",
        "--node-deletion-share=0.1",
        "--v=4",
    ] {
        assert!(words.contains(word), "{word}");
    }
}

#[test]
fn a_pod_that_is_given_no_time_to_end_says_so() {
    let Some(helm) = Helm::or_leave_out("no grace") else {
        return;
    };
    let values = of("openstack", json!({ "terminationGracePeriodSeconds": 0 }));
    let objects = rendered(&helm, &values);
    assert_eq!(pod(&objects)["terminationGracePeriodSeconds"], 0);
}

fn words(helm: &Helm, values: &Value) -> String {
    Value::from(rendered(helm, values)).to_string()
}

#[test]
fn the_namespace_default_is_refused_unless_it_is_allowed() {
    let Some(helm) = Helm::or_leave_out("the namespace default") else {
        return;
    };
    let chart = chart();
    let by_default = Release {
        namespace: "default",
        ..release(&chart)
    };
    let refused = helm.template(by_default, &of("openstack", nothing()), &[]);
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("give --namespace kube-system"), "{words}");
    for allowed in [
        json!({ "allowDefaultNamespace": true }),
        json!({ "former": "chart" }),
    ] {
        helm.template(by_default, &of("openstack", allowed), &[]).unwrap();
    }
}

#[test]
fn a_version_of_kubernetes_that_is_not_tested_is_refused() {
    let Some(helm) = Helm::or_leave_out("the versions of Kubernetes") else {
        return;
    };
    let chart = chart();
    let rendered_for = |version: &str| {
        let more = ["--kube-version", version];
        helm.template(release(&chart), &of("openstack", nothing()), &more)
    };
    for version in ["v1.35.0", "1.36.2-gke.100", "v1.37.9+k3s1"] {
        rendered_for(version).unwrap();
    }
    for version in ["v1.34.9", "v1.38.0"] {
        assert!(rendered_for(version).is_err(), "{version}");
    }
}
