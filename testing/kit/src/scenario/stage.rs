//! Where a scenario is played: the clusters, and what the last run did.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloud_kit::{Double, Entry, FaultId};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;

use super::fault::{time, word};
use super::path::{Found, find, text};
use super::seen::{offers, planned, shown};
use super::text::{Step, steps};
use super::update::Updates;
use super::{Complaint, ScenarioCloud, Words};
use crate::{Interruption, Outcome, Run, Services};

pub(super) struct Stage<'a, C> {
    clusters: Vec<(String, C)>,
    current: usize,
    /// The last run; of several at once the first.
    pub(super) run: Value,
    runs: Vec<Value>,
    /// The last plan.
    plan: Value,
    /// What the last call was answered.
    pub(super) answered: Value,
    variables: BTreeMap<String, String>,
    /// The ID of what `add` added last.
    pub(super) added: String,
    /// What `keep` saw.
    pub(super) kept: Option<Value>,
    /// Each fault that has to strike, and where it was asked for.
    pub(super) faults: RefCell<Vec<(FaultId, String)>>,
    pub(super) updates: &'a Mutex<Updates>,
    /// What happens while the next run is under way, and how long after its beginning.
    meanwhile: Option<(Duration, Vec<Step>)>,
    /// Whether a process was stopped at a step.
    pub(super) has_stopped: bool,
    /// Whether a verb of the cloud's own was said.
    has_acted: bool,
    begun: Instant,
    /// What is logged since `log`.
    log: Option<(Log, (Dispatch, DefaultGuard))>,
}

impl<'a, C: ScenarioCloud> Stage<'a, C> {
    pub(super) fn new(cloud: C, updates: &'a Mutex<Updates>) -> Self {
        Self {
            clusters: vec![("first".to_owned(), cloud)],
            current: 0,
            run: Value::Null,
            runs: Vec::new(),
            plan: Value::Null,
            answered: Value::Null,
            variables: BTreeMap::new(),
            added: String::new(),
            kept: None,
            faults: RefCell::default(),
            updates,
            meanwhile: None,
            has_stopped: false,
            has_acted: false,
            begun: Instant::now(),
            log: None,
        }
    }

    pub(super) fn cloud(&self) -> &C {
        &self.clusters[self.current].1
    }

    pub(super) fn cloud_mut(&mut self) -> &mut C {
        &mut self.clusters[self.current].1
    }

    pub(super) fn double(&self) -> Result<&dyn Double, Complaint> {
        self.cloud()
            .double()
            .ok_or_else(|| "there is no double".to_owned())
    }

    pub(super) fn services(&self) -> Result<&Services, Complaint> {
        self.cloud()
            .services()
            .ok_or_else(|| "there is no cluster".to_owned())
    }

    pub(super) async fn play(&mut self, steps: &[Step]) -> Result<(), Complaint> {
        for step in steps {
            let told = self.filled_in(step);
            let done = match told {
                Ok(told) => self.make(&told).await,
                Err(complaint) => Err(complaint),
            };
            done.map_err(|complaint| format!("{}: {}\n{complaint}", step.place(), step.text))?;
        }
        Ok(())
    }

    /// What has to hold when all steps are made.
    pub(super) fn end(&self) -> Result<(), Complaint> {
        if self.meanwhile.is_some() {
            return Err("nothing is run after meanwhile".to_owned());
        }
        let seen = [&self.run, &self.answered, &self.plan];
        if seen.into_iter().all(Value::is_null) && !(C::RUNS_BY_ITSELF && self.has_acted) {
            return Err("nothing is run or called".to_owned());
        }
        self.all_have_struck()
    }

    pub(super) fn all_have_struck(&self) -> Result<(), Complaint> {
        for (id, place) in &*self.faults.borrow() {
            if self.double()?.faults().struck(*id) == 0 {
                return Err(format!("the fault of {place} never struck"));
            }
        }
        Ok(())
    }

