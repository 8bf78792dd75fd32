//! Tries whether traffic comes through: makes a Service with a small workload, asks it through the load balancer and through each Node,
//! has a member go and come, takes all away again, and looks whether anything is left.
//!
//! # Cancellation
//!
//! A trial is stopped by its [`interrupt`](Trial::interrupt): then it stops waiting, and takes away what it made. It is never stopped within
//! a write, so what it made is known. Dropped, it leaves what it made; [`commands`](Trial::commands) says how to remove that.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName, Readiness, Service, ServiceKey};
use bowline_kube_io::{Kube, KubeError, ServiceCache, TrialKind, TrialObject};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::doctor::{Category, Check, Progress, Topic};
use crate::orphans::Search;

mod ask;
mod away;
mod ground;
mod members;
mod objects;
mod permissions;
mod source;
mod through;

pub use objects::{Earlier, LABEL, Wanted, earlier};

use objects::Names;

/// What the JSON is called. It gets another name when something that a program may go by changes its form or goes.
pub const SCHEMA: &str = "bowline/check-traffic/v1";

macro_rules! topics {
    ($($name:ident $id:literal $what:literal $anchor:literal)*) => {
        $(static $name: Topic =
            Topic::new(Category::Traffic, $id, $what, concat!("docs/guides/", "check-traffic.md#", $anchor));)*

        /// All that is looked at, for links and for the page about the command.
        pub const TOPICS: &[&Topic] = &[$(&$name),*];
    };
}

topics! {
    PERMITTED "traffic.permissions" "you may make what the trial needs" "what-you-need"
    MADE "traffic.made" "the Service and its workload are made" "what-you-need"
    WORKLOAD "traffic.workload" "the workload runs" "the-workload"
    ADDRESS "traffic.address" "the load balancer has an address" "the-address-never-comes"
    NODES "traffic.nodes" "each Node answers" "a-node-does-not-answer"
    ANSWERS "traffic.answers" "the load balancer answers from here" "the-load-balancer-does-not-answer"
    ANSWERS_IPV6 "traffic.answers-ipv6" "the load balancer answers over IPv6" "the-load-balancer-does-not-answer"
    CLUSTER "traffic.source-cluster" "the source address, externalTrafficPolicy Cluster" "the-source-address"
    LOCAL "traffic.source-local" "the source address, externalTrafficPolicy Local" "the-source-address"
    REMOVED "traffic.member-removed" "a member that goes gets no more traffic" "members"
    ADDED "traffic.member-added" "a member that comes gets traffic" "members"
    EXCLUDED "traffic.node-excluded" "an excluded Node gets no more traffic" "members"
    GONE "traffic.gone" "nothing is left in the cluster" "what-is-left"
    CLOUD_GONE "traffic.cloud-gone" "nothing is left in the cloud" "what-is-left"
}

/// Says why a Service is as it is, line by line.
pub type Explain<'a> = &'a dyn Fn(ServiceKey) -> Lines<'a>;

/// Lines that come once somebody was asked.
pub type Lines<'a> = Pin<Box<dyn Future<Output = Vec<String>> + 'a>>;

/// One trial.
pub struct Trial<'a> {
    /// The API server, with a person's credentials.
    pub kube: Kube,
    /// What is wanted.
    pub wanted: Wanted,
    /// What tells this trial from all others: a few letters and digits.
    pub run: String,
    /// How long each thing is waited for.
    pub patience: Duration,
    /// Between two looks.
    pub pause: Duration,
    /// Lists what is in the cloud; or why that cannot be.
    pub search: Result<Search, String>,
    /// Says why there is no address.
    pub explain: Explain<'a>,
    /// Is told what is waited for.
    pub progress: Progress,
    /// Stops it.
    pub interrupt: CancellationToken,
}

/// Why it is not gone on with.
enum Halt {
    /// Somebody wants it to stop.
    Interrupted,
    /// It did not come in time; with the last failure to look for it.
    Late(String),
    /// A check failed, and the rest has nothing to go by.
    Failed,
}

