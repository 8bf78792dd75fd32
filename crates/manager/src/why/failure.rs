//! A failure that the manager has told of, and who has to do what about it.

use std::borrow::Cow;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{Service, ServiceKey, facts};
use bowline_controllers::advice;
use bowline_controllers::events::EVENTS;
use bowline_controllers::trouble::{NO_ANSWER, Trouble};
use bowline_kube_io::SeenEvent;
use jiff::{SignedDuration, Timestamp};

use super::causes::LAST_TRY;
use super::remedies::of_text;
use super::{Cause, DONE, FAILED, Known, NO_NODES, span};
use crate::outcome::Outcome;

/// A failure that the manager has told of, and that has not been followed by a success.
pub(super) struct Failure<'a> {
    /// The reason of the condition; empty if there is none (yet).
    pub(super) reason: &'a str,
    /// What the condition says, in parts: what is decided is decided by these.
    told: Option<Trouble>,
    /// Whether it is the load balancer's removal that failed.
    is_of_removal: bool,
    /// What has happened: what people are shown.
    pub(super) text: Cow<'a, str>,
    pub(super) since: Option<Timestamp>,
    last: Option<(Timestamp, u32)>,
    /// Since when a condition says so that nobody keeps up to date: no process of this program leads.
    left: Option<Timestamp>,
}

