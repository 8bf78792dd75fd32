//! What breaks, and what is to be read of it.

use bowline_cloud_kit::Fault;
use bowline_cloudscale_sim::{Access, MonitorStatus};
use bowline_conformance::cloud::{
    CloudUnderTest as _, Denial, EXCLUDED, Instance, SECOND, service, tainted_node,
};
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use bowline_manager::controllers::ControllerSelection;
use bowline_manager::doctor::Cloud;
use serde_json::json;

use super::How::{Now, Then};
use super::{BOWLINE, CCM, Case, GO, daemon_set, pod, ready, stuck};
use crate::system::world::TOKEN;
pub(super) fn managers() -> Vec<Case> {
    vec![
        (
            "a Secret was written and the pod not restarted",
            Then(|b| {
                Box::pin(async {
                    let from = json!({ "secretKeyRef": { "name": "cloudscale", "key": "access-token" } });
                    let mut manager = daemon_set(CCM, BOWLINE, &["--allow-untagged-cloud"], 1);
                    manager["spec"]["template"]["spec"]["containers"][0]["env"] =
                        json!([{ "name": "CLOUDSCALE_ACCESS_TOKEN", "valueFrom": from }]);
                    b.world.apply(manager);
                    let mut status = ready();
                    status["containerStatuses"][0]["state"] =
                        json!({ "running": { "startedAt": b.world.api.now().to_string() } });
                    b.world.apply(pod(CCM, "control-1", BOWLINE, &[], status));
                    b.world.pass(SECOND * 60).await;
                    b.world.apply(json!({
                        "apiVersion": "v1", "kind": "Secret",
                        "metadata": { "namespace": "kube-system", "name": "cloudscale" },
                        "data": { "access-token": "bmV3" },
                    }));
                })
            }),
            "run with older credentials than those of Secret cloudscale",
            "rollout restart daemonset/",
        ),
        (
            "nothing is deployed",
            Then(|b| Box::pin(b.nobody_works())),
            "there is no manager",
            "install the manager",
        ),
        (
            "a Deployment is scaled to 0",
            Then(|b| {
                Box::pin(async {
                    b.nobody_works().await;
                    let mut none = daemon_set(CCM, BOWLINE, &[], 0);
                    none["kind"] = json!("Deployment");
                    none["spec"]["replicas"] = json!(0);
                    b.world.apply(none);
                })
            }),
            "is scaled to 0",
            "kubectl scale",
        ),
        (
            "no Node has the labels of the DaemonSet",
            Then(|b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world.apply(daemon_set(CCM, BOWLINE, &[], 0));
                })
            }),
            "none has the labels of its nodeSelector node-role.kubernetes.io/control-plane",
            "nodeSelector out of the DaemonSet",
        ),
        (
            "the process ends at its start",
            Then(|b| {
                Box::pin(b.pods_are(json!({ "phase": "Running", "containerStatuses": [{
                "name": "ccm", "ready": false, "restartCount": 9,
                "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 5m0s" } },
                "lastState": { "terminated": { "exitCode": 255, "reason": "Error", "message": "no access token: set CLOUDSCALE_ACCESS_TOKEN" } },
            }] })))
            }),
            "exit code 255: no access token",
            "logs cloudscale-cloud-controller-manager-x1 --previous",
        ),
        (
            "the process needs more memory than it may have",
            Then(|b| {
                Box::pin(b.pods_are(json!({ "phase": "Running", "containerStatuses": [{
                "name": "ccm", "ready": false, "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
            }] })))
            }),
            "(OOMKilled)",
            "memory limit",
        ),
        (
            "the image is not there",
            Then(|b| {
                Box::pin(b.pods_are(stuck(
                    "ImagePullBackOff",
                    "Back-off pulling image \"bowline/bowline:v0.1.0\"",
                )))
            }),
            "ImagePullBackOff of bowline/bowline:v0.1.0",
            "correct the image's name",
        ),
        (
            "the Secret of a variable is not there",
            Then(|b| {
                Box::pin(b.pods_are(stuck(
                    "CreateContainerConfigError",
                    "secret \"cloudscale\" not found",
                )))
            }),
            "secret \"cloudscale\" not found",
            "make the Secret",
        ),
        (
            "the Secret of a volume is not there",
            Then(|b| {
                Box::pin(async {
                    b.pods_are(stuck("ContainerCreating", "")).await;
                    let mut with_volume = daemon_set(CCM, BOWLINE, &[], 1);
                    with_volume["spec"]["template"]["spec"]["volumes"] =
                        json!([{ "name": "config", "secret": { "secretName": "cloud-config" } }]);
                    b.world.apply(with_volume);
                    b.warn(
                        "Pod",
                        &format!("{CCM}-x1"),
                        "FailedMount",
                        "MountVolume.SetUp failed for volume \"config\": secret \"cloud-config\" not found",
                    );
                })
            }),
            "needs what does not exist in kube-system: Secret cloud-config",
            "make the Secret",
        ),
        (
            "no Node takes the pod",
            Then(|b| {
                Box::pin(b.pods_are(json!({ "phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 node(s) had untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: true}.",
            }] })))
            }),
            "untolerated taint",
            "its tolerations",
        ),
        (
            "the ServiceAccount is not there",
            Then(|b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world
                        .api
                        .delete("ServiceAccount", "kube-system", "cloud-controller-manager");
                    b.world.apply(daemon_set(CCM, BOWLINE, &[], 1));
                    b.warn("DaemonSet", CCM, "FailedCreate", "Error creating: pods is forbidden: error looking up service account: serviceaccount \"cloud-controller-manager\" not found");
                })
            }),
            "needs what does not exist in kube-system: ServiceAccount cloud-controller-manager",
            "apply all of the manifest",
        ),
        (
            "the manager's node is gone",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.world.pass_lease().await;
                })
            }),
            "which is longer than it lasts: nobody leads, although it is ready",
            "its Node does not answer",
        ),
        (
            "a second manager has another lease",
            Now(|b| b.beside(GO, &["--leader-elect-resource-name=other"])),
            "two managers work at once",
            "delete one of them",
        ),
        (
            "a second manager has no election",
            Now(|b| b.beside(GO, &["--leader-elect=false"])),
            "one of them runs without an election",
            "no --leader-elect=false",
        ),
        (
            "a Go manager shares the lease",
            Now(|b| b.beside(GO, &[])),
            "share the lease",
            "delete the one that is not to work",
        ),
        (
            "two managers of two clouds share a lease",
            Now(|b| b.beside(GO, &["--cloud-provider=openstack"])),
            "for different clouds and share the lease",
            "--leader-elect-resource-name",
        ),
        (
            "a Go manager leads",
            Now(|b| {
                b.world.apply(daemon_set(CCM, GO, &[], 1));
                b.world.apply(pod(CCM, "control-1", GO, &[], ready()));
            }),
            "which is a Go manager and not Bowline",
            "change the image of that manager",
        ),
        (
            "two pods work without an election",
            Now(|b| {
                let mut second = pod(CCM, "control-2", BOWLINE, &["--leader-elect=false"], ready());
                second["metadata"]["name"] = json!("x2");
                b.world.apply(second);
                b.world
                    .apply(daemon_set(CCM, BOWLINE, &["--leader-elect=false"], 2));
            }),
            "all of them work at once",
            "leave it one pod",
        ),
    ]
}

