//! The scenarios that are text, in `clouds/*.scenario`: a world in which managers run by themselves while time passes.

use std::time::Duration;

use bowline_cloud_kit::{Double, FaultId};
use bowline_controllers::route::RouteTiming;
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, cloud_fault, kube, time, word};
use bowline_kube_api::{Effect, Permit};
use bowline_manager::config::RouteSettings;
use bowline_manager::metrics::Metrics;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::doctors;
use super::under_test::{Ability, CloudUnderTest, Denial, Instance, StrayRoute, Wish};
use super::world::{Since, Start, World, service, tainted_node, web};

/// A world as scenarios play in it. What is particular to a suite is laid around it.
pub struct Stage<C> {
    /// The world.
    pub world: World<C>,
    since: Since,
    begun: Instant,
    /// The fault that was made last.
    fault: Option<FaultId>,
    /// A Service that is about to be made, and one as it was.
    service: Value,
    /// How the process ended that did last.
    ended: String,
    /// What `doctor` found.
    found: Value,
}

impl<C: CloudUnderTest> ScenarioCloud for Stage<C> {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        Self::around(World::new())
    }

    fn double(&self) -> Option<&dyn Double> {
        self.world.sim.double()
    }

    fn add_object(&self, kind: &str, spec: Value) -> Result<String, Complaint> {
        self.world.sim.add(kind, spec)
    }

    fn state(&self) -> Value {
        json!({ "state": self.world.sim.state() })
    }

    fn part(&self, name: &str) -> Value {
        json!({ name: self.see(name) })
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        let world = &mut self.world;
        match words.verb {
            "needs" => {}
            // Processes.
            "begin" => world.start_with(match name {
                "alone" => Start::alone(),
                "routes" => keeping(match rest {
                    "by-watch" => RouteTiming::WatchBased,
                    _ => RouteTiming::Periodic(Duration::from_secs(10)),
                }),
                _ => Start::default(),
            }),
            "kill" => world.kill().await,
            "lease-ends" => world.pass_lease().await,
            "stop" => self.ended = format!("{:?}", world.stop().await.0),
            "ends" => self.ended = format!("{:?}", world.ended().await),
            "doctor" => self.found = doctors::doctor(world, name).await,
            "one-writer" => world.assert_one_writer(),
            // A step for the clouds that can do that.
            "where" if Ability::named(name).is_some_and(|it| world.can(it)) => {
                let (verb, rest) = word(rest);
                return Box::pin(self.act(&Words { verb, rest })).await;
            }
            "where" => {}
            "first-write" => {
                let since = self.since;
                world
                    .until("the first write", |w| !w.writes(since).is_empty())
                    .await;
            }
            // The API server.
            "api" => world.api.faults().inject(kube::fault(words.rest, webhook)?),
            "api-recovers" => world.api.faults().clear(),
            "api-closes" => world.api.close_watches(),
            "api-compacts" => world.api.compact(),
            "apply" => drop(world.apply(object(words.rest)?)),
            "rest" => world.rest().await,
            // Everybody may do this, and nothing else.
            "permit" => {
                let verbs: Vec<&str> = words.rest.split(' ').collect();
                let permit = Permit::new("system:unauthenticated", &verbs, "*", &["*"]);
                world.api.access().permit(permit);
            }
            // Services.
            "want" => {
                let (wish, port) = word(rest);
                world.ask(made(name, port)?, self::wish(wish)?);
            }
            "prepare" => {
                let (wish, port) = word(rest);
                self.service = made(name, port)?;
                world.sim.ask(&mut self.service, self::wish(wish)?);
            }
            "merge" => json_patch::merge(&mut self.service, &object(words.rest)?),
            "put" => drop(world.apply(self.service.take())),
            "settled" => world.settled(name).await,
            "gone" => world.gone(name).await,
            "change" => world.change(name),
            "annotate-idly" => world.annotate_idly(name),
            "edit-service" => {
                let patch = object(rest)?;
                world.edit_service(name, |it| json_patch::merge(it, &patch));
            }
            "delete-service" => world.delete_service(name),
            "remember" => self.service = world.service(name).ok_or("no such Service")?,
            "as-remembered" => {
                let now = world.service(name).ok_or("no such Service")?;
                for place in rest.split(' ') {
                    let (before, now) = (self.service.pointer(place), now.pointer(place));
                    if before != now {
                        return Err(format!("{place}: {before:?} became {now:?}"));
                    }
                }
            }
            "served" => return self.holds(["unserved", "violations"]),
            "sound" => return self.holds(["violations", "violations"]),
            "hidden" => world.assert_hidden(),
            // Nodes and their instances.
            "add-nodes" => world.add_nodes(name.parse().map_err(|_| "how many?".to_owned())?),
            "add-node" => world.add_node(name),
            "join" => world.join(name),
            "bare" => {
                let mut node = tainted_node(name);
                if !rest.is_empty() {
                    json_patch::merge(&mut node, &object(rest)?);
                }
                world.apply(node);
            }
            // One whose instance is there, with this pod network.
            "pod-node" => {
                world.sim.add_instance(&Instance::plain(name));
                let id = world.provider_id(name);
                let mut node = tainted_node(name);
                let spec = json!({ "providerID": id, "podCIDR": rest, "podCIDRs": [rest] });
                json_patch::merge(&mut node, &json!({ "spec": spec }));
                world.apply(node);
            }
            "edit-node" => {
                let patch = object(rest)?;
                world.edit_node(name, |it| json_patch::merge(it, &patch));
            }
            "ready" => world.set_ready(name, rest),
            "delete-node" => return Ok(world.api.delete("Node", "", name)),
            "instance" => world.sim.add_instance(&Instance {
                name: name.to_owned(),
                is_special: rest == "special",
            }),
            "remove-instance" => world.sim.remove_instance(name),
            "break" => world.break_instance(name),
            "power" => world.sim.set_power(name, rest == "on"),
            "renumber" => world.sim.renumber(name),
            // The cloud.
            "stray" => world.sim.add_stray_route(
                name,
                match rest {
                    "nowhere" => StrayRoute::Nowhere,
                    "blackhole" => StrayRoute::Blackhole,
                    _ => StrayRoute::OfOthers,
                },
            ),
            "lose-balancer" => world.sim.lose_balancer(&world.mark(name)),
            "deny" => world.sim.deny(match name {
                "unknown" => Some(Denial::Unknown),
                "other-project" => Some(Denial::OtherProject),
                _ => None,
            }),
            "ill" => {
                let fault = cloud_fault(words.rest, |_, text| text.to_owned())?;
                self.fault = Some(world.cloud().faults().add(fault));
            }
            "read-only" => world.sim.read_only(),
            "heal" => world.cloud().faults().clear(),
            "latency" => world.cloud().set_latency(time(name)?),
            // What is counted is counted from here on.
            "mark" => (self.since, self.begun) = (world.since(), Instant::now()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<C: CloudUnderTest> Stage<C> {
    /// A stage in a world that is there.
    pub fn around(world: World<C>) -> Self {
        Self {
            since: world.since(),
            begun: Instant::now(),
            world,
            fault: None,
            service: Value::Null,
            ended: String::new(),
            found: Value::Null,
        }
    }

    fn holds(&self, what: [&str; 2]) -> Result<bool, Complaint> {
        for name in what {
            let wrong = self.see(name);
            if wrong.as_array().is_none_or(|wrong| !wrong.is_empty()) {
                return Err(format!("{name}: {wrong:#}"));
            }
        }
        Ok(true)
    }

    fn of_each(&self, kind: &str, part: impl Fn(&str) -> Value) -> Value {
        let names = self.world.api.objects(kind).into_iter();
        let names = names.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        Value::Object(names.map(|name| (name.clone(), part(&name))).collect())
    }

    /// What was said about each object, with or without what follows the reason.
    fn said(&self, is_whole: bool) -> Value {
        let mut said: Map<String, Value> = Map::new();
        for line in self.world.all_events() {
            let (about, line) = line.split_once(' ').unwrap_or((&line, ""));
            let line = if is_whole {
                line
            } else {
                line.split(':').next().unwrap_or_default()
            };
            let lines = said.entry(about).or_insert_with(|| json!([]));
            lines.as_array_mut().unwrap().push(json!(line));
        }
        Value::Object(said)
    }

    /// What a scenario can see.
    fn see(&self, name: &str) -> Value {
        let (world, since) = (&self.world, self.since);
        match name {
            "service" => self.of_each("Service", |name| json!(world.service(name))),
            "addresses" => self.of_each("Service", |name| json!(world.addresses(name))),
            "finalizers" => self.of_each("Service", |name| json!(world.has_finalizer(name))),
            "node" => self.of_each("Node", |name| json!(world.node(name))),
            "taints" => self.of_each("Node", |name| json!(world.taints(name))),
            "initialized" => self.of_each("Node", |name| json!(world.is_initialized(name))),
            "nodes" => self
                .of_each("Node", |_| Value::Null)
                .as_object()
                .map_or(Value::Null, |all| json!(all.keys().collect::<Vec<_>>())),
            "network" => self.of_each("Node", |name| json!(world.network(name).unwrap_or_default())),
            "routes" => json!(world.sim.routes()),
            "route_lists" => {
                let calls = world.calls(since);
                json!(calls.iter().filter(|call| world.sim.lists_routes(call)).count())
            }
            "writes_of_a_route" => json!(C::WRITES_OF_A_ROUTE),
            // Whether it has one balancer, and shows its addresses.
            "balanced" => self.of_each("Service", |name| {
                let mut own = world.sim.balancers();
                own.retain(|it| it.service == world.mark(name));
                json!(own.len() == 1 && own[0].addresses == world.addresses(name))
            }),
            "refused_or_shown" => self.of_each("Service", |name| {
                let is_refused = world
                    .reasons(name)
                    .iter()
                    .any(|it| it == "SyncLoadBalancerFailed");
                json!(u8::from(is_refused) + u8::from(!world.addresses(name).is_empty()))
            }),
            "checks" | "failed" => self.found[name].clone(),
            "requests" => json!(
                world
                    .api
                    .journal()
                    .all()
                    .iter()
                    .map(kube::shown)
                    .collect::<Vec<_>>()
            ),
            // Of all calls, also those by the clock, and in order.
            "all_calls" => json!(world.all_calls(since)),
            "operations" => json!(
                world
                    .calls(since)
                    .into_iter()
                    .map(|it| it.operation)
                    .collect::<Vec<_>>()
            ),
            "cluster" => {
                let namespace = world.api.object("Namespace", "", "kube-system");
                namespace.unwrap_or_default()["metadata"]["uid"].clone()
            }
            // The lines of the series of each manager, oldest first, with round brackets around their labels.
            "pages" => world.metrics().iter().map(|it| lines(it)).collect(),
            // How many Services wait for what, where any do, as the first manager counts.
            "unsettled" => {
                let page = world.metrics().first().map(|it| lines(it)).unwrap_or_default();
                let waiting = |it: &&Value| {
                    it.as_str()
                        .is_some_and(|it| it.starts_with("load_balancers_unsettled(") && !it.ends_with(" 0"))
                };
                page.as_array()
                    .into_iter()
                    .flatten()
                    .filter(waiting)
                    .cloned()
                    .collect()
            }
            "now" => json!(world.api.now().to_string()),
            "running" => json!(world.holders()),
            "ended" => json!(self.ended),
            "lease" | "holder" => {
                let lease = world
                    .api
                    .object("Lease", "kube-system", "cloud-controller-manager");
                let spec = lease.unwrap_or_default()["spec"].clone();
                match name {
                    "lease" => spec,
                    _ => spec["holderIdentity"].clone(),
                }
            }
            "unlike_of" => self.of_each("Node", |name| json!(world.unlike_node(name))),
            "said_count" => json!(world.all_events().len()),
            "events" => self.said(true),
            "reasons" => self.said(false),
            "unserved" => json!(world.unserved()),
            "unlike" => json!(world.unlike()),
            "violations" => json!(world.sim.violations()),
            "balancers" => json!(
                world
                    .sim
                    .balancers()
                    .iter()
                    .map(|it| &it.addresses)
                    .collect::<Vec<_>>()
            ),
            "calls" => json!(world.tally(since).into_keys().collect::<Vec<_>>()),
            "reads" => json!(world.counts(since).0),
            "writes" => json!(world.writes(since)),
            "tries" => json!(
                world
                    .tries(since)
                    .iter()
                    .map(Duration::as_millis)
                    .collect::<Vec<_>>()
            ),
            "kube_writes" => json!(world.kube_writes(since)),
            "object_writes" => json!(world.object_writes(since)),
            "refused_writes" => json!(world.refused_writes(since)),
            "struck" => json!(self.fault.map(|fault| world.cloud().faults().struck(fault))),
            "since_ms" => json!(self.begun.elapsed().as_millis()),
            kind => world
                .sim
                .double()
                .map_or(Value::Null, |it| it.objects()[kind].clone()),
        }
    }
}

fn lines(metrics: &Metrics) -> Value {
    let page = metrics.render().unwrap_or_default();
    let page = page.replace('{', "(").replace('}', ")");
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

/// A manager that keeps routes for these pod networks.
pub(super) fn keeping(timing: RouteTiming) -> Start {
    let mut start = Start::default();
    start.config.settings.routes = RouteSettings::new(true, "10.200.0.0/16,fd00:200::/48", timing);
    start
}

/// The Service `web`, or another one with a node port.
fn made(name: &str, port: &str) -> Result<Value, Complaint> {
    match (name, port) {
        ("web", _) => Ok(web()),
        (name, port) => {
            let port = port.parse().map_err(|_| "which node port?".to_owned())?;
            Ok(service(name, &[("", 80, port)]))
        }
    }
}

fn wish(name: &str) -> Result<Wish, Complaint> {
    match name {
        "plain" => Ok(Wish::Plain),
        "rich" => Ok(Wish::Rich),
        other => Err(format!("nobody wishes {other:?}")),
    }
}

/// What a webhook or a policy does.
fn webhook(name: &str) -> Option<Effect> {
    let denies_finalizers = Effect::Deny(|it| it["metadata"]["finalizers"].is_array());
    (name == "denies-finalizers").then_some(denies_finalizers)
}

fn object(text: &str) -> Result<Value, Complaint> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}