    async fn make(&mut self, step: &Step) -> Result<(), Complaint> {
        let (rest, whole) = (step.rest(), step.whole());
        match step.verb() {
            "run" => self.run(rest).await,
            "quiet" => self.quiet(rest).await,
            "settle" => {
                let (name, how) = word(rest);
                self.reconcile(name, &[], how == "at-once", MOST_TRIES).await?;
                self.ended("settled")
            }
            "vary" => self.vary(step).await,
            "restart" => self.cloud_mut().start().await,
            "start" => self.start(rest).await,
            "predict" => self.predict(rest).await,
            "log" => {
                // The guards of the one before go first: each puts back what was there before it.
                self.log = None;
                let level = rest.parse().map_err(|_| format!("{rest:?} is no level"))?;
                self.log = Some(Log::listen(level));
                Ok(())
            }
            "ask" => self.ask(rest).await,
            "cluster" => self.enter(rest),
            "pass" => {
                tokio::time::sleep(time(rest)?).await;
                Ok(())
            }
            "meanwhile" => {
                self.meanwhile = Some((time(rest)?, steps(&step.source, &step.below, 0)?));
                Ok(())
            }
            "let" => {
                let (name, path) = rest.split_once(" = ").ok_or("let NAME = PATH")?;
                let value = match self.variables.get(path.trim()) {
                    Some(value) => value.clone(),
                    None => text(&self.look(path)?.only()),
                };
                self.variables.insert(name.trim().to_owned(), value);
                Ok(())
            }
            "until" => self.until(step).await,
            verb => {
                let words = Words { verb, rest: &whole };
                if self.cloud_mut().act(&words).await? {
                    self.has_acted = true;
                    return Ok(());
                }
                if let Some(done) = self.given(verb, rest, &whole, step) {
                    return done;
                }
                if let Some(done) = self.expected(verb, step) {
                    return done;
                }
                match self.call(&words).await? {
                    true => Ok(()),
                    false => Err(format!("no verb {verb}")),
                }
            }
        }
    }

