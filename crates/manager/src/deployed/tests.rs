use serde_json::{Value as Json, json};

use super::*;

fn pod_spec(image: &str, command: &[&str]) -> Json {
    json!({
        "serviceAccountName": "cloud-controller-manager",
        "hostNetwork": true,
        "containers": [{
            "name": "manager", "image": image, "command": command,
            "env": [
                { "name": "CLUSTER_NAME", "value": "blue" },
                { "name": "CLOUDSCALE_ACCESS_TOKEN", "valueFrom": { "secretKeyRef": { "name": "cloudscale", "key": "access-token" } } },
                { "name": "HOSTNAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            ],
            "volumeMounts": [{ "name": "config", "mountPath": "/etc/config" }, { "name": "certs", "mountPath": "/etc/ssl" }],
        }],
        "volumes": [
            { "name": "config", "secret": { "secretName": "cloud-config", "items": [{ "key": "c", "path": "cloud.conf" }] } },
            { "name": "certs", "hostPath": { "path": "/etc/ssl" } },
        ],
    })
}

fn workload(name: &str, image: &str, command: &[&str]) -> Workload {
    Workload {
        kind: "DaemonSet",
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        selector: BTreeMap::from([("app".to_owned(), name.to_owned())]),
        pod: serde_json::from_value(pod_spec(image, command)).unwrap(),
        wanted: 1,
        is_observed: true,
    }
}

fn pod(name: &str, labels: Json, node: &str, spec: Json) -> Pod {
    let mut spec = spec;
    spec["nodeName"] = json!(node);
    serde_json::from_str(
        &json!({
            "metadata": { "namespace": "kube-system", "name": name, "labels": labels },
            "spec": spec,
            "status": { "phase": "Running", "containerStatuses": [{ "name": "manager", "ready": true }] },
        })
        .to_string(),
    )
    .unwrap()
}

#[test]
fn managers_are_known_by_program_image_or_name_and_nothing_else_is() {
    for (name, image, command, program) in [
        (
            "a",
            "bowline/bowline:v0.1.0",
            &["cloudscale-cloud-controller-manager"][..],
            Some(Program::Bowline),
        ),
        (
            "b",
            "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.2",
            &[],
            Some(Program::Go),
        ),
        (
            "c",
            "apache/cloudstack-kubernetes-provider:v1.2.0",
            &["--cloud-provider=x"],
            Some(Program::Go),
        ),
        (
            "d",
            "registry.k8s.io/provider-os/openstack-cloud-controller-manager@sha256:00",
            &[],
            Some(Program::Go),
        ),
        (
            "e",
            "registry:5000/mirror/x:1",
            &["/bin/openstack-cloud-controller-manager", "--v=1"],
            Some(Program::Unknown),
        ),
        (
            "my-ccm",
            "registry/x",
            &["run", "--cloud-provider=y"],
            Some(Program::Unknown),
        ),
        ("my-ccm", "registry/x", &["run"], None),
        (
            "cluster-autoscaler",
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1",
            &["./cluster-autoscaler", "--cloud-provider=clusterapi"],
            None,
        ),
        (
            "kube-controller-manager",
            "registry.k8s.io/kube-controller-manager:v1",
            &["kube-controller-manager", "--cloud-provider=external"],
            None,
        ),
        (
            "csi",
            "registry.k8s.io/provider-os/cinder-csi-plugin:v1",
            &["/bin/cinder-csi-plugin"],
            None,
        ),
    ] {
        let found = among(&[workload(name, image, command)], &[]);
        assert_eq!(found.first().map(|it| it.program), program, "{image}");
    }
}

#[test]
fn what_a_manager_is_told_is_read_from_its_manifest() {
    let command = [
        "openstack-cloud-controller-manager",
        "--cluster_name=$(CLUSTER_NAME)",
        "--v",
        "3",
        "--leader-elect=false",
        "--cloud-config=/etc/config/cloud.conf",
    ];
    let found = among(&[workload("m", "bowline/bowline:v1", &command)], &[]);
    let manager = &found[0];
    assert_eq!(manager.flag("cluster-name").as_deref(), Some("blue"));
    assert_eq!(manager.flag("v").as_deref(), Some("3"));
    assert_eq!(manager.flag("nothing"), None);
    assert_eq!(manager.provider().as_deref(), Some("openstack"));
    assert!(manager.is_without_election());
    assert_eq!(manager.lease(), "kube-system/cloud-controller-manager");
    assert_eq!(
        manager.account().name,
        "system:serviceaccount:kube-system:cloud-controller-manager"
    );
    let secret = |name: &str, key: &str| Place::Secret {
        name: name.to_owned(),
        key: key.to_owned(),
    };
    assert_eq!(
        manager.file("/etc/config/cloud.conf"),
        Some(secret("cloud-config", "c"))
    );
    assert_eq!(
        manager.file("/etc/config/other"),
        Some(secret("cloud-config", "other"))
    );
    assert_eq!(manager.file("/etc/ssl/ca.pem"), None);
    assert_eq!(manager.file("/etc/configuration"), None);
    assert_eq!(
        manager.variables(),
        [
            ("CLUSTER_NAME".to_owned(), Value::Literal("blue".to_owned())),
            (
                "CLOUDSCALE_ACCESS_TOKEN".to_owned(),
                Value::At(secret("cloudscale", "access-token"))
            ),
            ("HOSTNAME".to_owned(), Value::OfPod),
        ]
    );
    let needs: Vec<String> = manager.needs().iter().map(Place::object).collect();
    assert_eq!(needs, ["Secret cloudscale", "Secret cloud-config"]);
}

#[test]
fn the_provider_of_an_entry_point_is_that_of_its_image() {
    let of = |image: &str| among(&[workload("m", image, &["--v=1"])], &[])[0].provider();
    assert_eq!(
        of("apache/cloudstack-kubernetes-provider:v1.2.0").as_deref(),
        Some("external-cloudstack")
    );
    assert_eq!(
        of("quay.io/cloudscalech/cloudscale-cloud-controller-manager:1").as_deref(),
        Some("cloudscale")
    );
    assert_eq!(of("bowline/bowline:v1"), None);
}

#[test]
fn pods_belong_to_their_workload_and_static_ones_to_each_other() {
    let spec = || pod_spec("bowline/bowline:v1", &["cloud-controller-manager"]);
    let pods = [
        pod("m-x2x9k", json!({ "app": "m" }), "control-1", spec()),
        pod(
            "cloud-controller-manager-control-1",
            json!({}),
            "control-1",
            spec(),
        ),
        pod(
            "cloud-controller-manager-control-2",
            json!({}),
            "control-2",
            spec(),
        ),
        pod(
            "coredns-1",
            json!({}),
            "control-1",
            json!({ "containers": [{ "name": "c", "image": "coredns" }] }),
        ),
    ];
    let found = among(
        &[workload("m", "bowline/bowline:v1", &["cloud-controller-manager"])],
        &pods,
    );
    let told: Vec<(String, usize)> = found.iter().map(|it| (it.object(), it.pods.len())).collect();
    assert_eq!(
        told,
        [
            ("Pod kube-system/cloud-controller-manager".to_owned(), 2),
            ("DaemonSet kube-system/m".to_owned(), 1),
        ]
    );
    assert_eq!(found[0].ready(), 2);
    assert!(found[0].runs_on("control-2.example.com") && !found[1].runs_on("control-2"));
    assert!(found[1].runs_on("m-x2x9k"));
}
