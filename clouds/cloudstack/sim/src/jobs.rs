//! Asynchronous commands: accepted at once, carried out one after another on each network.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::behaviour::{Behaviour, JobFault, JobFaultKind};
use crate::error::ApiError;
use crate::operation::Operation;
use crate::state::State;

mod effects;

pub(crate) use effects::{AclChange, Effect, RuleChange};

/// The most ended jobs that are remembered, so that a program can run for ever.
const KEPT_JOBS: usize = 10_000;

/// All jobs, those that ended too, and what goes wrong with them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: IndexMap<String, Job>,
    /// Those without an end, in order of acceptance.
    open: Vec<String>,
    /// When the last job of each network ends.
    lanes: BTreeMap<String, Instant>,
    faults: Vec<(JobFault, u64)>,
}

/// What a job is, when it is accepted.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) operation: Operation,
    pub(crate) user: String,
    pub(crate) account: String,
    /// The network or VPC whose jobs it waits for.
    pub(crate) lane: Option<String>,
    /// Type and id of the object it is about.
    pub(crate) instance: Option<(&'static str, String)>,
    pub(crate) effect: Effect,
}

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) order: Order,
    pub(crate) created: String,
    pub(crate) completed: Option<String>,
    /// When it begins: when those before it on its network are done.
    begin: Instant,
    has_begun: bool,
    /// When it is carried out; never if absent.
    due: Option<Instant>,
    fault: Option<JobFault>,
    end: Option<Result<Value, ApiError>>,
    /// Polls that may still be told that it is under way.
    patience: u32,
}

impl Job {
    /// Its end, once that is told.
    pub(crate) fn told(&self) -> Option<&Result<Value, ApiError>> {
        self.end.as_ref().filter(|_| self.patience == 0)
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// It is not carried out yet.
    Pending,
    /// It had its effect.
    Done,
    /// It failed.
    Failed,
}

/// A job as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobRecord {
    /// Id.
    pub id: String,
    /// The command.
    pub command: &'static str,
    /// The id of the object it is about.
    pub object: Option<String>,
    /// How far it is, whatever polls are told.
    pub status: JobStatus,
    /// Why it failed.
    pub error: Option<String>,
}

impl Jobs {
    pub(crate) fn add_fault(&mut self, fault: JobFault) {
        self.faults.push((fault, 0));
    }

    pub(crate) fn clear_faults(&mut self) {
        self.faults.clear();
    }

    pub(crate) fn records(&self) -> Vec<JobRecord> {
        let record = |job: &Job| JobRecord {
            id: job.id.clone(),
            command: job.order.operation.name(),
            object: job.order.instance.as_ref().map(|(_, id)| id.clone()),
            status: match &job.end {
                None => JobStatus::Pending,
                Some(Ok(_)) => JobStatus::Done,
                Some(Err(_)) => JobStatus::Failed,
            },
            error: match &job.end {
                Some(Err(error)) => Some(error.text.clone()),
                _ => None,
            },
        };
        self.all.values().map(record).collect()
    }

    /// The next moment at which a job ends.
    pub(crate) fn next_due(&self, behaviour: &Behaviour) -> Option<Instant> {
        let open = self.open.iter().filter_map(|id| self.all.get(id));
        let open = open.filter(|job| self.goes_on(job, behaviour));
        open.filter_map(|job| job.due).min()
    }

    /// Whether a job goes on when its time has come: it is asked after, where that is needed, and waits for none before it that
    /// never ends.
    fn goes_on(&self, job: &Job, behaviour: &Behaviour) -> bool {
        if behaviour.jobs_wait_for_polls && job.patience > 0 {
            return false;
        }
        let before = self.open.iter().take_while(|id| **id != job.id);
        let mut before = before.filter_map(|id| self.all.get(id));
        let holds_up = |other: &Job| {
            other.due.is_none() && other.order.lane.is_some() && other.order.lane == job.order.lane
        };
        !(behaviour.stuck_jobs_hold_up && before.any(holds_up))
    }

    /// Ends those that never end: they fail.
    pub(crate) fn end_stuck(&mut self) {
        let stuck = self
            .all
            .values_mut()
            .filter(|job| job.end.is_none() && job.due.is_none());
        stuck.for_each(|job| job.due = Some(Instant::now()));
    }

    /// A job that was accepted.
    pub(crate) fn get(&self, id: &str) -> Option<&Job> {
        self.all.get(id)
    }

