//! The scenarios of this folder: the client against an API server in memory, under a stopped clock.
//!
//! A proxy between the two spoils answers. What is called is a call of the client ([`calls`]); watches run by themselves.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline_cloud_provider::plan::NoteKind;
use bowline_cloud_provider::{Node, NodeName, Service};
use bowline_kit::scenario::calls::Answer;
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, kube, parsed, time, word};
use bowline_kube_api::{Exchange, KubeApi, Permit, User};
use bowline_kube_io::{
    Cache, CacheKey, EventSink, Gate, GateClosed, Kube, KubeMetrics, KubeOptions, ObjectRef, Rate, Recorder,
    TokioClock,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::calls::{Call, Candidate, Done, VERBS, View, failed};
use crate::proxy::Proxy;
use crate::watched::Watched;

mod calls;
mod proxy;
mod watched;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<World>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// A gate that a scenario opens and closes.
struct Switch(AtomicBool);

impl Gate for Switch {
    fn check(&self) -> Result<(), GateClosed> {
        match self.0.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(GateClosed::new("closed")),
        }
    }
}

struct World {
    api: KubeApi,
    proxy: Proxy,
    registry: Registry,
    options: KubeOptions,
    gate: Arc<Switch>,
    kube: Kube,
    nodes: Option<Watched<Node>>,
    services: Option<Watched<Service>>,
    views: BTreeMap<String, View>,
    under_way: Vec<JoinHandle<Result<Done, Complaint>>>,
    candidates: BTreeMap<String, Candidate>,
    events: Option<(EventSink, Recorder)>,
    /// How many events were left when time was up.
    left: usize,
    since: Instant,
    took_ms: u128,
}