impl<'a> Failure<'a> {
    pub(super) fn of(service: &'a Service, known: &Known<'a>) -> Option<Self> {
        let key = ServiceKey::of(service).to_string();
        let ends = |it: &&SeenEvent| FAILED.contains(&&*it.reason) || DONE.contains(&&*it.reason);
        let last = known.events.iter().rfind(|it| it.object == key && ends(it));
        let shown = facts::trouble(service);
        let told = shown.map(|it| Trouble::read(&it.message));
        // A sync has settled since the one that failed.
        let is_over = told.as_ref().is_some_and(|it| it.what() == NO_ANSWER);
        let is_failure = |it: &&SeenEvent| FAILED.contains(&&*it.reason) && known.is_recent(it) && !is_over;
        let failed = last.filter(is_failure);
        let text: Cow<'_, str> = match (failed, &told) {
            (Some(event), told) => without_remedy(&event.message, told.as_ref()).into(),
            (None, Some(told)) => told.in_general().into_owned().into(),
            (None, None) => return None,
        };
        // A failure is never younger than its last event, whoever wrote the condition when.
        let since = shown.map(|it| it.last_transition_time);
        let since = since.map(|since| failed.map_or(since, |it| since.min(it.last)));
        let is_left = known.is_unled && told.as_ref().is_some_and(|it| text.contains(it.what()));
        Some(Self {
            reason: shown.map_or("", |it| &it.reason),
            told,
            is_of_removal: !known.classes.is_wanted(service) || service.metadata.deletion_timestamp.is_some(),
            text,
            since,
            last: failed.map(|it| (it.last, it.count)),
            left: shown.filter(|_| is_left).map(|it| it.last_transition_time),
        })
    }

    /// The cause of what was left by a process that does not lead any more.
    pub(super) fn left(&self) -> Option<Cause> {
        let left = self.left?;
        let text = format!(
            "left by Bowline at {left}, not kept since: {}: {}",
            self.reason, self.text
        );
        let mut cause = Cause::new(self.id(), Outcome::Warning, text, LEFT);
        cause.timeless = self.text.to_string();
        Some(cause)
    }

    pub(super) fn id(&self) -> String {
        match self.reason {
            "" => format!("{LAST_TRY}failed"),
            reason => format!("{LAST_TRY}{reason}"),
        }
    }

    /// Whether a cloud that answers a question says that it may be over: of a write that failed, or of what it waits for, it says nothing.
    pub(super) fn may_be_over(&self, report: Option<&PlanReport>) -> bool {
        let waits = report.is_some_and(|it| matches!(it.outcome, ReportedOutcome::Waiting { .. }));
        let is_of_question = self.told.as_ref().is_some_and(Trouble::is_of_question);
        let may_pass = matches!(self.reason, "failed" | "throttled");
        self.is_unauthenticated() || !waits && is_of_question && may_pass
    }

    /// When the manager tries again.
    pub(super) fn next(&self) -> String {
        let within = self.told.as_ref().and_then(Trouble::within);
        let when = within.map_or_else(|| "by itself".to_owned(), |within| format!("within {within}"));
        format!("the manager tries again {when}, and at once when the Service changes")
    }

    /// Whether the cloud did not take the manager's credentials.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.reason == "denied" && self.told.as_ref().is_some_and(Trouble::is_unauthenticated)
    }

    pub(super) fn is_wait(&self) -> bool {
        self.last.is_none() && matches!(self.reason, "waiting" | "pending" | "unanswered")
    }

    pub(super) fn says(&self, now: Timestamp) -> String {
        let text = &self.text;
        match self.last {
            // The same failure is recorded every ten minutes, and tried more often.
            Some((last, count)) => {
                let times = if count == 1 {
                    String::new()
                } else {
                    format!(", counted {count} times")
                };
                format!(
                    "the last try failed (event of {} ago{times}): {text}",
                    span(now, last)
                )
            }
            None => format!("{}: {text}", self.reason),
        }
    }

    /// Whether it holds for longer than a change in a cloud takes.
    fn has_lasted(&self, now: Timestamp) -> bool {
        self.since
            .is_some_and(|since| now.duration_since(since) > CHANGED_WITHIN)
    }

    /// Who has to do what about it.
    pub(super) fn remedy(&self, now: Timestamp) -> Cow<'static, str> {
        // Whatever else was refused, without Nodes nobody is served.
        let mut known = EVENTS.iter();
        let no_nodes = known.find(|it| it.reason == NO_NODES).map(|it| it.message);
        let is_of_nodes = |it: &&Trouble| Some(it.what()) == no_nodes;
        let told = self.told.as_ref();
        let told = told.filter(|it| self.reason != "no_nodes" || is_of_nodes(it));
        let own = told.and_then(Trouble::own_remedy);
        let own = own.map(|own| Cow::Owned(own.to_owned()));
        let remedy = own.or_else(|| of_text(&self.text));
        remedy.unwrap_or_else(|| Cow::Borrowed(self.remedy_of_reason(now)))
    }

    /// The same about a reason of the condition.
    fn remedy_of_reason(&self, now: Timestamp) -> &'static str {
        match self.reason {
            "refused" | "invalid" => {
                "whoever the text names does what it says; if it names nobody, whoever owns the Service changes what it names"
            }
            "denied" if self.is_unauthenticated() => {
                "whoever runs the manager gives it new credentials: a token, key or password is wrong, expired or revoked"
            }
            "denied" if self.is_of_removal => {
                "whoever runs the manager gives it credentials that may delete in the project of this cluster; until then what the text names is \
                 left in the cloud, and may be billed"
            }
            "denied" => {
                "whoever owns the Service sees that what the text names exists, and that this project may use it; if it names nothing, whoever \
                 runs the manager gives it credentials that may write in the project of this cluster"
            }
            "quota" if self.text.contains(advice::FULL) => {
                "whoever runs the network or subnet that the text names frees addresses, or extends it; or whoever owns the Service asks for an \
                 address elsewhere"
            }
            "quota" => {
                "whoever owns the project of the cloud has the limit raised, or deletes what nobody needs"
            }
            "throttled" => {
                "look at the cloud's own status page, as for a maintenance, and who else calls its API with these credentials; else nobody has to do \
                 anything"
            }
            "conflict" => {
                "if the text names what stands in the way, such as a router that a network lacks, whoever owns the project clears it; else see who \
                 else changes this load balancer in the cloud"
            }
            "kubernetes" => OF_KUBERNETES,
            "" if self.text.contains(" finalizer: ") => OF_KUBERNETES,
            "no_nodes" => "whoever runs the cluster adds Nodes, or lets some in",
            "waiting" | "pending" if self.text.contains("whoever ") => {
                "nobody has to do anything, unless it stays: then whoever the text names does what it says"
            }
            "waiting" | "pending" if self.has_lasted(now) => {
                "this is too long: whoever owns the project looks at the load balancer in the cloud, and at what the text names; what never ends \
                 there is for the cloud's operator"
            }
            "waiting" | "pending" => {
                "nobody has to do anything, unless it stays for minutes: then whoever owns the project looks at the load balancer in the cloud, \
                 and asks the cloud's support about one that never ends"
            }
            "failed" => "follow the text; if it names nothing, look at the cloud's own status page",
            _ => "follow the text",
        }
    }
}

/// The text of an event, without the remedy that is told apart from it.
fn without_remedy<'a>(text: &'a str, told: Option<&Trouble>) -> &'a str {
    let own = told.and_then(Trouble::own_remedy);
    let without = own.and_then(|own| text.strip_suffix(own)?.strip_suffix("; "));
    without.unwrap_or(text)
}

/// What to do about a write to the Service that the API server did not take.
const OF_KUBERNETES: &str = "whoever runs the cluster looks at the manager's role, and at webhooks and policies: what the text names leaves the manager's \
    writes out";

/// Within this time a cloud makes a load balancer, or changes it: an amphora of OpenStack is built in one to two minutes.
const CHANGED_WITHIN: SignedDuration = SignedDuration::from_secs(150);

/// What to do about a condition that nobody keeps up to date.
const LEFT: &str = "nobody has to do anything for it: it may be over, and a process of Bowline that leads tells it anew. If a Go manager is to stay, \
    which knows no such condition, take it off: kubectl -n NAMESPACE patch service NAME --subresource=status \
    -p '{\"status\":{\"conditions\":[{\"type\":\"LoadBalancerReconciled\",\"$patch\":\"delete\"}]}}'";
