//! Broken clusters: one command names the cause and the remedy, soon after the fault began and an hour later.
//!
//! Each case begins with a cluster in which all is well: three Nodes, a manager deployed as a DaemonSet, a Service with its address.
//! Then one thing breaks. The words are looked for in what one command prints, `doctor` or `explain` of the object.

mod blind;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_cloud_provider::{NodeName, ServerVersion, ServiceKey};
use bowline_cloudscale_sim::{Access, MonitorStatus};
use bowline_conformance::cloud::{
    CloudUnderTest as _, Denial, EXCLUDED, Instance, Wish, service, tainted_node, web,
};
use bowline_kube_api::{Effect, Fault as KubeFault, Permit, Status};
use bowline_kube_io::{Kube, KubeOptions, SystemClock, TokioClock};
use bowline_manager::FencingGate;
use bowline_manager::config::{Config, Lookup};
use bowline_manager::controllers::ControllerSelection;
use bowline_manager::doctor::{Cloud, Patient, Target, examine, explain, render_text};
use bowline_manager::why;
use serde_json::{Value, json};

use super::world::{SECOND, TOKEN, World};

/// The cluster, and what the commands are told.
struct Broken {
    world: World,
    config: Config,
    cloud: Option<Cloud>,
}

const ACCOUNT: &str = "system:serviceaccount:kube-system:cloud-controller-manager";

fn container(image: &str, args: &[&str]) -> Value {
    json!({ "name": "ccm", "image": image, "command": ["cloudscale-cloud-controller-manager"], "args": args })
}

fn daemon_set(name: &str, image: &str, args: &[&str], wanted: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "namespace": "kube-system", "name": name },
        "spec": {
            "selector": { "matchLabels": { "k8s-app": name } },
            "template": { "metadata": { "labels": { "k8s-app": name } }, "spec": {
                "serviceAccountName": "cloud-controller-manager", "hostNetwork": true,
                "nodeSelector": { "node-role.kubernetes.io/control-plane": "" },
                "containers": [container(image, args)],
            } },
        },
        "status": { "desiredNumberScheduled": wanted, "observedGeneration": 1 },
    })
}

fn pod(of: &str, node: &str, image: &str, args: &[&str], status: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "kube-system", "name": format!("{of}-x1"), "labels": { "k8s-app": of } },
        "spec": {
            "nodeName": node, "hostNetwork": true, "serviceAccountName": "cloud-controller-manager",
            "containers": [container(image, args)],
        },
        "status": status,
    })
}

fn ready() -> Value {
    json!({ "phase": "Running", "containerStatuses": [{ "name": "ccm", "ready": true }] })
}

fn stuck(reason: &str, message: &str) -> Value {
    json!({ "phase": "Pending", "containerStatuses": [{
        "name": "ccm", "ready": false, "state": { "waiting": { "reason": reason, "message": message } },
    }] })
}

const CCM: &str = "cloudscale-cloud-controller-manager";
const BOWLINE: &str = "bowline/bowline:v0.1.0";
const GO: &str = "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.3.0";

