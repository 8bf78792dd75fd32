//! What is shipped for cloudscale.ch: the manifest.

use serde_json::Value;

use super::{assert_named, assert_rights, assert_starts_first, documents, only, root, understood};

const NAME: &str = "cloudscale-cloud-controller-manager";

fn manifest() -> Vec<Value> {
    documents(&root().join("cloudscale/config.yml"))
}

#[test]
fn what_the_former_manifest_named_is_named_the_same() {
    let all = manifest();
    let pod = assert_named(&all, "DaemonSet", NAME, "k8s-app");
    let set = only(&all, "DaemonSet");
    assert_eq!(set["spec"]["updateStrategy"]["type"], "RollingUpdate");
    assert_eq!(pod["nodeSelector"]["node-role.kubernetes.io/control-plane"], "");
    let tolerated = [
        "node-role.kubernetes.io/control-plane",
        "CriticalAddonsOnly",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
    ];
    assert_starts_first(pod, &tolerated);
    let container = &pod["containers"][0];
    let variable = |name: &str| {
        let all = container["env"].as_array().unwrap();
        all.iter()
            .find(|it| it["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .clone()
    };
    assert_eq!(
        variable("CLOUDSCALE_API_URL")["value"],
        "https://api.cloudscale.ch/"
    );
    let token = variable("CLOUDSCALE_ACCESS_TOKEN");
    let secret = &token["valueFrom"]["secretKeyRef"];
    assert_eq!(
        (&secret["name"], &secret["key"]),
        (&"cloudscale".into(), &"access-token".into())
    );
}

#[test]
fn the_role_gives_no_right_that_the_program_does_not_use() {
    let needed = [
        "list nodes",
        "watch nodes",
        "patch nodes",
        "delete nodes",
        "patch nodes/status",
        "list services",
        "watch services",
        "patch services",
        "patch services/status",
        "create events",
        "patch events",
        "get leases",
        "create leases",
        "update leases",
        "watch leases",
    ];
    assert_rights(&manifest(), &needed, &["*", "secrets"]);
}

#[test]
fn the_command_line_in_the_manifest_is_understood() {
    let all = manifest();
    let container = only(&all, "DaemonSet")["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["command"][0], NAME);
    let options = understood(&container);
    assert_eq!(options.provider.name, "cloudscale");
    assert!(options.provider.allows_untagged);
    let workers = ("concurrent-service-syncs", "2".to_owned());
    assert!(options.flags.contains(&workers));
    assert_eq!(options.logging.verbosity, 3);
    // The probes ask the port that the program serves.
    let port = options.serving.unwrap().port;
    assert_eq!(container["ports"][0]["containerPort"], port);
}
