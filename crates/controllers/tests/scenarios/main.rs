//! The scenarios of this folder: the service controller against an API server and a cloud in memory, under a stopped clock.
//!
//! The controller runs by itself while time passes. Beside the verbs of all scenarios there are those of [`World`].

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, ServiceClasses};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed, time, word};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{FINALIZER, World};

mod cloud;
mod world;

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
        self.up();
        Ok(())
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        match words.verb {
            // The process.
            "up" => self.up(),
            "down" => self.down().await,
            "late" => self.answers_late = time(name)?,
            "classes" => {
                let classes = words.rest.split(' ').map(str::to_owned);
                self.classes = ServiceClasses::new(classes, false).map_err(|error| error.to_string())?;
            }
            "serving" => {
                self.add_nodes(words.rest);
                self.up();
                self.add_service("web", &json!({}));
                self.settled("web").await?;
            }
            "settled" => self.settled(name).await?,
            // Services.
            "service" => self.add_service(name, &object(rest)?),
            "many" => {
                for number in 0..number(rest)? {
                    self.add_service(&format!("{name}{number}"), &json!({}));
                }
            }
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
            "joining" => {
                for number in 0..number(name)? {
                    self.add_nodes(&format!("n{number}"));
                    sleep(time(rest)?).await;
                }
            }
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
                let mut ways = json!(state.ways);
                json_patch::merge(&mut ways, &object(words.rest)?);
                state.ways = parsed(&ways)?;
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
            "api" => self.api.faults().inject(fault(words.rest)?),
            "api-recovers" => self.api.faults().clear(),
            "watches-close" => self.api.close_watches(),
            "compact" => self.api.compact(),
            // From here on, what was asked and told is counted anew.
            "count-anew" => {
                self.api.journal().clear();
                self.cloud.set(|state| {
                    state.calls.clear();
                    state.reconciled.clear();
                    state.nodes.clear();
                });
            }
            // Somebody else, again and again.
            "fight" => self.fight(name, time(rest)?).await?,
            "tick" => self.tick(name, rest).await?,
            _ => return Ok(false),
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

    /// Somebody takes something off `web` as soon as it is there, for so long.
    async fn fight(&self, what: &str, long: Duration) -> Result<(), Complaint> {
        let begun = Instant::now();
        while begun.elapsed() < long {
            let mut service = self.service("web").unwrap();
            let (is_there, (part, nothing)) = match what {
                "annotations" => {
                    let annotations = &mut service["metadata"]["annotations"];
                    (annotations[cloud::MARK] == "yes", (annotations, json!({})))
                }
                "finalizer" => {
                    let finalizers = &mut service["metadata"]["finalizers"];
                    let is_there = finalizers.to_string().contains(FINALIZER);
                    (is_there, (finalizers, json!([])))
                }
                "status" => {
                    let status = &mut service["status"];
                    let is_there = status["loadBalancer"]["ingress"].is_array();
                    (is_there, (status, json!({})))
                }
                other => return Err(format!("nobody fights about {other}")),
            };
            if is_there {
                *part = nothing;
                self.put_service(service);
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

fn number(text: &str) -> Result<u64, Complaint> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

/// JSON; nothing is an object without fields.
fn object(text: &str) -> Result<Value, Complaint> {
    let text = if text.is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// `N KIND TEXT`, where the kind may be `throttled=60`.
fn failures(rest: &str) -> Result<(usize, CloudError), Complaint> {
    let (count, rest) = word(rest);
    let (kind, text) = word(rest);
    let (kind, delay) = kind.split_once('=').unwrap_or((kind, "0"));
    let after = Duration::from_secs(number(delay)?);
    let kind = match kind {
        "not-supported" => ErrorKind::NotSupported,
        "elsewhere" => ErrorKind::ImplementedElsewhere,
        "throttled" => ErrorKind::Throttled { after },
        "conflict" => ErrorKind::Conflict,
        "unauthenticated" => ErrorKind::Unauthenticated,
        "denied" => ErrorKind::Denied,
        "invalid" => ErrorKind::Invalid,
        "exhausted" => ErrorKind::Exhausted,
        "transient" => ErrorKind::Transient,
        "other" => ErrorKind::Other,
        other => return Err(format!("{other:?} is no kind of error")),
    };
    Ok((number(count)? as usize, CloudError::new(kind, text)))
}

/// `[VERB] RESOURCE[/SUBRESOURCE] [after N] [times N] HOW`; of the object itself it is `RESOURCE/`.
fn fault(rest: &str) -> Result<Fault, Complaint> {
    let (what, mut how) = word(rest);
    let (verb, resource) = what.split_once(':').unwrap_or(("", what));
    let (mut after, mut times) = (None, None);
    loop {
        let (name, more) = word(how);
        let place = match name {
            "after" => &mut after,
            "times" => &mut times,
            _ => break,
        };
        let (number, left) = word(more);
        *place = Some(number.parse::<u32>().map_err(|_| "how often?".to_owned())?);
        how = left;
    }
    let mut fault = Fault::new(effect(how)?);
    if !verb.is_empty() {
        fault = fault.verb(verb);
    }
    fault = match resource.split_once('/') {
        Some((resource, part)) => fault.resource(resource).subresource(part),
        None => fault.resource(resource),
    };
    fault = after.map_or(fault.clone(), |after| fault.after(after));
    Ok(times.map_or(fault.clone(), |times| fault.times(times)))
}

fn effect(how: &str) -> Result<Effect, Complaint> {
    let (name, rest) = word(how);
    let (code, text) = word(rest);
    let code = || code.parse().map_err(|_| format!("{code:?} is no status"));
    Ok(match name {
        "status" => {
            let (reason, message) = word(text);
            Effect::Answer(Status::new(code()?, reason, message))
        }
        "busy" => {
            let seconds = rest.parse().map_err(|_| "how many seconds?".to_owned())?;
            Effect::Answer(Status::too_many_requests(seconds))
        }
        "unavailable" => Effect::Answer(Status::unavailable(rest)),
        "text" => Effect::Text(code()?, text.to_owned().leak()),
        "silence" => Effect::Silence,
        "drop-after" => Effect::DropAfter,
        "delay" => Effect::Delay(time(rest)?),
        // What a webhook does.
        "strips-finalizers" => Effect::Rewrite(|service| service["metadata"]["finalizers"] = json!([])),
        "keeps-finalizers" => {
            Effect::Rewrite(|service| service["metadata"]["finalizers"] = json!([FINALIZER]))
        }
        "denies-the-note" => Effect::Deny(|service| {
            let annotations = &service["metadata"]["annotations"];
            annotations.get("bowline/load-balancer-class").is_some()
        }),
        "denies-addresses" => Effect::Deny(|service| service["status"]["loadBalancer"]["ingress"].is_array()),
        other => return Err(format!("nobody does {other:?}")),
    })
}