impl Broken {
    async fn healthy() -> Self {
        let mut world = World::new();
        world.add_nodes(3);
        world.apply(daemon_set(CCM, BOWLINE, &["--allow-untagged-cloud"], 1));
        world.apply(pod(
            CCM,
            "control-1",
            BOWLINE,
            &["--allow-untagged-cloud"],
            ready(),
        ));
        world.apply(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": "kube-system", "name": "cloud-controller-manager" } }));
        world.ask(web(), Wish::Plain);
        world.start();
        world.settled("web").await;
        Self {
            world,
            config: Config::default(),
            cloud: None,
        }
    }

    /// The manager ends, and its pods are as this says.
    async fn pods_are(&mut self, status: Value) {
        self.world.kill().await;
        self.world.pass_lease().await;
        self.world.apply(pod(CCM, "control-1", BOWLINE, &[], status));
    }

    /// Nothing but this, which is not there, is deployed.
    async fn nobody_works(&mut self) {
        self.world.kill().await;
        for (kind, name) in [("DaemonSet", CCM.to_owned()), ("Pod", format!("{CCM}-x1"))] {
            assert!(self.world.api.delete(kind, "kube-system", &name));
        }
        self.world.pass_lease().await;
    }

    /// A second manager.
    fn beside(&self, image: &str, args: &[&str]) {
        self.world.apply(daemon_set("second", image, args, 1));
        self.world.apply(pod("second", "control-9", image, args, ready()));
    }

    fn warn(&self, kind: &str, name: &str, reason: &str, message: &str) {
        let now = self.world.api.now();
        self.world.apply(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "namespace": "kube-system", "name": format!("{name}.1") },
            "involvedObject": { "kind": kind, "namespace": "kube-system", "name": name },
            "type": "Warning", "reason": reason, "message": message, "count": 3,
            "firstTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "lastTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }));
    }

    fn endpoints(&self, of: &str, endpoints: Value) {
        self.world.apply(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "namespace": "default", "name": format!("{of}-1"), "labels": { "kubernetes.io/service-name": of } },
            "endpoints": endpoints,
        }));
    }

    /// The manager's account may do all but this; everybody else may do everything.
    fn forbid(&self, verb: &str, resource: &str) {
        let access = self.world.api.access();
        access.permit(Permit::new("system:unauthenticated", &["*"], "*", &["*"]));
        let rules = [
            ("nodes", &["get", "list", "watch", "patch", "delete"][..]),
            ("nodes/status", &["patch"]),
            ("services", &["list", "watch", "patch"]),
            ("services/status", &["patch"]),
            ("events", &["create", "patch"]),
            ("tokenreviews", &["create"]),
            ("subjectaccessreviews", &["create"]),
            ("leases", &["get", "create", "update", "watch"]),
            ("configmaps", &["get", "list", "watch"]),
            ("namespaces", &["get"]),
        ];
        for (of, verbs) in rules {
            let verbs: Vec<&str> = verbs
                .iter()
                .copied()
                .filter(|it| (of, *it) != (resource, verb))
                .collect();
            access.permit(Permit::new(ACCOUNT, &verbs, "*", &[of]));
        }
    }

    /// What `doctor` prints, and what `explain` does of each of these.
    async fn screens(&self, targets: &[Target]) -> Vec<String> {
        let kube = Kube::with_service(
            self.world.api.service(),
            KubeOptions {
                gate: Arc::new(FencingGate::closed(Arc::new(SystemClock))),
                clock: Arc::new(TokioClock::starting_at(self.world.api.now())),
                ..KubeOptions::new("bowline/test")
            },
        );
        let cloud = match &self.cloud {
            Some(Cloud::Unusable(why)) => Cloud::Unusable(why.clone()),
            _ => Cloud::Built(self.world.provider(), Duration::ZERO),
        };
        let patient = Patient {
            config: &self.config,
            lookup: Some(Lookup::Required),
            is_manager: false,
            kube: Ok(kube),
            cloud,
            cloud_clock: Default::default(),
            progress: Default::default(),
            manifests: Default::default(),
            holder: "laptop".to_owned(),
            follows: ServerVersion::parse("1", "37"),
        };
        let mut screens = vec![render_text(&examine(&patient).await)];
        for target in targets {
            let one = std::slice::from_ref(target);
            screens.push(why::render_text(&explain(&patient, one).await.unwrap()));
        }
        screens
    }

    /// Events do not outlive the API server's hour.
    fn forget_old_events(&self) {
        let now = self.world.api.now();
        for event in self.world.api.objects("Event") {
            let last = event["lastTimestamp"].as_str().unwrap_or_default();
            let last: jiff::Timestamp = last.parse().unwrap_or(now);
            if now.duration_since(last).as_secs() > 3_600 {
                let part = |key: &str| event["metadata"][key].as_str().unwrap_or_default().to_owned();
                self.world.api.delete("Event", &part("namespace"), &part("name"));
            }
        }
    }
}

