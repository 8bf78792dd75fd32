//! A plan as text for people and as JSON for programs.

mod words;

use std::fmt::Write as _;

use serde::Serialize;

use crate::{AddressChange, Impact, Note, Refusal, StepView};

/// Everything that would be done for one object, wave by wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanReport {
    /// The object, as `namespace/name`.
    pub object: String,
    /// The waves in order; empty if nothing has to be done.
    pub waves: Vec<ReportedWave>,
    /// How the plan ends.
    pub outcome: ReportedOutcome,
    /// What would be said in events.
    pub notes: Vec<Note>,
    /// What came of the manager's last try, where that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_try: Option<String>,
    /// What does not answer behind it by now, as the cloud tells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ailments: Vec<Ailment>,
    /// What the load balancer is like by now.
    #[serde(skip)]
    pub shown: Shown,
    /// Which addresses the Service loses by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_change: Option<AddressChange>,
}

/// What a load balancer shows of itself, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// The zone that it is in, where the cloud has zones of load balancers.
    pub zone: Option<String>,
    /// Its members and how they are, a line for each pool or rule; who is none, and why; what the cloud does not tell.
    pub members: Vec<String>,
}

impl Shown {
    /// Adds the members of a pool or rule, each with how it is; empty where the cloud does not tell.
    pub fn add_members<'a>(&mut self, of: &str, members: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut all = members.into_iter().map(|(name, state)| match state {
            "" => name.to_owned(),
            state => format!("{name} {state}"),
        });
        let mut names: Vec<String> = all.by_ref().take(MOST_MEMBERS).collect();
        let more = all.count();
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        let names = match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        };
        self.members.push(format!("members of {of}: {names}"));
    }
}

/// How many members of one pool are named.
const MOST_MEMBERS: usize = 20;

/// Members of a pool that do not answer, as the cloud tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ailment {
    /// Which.
    pub text: String,
    /// Whether the pool has no other ones.
    pub is_total: bool,
    /// What to do; empty where members do not answer.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub remedy: &'static str,
    /// Whether it is so of each load balancer for a moment while it is made.
    #[serde(skip)]
    pub is_of_making: bool,
    /// What to do where that stays with nothing left to make; empty: then it is as the Service asks.
    #[serde(skip)]
    pub once_made: &'static str,
}

/// What to do about a Service whose ports have no node ports.
const NO_NODE_PORTS: &str = "whoever owns the Service sets spec.allocateLoadBalancerNodePorts to true, or gives each port a nodePort: the load balancer \
    reaches the Nodes there";

/// What to do about Nodes none of which can be a member.
const NO_MEMBERS: &str = "whoever runs the cluster looks at the Nodes (`explain` with node/NAME): each has to be initialised, and to have an address \
    that the load balancer can send to";

impl Ailment {
    /// What is not so of each load balancer while it is made.
    #[must_use]
    pub fn new(text: String, is_total: bool, remedy: &'static str) -> Self {
        Self {
            text,
            is_total,
            remedy,
            is_of_making: false,
            once_made: "",
        }
    }

    /// A pool without members, although there are Nodes.
    #[must_use]
    pub fn of_empty_pool(pool: &str, has_node_ports: bool) -> Self {
        Self {
            once_made: if has_node_ports { NO_MEMBERS } else { NO_NODE_PORTS },
            ..Self::leads_nowhere(format!("pool {pool}: it has no members"))
        }
    }

    /// A part leads nowhere, because what is behind it is gone.
    #[must_use]
    pub fn leads_nowhere(text: String) -> Self {
        Self {
            text,
            is_total: true,
            remedy: "a manager that leads makes what is missing when it looks next: after up to ten minutes, or at once when the Service changes, as by any annotation",
            is_of_making: true,
            once_made: "",
        }
    }

    /// The same where nothing is left to make; `None`: then it is none.
    #[must_use]
    pub fn once_made(self) -> Option<Self> {
        match (self.is_of_making, self.once_made) {
            (false, _) => Some(self),
            (true, "") => None,
            (true, remedy) => Some(Self {
                remedy,
                is_of_making: false,
                ..self
            }),
        }
    }

