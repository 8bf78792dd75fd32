//! The scenarios of this folder: processes of the manager against an API server in memory, under a stopped clock.
//!
//! They run by themselves while time passes. What a process is told is `set` before it begins.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, kube, parsed, word};
use bowline_kube_api::{Effect, Exchange, KubeApi, Permit};
use bowline_kube_io::DELETIONS;
use bowline_manager::End;
use bowline_manager::config::{Config, ElectionConfig, RangeFlags, Ranges, RouteSettings, RouteTiming};
use bowline_manager::controllers::ControllerSelection;
use bowline_manager::health::Endpoint;
use bowline_manager::migration::Migration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clouds::{Empty, TestInstances};
use crate::process::{Process, api_server};

#[path = "../it/clouds.rs"]
mod clouds;
#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/process.rs"]
mod process;

/// The lease of the manager.
const LEASE: &str = "cloud-controller-manager";

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Cluster>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// An API server, and the processes at it.
struct Cluster {
    api: KubeApi,
    told: Told,
    processes: BTreeMap<String, Process>,
    /// How those ended that did.
    ended: BTreeMap<String, String>,
    /// Since when all is counted.
    since: Instant,
}

/// What the next process is told: `set {"instances": true}`.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Told {
    /// `empty` proves of each instance but `well` that it is gone; else nothing is known of any.
    cloud: String,
    instances: bool,
    routes: bool,
    needs_uid: bool,
    leaves_networks: bool,
    election: bool,
    /// `--leader-recovery-limit` in seconds; 0 is none.
    recovery: u64,
    /// The second lease: its name, then controllers with their components; nothing is the built-in list.
    migration: Option<Vec<String>>,
    controllers: Vec<String>,
    /// Each controller has an account of its own.
    accounts: bool,
    /// `--node-deletion-share`
    share: Option<f64>,
    /// `--cluster-cidr`
    cidr: String,
    wants_routes: bool,
    ipam: bool,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            cloud: String::new(),
            instances: false,
            routes: false,
            needs_uid: false,
            leaves_networks: false,
            election: true,
            recovery: 0,
            migration: None,
            controllers: vec!["*".to_owned()],
            accounts: false,
            share: None,
            cidr: String::new(),
            wants_routes: true,
            ipam: false,
        }
    }
}

impl Told {
    fn config(&self) -> Result<Config, Complaint> {
        let election = ElectionConfig {
            recovery_limit: (self.recovery > 0).then(|| Duration::from_secs(self.recovery)),
            ..ElectionConfig::default()
        };
        let migration = self.migration.as_ref().map(|given| match &given[..] {
            [name, entries @ ..] => {
                let entries = entries
                    .chunks(2)
                    .map(|entry| (entry[0].as_str(), entry[1].as_str()));
                Migration::new(name, entries).unwrap()
            }
            [] => Migration::built_in(),
        });
        let controllers = ControllerSelection::parse(self.controllers.iter().map(String::as_str));
        let mut config = Config {
            election: self.election.then_some(election),
            migration,
            controllers: controllers.map_err(|error| format!("{error:?}"))?,
            service_accounts: self.accounts,
            ..Config::default()
        };
        if let Some(share) = self.share {
            config.settings.node_lifecycle.node_deletion_share = share;
        }
        let timing = RouteTiming::Periodic(Duration::from_secs(10));
        if self.routes || !self.cidr.is_empty() {
            config.settings.routes = RouteSettings::new(self.wants_routes, &self.cidr, timing);
        }
        config.settings.node_networks = self.ipam.then(|| {
            Ranges::new(&RangeFlags {
                cluster_cidr: &self.cidr,
                allocator: "RangeAllocator",
                ..RangeFlags::default()
            })
        });
        Ok(config)
    }

    fn process(&self, api: &KubeApi, name: &str) -> Result<Process, Complaint> {
        let cloud = TestInstances {
            has_instances: self.instances,
            has_routes: self.routes,
            needs_uid: self.needs_uid,
            leaves_node_networks: self.leaves_networks,
            ..TestInstances::default()
        };
        let asked = Arc::clone(&cloud.asked);
        let provider: Arc<dyn CloudProvider> = match self.cloud.as_str() {
            "empty" => Arc::new(Empty),
            _ => Arc::new(cloud),
        };
        Ok(Process::with_provider(api, name, self.config()?, provider, asked))
    }
}