type Breaking<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The fault, how it is made, and the words that one command has to print: the cause and the remedy.
type Case = (
    &'static str,
    for<'a> fn(&'a mut Broken) -> Breaking<'a>,
    &'static str,
    &'static str,
);

fn managers() -> Vec<Case> {
    vec![
        (
            "nothing is deployed",
            |b| Box::pin(b.nobody_works()),
            "there is no manager",
            "install the manager",
        ),
        (
            "a Deployment is scaled to 0",
            |b| {
                Box::pin(async {
                    b.nobody_works().await;
                    let mut none = daemon_set(CCM, BOWLINE, &[], 0);
                    none["kind"] = json!("Deployment");
                    none["spec"]["replicas"] = json!(0);
                    b.world.apply(none);
                })
            },
            "is scaled to 0",
            "kubectl scale",
        ),
        (
            "no Node has the labels of the DaemonSet",
            |b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world.apply(daemon_set(CCM, BOWLINE, &[], 0));
                })
            },
            "none has the labels of its nodeSelector node-role.kubernetes.io/control-plane",
            "nodeSelector out of the DaemonSet",
        ),
        (
            "the process ends at its start",
            |b| {
                Box::pin(b.pods_are(json!({ "phase": "Running", "containerStatuses": [{
                "name": "ccm", "ready": false, "restartCount": 9,
                "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 5m0s" } },
                "lastState": { "terminated": { "exitCode": 255, "reason": "Error", "message": "no access token: set CLOUDSCALE_ACCESS_TOKEN" } },
            }] })))
            },
            "exit code 255: no access token",
            "logs cloudscale-cloud-controller-manager-x1 --previous",
        ),
        (
            "the process needs more memory than it may have",
            |b| {
                Box::pin(b.pods_are(json!({ "phase": "Running", "containerStatuses": [{
                "name": "ccm", "ready": false, "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
            }] })))
            },
            "(OOMKilled)",
            "memory limit",
        ),
        (
            "the image is not there",
            |b| {
                Box::pin(b.pods_are(stuck(
                    "ImagePullBackOff",
                    "Back-off pulling image \"bowline/bowline:v0.1.0\"",
                )))
            },
            "ImagePullBackOff of bowline/bowline:v0.1.0",
            "correct the image's name",
        ),
        (
            "the Secret of a variable is not there",
            |b| {
                Box::pin(b.pods_are(stuck(
                    "CreateContainerConfigError",
                    "secret \"cloudscale\" not found",
                )))
            },
            "secret \"cloudscale\" not found",
            "make the Secret",
        ),
        (
            "the Secret of a volume is not there",
            |b| {
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
            },
            "needs what does not exist in kube-system: Secret cloud-config",
            "make the Secret",
        ),
        (
            "no Node takes the pod",
            |b| {
                Box::pin(b.pods_are(json!({ "phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 node(s) had untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: true}.",
            }] })))
            },
            "untolerated taint",
            "its tolerations",
        ),
        (
            "the ServiceAccount is not there",
            |b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world
                        .api
                        .delete("ServiceAccount", "kube-system", "cloud-controller-manager");
                    b.world.apply(daemon_set(CCM, BOWLINE, &[], 1));
                    b.warn("DaemonSet", CCM, "FailedCreate", "Error creating: pods is forbidden: error looking up service account: serviceaccount \"cloud-controller-manager\" not found");
                })
            },
            "needs what does not exist in kube-system: ServiceAccount cloud-controller-manager",
            "apply all of the manifest",
        ),
        (
            "the manager's node is gone",
            |b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.world.pass_lease().await;
                })
            },
            "which is longer than it lasts: nobody leads",
            "the log of the manager's pods",
        ),
        (
            "a second manager has another lease",
            |b| Box::pin(async { b.beside(GO, &["--leader-elect-resource-name=other"]) }),
            "two managers work at once",
            "delete one of them",
        ),
        (
            "a second manager has no election",
            |b| Box::pin(async { b.beside(GO, &["--leader-elect=false"]) }),
            "one of them runs without an election",
            "no --leader-elect=false",
        ),
        (
            "a Go manager shares the lease",
            |b| Box::pin(async { b.beside(GO, &[]) }),
            "share the lease",
            "delete the one that is not to work",
        ),
        (
            "two managers of two clouds share a lease",
            |b| Box::pin(async { b.beside(GO, &["--cloud-provider=openstack"]) }),
            "for different clouds and share the lease",
            "--leader-elect-resource-name",
        ),
        (
            "a Go manager leads",
            |b| {
                Box::pin(async {
                    b.world.apply(daemon_set(CCM, GO, &[], 1));
                    b.world.apply(pod(CCM, "control-1", GO, &[], ready()));
                })
            },
            "which is a Go manager and not Bowline",
            "change the image of that manager",
        ),
        (
            "two pods work without an election",
            |b| {
                Box::pin(async {
                    let mut second = pod(CCM, "control-2", BOWLINE, &["--leader-elect=false"], ready());
                    second["metadata"]["name"] = json!("x2");
                    b.world.apply(second);
                    b.world
                        .apply(daemon_set(CCM, BOWLINE, &["--leader-elect=false"], 2));
                })
            },
            "all of them work at once",
            "leave it one pod",
        ),
    ]
}