    /// What a person has to do something about, because nothing serves until then.
    #[must_use]
    pub fn lasting(&self) -> Option<Refusal> {
        let lasts = self.is_total && !self.remedy.is_empty() && !self.is_of_making;
        lasts.then(|| Refusal::new(self.text.clone()).with_remedy(self.remedy))
    }

    /// A member, where it is reached, and what the cloud says of it.
    #[must_use]
    pub fn member(name: &str, address: &str, port: u16, status: &str) -> String {
        match address.contains(':') {
            true => format!("{name} ([{address}]:{port}, {status})"),
            false => format!("{name} ({address}:{port}, {status})"),
        }
    }

    /// These members of so many are down; `None` if it is none of them.
    #[must_use]
    pub fn of_members(pool: &str, down: &[String], of: usize) -> Option<Self> {
        let count = down.len();
        let names = down.join(", ");
        let text = format!("pool {pool}: {count} of {of} members do not answer: {names}");
        (count > 0).then(|| Self::new(text, count == of, ""))
    }
}

impl PlanReport {
    /// The report of an object for which nothing is done so far.
    #[must_use]
    pub fn of_nothing(object: String) -> Self {
        Self {
            object,
            waves: Vec::new(),
            outcome: ReportedOutcome::Settled {
                publishes: Vec::new(),
            },
            notes: Vec::new(),
            last_try: None,
            ailments: Vec::new(),
            shown: Shown::default(),
            address_change: None,
        }
    }

    /// All steps in order, in people's words.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        words::of(self)
    }

    /// The worst impact of all steps; an address that goes is the worst of all.
    #[must_use]
    pub fn impact(&self) -> Impact {
        if self.address_change.is_some() {
            return Impact::Major;
        }
        let steps = self.waves.iter().flat_map(|wave| &wave.steps);
        steps.map(|step| step.impact).max().unwrap_or_default()
    }

    /// Whether applying the plan would change anything.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.waves.is_empty()
    }

    /// Whether all is as it should be, and nothing would be written anywhere.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let writes_nothing = match &self.outcome {
            ReportedOutcome::Settled { publishes } => publishes.is_empty(),
            ReportedOutcome::NotServed { .. } => true,
            _ => false,
        };
        writes_nothing && !self.has_changes()
    }

    /// What comes of it, in a few words. "No changes" is said only where all is as it should be.
    #[must_use]
    pub fn headline(&self) -> String {
        let steps: usize = self.waves.iter().map(|wave| wave.steps.len()).sum();
        let done = match (steps, self.waves.len()) {
            (0, _) => None,
            (1, _) => Some(format!("1 step, impact {}", self.impact())),
            (_, 1) => Some(format!("{steps} steps in 1 wave, impact {}", self.impact())),
            (_, waves) => Some(format!(
                "{steps} steps in {waves} waves, impact {}",
                self.impact()
            )),
        };
        let rest = match &self.outcome {
            ReportedOutcome::Settled { publishes } if publishes.is_empty() => "no changes",
            ReportedOutcome::Settled { .. } => "no steps in the cloud",
            ReportedOutcome::Waiting { .. } => "no plan yet, the cloud is busy",
            ReportedOutcome::Refused { .. } => "not possible as it is asked for",
            ReportedOutcome::Failed { .. } => "no plan could be made",
            ReportedOutcome::NotServed { .. } => "not for this manager",
        };
        let follow = self.address_change.as_ref();
        let follow = follow.map_or(String::new(), |it| format!(", clients have to follow: {it}"));
        match (done.map(|done| done + &follow), &self.outcome) {
            (None, _) => rest.to_owned() + &follow,
            (Some(done), ReportedOutcome::Settled { .. } | ReportedOutcome::NotServed { .. }) => done,
            (Some(done), ReportedOutcome::Waiting { .. }) => format!("{done}; then the cloud is busy"),
            (Some(done), ReportedOutcome::Refused { .. }) => format!("{done}; the rest is {rest}"),
            (Some(done), ReportedOutcome::Failed { .. }) => format!("{done}; then {rest}"),
        }
    }
}

