//! The scenarios of this folder: the controllers against an API server and a cloud in memory, under a stopped clock.
//!
//! Controllers run by themselves while time passes. Beside the verbs of all scenarios there are those of [`World`].

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::time::Duration;

use bowline_cloud_provider::{InstanceAnswer, NodeName, ServiceClasses, keys};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, kube, parsed, time, word};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fault::{failures, number, object, webhook};
use crate::instances::{absent, present};
use crate::world::{FINALIZER, World};

mod cloud;
mod fault;
mod instances;
mod route_table;
mod see;
mod world;

const TYPE_BETA: &str = "beta.kubernetes.io/instance-type";

fn main() -> ExitCode {
    bowline_kit::scenario::main::<World>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

impl ScenarioCloud for World {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        Self::new()
    }

    fn part(&self, name: &str) -> Value {
        json!({ name: self.see(name) })
    }

    /// The next process.
    async fn start(&mut self) -> Result<(), Complaint> {
        self.down().await;
        self.up("")
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        match words.verb {
            // The process.
            "up" => self.up(words.rest)?,
            "also" => self.also(name)?,
            "down" => self.down().await,
            "stop-gently" => self.stop_gently().await,
            "settings" => self.settings = merged(&self.settings, words.rest)?,
            "late" => self.answers_late = time(name)?,
            "classes" => {
                let classes = words.rest.split(' ').map(str::to_owned);
                self.classes = ServiceClasses::new(classes, false).map_err(|error| error.to_string())?;
            }
            "serving" => {
                self.add_nodes(words.rest);
                self.up("")?;
                self.add_service("web", &json!({}));
                self.settled("web").await?;
            }
            "settled" => self.settled(name).await?,
            // Services.
            "service" => self.add_service(name, &object(rest)?),
            "patch" => {
                let mut service = self.service(name).ok_or("no such Service")?;
                json_patch::merge(&mut service, &object(rest)?);
                self.put_service(service);
            }
            "annotate" => {
                let (key, value) = word(rest);
                self.annotate(name, key, Some(value).filter(|value| !value.is_empty()));
            }
            "strip" => self.strip_finalizer(name),
            "delete" => return self.deleted("Service", name).map(|()| true),
            "vanish" => {
                self.strip_finalizer(name);
                self.deleted("Service", name)?;
            }
            // Nodes, and other objects.
            "nodes" => self.add_nodes(words.rest),
            "node-is" => {
                let mut node = self.node(name).ok_or("no such Node")?;
                json_patch::merge(&mut node, &object(rest)?);
                self.api.apply_json(node).unwrap();
            }
            "delete-node" => self.deleted("Node", name)?,
            "apply" => drop(
                self.api
                    .apply_json(object(words.rest)?)
                    .map_err(|error| format!("{error:?}"))?,
            ),
            // The cloud.
            "cloud" => {
                let mut state = self.cloud.state.lock().unwrap();
                state.ways = merged(&state.ways, words.rest)?;
            }
            "fail" | "fail-reads" => {
                let (count, error) = failures(words.rest)?;
                let errors = std::iter::repeat_n(error, count);
                self.cloud.set(|state| match words.verb {
                    "fail" => state.write_errors.extend(errors),
                    _ => state.read_errors.extend(errors),
                });
            }
            "recover" => self.cloud.set(|state| {
                state.write_errors.clear();
                state.read_errors.clear();
            }),
            "by-hand" => {
                let uid = self.uids.get(name).ok_or("no such Service")?.clone();
                let nodes = (!rest.is_empty()).then(|| rest.split(' ').map(str::to_owned).collect());
                self.cloud.set(|state| match nodes {
                    Some(nodes) => drop(state.balancers.insert(uid, nodes)),
                    None => drop(state.balancers.remove(&uid)),
                });
            }
            // The API server.
            "api" => self.api.faults().inject(kube::fault(words.rest, webhook)?),
            "api-recovers" => self.api.faults().clear(),
            "watches-close" => self.api.close_watches(),
            "compact" => self.api.compact(),
            // From here on, what was asked and told is counted anew.
            "count-anew" => {
                self.api.journal().clear();
                self.since = Instant::now();
                self.instances.set(|state| state.calls.clear());
                self.routes.lock().calls.clear();
                self.cloud.set(|state| {
                    state.calls.clear();
                    state.reconciled.clear();
                    state.nodes.clear();
                });
            }
            // Somebody else, again and again.
            "fight" => self.fight(name, time(rest)?).await?,
            "tick" => self.tick(name, rest).await?,
            "for" => self.several(name, rest).await?,
            _ => return self.act_on_nodes(words).await,
        }
        Ok(true)
    }
}

