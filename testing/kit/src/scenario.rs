//! Scenarios as text: what a cluster has, what happens, and what is seen then. One runner for all clouds.
//!
//! ```text
//! another port is served before the old one goes
//!   nodes 2
//!   service web TCP/80:30080
//!   run web
//!   ports web TCP/8080:30080
//!   run web
//!   writes
//!     octavia.listeners.create
//!     octavia.listeners.delete
//!   quiet web
//! ```
//!
//! The scenarios of a simulator call its API instead ([`calls`]): there is no cluster, and nothing is run.
//!
//! `docs/guides/scenarios.md` lists the verbs. A file is a list of scenarios, each a test of its own. `UPDATE_SCENARIOS=1` writes what
//! was seen in the place of what was expected.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use bowline_cloud_kit::Double;
use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{CloudProvider, Node};
use libtest_mimic::{Arguments, Failed, Trial};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Interruption, Run, Services};

pub mod calls;
mod end;
mod expect;
mod fault;
mod given;
mod instances;
pub mod kube;
mod path;
mod seen;
mod stage;
mod text;
mod update;

use self::calls::Answer;
pub use self::fault::{fault as cloud_fault, time, word};
use self::stage::Stage;
pub use self::text::Scenario;
use self::text::read;
use self::update::Updates;

/// Why a step cannot be made, or what it saw instead of what was expected.
pub type Complaint = String;

/// A verb of a cloud's own, with its arguments.
#[derive(Debug)]
pub struct Words<'a> {
    /// The verb.
    pub verb: &'a str,
    /// What follows it on its line.
    pub rest: &'a str,
}

impl Words<'_> {
    /// The arguments, if they are so many.
    ///
    /// # Errors
    ///
    /// If there are more or fewer.
    pub fn exactly<const N: usize>(&self) -> Result<[&str; N], Complaint> {
        let words: Vec<&str> = self.rest.split_whitespace().collect();
        words
            .try_into()
            .map_err(|words: Vec<&str>| format!("{} takes {N} arguments, not {}", self.verb, words.len()))
    }
}

/// A cloud with its double, and a cluster in it. A simulator's own has no cluster, and an API server has no double.
#[expect(async_fn_in_trait, reason = "a scenario runs on one thread")]
pub trait ScenarioCloud: Sized {
    /// Whether the work goes on by itself while time passes: then nothing has to be run or called.
    const RUNS_BY_ITSELF: bool = false;

    /// A cloud, and a cluster with nothing in it. Asked for by the test program of a folder.
    async fn begin() -> Self {
        panic!("there is nothing to begin with")
    }

    /// Another cluster in the same project of the same cloud.
    fn another_cluster(&self) -> Option<Self> {
        None
    }

    /// The double of the cloud.
    fn double(&self) -> Option<&dyn Double> {
        None
    }

    /// The cluster's Services, if there is a cluster.
    fn services(&self) -> Option<&Services> {
        None
    }

    /// A Service of this name with these ports.
    fn put_service(&self, _key: &str, _uid: Option<&str>, _ports: Vec<ServicePort>) {}

