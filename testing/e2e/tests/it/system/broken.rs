//! Broken clusters: one command names the cause and the remedy, soon after the fault began and an hour later.
//!
//! Each case is a scenario of the folder `broken`. It begins with a cluster in which all is well: three Nodes, a manager deployed as a
//! DaemonSet, a Service with its address. Then one thing breaks. The words are looked for in what one command prints, `doctor` or
//! `explain` of the object.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::Double;
use bowline_cloud_provider::{NodeName, ServerVersion, ServiceClasses, ServiceKey};
use bowline_conformance::cloud::{Stage, Start, Wish, service, web};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, word};
use bowline_kube_api::Permit;
use bowline_kube_io::{Kube, KubeOptions, SystemClock, TokioClock};
use bowline_manager::FencingGate;
use bowline_manager::config::{Config, Lookup};
use bowline_manager::controllers::ControllerSelection;
use bowline_manager::doctor::{Cloud, Patient, Target, examine, explain, render_text};
use bowline_manager::why;
use serde_json::{Value, json};

use super::staged::{object, play_all};
use super::world::{Cloudscale, SECOND, World};

/// The cluster, and what the commands are told.
struct Broken {
    stage: Stage<Cloudscale>,
    config: Config,
    /// Why the cloud cannot be asked.
    unusable: Option<String>,
}

const ACCOUNT: &str = "system:serviceaccount:kube-system:cloud-controller-manager";
const CCM: &str = "cloudscale-cloud-controller-manager";
const BOWLINE: &str = "bowline/bowline:v0.1.0";
const GO: &str = "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.3.0";

fn image(word: &str) -> &'static str {
    if word == "go" { GO } else { BOWLINE }
}

fn container(image: &str, args: &str) -> Value {
    let args: Vec<&str> = args.split_whitespace().collect();
    json!({ "name": "ccm", "image": image, "command": ["cloudscale-cloud-controller-manager"], "args": args })
}

