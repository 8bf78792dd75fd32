//! Values that are refused, and that the words say which one and what to do.

use bowline_checks::chart::{Helm, Release, chart};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chart::{nothing, of, pod, refusal, release, rendered};

#[derive(Deserialize)]
struct Case {
    values: Value,
    /// Parts of what Helm says; nothing where the values are good.
    #[serde(default)]
    says: Vec<String>,
}

#[test]
fn values_that_are_wrong_or_contradict_each_other_are_refused_with_their_name_and_what_is_allowed() {
    let Some(helm) = Helm::or_skip() else { return };
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("refused.yaml")).unwrap();
    assert!(cases.len() > 90, "{}", cases.len());
    for Case { values, says } in cases {
        if says.is_empty() {
            rendered(&helm, &values);
            continue;
        }
        let words = refusal(&helm, &values);
        for part in says {
            assert!(words.contains(&part), "{values}: no {part:?} in: {words}");
        }
    }
}

#[test]
fn what_is_good_is_not_refused() {
    let Some(helm) = Helm::or_skip() else {
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
    let Some(helm) = Helm::or_skip() else {
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
    let Some(helm) = Helm::or_skip() else {
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
    let Some(helm) = Helm::or_skip() else {
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