impl World {
    fn add_nodes(&self, names: &str) {
        for name in names.split_whitespace() {
            let spec = json!({ "providerID": format!("fake://{name}") });
            let node =
                json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": name }, "spec": spec });
            self.api.apply_json(node).unwrap();
        }
    }

    /// What happens to Nodes, to their instances and to routes.
    async fn act_on_nodes(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        match words.verb {
            // A Node that has just registered, and one that is initialised, with the status of its condition `Ready`.
            "new" => self.put_node(name, rest, &json!({
                "spec": { "taints": [{ "key": keys::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule" }] },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            }))?,
            "node" => {
                let (ready, rest) = word(rest);
                let conditions = match ready {
                    "none" => json!([]),
                    ready => json!([{ "type": "Ready", "status": ready }]),
                };
                self.put_node(name, rest, &json!({
                    "spec": { "providerID": format!("fake://{name}") }, "status": { "conditions": conditions },
                }))?;
            }
            // One with pod networks and an address.
            "pods" => {
                let networks: Vec<&str> = rest.split_whitespace().collect();
                let spec = networks.first().map_or(json!({}), |first| json!({ "podCIDR": first, "podCIDRs": networks }));
                let addresses = json!([{ "type": "InternalIP", "address": "10.1.0.1" }]);
                self.put_node(name, "", &json!({ "spec": spec, "status": { "addresses": addresses } }))?;
            }
            // Two changes of `n1` one after the other.
            "mix" => {
                for patch in words.rest.split(" | ") {
                    let mut node = self.node("n1").ok_or("no n1")?;
                    json_patch::merge(&mut node, &object(patch)?);
                    self.api.apply_json(node).unwrap();
                    sleep(Duration::from_millis(100)).await;
                }
            }
            // What another program does that sets the condition of a Node's network too, while its address changes.
            "set-condition" => {
                let mut node = self.node(name).ok_or("no such Node")?;
                if node["status"]["conditions"][0]["message"] == "RouteController created a route" {
                    let condition = &mut node["status"]["conditions"][0];
                    (condition["reason"], condition["message"]) = (json!("CiliumIsUp"), json!("up"));
                }
                node["status"]["addresses"][0]["address"] = json!(rest);
                self.api.apply_json(node).unwrap();
            }
            "ready" => {
                let mut node = self.node(name).ok_or("no such Node")?;
                node["status"]["conditions"][0]["status"] = json!(rest);
                self.api.apply_json(node).unwrap();
            }
            "forget-node" => self.nodes.delete(&NodeName::new(name)),
            // What the cloud says of the instance of a Node.
            "instance" => {
                let (how, why) = word(rest);
                let answer = match how {
                    "gone" => absent(),
                    "foreign" => Ok(InstanceAnswer::Foreign),
                    "fails" => Err(failures(&format!("1 {why}"))?.1),
                    _ => present(name, &object(rest)?),
                };
                self.instances.set(|state| drop(state.table.insert(name.to_owned(), answer)));
            }
            "instances" => {
                let outage = match name {
                    "fail" => Some(failures(&format!("1 {rest}"))?.1),
                    "answer" => None,
                    other => return Err(format!("instances {other}?")),
                };
                self.instances.set(|state| state.outage = outage);
            }
            "latency" => {
                let latency = time(name)?;
                self.instances.set(|state| state.latency = latency);
                self.routes.lock().latency = latency;
            }
            "silent" => self.instances.set(|state| state.silent = Some(name.to_owned())),
            "proves-beside-others" => self.instances.set(|state| state.needs_witness = true),
            // Routes.
            "route" => {
                let (destination, kind) = word(rest);
                self.routes.put(name, destination, kind == "dead")?;
            }
            "drop-route" => self.routes.lock().routes.retain(|route| route.name != name),
            "routes-fail" => {
                let error = failures(&format!("1 {rest}"))?.1;
                self.routes.lock().failing.insert(name.replace('_', " "), error);
            }
            "routes-work" => self.routes.lock().failing.clear(),
            "routes-take" => {
                let mut table = self.routes.lock();
                table.at_once = Some(number(name)? as usize);
                table.per_call = Some(number(rest)? as usize);
            }
            "addresses-count" => self.routes.lock().compares_addresses = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put_node(&self, name: &str, patch: &str, what: &Value) -> Result<(), Complaint> {
        let mut node = json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": name } });
        json_patch::merge(&mut node, what);
        json_patch::merge(&mut node, &object(patch)?);
        self.api.apply_json(node).map_err(|error| format!("{error:?}"))?;
        Ok(())
    }

    /// `for N [every TIME] VERB ...`: so many times, with `%` as the number.
    async fn several(&mut self, times: &str, rest: &str) -> Result<(), Complaint> {
        let (every, rest) = match rest.strip_prefix("every ") {
            Some(rest) => (Some(time(word(rest).0)?), word(rest).1),
            None => (None, rest),
        };
        for number in 0..number(times)? {
            let text = rest.replace('%', &number.to_string());
            let (verb, rest) = word(&text);
            let done = Box::pin(self.act(&Words { verb, rest })).await?;
            done.then_some(()).ok_or_else(|| format!("no verb {verb}"))?;
            if let Some(every) = every {
                sleep(every).await;
            }
        }
        Ok(())
    }

    fn deleted(&self, kind: &str, name: &str) -> Result<(), Complaint> {
        let namespace = if kind == "Service" { "default" } else { "" };
        let is_there = self.api.delete(kind, namespace, name);
        is_there.then_some(()).ok_or_else(|| format!("no {kind} {name}"))
    }

    /// A Service has its address, and its sync is over.
    async fn settled(&self, name: &str) -> Result<(), Complaint> {
        let begun = Instant::now();
        while self.see("address")[name].is_null() {
            if begun.elapsed() > Duration::from_secs(600) {
                return Err(format!("{name} never has an address"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    /// Somebody undoes something as soon as it is there, ten times a second for so long.
    async fn fight(&self, what: &str, long: Duration) -> Result<(), Complaint> {
        let begun = Instant::now();
        while begun.elapsed() < long {
            let of_service = self.service("web").unwrap_or_default();
            let of_node = self.node("n1").unwrap_or_default();
            let patch = match what {
                "annotations" if of_service["metadata"]["annotations"][cloud::MARK] == "yes" => {
                    json!({ "metadata": { "annotations": null } })
                }
                "finalizer"
                    if of_service["metadata"]["finalizers"]
                        .to_string()
                        .contains(FINALIZER) =>
                {
                    json!({ "metadata": { "finalizers": [] } })
                }
                "status" if of_service["status"]["loadBalancer"]["ingress"].is_array() => {
                    json!({ "status": { "loadBalancer": null, "conditions": null } })
                }
                "shutdown-taint" if of_node["spec"]["taints"].as_array().is_none_or(Vec::is_empty) => {
                    let taint = json!({ "key": keys::TAINT_SHUTDOWN, "effect": "NoSchedule" });
                    json!({ "spec": { "taints": [taint] } })
                }
                "taint"
                    if !of_node["spec"]["taints"]
                        .to_string()
                        .contains(keys::TAINT_UNINITIALIZED) =>
                {
                    let taint = json!({ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" });
                    json!({ "spec": { "taints": [taint] } })
                }
                "label" if of_node["metadata"]["labels"][TYPE_BETA] != "mine" => {
                    json!({ "metadata": { "labels": { TYPE_BETA: "mine" } } })
                }
                "condition" if of_service["status"]["conditions"].is_array() => {
                    json!({ "status": { "conditions": null } })
                }
                "annotations" | "finalizer" | "status" | "condition" | "shutdown-taint" | "taint"
                | "label" => Value::Null,
                other => return Err(format!("nobody fights about {other}")),
            };
            if !patch.is_null() {
                let mut object = if of_service.is_null() { of_node } else { of_service };
                json_patch::merge(&mut object, &patch);
                self.api.apply_json(object).unwrap();
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// `tick N every TIME KEY` has somebody set an annotation of `web` anew, until it is gone; `alone`: to nothing else.
    async fn tick(&self, times: &str, rest: &str) -> Result<(), Complaint> {
        let [_, every, key, alone @ ..] = &rest.split(' ').collect::<Vec<_>>()[..] else {
            return Err("tick N every TIME KEY [alone]".to_owned());
        };
        for tick in 0..number(times)? {
            let Some(mut service) = self.service("web") else {
                return Ok(());
            };
            if !alone.is_empty() {
                service["metadata"]["annotations"] = json!({});
            }
            service["metadata"]["annotations"][*key] = json!(tick.to_string());
            self.put_service(service);
            sleep(time(every)?).await;
        }
        Ok(())
    }
}

/// Something with another value in the places that a merge patch names.
fn merged<T: Serialize + DeserializeOwned>(what: &T, patch: &str) -> Result<T, Complaint> {
    let mut value = json!(what);
    json_patch::merge(&mut value, &object(patch)?);
    parsed(&value)
}