    /// The fault that strikes a job, after all rules have counted it.
    fn strike(&mut self, command: &str) -> Option<JobFault> {
        let mut struck = None;
        for (fault, seen) in &mut self.faults {
            if fault.command.as_deref().is_some_and(|it| it != command) {
                continue;
            }
            *seen += 1;
            let is_hit = *seen >= fault.nth && fault.times.is_none_or(|times| *seen - fault.nth < times);
            if is_hit && struck.is_none() {
                struck = Some(fault.clone());
            }
        }
        struck
    }
}

impl State {
    /// Notes that a job is asked after.
    pub(crate) fn note_poll(&mut self, id: &str) {
        if let Some(job) = self.jobs.all.get_mut(id) {
            job.patience = job.patience.saturating_sub(1);
        }
        self.finish_due_jobs();
    }

    /// Accepts a job; answers its id. What takes no time has its effect at once.
    pub(crate) fn accept(&mut self, order: Order) -> String {
        let id = self.id();
        let fault = self.jobs.strike(order.operation.name());
        let is_stuck = fault.as_ref().is_some_and(|it| it.kind == JobFaultKind::Stuck);
        let (begin, end) = self.times(order.lane.as_deref(), is_stuck);
        let job = Job {
            id: id.clone(),
            order,
            created: self.now(),
            completed: None,
            begin,
            has_begun: false,
            due: end,
            fault,
            end: None,
            patience: self.behaviour.job_polls,
        };
        self.jobs.all.insert(id.clone(), job);
        self.jobs.open.push(id.clone());
        self.finish_due_jobs();
        id
    }

    /// When a new job of a network begins and ends: it begins when the one before it has ended. One that never ends
    /// takes no time.
    fn times(&mut self, lane: Option<&str>, is_stuck: bool) -> (Instant, Option<Instant>) {
        let now = Instant::now();
        let before = lane.and_then(|lane| self.jobs.lanes.get(lane)).copied();
        let begin = before.map_or(now, |it| it.max(now));
        if is_stuck {
            return (begin, None);
        }
        let due = begin + self.behaviour.job_time;
        if let Some(lane) = lane {
            self.jobs.lanes.insert(lane.to_owned(), due);
        }
        (begin, Some(due))
    }

    /// Begins and carries out the jobs whose time has come, in the order of their times.
    pub(crate) fn finish_due_jobs(&mut self) {
        let now = Instant::now();
        loop {
            // What comes next of a job, and when: one that ends comes before one that begins then.
            let next = |id: &&String| {
                let job = self.jobs.all.get(*id)?;
                let goes_on = self.jobs.goes_on(job, &self.behaviour);
                let time = if job.has_begun { job.due } else { Some(job.begin) };
                time.filter(|it| goes_on && *it <= now)
                    .map(|time| (time, !job.has_begun))
            };
            let ready = self.jobs.open.iter().filter(|id| next(id).is_some());
            let Some(id) = ready.min_by_key(|id| next(id)).cloned() else {
                break;
            };
            match self.jobs.all.get_mut(&id) {
                Some(job) if !job.has_begun => {
                    job.has_begun = true;
                    let effect = job.order.effect.clone();
                    self.begin(&effect);
                }
                _ => {
                    self.jobs.open.retain(|it| *it != id);
                    self.finish(&id);
                }
            }
        }
        while self.jobs.all.len() > KEPT_JOBS {
            let oldest = self.jobs.all.values().find(|job| job.end.is_some());
            let Some(oldest) = oldest.map(|job| job.id.clone()) else {
                break;
            };
            self.jobs.all.shift_remove(&oldest);
        }
    }

    fn finish(&mut self, id: &str) {
        let Some(job) = self.jobs.all.get(id) else {
            return;
        };
        let (effect, fault) = (job.order.effect.clone(), job.fault.clone());
        let end = match fault {
            Some(fault) => {
                let is_done = fault.kind == JobFaultKind::Kept && self.carry_out(&effect).is_ok();
                if !is_done {
                    self.undo(&effect);
                }
                Err(ApiError::new(fault.code, fault.text))
            }
            None => {
                let end = self.carry_out(&effect);
                if end.is_err() {
                    self.undo(&effect);
                }
                end
            }
        };
        let now = self.now();
        if let Some(job) = self.jobs.all.get_mut(id) {
            (job.end, job.completed) = (Some(end), Some(now));
        }
    }
}