fn kubernetes() -> Vec<Case> {
    vec![
        (
            "the role lacks the status of Services",
            |b| Box::pin(async { b.forbid("patch", "services/status") }),
            "patch services/status, by the rule",
            "add these rules",
        ),
        (
            "the role lacks patch of Nodes",
            |b| Box::pin(async { b.forbid("patch", "nodes") }),
            "patch nodes, by the rule",
            "add these rules",
        ),
        (
            "the role lacks the lease",
            |b| Box::pin(async { b.forbid("update", "leases") }),
            "update leases.coordination.k8s.io",
            "add these rules",
        ),
        (
            "a webhook refuses the manager's writes",
            |b| {
                Box::pin(async {
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
                })
            },
            "admission webhook \"a.example\" denied the request",
            "repair it, or have it leave the manager's writes out",
        ),
    ]
}

fn cloud() -> Vec<Case> {
    vec![
        (
            "the token was revoked",
            |b| Box::pin(async { b.world.sim.deny(Some(Denial::Unknown)) }),
            "401",
            "the cloud does not take the credentials",
        ),
        (
            "the token may only read",
            |b| {
                Box::pin(async {
                    b.world.sim.set_token(TOKEN, Access::ReadOnly);
                    b.world.ask_for("shop", 31_500);
                })
            },
            "403",
            "credentials that may write",
        ),
        (
            "the token is of another project",
            |b| Box::pin(async { b.world.sim.deny(Some(Denial::OtherProject)) }),
            "not listed: n1, n2, n3",
            "are they of another project",
        ),
        (
            "the quota is reached",
            |b| {
                Box::pin(async {
                    b.world.sim.set_behaviour(|it| it.quota.load_balancers = Some(0));
                    b.world.ask_for("shop", 31_500);
                })
            },
            "quota",
            "has the limit raised",
        ),
        (
            "the cloud is down",
            |b| {
                Box::pin(async {
                    b.world.cloud().faults().add(Fault::any().always().status(503));
                })
            },
            "503",
            "status page",
        ),
        (
            "there is no token",
            |b| {
                Box::pin(async {
                    b.cloud = Some(Cloud::Unusable("CLOUDSCALE_ACCESS_TOKEN is not set".to_owned()))
                })
            },
            "the cloud is not asked: CLOUDSCALE_ACCESS_TOKEN is not set",
            "the flags, variables and files of the manager",
        ),
    ]
}

