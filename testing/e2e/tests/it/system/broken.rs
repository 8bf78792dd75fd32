//! Broken clusters: one command names the cause and the remedy, soon after the fault began and an hour later.
//!
//! Each case begins with a cluster in which all is well: three Nodes, a manager deployed as a DaemonSet, a Service with its address.
//! Then one thing breaks. The words are looked for in what one command prints, `doctor` or `explain` of the object.

mod blind;
mod night;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{NodeName, ServerVersion, ServiceKey};
use bowline_conformance::cloud::{Wish, web};
use bowline_kube_api::Permit;
use bowline_kube_io::{Kube, KubeOptions, SystemClock, TokioClock};
use bowline_manager::FencingGate;
use bowline_manager::config::{Config, Lookup};
use bowline_manager::doctor::{Cloud, Patient, Target, examine, explain, render_text};
use bowline_manager::why;
use serde_json::{Value, json};

use self::How::{Now, Then};
use self::cases::{cloud, kubernetes, managers, nodes, services};
use super::world::{SECOND, World};

mod cases;

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

/// How something is broken.
enum How {
    /// At once.
    Now(fn(&mut Broken)),
    /// In steps that take time.
    Then(for<'a> fn(&'a mut Broken) -> Breaking<'a>),
}

/// The fault, how it is made, and the words that one command has to print: the cause and the remedy.
type Case = (&'static str, How, &'static str, &'static str);

async fn one_command_names_each(cases: Vec<Case>) {
    let mut missed = Vec::new();
    for (name, breaking, cause, remedy) in cases {
        let mut broken = Broken::healthy().await;
        match breaking {
            Now(breaks) => breaks(&mut broken),
            Then(breaks) => breaks(&mut broken).await,
        }
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
