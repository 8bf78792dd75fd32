//! Admission policies come on request, and warn unless told otherwise.

use bowline_checks::chart::{CLOUDS, Helm};
use serde_json::{Value, json};

use crate::chart::{all_of, nothing, of, rendered};

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// The names of bindings, with their actions.
fn actions(objects: &[Value]) -> Vec<(&str, &Value)> {
    let bindings = all_of(objects, BINDING).into_iter();
    bindings
        .map(|it| {
            (
                it["metadata"]["name"].as_str().unwrap(),
                &it["spec"]["validationActions"],
            )
        })
        .collect()
}

#[test]
fn policies_come_on_request_and_warn() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let without = rendered(&helm, &of(cloud, nothing()));
        assert!(all_of(&without, POLICY).is_empty() && all_of(&without, BINDING).is_empty());
        let enabled = json!({ "admissionPolicies": { "enabled": true } });
        let with = rendered(&helm, &of(cloud, enabled));
        let values = format!("bowline-{cloud}-values");
        let changes = format!("bowline-{cloud}-changes");
        let expected: Vec<&str> = match cloud {
            "cloudstack" => vec![&values],
            _ => vec![&values, &changes],
        };
        let warn = json!(["Warn"]);
        let expected: Vec<(&str, &Value)> = expected.into_iter().map(|name| (name, &warn)).collect();
        assert_eq!(actions(&with), expected);
        for (policy, binding) in all_of(&with, POLICY).into_iter().zip(all_of(&with, BINDING)) {
            assert_eq!(policy["metadata"]["name"], binding["spec"]["policyName"]);
            assert_eq!(policy["spec"]["failurePolicy"], "Ignore");
            assert!(policy["spec"]["validations"][0]["expression"].is_string());
        }
    }
}

#[test]
fn each_part_has_an_action_of_its_own() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let values = json!({ "admissionPolicies": { "enabled": true, "action": "Deny" } });
    let objects = rendered(&helm, &of("openstack", values));
    let (deny, warn) = (json!(["Deny"]), json!(["Warn"]));
    let expected = [
        ("bowline-openstack-values", &deny),
        ("bowline-openstack-changes", &warn),
    ];
    assert_eq!(actions(&objects), expected);
}

#[test]
fn policies_check_the_classes_that_the_manager_serves_and_no_other() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let policies = json!({ "enabled": true });
    for (flags, extra, expression) in [
        (json!({}), json!([]), "!has(object.spec.loadBalancerClass)"),
        (
            json!({ "load-balancer-class": "x/a" }),
            json!([]),
            r#"has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in ["x/a"] : true"#,
        ),
        (
            json!({ "load_balancer_without_class": false }),
            json!(["--load-balancer-class=a", "--load-balancer-class", "b"]),
            r#"has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in ["a","b"] : false"#,
        ),
    ] {
        let values = json!({ "admissionPolicies": policies, "flags": flags, "controllerExtraArgs": extra });
        for policy in all_of(&rendered(&helm, &of("openstack", values)), POLICY) {
            let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
            let class = conditions.iter().find(|it| it["name"] == "class").unwrap();
            assert_eq!(class["expression"], expression);
        }
    }
}
