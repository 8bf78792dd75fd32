//! Credentials that are given, that are there already, and that come from elsewhere.

use bowline_checks::chart::{CLOUDS, Helm};
use serde_json::{Value, json};

use crate::chart::{all_of, container, line, named, of, only, pod, rendered, workload};

/// Key and contents of the one Secret.
fn contents(objects: &[Value], name: &str) -> (String, String) {
    let secret = only(objects, "Secret");
    assert_eq!(secret["metadata"]["name"], name);
    assert_eq!(secret["metadata"]["namespace"], "kube-system");
    let data = secret["stringData"].as_object().unwrap();
    assert_eq!(data.len(), 1);
    let (key, text) = data.iter().next().unwrap();
    (key.clone(), text.as_str().unwrap().to_owned())
}

fn checksum(objects: &[Value]) -> &Value {
    &workload(objects)["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
}

#[test]
fn without_credentials_a_secret_that_is_there_is_read_and_none_is_made() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let objects = rendered(&helm, &of(cloud, json!({ "secret": { "name": "mine" } })));
        assert!(all_of(&objects, "Secret").is_empty(), "{cloud}");
        assert!(workload(&objects).to_string().contains("\"mine\""), "{cloud}");
        assert_eq!(checksum(&objects), &Value::Null);
    }
}

#[test]
fn credentials_from_elsewhere_mount_no_secret() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let values = json!({
            "secret": { "enabled": false },
            "extraVolumes": [{ "name": "vault", "csi": { "driver": "secrets-store.csi.k8s.io" } }],
            "extraVolumeMounts": [{ "name": "vault", "mountPath": "/etc/config" }],
        });
        let objects = rendered(&helm, &of(cloud, values));
        assert!(
            !workload(&objects)
                .to_string()
                .to_lowercase()
                .contains("secretname"),
            "{cloud}"
        );
        assert!(
            !workload(&objects).to_string().contains("secretKeyRef"),
            "{cloud}"
        );
        assert!(named(&pod(&objects)["volumes"], "vault")["csi"].is_object());
    }
}

#[test]
fn a_token_becomes_the_secret_of_cloudscale() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    // `--set-file` of a file with a line end at its end.
    let objects = rendered(&helm, &of("cloudscale", json!({ "accessToken": "t0ken\n" })));
    let expected = ("access-token".to_owned(), "t0ken".to_owned());
    assert_eq!(contents(&objects, "cloudscale"), expected);
    let token = named(&container(&objects)["env"], "CLOUDSCALE_ACCESS_TOKEN");
    assert_eq!(token["valueFrom"]["secretKeyRef"]["name"], "cloudscale");
}

#[test]
fn keys_become_the_file_of_phoenixnap() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let keys = json!({ "clientID": "i", "clientSecret": "s\"<&", "location": "PHX", "apiServerPort": 6443, "loadbalancer": "" });
    let objects = rendered(
        &helm,
        &of("phoenixnap", json!({ "cloudConfig": { "global": keys } })),
    );
    let (key, text) = contents(&objects, "phoenixnap-cloud-config");
    assert_eq!(key, "cloud-sa.json");
    let file: Value = serde_json::from_str(&text).unwrap();
    let expected =
        json!({ "clientID": "i", "clientSecret": "s\"<&", "location": "PHX", "apiServerPort": 6443 });
    assert_eq!(file, expected);
}

#[test]
fn keys_become_the_sections_of_a_file_and_those_without_a_value_are_left_out() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let config = json!({
        "global": { "auth-url": "https://cloud:5000/v3", "password": "a#b;c\"d\\e", "os-large": 12_345_678, "region": null },
        "loadBalancer": { "create-monitor": true, "subnet-id": null },
    });
    let objects = rendered(&helm, &of("openstack", json!({ "cloudConfig": config })));
    let (key, text) = contents(&objects, "cloud-config");
    assert_eq!(key, "cloud.conf");
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "[Global]",
        "auth-url = \"https://cloud:5000/v3\"",
        "os-large = \"12345678\"",
        "password = \"a#b;c\\\"d\\\\e\"",
        "[LoadBalancer]",
        "create-monitor = \"true\"",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_whole_file_takes_the_place_of_keys_and_a_change_of_it_restarts_the_pods() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let with = |contents: &str| {
        let values =
            json!({ "cloudConfigContents": contents, "cloudConfig": { "global": { "api-key": "k" } } });
        rendered(&helm, &of("cloudstack", values))
    };
    let (one, other) = (with("[Global]\na = b\n"), with("[Global]\na = c\n"));
    let expected = ("cloud-config".to_owned(), "[Global]\na = b\n".to_owned());
    assert_eq!(contents(&one, "cloudstack-secret"), expected);
    assert!(checksum(&one).is_string());
    assert_ne!(checksum(&one), checksum(&other));
    assert!(line(&one).contains("--cloud-config=/config/cloud-config"));
}
