//! Several clouds in one process.

use bowline_checks::chart::Helm;
use serde_json::{Value, json};

use crate::chart::{all_of, container, line, named, nothing, of, pod, rendered, workload};

const CONFIG: &str = "[Global]\nauth-url = u\n";

/// Values of cloudscale with these clouds beside it.
fn beside(clouds: Value, mut more: Value) -> Value {
    more["additionalClouds"] = clouds;
    of("cloudscale", more)
}

fn class(name: &str) -> Value {
    json!({ "loadBalancerClasses": [name] })
}

#[test]
fn one_process_serves_several_clouds_each_with_its_file_and_its_classes() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let clouds = json!({
        "openstack": { "loadBalancerClasses": ["x/a", "x/b"], "cloudConfigContents": CONFIG },
        "cloudstack": { "loadBalancerClasses": ["c"], "secret": { "name": "mine" } },
    });
    let objects = rendered(&helm, &beside(clouds, json!({ "accessToken": "t" })));
    for word in [
        "cloudscale-cloud-controller-manager --allow-untagged-cloud",
        "--cloud-provider=cloudscale,external-cloudstack,openstack",
        "--cloud-config=external-cloudstack=/config/cloud-config,openstack=/etc/config/cloud.conf",
        "--load-balancer-class=external-cloudstack=c",
        "--load-balancer-class=openstack=x/a --load-balancer-class=openstack=x/b",
    ] {
        assert!(line(&objects).contains(word), "{word}: {}", line(&objects));
    }
    let volumes = &pod(&objects)["volumes"];
    assert_eq!(
        named(volumes, "cloudstack-config")["secret"]["secretName"],
        "mine"
    );
    assert_eq!(
        named(volumes, "openstack-config")["secret"]["secretName"],
        "cloud-config"
    );
    let mounts = &container(&objects)["volumeMounts"];
    assert_eq!(named(mounts, "cloudstack-config")["mountPath"], "/config");
    assert_eq!(named(mounts, "openstack-config")["mountPath"], "/etc/config");
    assert!(
        named(&container(&objects)["env"], "CLOUDSCALE_ACCESS_TOKEN")["valueFrom"]["secretKeyRef"]
            .is_object()
    );
    // Those that are given are made, and a change of either restarts the pods.
    let secrets = all_of(&objects, "Secret").into_iter();
    let secrets: Vec<Value> = secrets.map(|it| it["stringData"].clone()).collect();
    assert_eq!(
        secrets,
        [json!({ "access-token": "t" }), json!({ "cloud.conf": CONFIG })]
    );
    let annotations = &workload(&objects)["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations["checksum/config"].is_string());
    assert!(annotations["checksum/config-openstack"].is_string());
    assert!(annotations["checksum/config-cloudstack"].is_null());
}

#[test]
fn the_first_cloud_may_be_any_and_a_token_may_be_of_a_further_one() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let clouds = json!({ "cloudscale": { "loadBalancerClasses": ["c"], "accessToken": "t" } });
    let objects = rendered(&helm, &of("openstack", json!({ "additionalClouds": clouds })));
    for word in [
        "--cloud-provider=openstack,cloudscale",
        "--cloud-config=openstack=$(CLOUD_CONFIG) ",
        "--load-balancer-class=cloudscale=c --allow-untagged-cloud",
    ] {
        assert!(line(&objects).contains(word), "{word}: {}", line(&objects));
    }
    assert_eq!(line(&objects).matches("--cloud-provider=").count(), 1);
    assert_eq!(line(&objects).matches("--cloud-config=").count(), 1);
    let token = named(&container(&objects)["env"], "CLOUDSCALE_ACCESS_TOKEN");
    assert_eq!(token["valueFrom"]["secretKeyRef"]["name"], "cloudscale");
}

#[test]
fn the_role_has_what_each_cloud_needs_and_nothing_twice() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let rules = |values: &Value| {
        let objects = rendered(&helm, values);
        let role = all_of(&objects, "ClusterRole")[0];
        role["rules"].as_array().unwrap().clone()
    };
    let alone = rules(&of("cloudscale", nothing()));
    let both = rules(&beside(
        json!({ "openstack": class("a"), "phoenixnap": class("b") }),
        nothing(),
    ));
    let (shared, further) = both.split_at(alone.len());
    assert_eq!(shared, alone);
    let [namespace] = further else {
        panic!("{further:?}");
    };
    assert_eq!(namespace["resources"], json!(["namespaces"]));
}

#[test]
fn the_policies_of_each_cloud_check_its_own_classes() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let more = json!({
        "admissionPolicies": { "enabled": true },
        "flags": { "load-balancer-class": "cloudscale=own" },
    });
    let objects = rendered(&helm, &beside(json!({ "cloudstack": class("x/a") }), more));
    let classes = |policy: &Value| {
        let name = policy["metadata"]["name"].as_str().unwrap().to_owned();
        let conditions = policy["spec"]["matchConditions"].clone();
        let class = named(&conditions, "class")["expression"].clone();
        (name, class.as_str().unwrap().to_owned())
    };
    let found: Vec<(String, String)> = all_of(&objects, "ValidatingAdmissionPolicy")
        .into_iter()
        .map(classes)
        .collect();
    let served =
        |list: &str| format!("has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in {list}");
    let first = served(r#"["own"] : true"#);
    let expected = [
        ("bowline-cloudscale-values", &first),
        ("bowline-cloudscale-changes", &first),
        ("bowline-cloudstack-values", &served(r#"["x/a"] : false"#)),
    ];
    let mut expected: Vec<(String, String)> = expected
        .into_iter()
        .map(|(name, class)| (name.to_owned(), class.clone()))
        .collect();
    expected.sort();
    let mut found = found;
    found.sort();
    assert_eq!(found, expected);
}