fn services() -> Vec<Case> {
    vec![
        (
            "no member answers",
            |b| {
                Box::pin(async {
                    b.world
                        .sim
                        .set_behaviour(|it| it.unprobed_member = MonitorStatus::Down)
                })
            },
            "3 of 3 members do not answer",
            "looks whether its pods are ready",
        ),
        (
            "the load balancer was deleted by hand, and nobody works",
            |b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.world.sim.lose_balancer(&b.world.mark("web"));
                    b.world.pass_lease().await;
                })
            },
            "publishes the address that the cloud assigns",
            "a manager that leads makes this by itself",
        ),
        (
            "a Service is of a class that nobody serves",
            |b| {
                Box::pin(async {
                    let mut other = service("shop", &[("", 80, 31_500)]);
                    other["spec"]["loadBalancerClass"] = json!("example.com/x");
                    b.world.apply(other);
                })
            },
            "its spec.loadBalancerClass is \"example.com/x\"",
            "give the manager --load-balancer-class with that class",
        ),
        (
            "an annotation has a value that is none",
            |b| {
                Box::pin(async {
                    let mut odd = service("shop", &[("", 80, 31_500)]);
                    odd["metadata"]["annotations"] =
                        json!({ "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "fastest" });
                    b.world.apply(odd);
                })
            },
            "loadbalancer-pool-algorithm",
            "round_robin",
        ),
        (
            "the service controller is switched off",
            |b| {
                Box::pin(async {
                    b.config.controllers =
                        ControllerSelection::parse(["*", "-service-lb-controller"]).unwrap();
                    b.world.kill().await;
                    b.world.ask_for("shop", 31_500);
                })
            },
            "--controllers switches service-lb-controller off",
            "changes its configuration",
        ),
        (
            "every Node is excluded",
            |b| {
                Box::pin(async {
                    for name in ["n1", "n2", "n3"] {
                        b.world.label_node(name, EXCLUDED, Some(""));
                    }
                })
            },
            "no Node may be a member: left out by node.kubernetes.io/exclude-from-external-load-balancers",
            "kubectl label node NAME",
        ),
        (
            "no pod is ready",
            |b| {
                Box::pin(async {
                    b.endpoints("web", json!([{ "addresses": ["10.1.0.1"], "conditions": { "ready": false }, "nodeName": "n1" }]))
                })
            },
            "none of the 1 pods behind it is ready",
            "readiness probe",
        ),
        (
            "the selector matches no pod",
            |b| Box::pin(async { b.endpoints("web", json!([])) }),
            "its selector matches none",
            "compares spec.selector with the labels",
        ),
        (
            "pods of a local policy run where no member is",
            |b| {
                Box::pin(async {
                    b.world
                        .edit_service("web", |it| it["spec"]["externalTrafficPolicy"] = json!("Local"));
                    b.world.label_node("n1", EXCLUDED, Some(""));
                    b.endpoints("web", json!([{ "addresses": ["10.1.0.1"], "conditions": { "ready": true }, "nodeName": "n1" }]));
                })
            },
            "its pods run only on Nodes that are no members: n1",
            "sets externalTrafficPolicy to Cluster",
        ),
        (
            "somebody else's finalizer holds a deletion",
            |b| {
                Box::pin(async {
                    b.world.edit_service("web", |it| {
                        it["metadata"]["finalizers"]
                            .as_array_mut()
                            .unwrap()
                            .push(json!("example.com/hold"))
                    });
                    b.world.delete_service("web");
                })
            },
            "waits for somebody else, by the finalizer example.com/hold",
            "whoever set that finalizer takes it off",
        ),
        (
            "the cloud refuses a deletion",
            |b| {
                Box::pin(async {
                    b.world.cloud().faults().add(
                        Fault::on(http::Method::DELETE, "/v1/load-balancers/*")
                            .always()
                            .status(500),
                    );
                    b.world.delete_service("web");
                })
            },
            "500",
            "status page",
        ),
    ]
}