    /// `until see PATH OP VALUE` and the other verbs that expect something: time passes until it is so.
    async fn until(&self, step: &Step) -> Result<(), Complaint> {
        let step = &Step {
            text: step.rest().to_owned(),
            is_verbatim: false,
            ..step.clone()
        };
        let begun = Instant::now();
        while let Err(complaint) = self.expected(step.verb(), step).ok_or("until what?")? {
            if begun.elapsed() > MOST_PATIENCE {
                return Err(format!("never: {complaint}"));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }

    /// Goes on in another cluster in the same project.
    fn enter(&mut self, name: &str) -> Result<(), Complaint> {
        let there = self.clusters.iter().position(|(known, _)| known == name);
        self.current = match there {
            Some(index) => index,
            None => {
                let cluster = self.cloud().another_cluster();
                let cluster = cluster.ok_or("there is one cluster only in this cloud")?;
                self.clusters.push((name.to_owned(), cluster));
                self.clusters.len() - 1
            }
        };
        Ok(())
    }

    /// `run NAME[+NAME] [at-once] [stop after N | stop before N | pause N 30s | cut 5s] [-> how it ends]`; of several Services each may
    /// have its own: `stop before 0+2`.
    async fn run(&mut self, rest: &str) -> Result<(), Complaint> {
        let (what, end) = match rest.split_once("->") {
            Some((what, end)) => (what.trim(), Some(end.trim())),
            None => (rest, None),
        };
        self.services()?;
        let (names, mut how) = word(what);
        let at_once = how.starts_with("at-once");
        how = how.trim_start_matches("at-once").trim();
        if let Some(long) = how.strip_prefix("cut ") {
            let ended = tokio::time::timeout(time(long)?, self.reconcile(names, &[], at_once, 1)).await;
            return match ended {
                Ok(_) => Err(format!("it ended by itself: {:#}", self.run)),
                Err(_) => {
                    self.run = json!({ "outcome": "stopped" });
                    Ok(())
                }
            };
        }
        let interruptions = interruptions(how, names.split('+').count())?;
        let is_stopped = interruptions
            .iter()
            .any(|it| !matches!(it, Interruption::Never | Interruption::Pause(..)));
        self.reconcile(names, &interruptions, at_once, 1).await?;
        self.has_stopped |= self.runs.iter().any(|run| run["outcome"] == "stopped");
        match end {
            None if is_stopped => Ok(()),
            None => self.ended("settled"),
            Some(end) => self.ended(end),
        }
    }

    async fn quiet(&mut self, names: &str) -> Result<(), Complaint> {
        self.services()?;
        self.reconcile(names, &[], false, 1).await?;
        self.ended("quiet")?;
        match self.double()?.violations() {
            none if none.is_empty() => Ok(()),
            violations => Err(format!("the cloud is not in order: {violations:#?}")),
        }
    }

    async fn reconcile(
        &mut self,
        names: &str,
        interruptions: &[Interruption],
        at_once: bool,
        tries: usize,
    ) -> Result<(), Complaint> {
        let meanwhile = self.meanwhile.take();
        let journal = self.double()?.journal();
        let mark = journal.mark();
        let begun = Instant::now();
        let places = names.split('+').map(|name| self.place_of(name));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let each = places.into_iter().enumerate().map(|(index, (cloud, name))| {
            let interruption = interruptions.get(index).copied();
            tried(
                cloud,
                name,
                interruption.unwrap_or(Interruption::Never),
                at_once,
                tries,
            )
        });
        let (runs, done) = tokio::join!(join_all(each), self.act(meanwhile));
        done?;
        let mut entries = journal.since(mark);
        entries.retain(|entry| !C::is_noise(entry));
        self.ran(&runs, &entries, begun.elapsed());
        Ok(())
    }

    /// `predict NAME`: what a plan says, which writes nothing.
    async fn predict(&mut self, name: &str) -> Result<(), Complaint> {
        let journal = self.double()?.journal();
        let mark = journal.mark();
        let report = self.cloud().predicted(name).await;
        let mut entries = journal.since(mark);
        entries.retain(|entry| !C::is_noise(entry));
        if let Some(write) = entries.iter().find(|entry| entry.write) {
            return Err(format!("a plan writes: {}", C::operation(write)));
        }
        self.plan = planned::<C>(&report, &entries);
        Ok(())
    }

    pub(super) fn ran(&mut self, runs: &[Run], entries: &[Entry], took: Duration) {
        self.runs = runs.iter().map(|run| shown::<C>(run, entries, took)).collect();
        self.run = self.runs[0].clone();
    }

    /// The cluster of a Service and its name there: `CLUSTER:NAME` is one of another cluster.
    fn place_of<'n>(&self, name: &'n str) -> Result<(&C, &'n str), Complaint> {
        let Some((cluster, name)) = name.split_once(':') else {
            return Ok((self.cloud(), name));
        };
        let there = self.clusters.iter().find(|(known, _)| known == cluster);
        let (_, cloud) = there.ok_or_else(|| format!("no cluster {cluster}"))?;
        Ok((cloud, name))
    }

    /// What somebody does, or looks at, while a run is under way.
    async fn act(&self, meanwhile: Option<(Duration, Vec<Step>)>) -> Result<(), Complaint> {
        let Some((after, steps)) = meanwhile else {
            return Ok(());
        };
        tokio::time::sleep(after).await;
        for step in &steps {
            let step = &self.filled_in(step)?;
            if let "run" | "settle" = step.verb() {
                let (name, end) = step.rest().split_once(" -> ").unwrap_or((step.rest(), "settled"));
                let tries = if step.verb() == "run" { 1 } else { MOST_TRIES };
                let (cloud, name) = self.place_of(name)?;
                let run = tried(cloud, name, Interruption::Never, false, tries).await;
                let run = shown::<C>(&run, &[], Duration::ZERO);
                super::end::ended(&run, end).map_err(|complaint| format!("{}: {complaint}", step.place()))?;
                continue;
            }
            let done = self.touched(step).or_else(|| self.expected(step.verb(), step));
            let done = done.unwrap_or_else(|| Err("no verb for while a run is under way".to_owned()));
            done.map_err(|complaint| format!("{}: {}\n{complaint}", step.place(), step.text))?;
        }
        Ok(())
    }

    pub(super) fn ended(&self, end: &str) -> Result<(), Complaint> {
        for run in &self.runs {
            super::end::ended(run, end)?;
        }
        Ok(())
    }

    /// What a path leads to that begins with this name: nothing else is looked at, which is what takes time.
    fn root(&self, name: &str) -> Value {
        let double = self.cloud().double();
        let value = match name {
            "run" => self.run.clone(),
            "runs" => json!(self.runs),
            "plan" => self.plan.clone(),
            "services" => json!(self.cloud().services().map(Services::by_key)),
            "answered" => self.answered.clone(),
            "answer" => self.answered["body"].clone(),
            "added" => json!(self.added),
            "leftovers" => json!(self.cloud().leftovers()),
            "journal" => json!(double.map(|double| double.journal().entries())),
            "switches" => json!(double.map(|double| double.switches())),
            "violations" => json!(double.map(|double| double.violations())),
            "log" => {
                let text = self.log.as_ref().map(|(log, _)| log.text());
                json!(text.map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()))
            }
            "offers" => json!(self.cloud().provider().map(offers)),
            "elapsed_ms" => json!(self.begun.elapsed().as_millis()),
            name => return self.cloud().part(name),
        };
        json!({ name: value })
    }