pub(super) fn kubernetes() -> Vec<Case> {
    vec![
        (
            "the role lacks the status of Services",
            Now(|b| b.forbid("patch", "services/status")),
            "patch services/status, by the rule",
            "add these rules",
        ),
        (
            "the role lacks patch of Nodes",
            Now(|b| b.forbid("patch", "nodes")),
            "patch nodes, by the rule",
            "add these rules",
        ),
        (
            "the role lacks the lease",
            Now(|b| b.forbid("update", "leases")),
            "update leases.coordination.k8s.io",
            "add these rules",
        ),
        (
            "a webhook refuses the manager's writes",
            Now(|b| {
                let status = Status::new(
                    400,
                    "BadRequest",
                    "admission webhook \"a.example\" denied the request: not today",
                );
                b.world.api.faults().inject(
                    KubeFault::new(Effect::Answer(status))
                        .verb("patch")
                        .resource("nodes"),
                );
            }),
            "admission webhook \"a.example\" denied the request",
            "repair it, or have it leave the manager's writes out",
        ),
    ]
}

pub(super) fn cloud() -> Vec<Case> {
    vec![
        (
            "the token was revoked",
            Now(|b| b.world.sim.deny(Some(Denial::Unknown))),
            "401",
            "the cloud does not take the credentials",
        ),
        (
            "the token may only read",
            Now(|b| {
                b.world.sim.set_token(TOKEN, Access::ReadOnly);
                b.world.ask_for("shop", 31_500);
            }),
            "403",
            "credentials that may write",
        ),
        (
            "the token is of another project",
            Now(|b| b.world.sim.deny(Some(Denial::OtherProject))),
            "not listed: n1, n2, n3",
            "are they of another project",
        ),
        (
            "the quota is reached",
            Now(|b| {
                b.world.sim.set_behaviour(|it| it.quota.load_balancers = Some(0));
                b.world.ask_for("shop", 31_500);
            }),
            "quota",
            "has the limit raised",
        ),
        (
            "the cloud is down",
            Now(|b| {
                b.world.cloud().faults().add(Fault::any().always().status(503));
            }),
            "503",
            "status page",
        ),
        (
            "there is no token",
            Now(|b| b.cloud = Some(Cloud::Unusable("CLOUDSCALE_ACCESS_TOKEN is not set".to_owned()))),
            "the cloud is not asked: CLOUDSCALE_ACCESS_TOKEN is not set",
            "the flags, variables and files of the manager",
        ),
    ]
}