fn daemon_set(name: &str, image: &str, args: &str, wanted: u32) -> Value {
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

fn pod(of: &str, node: &str, image: &str, args: &str, status: Value) -> Value {
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

impl ScenarioCloud for Broken {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        let mut world = World::new();
        world.add_nodes(3);
        world.apply(daemon_set(CCM, BOWLINE, "--allow-untagged-cloud", 1));
        world.apply(pod(CCM, "control-1", BOWLINE, "--allow-untagged-cloud", ready()));
        world.apply(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": "kube-system", "name": "cloud-controller-manager" } }));
        world.ask(web(), Wish::Plain);
        world.start();
        world.settled("web").await;
        Self {
            stage: Stage::around(world),
            config: Config::default(),
            unusable: None,
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        self.stage.double()
    }

    fn state(&self) -> Value {
        self.stage.world.sim.objects()
    }

    fn part(&self, name: &str) -> Value {
        self.stage.part(name)
    }

    fn add_object(&self, kind: &str, spec: Value) -> Result<String, Complaint> {
        self.stage.add_object(kind, spec)
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        match kind {
            "listener" => Ok(self
                .stage
                .world
                .sim
                .delete_listener(id.parse().map_err(|_| "no ID")?)),
            other => Err(format!("no {other} can be removed")),
        }
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let world = &mut self.stage.world;
        let (name, rest) = word(words.rest);
        match words.verb {
            // Deployments of managers.
            "daemon-set" => {
                let (wanted, args) = word(rest);
                let wanted = wanted.parse().map_err(|_| "how many pods?")?;
                world.apply(daemon_set(CCM, image(name), args, wanted));
            }
            "second-pod" => {
                let mut second = pod(CCM, "control-2", BOWLINE, words.rest, ready());
                second["metadata"]["name"] = json!("x2");
                world.apply(second);
            }
            "pod" => drop(world.apply(pod(CCM, "control-1", image(name), rest, ready()))),
            // A second manager, of the Go kind.
            "beside" => {
                world.apply(daemon_set("second", GO, words.rest, 1));
                world.apply(pod("second", "control-9", GO, words.rest, ready()));
            }
            // The manager ends, and its pods are as this says.
            "pods-are" => {
                world.kill().await;
                world.pass_lease().await;
                world.apply(pod(CCM, "control-1", BOWLINE, "", object(words.rest)?));
            }
            // Nothing but what follows is deployed.
            "nobody-works" => {
                world.kill().await;
                for (kind, name) in [("DaemonSet", CCM.to_owned()), ("Pod", format!("{CCM}-x1"))] {
                    assert!(world.api.delete(kind, "kube-system", &name));
                }
                world.pass_lease().await;
            }
            "merge-into" => {
                let (of, patch) = word(rest);
                let mut there = world.api.object(name, "kube-system", of).ok_or("no such object")?;
                json_patch::merge(&mut there, &object(patch)?);
                world.apply(there);
            }
            "drop" => return Ok(world.api.delete(name, "kube-system", rest)),
            "warn" => {
                let (reason, message) = word(rest);
                self.warn(name, reason, message);
            }
            "endpoints" => drop(world.apply(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "namespace": "default", "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
                "endpoints": object(words.rest)?,
            }))),
            "forbid" => self.forbid(name, rest),
            // What the commands and the manager are told.
            "controllers" => self.config.controllers = ControllerSelection::parse(words.rest.split(' ')).map_err(|error| format!("{error:?}"))?,
            "class" => {
                let classes = ServiceClasses::new([name.to_owned()], false).map_err(|error| format!("{error:?}"))?;
                self.config.service_classes = classes.clone();
                let mut start = Start::default();
                start.config.service_classes = classes;
                world.start_with(start);
            }
            "cloud-is-unusable" => self.unusable = Some(words.rest.to_owned()),
            "names" => self.names(words.rest).await?,
            _ => return self.stage.act(words).await,
        }
        Ok(true)
    }
}

impl Broken {
    /// `names CAUSE -> REMEDY`: the words that one command has to print.
    async fn names(&self, text: &str) -> Result<(), Complaint> {
        let (cause, remedy) = text.split_once(" -> ").ok_or("CAUSE -> REMEDY")?;
        let world = &self.stage.world;
        for after in [90, 3_900] {
            world.pass(SECOND * after).await;
            self.forget_old_events();
            let mut targets = vec![Target::Service(ServiceKey::new("default", "web"))];
            if world.service("shop").is_some() {
                targets.push(Target::Service(ServiceKey::new("default", "shop")));
            }
            if world.node("worker-1").is_some() {
                targets.push(Target::Node(NodeName::new("worker-1")));
            }
            let screens = self.screens(&targets).await;
            let mut named = screens.iter().map(|it| it.contains(cause) && it.contains(remedy));
            if !named.any(|it| it) {
                return Err(format!(
                    "{after} s after it began: {cause:?} and {remedy:?}\n{}",
                    screens.join("\n")
                ));
            }
        }
        Ok(())
    }

    fn warn(&self, about: &str, reason: &str, message: &str) {
        let now = self
            .stage
            .world
            .api
            .now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        let (kind, name) = about.split_once('/').unwrap_or(("DaemonSet", about));
        self.stage.world.apply(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "namespace": "kube-system", "name": format!("{name}.1") },
            "involvedObject": { "kind": kind, "namespace": "kube-system", "name": name },
            "type": "Warning", "reason": reason, "message": message, "count": 3, "firstTimestamp": now, "lastTimestamp": now,
        }));
    }

    /// The manager's account may do all but this; everybody else may do everything.
    fn forbid(&self, verb: &str, resource: &str) {
        let access = self.stage.world.api.access();
        access.permit(Permit::new("system:unauthenticated", &["*"], "*", &["*"]));
        if verb == "everything" {
            return;
        }
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
            let verbs = verbs.iter().copied();
            let verbs: Vec<&str> = verbs.filter(|it| (of, *it) != (resource, verb)).collect();
            access.permit(Permit::new(ACCOUNT, &verbs, "*", &[of]));
        }
    }

    /// What `doctor` prints, and what `explain` does of each of these.
    async fn screens(&self, targets: &[Target]) -> Vec<String> {
        let world = &self.stage.world;
        let kube = Kube::with_service(
            world.api.service(),
            KubeOptions {
                gate: Arc::new(FencingGate::closed(Arc::new(SystemClock))),
                clock: Arc::new(TokioClock::starting_at(world.api.now())),
                ..KubeOptions::new("bowline/test")
            },
        );
        let patient = Patient {
            config: &self.config,
            lookup: Some(Lookup::Required),
            is_manager: false,
            kube: Ok(kube),
            cloud: match &self.unusable {
                Some(why) => Cloud::Unusable(why.clone()),
                None => Cloud::Built(world.provider(), Duration::ZERO),
            },
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
        let api = &self.stage.world.api;
        let now = api.now();
        for event in api.objects("Event") {
            let last = event["lastTimestamp"].as_str().unwrap_or_default();
            let last: jiff::Timestamp = last.parse().unwrap_or(now);
            if now.duration_since(last).as_secs() > 3_600 {
                let part = |key: &str| event["metadata"][key].as_str().unwrap_or_default().to_owned();
                api.delete("Event", &part("namespace"), &part("name"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_cluster_has_nothing_to_tell() {
    let broken = Broken::begin().await;
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
    play_all::<Broken>("broken", "managers").await;
}

#[tokio::test(start_paused = true)]
async fn what_kubernetes_keeps_from_the_manager_is_named() {
    play_all::<Broken>("broken", "kubernetes").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_cloud_is_named() {
    play_all::<Broken>("broken", "cloud").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_service_is_named() {
    play_all::<Broken>("broken", "services").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_node_is_named() {
    play_all::<Broken>("broken", "nodes").await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_at_night_is_named() {
    play_all::<Broken>("broken", "night").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_thought_of_blindly_is_named() {
    play_all::<Broken>("broken", "blind").await;
}

/// The API server takes 1,024 bytes of an event, and 32,768 of a condition.
#[tokio::test(start_paused = true)]
async fn what_is_long_is_described_with_its_cause_and_its_remedy() {
    let broken = Broken::begin().await;
    let world = &broken.stage.world;
    let mut shop = service("shop", &[("", 80, 31_500)]);
    shop["metadata"]["annotations"] =
        json!({ "k8s.cloudscale.ch/loadbalancer-pool-algorithm": "x".repeat(50_000) });
    world.apply(shop);
    world.pass(SECOND * 90).await;
    let is_about = |it: &&Value| it["involvedObject"]["name"] == "shop" && it["type"] == "Warning";
    let events = world.api.objects("Event");
    let event = events.iter().find(is_about).unwrap()["message"].as_str().unwrap();
    let shown = world.service("shop").unwrap();
    let condition = shown["status"]["conditions"][0]["message"].as_str().unwrap();
    let target = Target::Service(ServiceKey::new("default", "shop"));
    let screens = broken.screens(&[target]).await;
    for (text, longest) in [
        (event, 1_024),
        (condition, 32_768),
        (&screens[0], 100_000),
        (&screens[1], 100_000),
    ] {
        assert!(text.len() <= longest, "{}", text.len());
        for words in [
            "unsupported value 'xxx",
            "loadbalancer-pool-algorithm",
            "round_robin",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