impl Trial<'_> {
    fn names(&self) -> Names {
        Names::new(&self.run, &self.wanted)
    }

    /// What a person types to remove all that it makes.
    pub fn commands(&self) -> String {
        self.names().commands(self.wanted.excluded_node.as_ref())
    }

    /// The Service that is made, for a plan; with its namespace.
    pub fn manifest(&self) -> serde_json::Value {
        self.names().service_object(&self.wanted)
    }

    /// What is made, for people.
    pub fn summary(&self) -> String {
        let names = self.names();
        let namespace = match names.owns_namespace {
            true => format!("namespace {}, which is deleted at the end", names.namespace),
            false => format!("namespace {}", names.namespace),
        };
        format!(
            "in {namespace}: {} pods of {}, and Service {} with a load balancer for port {}, open to whoever can reach it",
            objects::REPLICAS,
            self.wanted.image,
            names.name,
            self.wanted.port,
        )
    }

    /// Asks whether the person may do what is needed; nothing is written.
    pub async fn permitted(&self) -> Check {
        self.progress.is_at("asking for your permissions");
        permissions::check(&self.kube, &self.wanted, &self.names().namespace).await
    }

    /// Makes, tries, and takes away. The checks come in the order in which they are told.
    pub async fn run(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        // Why it was halted is in the checks, or is known to whoever interrupted it.
        let _ = self.try_all(&mut checks).await;
        if self.wanted.keeps && !self.interrupt.is_cancelled() {
            let text = format!("kept, as --keep asks. Remove it with: {}", self.commands());
            checks.push(GONE.skipped(text));
            return checks;
        }
        checks.extend(self.take_away().await);
        checks
    }

    async fn try_all(&self, checks: &mut Vec<Check>) -> Result<(), Halt> {
        let names = self.names();
        self.make(&names, checks).await?;
        let pods = self.wait_for_pods(&names, objects::REPLICAS, checks).await?;
        let service = self.wait_for_address(&names, checks).await?;
        let mut addresses = addresses(&service, self.wanted.port).await;
        let nodes = self.nodes(checks).await?;
        self.progress.is_at("asking each Node");
        let heard = self.ask_nodes(&nodes, &service).await?;
        checks.push(heard.check.clone());
        addresses.sort_by_key(SocketAddr::is_ipv6);
        let Some(&address) = addresses.first() else {
            let seen = "the name of the load balancer has no address in DNS";
            checks.push(ANSWERS.failed(seen, "look up that name, and who has to publish it"));
            return Err(Halt::Failed);
        };
        let ground = ground::Ground {
            nodes: &nodes,
            heard: &heard,
            pods,
            address,
        };
        let answers = self.ask_balancer(&ground, checks).await?;
        checks.push(source::cluster(&answers, &ground));
        if wants_ipv6(&service) {
            self.ask_over_ipv6(&ground, &addresses, checks).await?;
        }
        self.try_local(&names, &ground, checks).await?;
        self.try_members(&names, ground, checks).await
    }

    async fn make(&self, names: &Names, checks: &mut Vec<Check>) -> Result<(), Halt> {
        self.progress.is_at("making the Service and its workload");
        let namespace = names
            .owns_namespace
            .then(|| (TrialKind::Namespace, names.namespace_object()));
        let all = namespace.into_iter().chain([
            (TrialKind::Deployment, names.deployment(&self.wanted)),
            (TrialKind::Service, names.service_object(&self.wanted)),
        ]);
        for (kind, object) in all {
            self.go_on()?;
            let created = self.kube.create_for_trial(kind, &names.namespace, &object).await;
            if let Err(error) = created {
                let seen = format!("{} {}: {error}", kind.plural(), object["metadata"]["name"]);
                checks.push(MADE.failed(
                    seen,
                    "see what the API server says; quotas and admission policies refuse, too",
                ));
                return Err(Halt::Failed);
            }
        }
        checks.push(MADE.ok(format!("Service {}", names.service())));
        Ok(())
    }

    /// The pods that are ready, each with its Node, once there are just so many.
    async fn wait_for_pods(
        &self,
        names: &Names,
        wanted: usize,
        checks: &mut Vec<Check>,
    ) -> Result<BTreeMap<String, String>, Halt> {
        self.progress.is_at("waiting for the pods of the workload");
        let mut waits = Vec::new();
        let ready = self
            .until(async || {
                let pods = self.kube.pods(&names.namespace).await?;
                let ours = pods
                    .into_iter()
                    .filter(|pod| pod.metadata.labels.get(LABEL) == Some(&self.run));
                let (ready, others): (Vec<_>, Vec<_>) = ours.partition(through::is_ready);
                waits = others.iter().map(through::why_not_ready).collect();
                let ready = ready.into_iter();
                let ready: BTreeMap<_, _> =
                    ready.map(|pod| (pod.metadata.name, pod.spec.node_name)).collect();
                Ok((ready.len() == wanted && waits.is_empty()).then_some(ready))
            })
            .await;
        match ready {
            Ok(pods) => {
                let on: Vec<String> = pods
                    .iter()
                    .map(|(pod, node)| format!("{pod} on {node}"))
                    .collect();
                checks.push(WORKLOAD.ok(on.join(", ")));
                Ok(pods)
            }
            Err(Halt::Late(error)) => {
                let seen = format!(
                    "its pods are not ready after {} s{error}",
                    self.patience.as_secs()
                );
                let remedy = "see what the pods wait for; --image names another image, if the Nodes cannot pull this one";
                checks.push(WORKLOAD.failed(seen, remedy).with(waits));
                Err(Halt::Failed)
            }
            Err(halt) => Err(halt),
        }
    }

    async fn wait_for_address(&self, names: &Names, checks: &mut Vec<Check>) -> Result<Service, Halt> {
        self.progress
            .is_at("waiting for the address of the load balancer");
        let begun = Instant::now();
        let found = self
            .until(async || {
                let service = self.service(names).await?;
                Ok(service.filter(|service| through::ingress(service).next().is_some()))
            })
            .await;
        match found {
            Ok(service) => {
                let shown: Vec<String> = through::ingress(&service).collect();
                let seen = format!("{} after {} s", shown.join(", "), begun.elapsed().as_secs());
                checks.push(ADDRESS.ok(seen));
                Ok(Service::clone(&service))
            }
            Err(Halt::Late(error)) => {
                self.progress.is_at("asking why there is no address");
                let why = (self.explain)(names.service()).await;
                let seen = format!("none after {} s{error}", self.patience.as_secs());
                let remedy =
                    "do what the lines above say; give what the cloud asks for with --annotation and --class";
                checks.push(ADDRESS.failed(seen, remedy).with(why));
                Err(Halt::Failed)
            }
            Err(halt) => Err(halt),
        }
    }

    async fn service(&self, names: &Names) -> Result<Option<Arc<Service>>, KubeError> {
        self.kube
            .find_service(&names.service(), &ServiceCache::new())
            .await
    }

    /// The Nodes that are ready.
    async fn nodes(&self, checks: &mut Vec<Check>) -> Result<Vec<Arc<Node>>, Halt> {
        self.go_on()?;
        match self.kube.list_nodes().await {
            Ok(nodes) => {
                let ready = |node: &Arc<Node>| node.readiness == Readiness::Ready;
                Ok(nodes.into_iter().filter(ready).collect())
            }
            Err(error) => {
                checks.push(NODES.failed(format!("reading Nodes: {error}"), "run it again"));
                Err(Halt::Failed)
            }
        }
    }

    async fn set_policy(&self, names: &Names, policy: &str) -> Result<(), KubeError> {
        self.change(
            names,
            TrialKind::Service,
            &json!({ "spec": { "externalTrafficPolicy": policy } }),
        )
        .await
    }

    async fn scale(&self, names: &Names, replicas: usize) -> Result<(), KubeError> {
        self.change(
            names,
            TrialKind::Deployment,
            &json!({ "spec": { "replicas": replicas } }),
        )
        .await
    }

    async fn change(
        &self,
        names: &Names,
        kind: TrialKind,
        patch: &serde_json::Value,
    ) -> Result<(), KubeError> {
        let found = self.of_kind(kind, names).await?;
        for object in found {
            self.kube.change_for_trial(&object, patch).await?;
        }
        Ok(())
    }

    /// What this trial made of a kind and is there. A label may be copied, so the name counts, too.
    async fn of_kind(&self, kind: TrialKind, names: &Names) -> Result<Vec<TrialObject>, KubeError> {
        if kind == TrialKind::Namespace && !names.owns_namespace {
            return Ok(Vec::new());
        }
        let selector = names.selector();
        let mut found = self.kube.trial_objects(kind, &names.namespace, &selector).await?;
        found.retain(|object| object.name == names.name);
        Ok(found)
    }

    fn go_on(&self) -> Result<(), Halt> {
        match self.interrupt.is_cancelled() {
            true => Err(Halt::Interrupted),
            false => Ok(()),
        }
    }

    /// Looks until it is there. A look that fails is made again: API servers have weak moments.
    async fn until<T>(&self, look: impl AsyncFnMut() -> Result<Option<T>, KubeError>) -> Result<T, Halt> {
        tokio::select! {
            biased;
            () = self.interrupt.cancelled() => Err(Halt::Interrupted),
            found = self.look(look) => found.map_err(Halt::Late),
        }
    }

    /// The same, whether or not somebody wants it to stop.
    async fn look<T>(
        &self,
        mut look: impl AsyncFnMut() -> Result<Option<T>, KubeError>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + self.patience;
        loop {
            let error = match look().await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => String::new(),
                Err(error) => format!(": {error}"),
            };
            if Instant::now() >= deadline {
                return Err(error);
            }
            sleep(self.pause).await;
        }
    }

    /// The Node of that name that may be kept out of load balancers for a while, if it is not so already.
    async fn node(&self, name: &NodeName) -> Result<Option<Arc<Node>>, KubeError> {
        let nodes = self.kube.list_nodes().await?;
        Ok(nodes.into_iter().find(|node| node.name == *name))
    }
}

fn is_failed(check: &Check) -> bool {
    check.outcome == crate::doctor::Outcome::Failed
}

/// Whether the Service has addresses of both kinds, or of IPv6 alone.
fn wants_ipv6(service: &Service) -> bool {
    let families = service.spec.as_ref().and_then(|spec| spec.ip_families.as_ref());
    families.is_some_and(|families| families.iter().any(|family| family == "IPv6"))
}

/// Where the load balancer is asked; names are looked up.
async fn addresses(service: &Service, port: u16) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for host in through::ingress(service) {
        // What cannot be looked up has no address.
        if let Ok(found) = tokio::net::lookup_host((host.as_str(), port)).await {
            all.extend(found);
        }
    }
    all
}