pub(super) fn services() -> Vec<Case> {
    vec![
        (
            "no member answers",
            Now(|b| {
                b.world
                    .sim
                    .set_behaviour(|it| it.unprobed_member = MonitorStatus::Down)
            }),
            "3 of 3 members do not answer: n1 (",
            "looks whether its pods are ready",
        ),
        (
            "the load balancer was deleted by hand, and nobody works",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.world.sim.lose_balancer(&b.world.mark("web"));
                    b.world.pass_lease().await;
                })
            }),
            "becomes the address that the cloud assigns",
            "whoever owns the Service has DNS and clients follow",
        ),
        (
            "a Service is of a class that nobody serves",
            Now(|b| {
                let mut other = service("shop", &[("", 80, 31_500)]);
                other["spec"]["loadBalancerClass"] = json!("example.com/x");
                b.world.apply(other);
            }),
            "its spec.loadBalancerClass is \"example.com/x\"",
            "give the manager --load-balancer-class with that class",
        ),
        (
            "an annotation has a value that is none",
            Now(|b| {
                let mut odd = service("shop", &[("", 80, 31_500)]);
                odd["metadata"]["annotations"] =
                    json!({ "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "fastest" });
                b.world.apply(odd);
            }),
            "loadbalancer-pool-algorithm",
            "round_robin",
        ),
        (
            "the service controller is switched off",
            Then(|b| {
                Box::pin(async {
                    b.config.controllers =
                        ControllerSelection::parse(["*", "-service-lb-controller"]).unwrap();
                    b.world.kill().await;
                    b.world.ask_for("shop", 31_500);
                })
            }),
            "--controllers switches service-lb-controller off",
            "changes its configuration",
        ),
        (
            "every Node is excluded",
            Now(|b| {
                for name in ["n1", "n2", "n3"] {
                    b.world.label_node(name, EXCLUDED, Some(""));
                }
            }),
            "no Node may be a member: left out by node.kubernetes.io/exclude-from-external-load-balancers",
            "kubectl label node NAME",
        ),
        (
            "no pod is ready",
            Now(|b| {
                b.endpoints("web", json!([{ "addresses": ["10.1.0.1"], "conditions": { "ready": false }, "nodeName": "n1" }]))
            }),
            "none of the 1 pods behind it is ready",
            "readiness probe",
        ),
        (
            "the selector matches no pod",
            Now(|b| b.endpoints("web", json!([]))),
            "its selector matches none",
            "compares spec.selector with the labels",
        ),
        (
            "pods of a local policy run where no member is",
            Now(|b| {
                b.world
                    .edit_service("web", |it| it["spec"]["externalTrafficPolicy"] = json!("Local"));
                b.world.label_node("n1", EXCLUDED, Some(""));
                b.endpoints(
                    "web",
                    json!([{ "addresses": ["10.1.0.1"], "conditions": { "ready": true }, "nodeName": "n1" }]),
                );
            }),
            "its pods run only on Nodes that are no members: n1",
            "sets externalTrafficPolicy to Cluster",
        ),
        (
            "somebody else's finalizer holds a deletion",
            Now(|b| {
                b.world.edit_service("web", |it| {
                    it["metadata"]["finalizers"]
                        .as_array_mut()
                        .unwrap()
                        .push(json!("example.com/hold"))
                });
                b.world.delete_service("web");
            }),
            "waits for somebody else, by the finalizer example.com/hold",
            "whoever set that finalizer takes it off",
        ),
        (
            "the cloud refuses a deletion",
            Now(|b| {
                b.world.cloud().faults().add(
                    Fault::on(http::Method::DELETE, "/v1/load-balancers/*")
                        .always()
                        .status(500),
                );
                b.world.delete_service("web");
            }),
            "500",
            "status page",
        ),
    ]
}