/// Steps that are applied together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedWave {
    /// The steps in plan order.
    pub steps: Vec<ReportedStep>,
}

impl ReportedWave {
    /// The wave of these steps.
    #[must_use]
    pub fn of(steps: &[StepView]) -> Self {
        Self {
            steps: steps.iter().map(ReportedStep::of).collect(),
        }
    }
}

/// One step as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedStep {
    /// The step in one line.
    pub label: String,
    /// What it touches.
    pub object: String,
    /// What it does to present traffic.
    pub impact: Impact,
    /// What it may not run beside.
    pub lanes: Vec<String>,
}

impl ReportedStep {
    fn of(step: &StepView) -> Self {
        Self {
            label: step.label.clone(),
            object: step.object.clone(),
            impact: step.impact,
            lanes: step.lanes.iter().map(ToString::to_string).collect(),
        }
    }
}

/// How a plan ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum ReportedOutcome {
    /// After the waves, if any, all is as it should be.
    Settled {
        /// What would be published, in words.
        publishes: Vec<String>,
    },
    /// The cloud is busy; a plan can be made when it is done.
    Waiting {
        /// What is being waited for.
        reason: String,
    },
    /// A person has to change something first.
    Refused {
        /// What, and what would help.
        #[serde(flatten)]
        refusal: Refusal,
    },
    /// The plan could not be made.
    Failed {
        /// Why.
        error: String,
    },
    /// The object is for nobody, or for somebody else, to serve.
    #[serde(rename = "not-served")]
    NotServed {
        /// What says so.
        because: String,
    },
}

/// The reports as text, for a terminal. Colour carries no meaning here: there is none.
#[must_use]
pub fn render_text(reports: &[PlanReport]) -> String {
    let mut text = String::new();
    for report in reports {
        // Writing to a String cannot fail.
        let _ = render_one(&mut text, report);
    }
    text
}

fn render_one(text: &mut String, report: &PlanReport) -> std::fmt::Result {
    writeln!(text, "{}: {}", report.object, report.headline())?;
    let mut words = report.in_words().into_iter();
    for (index, wave) in report.waves.iter().enumerate() {
        writeln!(text, "  wave {}", index + 1)?;
        for (step, words) in wave.steps.iter().zip(&mut words) {
            writeln!(text, "    {:<14} {words}", format!("[{}]", step.impact))?;
        }
    }
    match &report.outcome {
        ReportedOutcome::Settled { publishes } if publishes.is_empty() => {}
        ReportedOutcome::Settled { publishes } => writeln!(text, "  publishes: {}", publishes.join(", "))?,
        ReportedOutcome::Waiting { reason } => writeln!(text, "  waits: {reason}")?,
        ReportedOutcome::Refused { refusal } => writeln!(text, "  refused: {refusal}")?,
        ReportedOutcome::Failed { error } => writeln!(text, "  failed: {error}")?,
        ReportedOutcome::NotServed { because } => writeln!(text, "  because: {because}")?,
    }
    if let Some(last_try) = &report.last_try {
        writeln!(text, "  last try: {last_try}")?;
    }
    for ailment in &report.ailments {
        writeln!(text, "  unwell: {}", ailment.text)?;
    }
    for note in &report.notes {
        writeln!(text, "  note {}: {}", note.reason, note.text)?;
    }
    Ok(())
}

/// What the JSON is called. It gets another name when something that a program may go by changes its form or goes.
const SCHEMA: &str = "bowline/plan/v1";