    /// The name of an annotation in full, by the part that differs.
    fn annotation(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The cluster's Nodes, where the cloud asks about them.
    fn nodes(&mut self) -> Option<&mut Vec<Arc<Node>>> {
        None
    }

    /// Adds a Node with its instance.
    fn add_node(&mut self, _name: &str) {}

    /// Adds an object that Bowline did not make; its ID, where it has one.
    ///
    /// # Errors
    ///
    /// If there is no such kind, or no such object of it.
    fn add(&mut self, kind: &str, spec: Value) -> Result<String, Complaint> {
        self.add_object(kind, spec)
    }

    /// The same where it may happen while a run is under way.
    ///
    /// # Errors
    ///
    /// The same.
    fn add_object(&self, kind: &str, _spec: Value) -> Result<String, Complaint> {
        Err(format!("no {kind} can be added"))
    }

    /// Removes an object past the API; whether there was one.
    ///
    /// # Errors
    ///
    /// If nothing of this kind can be removed.
    fn remove(&self, kind: &str, _id: &str) -> Result<bool, Complaint> {
        Err(format!("no {kind} can be removed"))
    }

    /// The name of the Node of a number, for `nodes N`.
    fn node_name(number: usize) -> String {
        format!("node-{number}")
    }

    /// A process takes the place of the one before, which remembers nothing.
    ///
    /// # Errors
    ///
    /// Why it does not start.
    async fn start(&mut self) -> Result<(), Complaint> {
        Ok(())
    }

    /// The provider, for what is asked of it beside Services.
    fn provider(&self) -> Option<&dyn CloudProvider> {
        None
    }

    /// Reconciles a Service; `at_once` is within the time for which a refusal is held back. Asked for only where there is a cluster.
    async fn reconcile(&self, key: &str, _interruption: Interruption, _at_once: bool) -> Run {
        panic!("nothing reconciles {key}")
    }

    /// What a plan of a Service says. Asked for only where there is a cluster.
    async fn predicted(&self, key: &str) -> PlanReport {
        panic!("nothing plans {key}")
    }

    /// Calls the API, if the verb is a call.
    ///
    /// # Errors
    ///
    /// If what follows the verb says no request.
    async fn call(&mut self, _words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        Ok(None)
    }

    /// What an answer says, in which the text of `-> STATUS: TEXT` has to be.
    fn said(answer: &Value) -> String {
        path::text(answer)
    }

    /// Whether a request is left out of what is seen: logins and the like.
    fn is_noise(_request: &bowline_cloud_kit::Entry) -> bool {
        false
    }

    /// What a request is called in `writes` and `calls`.
    fn operation(request: &bowline_cloud_kit::Entry) -> String {
        request.operation.clone()
    }

    /// A refusal in the words of the cloud's API.
    fn refusal(_status: u16, text: &str) -> String {
        text.to_owned()
    }

    /// What a scenario can see: all objects of the cloud, by kind.
    fn state(&self) -> Value {
        self.double().map_or_else(|| json!({}), |double| double.objects())
    }

    /// The part of [`state`](Self::state) with this name, where all of it takes long.
    fn part(&self, _name: &str) -> Value {
        self.state()
    }

    /// An object of [`state`](Self::state) without what is only shown there.
    fn without_shown(object: Value) -> Value {
        object
    }

    /// What of Services is left in the cloud.
    fn leftovers(&self) -> Vec<String> {
        Vec::new()
    }

    /// A verb of the cloud's own, which goes before those of all; whether it is one.
    ///
    /// # Errors
    ///
    /// If it cannot be done, or has no effect.
    async fn act(&mut self, _words: &Words<'_>) -> Result<bool, Complaint> {
        Ok(false)
    }
}

/// The specification of an object, or a part of it.
///
/// # Errors
///
/// If it is none.
pub fn parsed<T: DeserializeOwned>(spec: &Value) -> Result<T, Complaint> {
    T::deserialize(spec).map_err(|error| format!("{spec}: {error}"))
}

/// The scenarios of a folder, each with its name; a file that cannot be read is one with its complaint.
#[must_use]
pub fn scenarios(folder: &str) -> Vec<(String, Result<Scenario, Complaint>)> {
    let mut all = Vec::new();
    for path in files(Path::new(folder)) {
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        match read(&path) {
            Ok(scenarios) => all.extend(scenarios.into_iter().map(|scenario| {
                let name = format!("{module}::{}", scenario.title);
                (name, Ok(scenario))
            })),
            Err(complaint) => all.push((module, Err(complaint))),
        }
    }
    all
}

/// The test program of a folder of scenarios.
#[must_use]
pub fn main<C: ScenarioCloud + 'static>(folder: &str) -> ExitCode {
    let arguments = Arguments::from_args();
    let updates = Arc::new(Mutex::new(Updates::default()));
    let trials = scenarios(folder).into_iter().map(|(name, scenario)| {
        let updates = Arc::clone(&updates);
        Trial::test(name, move || {
            let played = scenario.and_then(|scenario| play::<C>(&scenario, &updates));
            played.map_err(Failed::from)
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    updates.lock().unwrap().write();
    conclusion.exit_code()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "scenario"))
        .collect();
    files.sort();
    files
}

/// Plays a scenario under a stopped clock.
fn play<C: ScenarioCloud>(scenario: &Scenario, updates: &Mutex<Updates>) -> Result<(), Complaint> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        for stop in 0..MOST_STOPS {
            let played = scenario.stopped_at(stop);
            let cloud = C::begin().await;
            let has_stopped = match &played {
                Some(played) => perform(cloud, played, updates).await,
                None => return perform(cloud, scenario, updates).await.map(drop),
            };
            if !has_stopped.map_err(|complaint| format!("stop {stop}: {complaint}"))? {
                return Ok(());
            }
        }
        Err(format!(
            "{}: no run ends before {MOST_STOPS} steps",
            scenario.place
        ))
    })
}

/// How often a scenario with `{stop}` is played at most.
const MOST_STOPS: usize = 100;

/// Whether a process was stopped in it.
async fn perform<C: ScenarioCloud>(
    cloud: C,
    scenario: &Scenario,
    updates: &Mutex<Updates>,
) -> Result<bool, Complaint> {
    let mut stage = Stage::new(cloud, updates);
    stage.play(&scenario.steps).await?;
    let end = stage.end();
    end.map_err(|complaint| format!("{}: {complaint}", scenario.place))?;
    Ok(stage.has_stopped)
}

/// Plays a scenario where its caller is, by the clock that runs there.
///
/// # Errors
///
/// What was seen instead of what was expected.
pub async fn play_on<C: ScenarioCloud>(cloud: C, scenario: &Scenario) -> Result<(), Complaint> {
    perform(cloud, scenario, &Mutex::default()).await.map(drop)
}

/// Two values as lines that differ.
fn difference(expected: &Value, seen: &Value) -> String {
    let lines = |value: &Value| match value {
        Value::Array(items) if !items.is_empty() => items.iter().map(ToString::to_string).collect(),
        value => vec![value.to_string()],
    };
    let mut text = "expected - and seen +".to_owned();
    let (expected, seen) = (lines(expected), lines(seen));
    let mut seen = seen.into_iter().peekable();
    for line in expected {
        if seen.peek() == Some(&line) {
            seen.next();
            let _ = write!(text, "\n    {line}");
        } else {
            let _ = write!(text, "\n  - {line}");
        }
    }
    for line in seen {
        let _ = write!(text, "\n  + {line}");
    }
    text
}