pub(super) fn nodes() -> Vec<Case> {
    vec![
        (
            "a Node has a name that no server has",
            Now(|b| {
                b.world.sim.add_instance(&Instance::plain("worker-01"));
                b.world.apply(tainted_node("worker-1"));
            }),
            "\"worker-01\", which may be this one",
            "registers it under the name of its instance",
        ),
        (
            "a kubelet runs without --cloud-provider=external",
            Now(|b| {
                b.world.sim.add_instance(&Instance::plain("worker-1"));
                let mut node = tainted_node("worker-1");
                node["spec"] = json!({});
                b.world.apply(node);
            }),
            "neither a provider ID nor the taint",
            "--cloud-provider=external",
        ),
        (
            "a Node has a foreign provider ID",
            Now(|b| {
                let mut node = tainted_node("worker-1");
                node["spec"]["providerID"] = json!("k3s://worker-1");
                b.world.apply(node);
            }),
            "it is of another cloud",
            "have its kubelet give no provider ID",
        ),
        (
            "two Nodes have one provider ID",
            Now(|b| {
                let mut node = tainted_node("worker-1");
                node["spec"] = json!({ "providerID": b.world.provider_id("n1") });
                b.world.apply(node);
            }),
            "its provider ID is that of n1",
            "delete the Node objects",
        ),
        (
            "the server of a ready Node is gone",
            Now(|b| b.world.sim.remove_instance("n1")),
            "not listed: n1",
            "a Node that is ready is never deleted",
        ),
        (
            "a server is switched off",
            Now(|b| {
                b.world.sim.set_power("n1", false);
                b.world.set_ready("n1", "Unknown");
            }),
            "switched off: n1",
            "start what is switched off",
        ),
        (
            "a server was rebuilt under its name",
            Now(|b| {
                b.world.sim.remove_instance("n1");
                b.world.sim.add_instance(&Instance::plain("n1"));
            }),
            "rebuilt under their names: n1 (now cloudscale://",
            "drain the Node and delete it",
        ),
        (
            "a kubelet does not report while its server runs",
            Now(|b| b.world.set_ready("n1", "Unknown")),
            "not ready, with the state of the instance: n1 (running)",
            "look at the kubelet of that instance",
        ),
        (
            "an initialised Node gets the taint again",
            Then(|b| {
                Box::pin(async {
                    b.world.join("worker-1");
                    b.world.pass(SECOND * 60).await;
                    b.world.kill().await;
                    let taint = tainted_node("worker-1")["spec"]["taints"].clone();
                    b.world
                        .edit_node("worker-1", |node| node["spec"]["taints"] = taint);
                })
            }),
            "it was initialised before",
            "look for another cloud controller manager",
        ),
        (
            "no kubelet reports",
            Now(|b| {
                for name in ["n1", "n2", "n3"] {
                    b.world.set_ready(name, "Unknown");
                }
            }),
            "no member is ready: n1, n2, n3",
            "looks at the kubelets",
        ),
        (
            "the node controller is switched off",
            Then(|b| {
                Box::pin(async {
                    b.config.controllers =
                        ControllerSelection::parse(["*", "-cloud-node-controller"]).unwrap();
                    b.world.kill().await;
                    b.world.join("worker-1");
                })
            }),
            "--controllers switches cloud-node-controller off",
            "switches it on",
        ),
        (
            "a Node waits while nobody works",
            Then(|b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world.join("worker-1");
                })
            }),
            "there is no manager",
            "install the manager",
        ),
    ]
}