/// The reports as one JSON object.
#[must_use]
pub fn render_json(reports: &[PlanReport]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'a str,
        plans: &'a [PlanReport],
    }
    let document = Document {
        schema: SCHEMA,
        plans: reports,
    };
    // The types above serialise without error: no map with keys that are not strings, no foreign code.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lane;

    fn report() -> PlanReport {
        let step = |label: &str, impact| StepView {
            label: label.into(),
            object: "pool tcp/web".into(),
            impact,
            lanes: vec![Lane::new("lb-1")],
        };
        PlanReport {
            object: "default/web".into(),
            waves: vec![
                ReportedWave::of(&[step("create-pool(lb-1/tcp/web)", Impact::None)]),
                ReportedWave::of(&[step("delete-pool(lb-1/tcp/old)", Impact::Considerable)]),
            ],
            outcome: ReportedOutcome::Settled {
                publishes: vec!["203.0.113.7".into()],
            },
            notes: vec![Note::warning("NoValidNodes", "no node matches the selector")],
            last_try: None,
            ailments: Vec::new(),
            shown: Shown::default(),
            address_change: None,
        }
    }

    /// The steps that make another address harm nobody; that it is another one does.
    #[test]
    fn an_address_that_goes_is_an_impact_of_its_own() {
        let change = AddressChange::between(&["192.0.2.1".to_owned()], &["203.0.113.7".to_owned()]);
        let mut report = PlanReport {
            address_change: change,
            ..report()
        };
        report.waves.pop();
        assert_eq!(
            report.headline(),
            "1 step, impact major, clients have to follow: 192.0.2.1 becomes 203.0.113.7"
        );
        report.waves.clear();
        assert_eq!(
            report.headline(),
            "no steps in the cloud, clients have to follow: 192.0.2.1 becomes 203.0.113.7"
        );
    }

    #[test]
    fn text_shows_waves_with_their_impact() {
        insta::assert_snapshot!(render_text(&[report()]), @r"
        default/web: 2 steps in 2 waves, impact considerable
          wave 1
            [none]         create pool lb-1/tcp/web
          wave 2
            [considerable] delete pool lb-1/tcp/old
          publishes: 203.0.113.7
          note NoValidNodes: no node matches the selector
        ");
    }

    #[test]
    fn only_what_is_as_it_should_be_has_no_changes() {
        let settled = |publishes: &[&str]| ReportedOutcome::Settled {
            publishes: publishes.iter().map(ToString::to_string).collect(),
        };
        let waiting = ReportedOutcome::Waiting {
            reason: "building".into(),
        };
        let refused = ReportedOutcome::Refused {
            refusal: Refusal::new("zone changed").with_remedy("set it back"),
        };
        let failed = ReportedOutcome::Failed {
            error: "there is no such Service".into(),
        };
        let not_served = ReportedOutcome::NotServed {
            because: "its type is ClusterIP".into(),
        };
        let outcomes = [
            settled(&[]),
            settled(&["192.0.2.1"]),
            waiting,
            refused,
            failed,
            not_served,
        ];
        let mut reports = Vec::new();
        for outcome in &outcomes {
            let mut report = report();
            report.notes.clear();
            report.outcome = outcome.clone();
            reports.push(report.clone());
            report.waves.clear();
            reports.push(report);
        }
        let with_steps: Vec<PlanReport> = reports.iter().step_by(2).cloned().collect();
        let heads: Vec<String> = render_text(&with_steps)
            .lines()
            .filter(|line| line.starts_with("default/web: "))
            .map(ToOwned::to_owned)
            .collect();
        let steps = "default/web: 2 steps in 2 waves, impact considerable";
        assert_eq!(
            heads,
            [
                steps.to_owned(),
                steps.to_owned(),
                format!("{steps}; then the cloud is busy"),
                format!("{steps}; the rest is not possible as it is asked for"),
                format!("{steps}; then no plan could be made"),
                steps.to_owned(),
            ]
        );
        let without_steps: Vec<PlanReport> = reports.iter().skip(1).step_by(2).cloned().collect();
        insta::assert_snapshot!(render_text(&without_steps), @r"
        default/web: no changes
        default/web: no steps in the cloud
          publishes: 192.0.2.1
        default/web: no plan yet, the cloud is busy
          waits: building
        default/web: not possible as it is asked for
          refused: zone changed; set it back
        default/web: no plan could be made
          failed: there is no such Service
        default/web: not for this manager
          because: its type is ClusterIP
        ");
    }

    #[test]
    fn json_names_the_outcome() {
        let json: serde_json::Value = serde_json::from_str(&render_json(&[report()])).unwrap();
        assert_eq!(json["plans"][0]["outcome"]["state"], "settled");
        assert_eq!(json["plans"][0]["waves"][1]["steps"][0]["impact"], "considerable");
    }
}
