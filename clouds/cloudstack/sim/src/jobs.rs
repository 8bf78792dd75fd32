//! Asynchronous commands: accepted at once, carried out one after another on each network.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::behaviour::{Behaviour, JobFault};
use crate::error::ApiError;
use crate::model::Tag;
use crate::operation::Operation;

/// All jobs, those that ended too, and what goes wrong with them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) all: IndexMap<String, Job>,
    /// Those without an end, in order of acceptance.
    pub(crate) open: Vec<String>,
    /// When the last job of each network ends.
    pub(crate) lanes: BTreeMap<String, Instant>,
    pub(crate) faults: Vec<(JobFault, u64)>,
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

/// What a job does. What a creating command makes is there from its acceptance on, under this id.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Associate(String),
    Disassociate(String),
    CreateRule(String),
    UpdateRule {
        rule: String,
        change: RuleChange,
    },
    DeleteRule(String),
    Assign {
        rule: String,
        vms: Vec<String>,
    },
    Remove {
        rule: String,
        vms: Vec<String>,
    },
    CreatePolicy {
        rule: String,
        policy: String,
    },
    DeletePolicy {
        rule: String,
        policy: String,
    },
    CreateFirewall(String),
    DeleteFirewall(String),
    CreateAcl(String),
    UpdateAcl {
        item: String,
        change: AclChange,
    },
    DeleteAcl(String),
    Tag {
        kind: String,
        ids: Vec<String>,
        tags: Vec<Tag>,
    },
    Untag {
        kind: String,
        ids: Vec<String>,
        tags: Vec<Tag>,
    },
}

/// What is new about a load balancer rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleChange {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) algorithm: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) cidrs: Option<String>,
}

/// What is new about a network ACL item.
#[derive(Clone, Debug, Default)]
pub(crate) struct AclChange {
    pub(crate) number: Option<u32>,
    pub(crate) protocol: Option<String>,
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) cidrs: Option<Vec<String>>,
    pub(crate) is_allow: Option<bool>,
    pub(crate) is_ingress: Option<bool>,
    pub(crate) reason: Option<String>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) order: Order,
    pub(crate) created: String,
    pub(crate) completed: Option<String>,
    /// When it begins: when those before it on its network are done.
    pub(crate) begin: Instant,
    pub(crate) has_begun: bool,
    /// When it is carried out; never if absent.
    pub(crate) due: Option<Instant>,
    pub(crate) fault: Option<JobFault>,
    pub(crate) end: Option<Result<Value, ApiError>>,
    /// Polls that may still be told that it is under way.
    pub(crate) patience: u32,
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
    pub(crate) fn goes_on(&self, job: &Job, behaviour: &Behaviour) -> bool {
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
    pub(crate) fn strike(&mut self, command: &str) -> Option<JobFault> {
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