impl ScenarioCloud for World {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        let start = "2026-03-01T10:00:00Z".parse().unwrap();
        let gate = Arc::new(Switch(AtomicBool::new(true)));
        let mut registry = Registry::default();
        let options = KubeOptions {
            clock: Arc::new(TokioClock::starting_at(start)),
            gate: gate.clone(),
            metrics: KubeMetrics::registered(&mut registry),
            ..KubeOptions::new("test/1")
        };
        let (api, proxy) = (KubeApi::builder().start_time(start).build(), Proxy::default());
        Self {
            kube: proxy.before(&api, options.clone()),
            api,
            proxy,
            registry,
            options,
            gate,
            nodes: None,
            services: None,
            views: BTreeMap::new(),
            under_way: Vec::new(),
            candidates: BTreeMap::new(),
            events: None,
            left: 0,
            since: Instant::now(),
            took_ms: 0,
        }
    }

    fn part(&self, name: &str) -> Value {
        json!({ name: self.see(name) })
    }

    fn said(answer: &Value) -> String {
        answer["said"].as_str().unwrap_or_default().to_owned()
    }

    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        if !VERBS.contains(&words.verb) {
            return Ok(None);
        }
        // `read node a as old`
        let (rest, name) = words.rest.split_once(" as ").unwrap_or((words.rest, ""));
        let call = self.prepared(words.verb, rest);
        let begun = Instant::now();
        let done = call.send().await?;
        self.took_ms = begun.elapsed().as_millis();
        Ok(Some(match done {
            Err(error) => failed(&error),
            Ok((body, view)) => {
                let own = match words.verb {
                    "read" => word(rest).1,
                    _ => "written",
                };
                let name = if name.is_empty() { own } else { name };
                self.views.extend(view.map(|view| (name.to_owned(), view)));
                Answer {
                    status: Some(200),
                    body,
                    ..Answer::default()
                }
            }
        }))
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        match words.verb {
            // The API server.
            "version-of-the-server" => {
                self.api = KubeApi::builder().version(name.parse().unwrap()).build();
                self.kube = self.proxy.before(&self.api, self.options.clone());
            }
            "node" => self.put("Node", name, rest)?,
            "service" => self.put("Service", name, rest)?,
            "nodes" => {
                let count: usize = name.parse().map_err(|_| "how many?".to_owned())?;
                for number in 0..count {
                    self.put("Node", &format!("n{number:03}"), rest)?;
                }
            }
            "apply" => self.apply(object(words.rest)?)?,
            "drop" => {
                let (kind, (name, last)) = (name, word(rest));
                let (first, namespace) = match name.split_once('/') {
                    Some((namespace, name)) => (name, namespace),
                    None => (name, ""),
                };
                // `drop Node n000 .. n199`, or `drop Node n000 .. n049 every 1s`
                let number = |name: &str| name[1..].parse::<usize>().unwrap();
                let (last, pause) = last.split_once(" every ").unwrap_or((last, "0s"));
                let names = match last.strip_prefix(".. ") {
                    Some(last) => (number(first)..=number(last))
                        .map(|it| format!("n{it:03}"))
                        .collect(),
                    None => vec![first.to_owned()],
                };
                for name in names {
                    if !self.api.delete(kind, namespace, &name) {
                        return Err(format!("no {kind} {name}"));
                    }
                    tokio::time::sleep(time(pause)?).await;
                }
            }
            "api" => self.api.faults().inject(kube::fault(words.rest, |_| None)?),
            "api-recovers" => self.api.faults().clear(),
            "close" => self.api.close_watches(),
            "silence" => self.api.silence_watches(),
            "compact" => self.api.compact(),
            "permit" => {
                let verbs: Vec<_> = name.split(',').collect();
                let (resources, subject) = word(rest);
                let subject = if subject.is_empty() {
                    "system:anonymous"
                } else {
                    subject
                };
                let group = if resources == "*" { "*" } else { "" };
                self.api
                    .access()
                    .permit(Permit::new(subject, &verbs, group, &[resources]));
            }
            "permit-nothing" => self.api.access().forbid_everything(),
            "permit-all" => self.api.access().allow_everything(),
            "login" => {
                self.api.access().require_auth(true);
                self.api.access().add_token(name, User::new(name, &[]));
                self.proxy.edit(|rules| rules.token = Some(name.to_owned()));
            }
            // What stands between.
            "spoil" => self.proxy.spoil(words.rest),
            "honest" => self.proxy.be_honest(),
            "next-watch-shows" => {
                let line = json!({ "type": "MODIFIED", "object": object(words.rest)? });
                self.proxy.edit(|rules| rules.shows.push(format!("{line}\n")));
            }
            "busy-at" => {
                let until = Instant::now() + time(rest)?;
                self.proxy
                    .edit(|rules| rules.busy = Some((name.to_owned(), until)));
            }
            "restored" => {
                let backup = KubeApi::builder().build();
                backup.apply_json(named("Node", "a")).unwrap();
                self.proxy.edit(|rules| rules.instead = Some(backup));
            }
            "up-to-date" => self.proxy.edit(|rules| rules.instead = None),
            // The client.
            "client" => self.client(&object(words.rest)?)?,
            "account" => {
                let process = self.proxy.before(&self.api, self.options.clone());
                self.kube = process.identified(name).as_service_account("kube-system", name);
            }
            "identity" => self.kube = self.kube.identified(name),
            "gate" => {
                let (gate, after) = (
                    Arc::clone(&self.gate),
                    rest.strip_prefix("in ").map(time).transpose()?,
                );
                let is_open = name == "open";
                match after {
                    None => gate.0.store(is_open, Ordering::SeqCst),
                    Some(after) => drop(tokio::spawn(async move {
                        tokio::time::sleep(after).await;
                        gate.0.store(is_open, Ordering::SeqCst);
                    })),
                }
            }
            "watch" => self.watch(name, rest).await?,
            "ask-about" => {
                let cache = &self.nodes.as_ref().ok_or("no watch")?.cache;
                let known = cache.get(&NodeName::new(name)).ok_or("no such Node")?;
                cache.ask_about(&known);
            }
            "renew" => {
                let cache = &self.nodes.as_ref().ok_or("no watch")?.cache;
                cache.renew();
                synced(cache).await?;
            }
            // Calls that are under way at the same time.
            "several" => {
                let (verb, rest) = word(rest);
                for _ in 0..name.parse().map_err(|_| "how many?".to_owned())? {
                    let call = self.prepared(verb, rest);
                    self.under_way.push(tokio::spawn(call.send()));
                }
            }
            "all-end" => {
                let begun = Instant::now();
                for call in self.under_way.drain(..) {
                    call.await.unwrap()?.map_err(|error| error.to_string())?;
                }
                self.took_ms = begun.elapsed().as_millis();
            }
            "lease" => {
                let kube = self.kube.clone();
                let wall = kube.clock().now();
                let (what, end) = rest.split_once(" -> ").unwrap_or((rest, "200"));
                let candidate = self.candidates.entry(name.to_owned());
                let candidate = candidate.or_insert_with(|| Candidate::new(kube, name));
                let begun = Instant::now();
                let done = candidate.act(what, wall).await;
                self.took_ms = begun.elapsed().as_millis();
                let status = done.map_or_else(|error| failed(&error).status, |()| Some(200));
                if status.map(|it| it.to_string()).as_deref() != Some(end) {
                    return Err(format!("{status:?}"));
                }
            }
            // Events: `record node|NAMESPACE/SERVICE TEXT`.
            "events-of" => {
                let (sink, writer) = EventSink::channel(self.kube.clone(), name);
                let writer = if rest.is_empty() {
                    writer
                } else {
                    writer.of_process(rest)
                };
                tokio::spawn(writer.run());
                let recorder = sink.recorder("cloud-node-controller");
                self.events = Some((sink, recorder));
            }
            "record" => {
                let (_, recorder) = self.events.as_ref().ok_or("no events-of")?;
                let (kind, object) = match name.split_once('/') {
                    Some((namespace, name)) => (NoteKind::Warning, self.reference(namespace, name)),
                    None => {
                        let node = Node {
                            uid: "uid-a".into(),
                            ..Node::named(name)
                        };
                        (NoteKind::Normal, ObjectRef::from(&node))
                    }
                };
                recorder.record(&object, kind, "Synced", rest);
            }
            "drain" => {
                let (sink, _) = self.events.as_ref().ok_or("no events-of")?;
                let begun = Instant::now();
                self.left = sink.drain(time(name)?).await;
                self.took_ms = begun.elapsed().as_millis();
            }
            // What is counted is counted from here on.
            "mark" => {
                self.api.journal().clear();
                self.since = Instant::now();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl World {
    fn prepared(&self, verb: &str, rest: &str) -> Call {
        // A write begins with the name of the object as it was read.
        Call {
            kube: self.kube.clone(),
            verb: verb.to_owned(),
            rest: rest.to_owned(),
            view: self.views.get(word(rest).0).cloned(),
        }
    }

    fn apply(&self, object: Value) -> Result<(), Complaint> {
        let applied = self.api.apply_json(object);
        applied.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// Another version of an object, if there is one already.
    fn put(&self, kind: &str, name: &str, patch: &str) -> Result<(), Complaint> {
        let mut new = named(kind, name);
        if !patch.is_empty() {
            json_patch::merge(&mut new, &object(patch)?);
        }
        self.apply(new)
    }

    fn client(&mut self, told: &Value) -> Result<(), Complaint> {
        let mut options = self.options.clone();
        if let Some(most) = parsed(&told["in_flight"])? {
            options.max_in_flight = most;
        }
        let pace: Option<(f64, u32)> = parsed(&told["pace"])?;
        options.pace = pace.map(|(per_second, burst)| Rate { per_second, burst });
        self.kube = self.proxy.before(&self.api, options);
        if let Some(limit) = told["timeout"].as_str() {
            self.kube = self.kube.with_timeout(time(limit)?);
        }
        Ok(())
    }

    async fn watch(&mut self, what: &str, how: &str) -> Result<(), Complaint> {
        let kube = self.kube.clone();
        if what == "nodes" {
            let watched = self.nodes.insert(Watched::start(kube));
            if how.is_empty() {
                synced(&watched.cache).await?;
            }
        } else {
            let watched = self.services.insert(Watched::start(kube));
            synced(&watched.cache).await?;
        }
        Ok(())
    }

    fn reference(&self, namespace: &str, name: &str) -> ObjectRef {
        let object = self.api.object("Service", namespace, name);
        let object = object.unwrap_or_else(|| {
            let mut object = named("Service", name);
            object["metadata"]["namespace"] = json!(namespace);
            object
        });
        ObjectRef::from(&serde_json::from_value::<Service>(object).unwrap())
    }

    /// What a scenario can see.
    fn see(&self, name: &str) -> Value {
        let journal = || self.api.journal().all();
        let count = |verb: &str, of: &str| {
            let fits = |it: &Exchange| it.verb == verb && it.resource != "leases" && it.query.contains(of);
            json!(self.api.journal().matching(fits).len())
        };
        match name {
            "nodes" => self.nodes.as_ref().map_or(Value::Null, Watched::see),
            "cached_services" => self.services.as_ref().map_or(Value::Null, Watched::see),
            // Lists of everything that begin; neither a question by name nor a count is one.
            "lists" => json!(
                self.api
                    .journal()
                    .matching(|it| it.verb == "list" && it.query == "limit=100")
                    .len()
            ),
            "watches" => count("watch", ""),
            "questions" => count("list", "fieldSelector"),
            "questions_per_list" => {
                let number = |name| self.see(name).as_u64().unwrap_or_default();
                json!(number("questions").div_ceil(number("lists").max(1)))
            }
            "pages" => json!(
                journal()
                    .iter()
                    .filter(|it| it.verb == "list")
                    .map(|it| &it.query)
                    .collect::<Vec<_>>()
            ),
            "requests" => json!(journal().iter().map(kube::shown).collect::<Vec<_>>()),
            "asked" => journal().iter().map(shown).collect(),
            "node" | "service" | "lease" | "account" => {
                let kind = match name {
                    "node" => "Node",
                    "service" => "Service",
                    "lease" => "Lease",
                    _ => "ServiceAccount",
                };
                let all = self.api.objects(kind).into_iter();
                let named =
                    all.map(|it| (it["metadata"]["name"].as_str().unwrap_or_default().to_owned(), it));
                Value::Object(named.collect())
            }
            "events" => json!(self.api.objects("Event")),
            "holds" => {
                let all = self.candidates.iter();
                Value::Object(all.map(|(name, it)| (name.clone(), json!(it.holds()))).collect())
            }
            "series" => {
                let mut page = String::new();
                encode(&mut page, &self.registry).unwrap();
                let lines = page.lines().map(|line| line.replace('{', "(").replace('}', ")"));
                json!(lines.collect::<Vec<_>>())
            }
            "left" => json!(self.left),
            "since_ms" => json!(self.since.elapsed().as_millis()),
            "took_ms" => json!(self.took_ms),
            _ => Value::Null,
        }
    }
}

async fn synced<T: CacheKey>(cache: &Cache<T>) -> Result<(), Complaint> {
    let synced = tokio::time::timeout(std::time::Duration::from_secs(600), cache.synced()).await;
    synced.map_err(|_| "the cache is never filled".to_owned())
}

fn shown(exchange: &Exchange) -> Value {
    let Exchange {
        verb,
        resource,
        subresource,
        user,
        user_agent,
        query,
        status,
        body,
        ..
    } = exchange;
    json!({
        "what": format!("{verb} {resource}/{subresource}"), "user": user, "agent": user_agent, "query": query,
        "status": status, "body": body,
    })
}

/// A Node, or a Service of type `LoadBalancer`.
fn named(kind: &str, name: &str) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
    if kind == "Service" {
        object["metadata"]["namespace"] = json!("default");
        object["spec"] =
            json!({ "type": "LoadBalancer", "selector": { "app": name }, "ports": [{ "port": 80 }] });
    }
    object
}

fn object(text: &str) -> Result<Value, Complaint> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}