impl ScenarioCloud for Cluster {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        Self {
            api: api_server(),
            told: Told::default(),
            processes: BTreeMap::new(),
            ended: BTreeMap::new(),
            since: Instant::now(),
        }
    }

    fn part(&self, name: &str) -> Value {
        json!({ name: self.see(name) })
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (name, rest) = word(words.rest);
        match words.verb {
            "set" => {
                let mut told = json!(self.told);
                json_patch::merge(&mut told, &object(words.rest)?);
                self.told = parsed(&told)?;
            }
            "begin" => {
                let process = self.told.process(&self.api, name)?;
                self.processes.insert(name.to_owned(), process);
            }
            "stop" => {
                let end = self
                    .processes
                    .get_mut(name)
                    .ok_or("no such process")?
                    .stop()
                    .await;
                self.ended.insert(name.to_owned(), shown_end(&end));
            }
            "ends" => {
                let end = self.processes.get_mut(name).ok_or("no such process")?.end().await;
                self.ended.insert(name.to_owned(), shown_end(&end));
            }
            "crash" => drop(self.processes.remove(name).ok_or("no such process")?),
            "lease" => self.edit_lease(LEASE, &json!({ "spec": object(words.rest)? }))?,
            "lease-of" => self.edit_lease(name, &json!({ "spec": object(rest)? }))?,
            "patch-lease" => self.edit_lease(LEASE, &object(words.rest)?)?,
            "drop-lease" => return Ok(self.api.delete("Lease", "kube-system", name)),
            "apply" => drop(
                self.api
                    .apply_json(object(words.rest)?)
                    .map_err(|error| format!("{error:?}"))?,
            ),
            // `for 50 apply JSON`, with `%` as the number.
            "for" => {
                let count: u64 = name.parse().map_err(|_| "how often?".to_owned())?;
                for number in 0..count {
                    let text = word(rest).1.replace('%', &number.to_string());
                    self.api
                        .apply_json(object(&text)?)
                        .map_err(|error| format!("{error:?}"))?;
                }
            }
            "permit" => {
                let (groups, resources) = word(rest);
                let group = if groups == "core" { "" } else { groups };
                let [verbs, resources] = [name, resources].map(|list| list.split(',').collect::<Vec<_>>());
                let permit = Permit::new("system:anonymous", &verbs, group, &resources);
                self.api.access().permit(permit);
            }
            "permit-all" => self.api.access().allow_everything(),
            "api" => self.api.faults().inject(kube::fault(words.rest, webhook)?),
            "api-recovers" => self.api.faults().clear(),
            "watches-close" => self.api.close_watches(),
            "silence-watches" => self.api.silence_watches(),
            "count-anew" => {
                self.api.journal().clear();
                self.since = Instant::now();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Cluster {
    fn edit_lease(&self, name: &str, patch: &Value) -> Result<(), Complaint> {
        let mut lease = self
            .api
            .object("Lease", "kube-system", name)
            .ok_or("no such lease")?;
        json_patch::merge(&mut lease, patch);
        self.api.apply_json(lease).map_err(|error| format!("{error:?}"))?;
        Ok(())
    }

    fn of_each(&self, part: impl Fn(&Process) -> Value) -> Value {
        let shown = self
            .processes
            .iter()
            .map(|(name, process)| (name.clone(), part(process)));
        Value::Object(shown.collect())
    }

    fn lease(&self) -> Value {
        self.api.object("Lease", "kube-system", LEASE).unwrap_or_default()
    }

    /// What a scenario can see.
    fn see(&self, name: &str) -> Value {
        let journal = || self.api.journal().all();
        match name {
            "leads" => self.of_each(|process| json!(process.leads())),
            "leaders" => json!(
                self.processes
                    .values()
                    .filter(|process| process.leads())
                    .map(|_| 1)
                    .collect::<Vec<_>>()
            ),
            "gate" => self.of_each(|process| json!(if process.gate.is_open() { "open" } else { "closed" })),
            "gates_open" => json!(
                self.processes
                    .values()
                    .filter(|process| process.gate.is_open())
                    .count()
            ),
            "ready" => self.of_each(|process| json!(process.is_ready())),
            "live" => self.of_each(|process| json!(process.health.probe(Endpoint::Live, false, &[]).passed)),
            "healthz" => self.of_each(|process| json!(process.healthz().trim().replace('\n', " "))),
            "series" => self.of_each(|process| json!(series(process))),
            "running" => self.of_each(|process| {
                let series = series(process);
                let lines = series
                    .iter()
                    .filter(|line| line.starts_with("running_managed_controllers("));
                let names = lines.filter_map(|line| line.split("name=\"").nth(1)?.split('"').next());
                json!(names.collect::<Vec<_>>().join(" "))
            }),
            "asked" => self.of_each(|process| json!(process.cloud_calls())),
            "ended" => json!(self.ended),
            "lease" => self.lease()["spec"].clone(),
            // Of a lease that nobody has made, nobody is the holder.
            "holder" => json!(
                self.lease()["spec"]["holderIdentity"]
                    .as_str()
                    .unwrap_or_default()
            ),
            "holders" => {
                let leases = self.api.objects("Lease");
                let holders = leases.iter().map(|it| {
                    (
                        text(&it["metadata"]["name"]),
                        it["spec"]["holderIdentity"].clone(),
                    )
                });
                Value::Object(holders.collect())
            }
            "note" => {
                let note = &self.lease()["metadata"]["annotations"][DELETIONS];
                note.as_str()
                    .map_or(Value::Null, |note| serde_json::from_str(note).unwrap())
            }
            // How many deletions the lease remembers.
            "noted" => {
                let note = self.see("note");
                let counts = note["deleted"].as_object();
                json!(counts.map(|counts| counts.values().filter_map(Value::as_u64).sum::<u64>()))
            }
            "nodes" => json!(
                self.api
                    .objects("Node")
                    .iter()
                    .map(|it| text(&it["metadata"]["name"]))
                    .collect::<Vec<_>>()
            ),
            "node" => {
                let nodes = self.api.objects("Node");
                Value::Object(
                    nodes
                        .into_iter()
                        .map(|it| (text(&it["metadata"]["name"]), it))
                        .collect(),
                )
            }
            "event" => self.api.objects("Event").into_iter().next().unwrap_or_default(),
            "events" => {
                let said = |it: &Value| format!("{}: {}", text(&it["reason"]), text(&it["message"]));
                json!(self.api.objects("Event").iter().map(said).collect::<Vec<_>>())
            }
            "requests" => json!(journal().iter().map(kube::shown).collect::<Vec<_>>()),
            "callers" => json!(journal().iter().map(caller).collect::<Vec<_>>()),
            "since_ms" => json!(self.since.elapsed().as_millis()),
            _ => Value::Null,
        }
    }
}

fn shown_end(end: &End) -> String {
    match end {
        End::Stopped => "stopped".to_owned(),
        End::LeadershipLost => "lost".to_owned(),
        End::CannotStart { reason } => format!("cannot start: {reason}"),
        other => format!("{other:?}"),
    }
}

/// `VERB RESOURCE NAMESPACE USER USER-AGENT` of a request.
fn caller(exchange: &Exchange) -> String {
    let Exchange {
        verb,
        resource,
        namespace,
        user,
        user_agent,
        ..
    } = exchange;
    format!("{verb} {resource} {namespace} {user} {user_agent}")
}

/// The lines of the series, with round brackets around their labels.
fn series(process: &Process) -> Vec<String> {
    let page = process.metrics.render().unwrap();
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.replace('{', "(").replace('}', ")"))
        .collect()
}

/// What a webhook does.
fn webhook(name: &str) -> Option<Effect> {
    Some(match name {
        "strips-annotations" => Effect::Rewrite(|lease| lease["metadata"]["annotations"] = json!({})),
        "denies-deletions" => Effect::Deny(|lease| lease["metadata"]["annotations"][DELETIONS].is_string()),
        _ => return None,
    })
}

fn object(text: &str) -> Result<Value, Complaint> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