    /// What is at a path, or an annotation of a Service: `annotation NAME KEY`.
    pub(super) fn look(&self, path: &str) -> Result<Found, Complaint> {
        if let Some(which) = path.strip_prefix("annotation ") {
            let (key, name) = word(which);
            let value = self.annotation(key, name.trim());
            return Ok(Found {
                values: vec![json!(value)],
                is_many: false,
            });
        }
        let name = path.trim().split(['.', '[']).next().unwrap_or_default();
        find(&self.root(name), path.trim())
    }

    pub(super) fn annotation(&self, key: &str, name: &str) -> Option<String> {
        self.services().ok()?.annotation(key, &self.full(name))
    }

    /// The name of an annotation in full.
    pub(super) fn full(&self, name: &str) -> String {
        match name.contains('/') {
            true => name.to_owned(),
            false => self.cloud().annotation(name),
        }
    }

    /// A step with what was seen before in the places of names and paths in braces.
    fn filled_in(&self, step: &Step) -> Result<Step, Complaint> {
        let mut step = step.clone();
        let before = step.text.clone();
        step.text = self.filled(&step.text)?;
        step.is_verbatim &= before == step.text;
        for (_, text) in &mut step.below {
            let filled = match self.filled(text) {
                // What is not there yet may be there then.
                Err(_) if before.starts_with("meanwhile ") => text.clone(),
                filled => filled?,
            };
            step.is_verbatim &= filled == *text;
            *text = filled;
        }
        Ok(step)
    }

    /// Innermost first, so that a path may hold what another one leads to.
    fn filled(&self, text: &str) -> Result<String, Complaint> {
        let mut filled = text.to_owned();
        let mut from = 0;
        while let Some(length) = filled[from..].find('}') {
            let end = from + length;
            let start = filled[..end].rfind('{');
            let name = start.map(|start| &filled[start + 1..end]);
            let is_name = |name: &&str| name.starts_with(|it: char| it.is_ascii_lowercase());
            match (start, name.filter(is_name)) {
                (Some(start), Some(name)) => {
                    let value = self.known(name)?;
                    filled.replace_range(start..=end, &value);
                    from = start + value.len();
                }
                _ => from = end + 1,
            }
        }
        Ok(filled)
    }

    fn known(&self, name: &str) -> Result<String, Complaint> {
        if let Some(value) = self.variables.get(name) {
            return Ok(value.clone());
        }
        if let Some((text, times)) = name.split_once('*')
            && let Ok(times) = times.parse()
        {
            return Ok(text.repeat(times));
        }
        if let Some(path) = name.strip_prefix("upper ") {
            return Ok(self.known(path)?.to_uppercase());
        }
        match self.look(name)? {
            Found { values, .. } if values.is_empty() => Err(format!("nothing is {name}")),
            found => Ok(text(&found.only())),
        }
    }
}

/// How often `settle` runs a Service at most, as the service controller does at first.
const MOST_TRIES: usize = 4;
/// How long `until` waits at most, and how often it looks.
const MOST_PATIENCE: Duration = Duration::from_secs(600);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const BETWEEN_TRIES: Duration = Duration::from_secs(5);

/// Runs until one settles.
async fn tried<C: ScenarioCloud>(
    cloud: &C,
    name: &str,
    interruption: Interruption,
    at_once: bool,
    tries: usize,
) -> Run {
    for _ in 1..tries {
        let run = cloud.reconcile(name, interruption, at_once).await;
        if matches!(run.outcome, Outcome::Settled(_)) {
            return run;
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    cloud.reconcile(name, interruption, at_once).await
}

/// What befalls each of so many runs.
fn interruptions(how: &str, count: usize) -> Result<Vec<Interruption>, Complaint> {
    let words: Vec<&str> = how.split_whitespace().collect();
    let steps = |text: &str| -> Result<Vec<usize>, Complaint> {
        let steps = text.split('+').map(str::parse);
        let steps: Vec<usize> = steps
            .collect::<Result<_, _>>()
            .map_err(|_| format!("{text:?}: which step?"))?;
        match steps.len() {
            1 => Ok(vec![steps[0]; count]),
            given if given == count => Ok(steps),
            _ => Err(format!("{text:?}: there are {count} runs")),
        }
    };
    Ok(match words[..] {
        [] => Vec::new(),
        ["stop", "after", n] => steps(n)?.into_iter().map(Interruption::AfterStep).collect(),
        ["stop", "before", n] => steps(n)?.into_iter().map(Interruption::BeforeStep).collect(),
        ["pause", n, long] => {
            let long = time(long)?;
            let steps = steps(n)?.into_iter();
            steps.map(|n| Interruption::Pause(n, long)).collect()
        }
        _ => return Err(format!("{how:?} is nothing that befalls a run")),
    })
}
