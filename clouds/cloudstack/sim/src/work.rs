//! Accepting jobs, and carrying out those whose time has come.

use tokio::time::Instant;

use crate::behaviour::JobFaultKind;
use crate::error::ApiError;
use crate::jobs::{Job, Order};
use crate::state::State;

/// The poll of this number is the first to tell that a job is done.
const POLLS: u32 = 2;

/// The most ended jobs that are remembered, so that a program can run for ever.
const KEPT_JOBS: usize = 10_000;

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
            patience: POLLS,
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