fn nodes() -> Vec<Case> {
    vec![
        (
            "a Node has a name that no server has",
            |b| {
                Box::pin(async {
                    b.world.sim.add_instance(&Instance::plain("worker-01"));
                    b.world.apply(tainted_node("worker-1"));
                })
            },
            "\"worker-01\", which may be this one",
            "registers it under the name of its instance",
        ),
        (
            "a kubelet runs without --cloud-provider=external",
            |b| {
                Box::pin(async {
                    b.world.sim.add_instance(&Instance::plain("worker-1"));
                    let mut node = tainted_node("worker-1");
                    node["spec"] = json!({});
                    b.world.apply(node);
                })
            },
            "neither a provider ID nor the taint",
            "--cloud-provider=external",
        ),
        (
            "a Node has a foreign provider ID",
            |b| {
                Box::pin(async {
                    let mut node = tainted_node("worker-1");
                    node["spec"]["providerID"] = json!("k3s://worker-1");
                    b.world.apply(node);
                })
            },
            "it is of another cloud",
            "have its kubelet give no provider ID",
        ),
        (
            "two Nodes have one provider ID",
            |b| {
                Box::pin(async {
                    let mut node = tainted_node("worker-1");
                    node["spec"] = json!({ "providerID": b.world.provider_id("n1") });
                    b.world.apply(node);
                })
            },
            "its provider ID is that of n1",
            "delete the Node objects",
        ),
        (
            "the server of a ready Node is gone",
            |b| Box::pin(async { b.world.sim.remove_instance("n1") }),
            "not listed: n1",
            "a Node that is ready is never deleted",
        ),
        (
            "a server is switched off",
            |b| {
                Box::pin(async {
                    b.world.sim.set_power("n1", false);
                    b.world.set_ready("n1", "Unknown");
                })
            },
            "switched off: n1",
            "start what is switched off",
        ),
        (
            "no kubelet reports",
            |b| {
                Box::pin(async {
                    for name in ["n1", "n2", "n3"] {
                        b.world.set_ready(name, "Unknown");
                    }
                })
            },
            "no member is ready: n1, n2, n3",
            "looks at the kubelets",
        ),
        (
            "the node controller is switched off",
            |b| {
                Box::pin(async {
                    b.config.controllers =
                        ControllerSelection::parse(["*", "-cloud-node-controller"]).unwrap();
                    b.world.kill().await;
                    b.world.join("worker-1");
                })
            },
            "--controllers switches cloud-node-controller off",
            "switches it on",
        ),
        (
            "a Node waits while nobody works",
            |b| {
                Box::pin(async {
                    b.nobody_works().await;
                    b.world.join("worker-1");
                })
            },
            "there is no manager",
            "install the manager",
        ),
    ]
}

async fn one_command_names_each(cases: Vec<Case>) {
    let mut missed = Vec::new();
    for (name, breaking, cause, remedy) in cases {
        let mut broken = Broken::healthy().await;
        breaking(&mut broken).await;
        for after in [90, 3_900] {
            broken.world.pass(SECOND * after).await;
            broken.forget_old_events();
            let mut targets = vec![Target::Service(ServiceKey::new("default", "web"))];
            if broken.world.service("shop").is_some() {
                targets.push(Target::Service(ServiceKey::new("default", "shop")));
            }
            if broken.world.node("worker-1").is_some() {
                targets.push(Target::Node(NodeName::new("worker-1")));
            }
            let screens = broken.screens(&targets).await;
            if !screens
                .iter()
                .any(|screen| screen.contains(cause) && screen.contains(remedy))
            {
                missed.push(format!(
                    "{name}, {after} s after it began: {cause:?} and {remedy:?}\n{}",
                    screens.join("\n")
                ));
                break;
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_healthy_cluster_has_nothing_to_tell() {
    let broken = Broken::healthy().await;
    let screens = broken
        .screens(&[Target::Service(ServiceKey::new("default", "web"))])
        .await;
    assert!(screens[0].contains(" 0 warning, 0 failed"), "{}", screens[0]);
    assert!(
        screens[1].starts_with("service/default/web: ok"),
        "{}",
        screens[1]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_manager_is_named() {
    one_command_names_each(managers()).await;
}

#[tokio::test(start_paused = true)]
async fn what_kubernetes_keeps_from_the_manager_is_named() {
    one_command_names_each(kubernetes()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_cloud_is_named() {
    one_command_names_each(cloud()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_service_is_named() {
    one_command_names_each(services()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_node_is_named() {
    one_command_names_each(nodes()).await;
}
