//! Plans as the page shows them: first as the command `plan` prints them, then step by step as the manager makes them.

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use serde::Serialize;

use crate::manager::{StepNews, What};

/// How many are remembered: one for each of the objects that changed last.
const REMEMBERED: usize = 4;

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Progress {
    Planned,
    Running,
    Done,
    Failed,
    /// All is as it should be without it.
    Spared,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    label: String,
    impact: String,
    progress: Progress,
}

impl Step {
    fn running(news: &StepNews, impact: &str) -> Self {
        Self {
            label: news.label.clone(),
            impact: impact.to_owned(),
            progress: Progress::Running,
        }
    }
}

/// The plan of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Shown {
    /// Grows with each plan.
    number: u64,
    object: String,
    /// What leads to it.
    why: String,
    waves: Vec<Vec<Step>>,
    /// Steps that were made and stand in no plan that was shown.
    others: Vec<Step>,
    /// How it ends, in words.
    outcome: String,
    /// Whether a person or time has to help first.
    is_stuck: bool,
    /// Whether the manager has said that it is done.
    is_settled: bool,
}

impl Shown {
    fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        self.waves.iter_mut().flatten().chain(&mut self.others)
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Whether a step that begins may belong to it.
    fn is_going(&self) -> bool {
        let mut steps = self.waves.iter().flatten().chain(&self.others);
        let is_open = |step: &Step| !matches!(step.progress, Progress::Done | Progress::Spared);
        self.is_stuck || (!self.is_settled && steps.any(is_open))
    }
}

/// The last ones, the newest last.
#[derive(Debug, Default)]
pub(super) struct Plans {
    shown: Vec<Shown>,
    made: u64,
}

impl Plans {
    /// The newest one.
    pub(super) fn last(&self) -> Option<&Shown> {
        self.shown.last()
    }

    /// A plan that is about to be followed.
    pub(super) fn show(&mut self, why: &str, report: &PlanReport) {
        let waves = report.waves.iter().map(|wave| {
            let steps = wave.steps.iter().map(|step| Step {
                label: step.label.clone(),
                impact: step.impact.to_string(),
                progress: Progress::Planned,
            });
            steps.collect()
        });
        let (outcome, is_stuck) = outcome(report);
        self.push(Shown {
            object: report.object.clone(),
            why: why.to_owned(),
            waves: waves.collect(),
            outcome,
            is_stuck,
            is_settled: report.waves.is_empty() && matches!(report.outcome, ReportedOutcome::Settled { .. }),
            ..Shown::default()
        });
    }

    /// That no plan could be made.
    pub(super) fn show_failure(&mut self, object: &str, why: &str, error: &str) {
        self.push(Shown {
            object: object.to_owned(),
            why: why.to_owned(),
            outcome: format!("no plan could be made: {error}"),
            is_stuck: true,
            ..Shown::default()
        });
    }

    fn push(&mut self, shown: Shown) {
        self.made += 1;
        self.shown.retain(|it| it.object != shown.object);
        self.shown.push(Shown {
            number: self.made,
            ..shown
        });
        let excess = self.shown.len().saturating_sub(REMEMBERED);
        self.shown.drain(..excess);
    }

    /// A step was begun, or has ended.
    pub(super) fn hear(&mut self, news: &StepNews) {
        match &news.what {
            What::Begun(impact) => self.begin(news, impact),
            What::Done => self.end(news, Progress::Done),
            What::PutOff => {} // it goes on
            What::Failed => self.end(news, Progress::Failed),
        }
    }

    fn begin(&mut self, news: &StepNews, impact: &str) {
        let mut going = self
            .shown
            .iter_mut()
            .filter(|it| it.object == news.object && it.is_going());
        let Some(shown) = going.next() else {
            self.push(Shown {
                object: news.object.clone(),
                why: "the manager does this by itself".to_owned(),
                others: vec![Step::running(news, impact)],
                ..Shown::default()
            });
            return;
        };
        let open = shown
            .steps()
            .filter(|step| !matches!(step.progress, Progress::Done | Progress::Spared));
        let alike = open.filter_map(|step| Some((likeness(&step.label, &news.label)?, step)));
        // Of several that are equally alike the first one: steps are made in the order of the plan.
        let alike = alike.reduce(|best, other| if other.0 > best.0 { other } else { best });
        match alike {
            Some((_, step)) => {
                step.label.clone_from(&news.label);
                step.progress = Progress::Running;
            }
            None => shown.others.push(Step::running(news, impact)),
        }
    }

    fn end(&mut self, news: &StepNews, progress: Progress) {
        let mut shown = self.shown.iter_mut().filter(|it| it.object == news.object);
        let is_it = |step: &&mut Step| step.label == news.label && step.progress == Progress::Running;
        if let Some(step) = shown.next().and_then(|shown| shown.steps().find(is_it)) {
            step.progress = progress;
        }
    }

    /// All is as it should be: what is left was not needed any more. A step that a killed process had begun is done, else the next
    /// process would have made it.
    pub(super) fn settle(&mut self, object: &str) {
        let Some(shown) = self.shown.iter_mut().find(|it| it.object == object) else {
            return;
        };
        // An event of an earlier sync says nothing about a plan that nobody has begun, or that could not be made.
        let is_untouched = shown.steps().all(|step| step.progress == Progress::Planned);
        if is_untouched && (!shown.is_stuck || shown.steps().next().is_none()) {
            return;
        }
        for step in shown.steps() {
            match step.progress {
                Progress::Running => step.progress = Progress::Done,
                Progress::Planned | Progress::Failed => step.progress = Progress::Spared,
                Progress::Done | Progress::Spared => {}
            }
        }
        (shown.is_settled, shown.is_stuck) = (true, false);
    }
}

/// How alike a planned step and one that is made are; `None` if they do different things. Only the cloud knows the IDs and addresses
/// of what does not exist yet, so the plan has others in their place.
fn likeness(planned: &str, made: &str) -> Option<usize> {
    if planned == made {
        return Some(usize::MAX);
    }
    let words = |label: &str| -> Vec<String> {
        let words = label.split(['(', ')', '/', ' ', ',', ':', '=']);
        words.map(str::to_owned).collect()
    };
    let (planned, made) = (words(planned), words(made));
    let equal = planned.iter().zip(&made).filter(|(one, other)| one == other);
    (planned.first() == made.first()).then(|| equal.count())
}

/// How a plan ends, and whether it is stuck there.
fn outcome(report: &PlanReport) -> (String, bool) {
    match &report.outcome {
        ReportedOutcome::Settled { publishes } if publishes.is_empty() && report.waves.is_empty() => {
            ("no changes to the load balancer".to_owned(), false)
        }
        ReportedOutcome::Settled { publishes } if publishes.is_empty() => (String::new(), false),
        ReportedOutcome::Settled { publishes } => (format!("publishes {}", publishes.join(", ")), false),
        ReportedOutcome::Waiting { reason } => (format!("then waits: {reason}"), false),
        ReportedOutcome::Refused { refusal } => (format!("refused: {refusal}"), true),
        ReportedOutcome::Failed { error } => (format!("no plan could be made: {error}"), true),
        ReportedOutcome::NotServed { because } => (format!("not for this manager: {because}"), false),
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::plan::{Impact, ReportedWave, StepView};

    use super::*;

    const OBJECT: &str = "default/web";

    fn report(waves: &[&[&str]]) -> PlanReport {
        let step = |label: &&str| StepView {
            label: (*label).to_owned(),
            object: "it".to_owned(),
            impact: Impact::None,
            lanes: Vec::new(),
        };
        let wave = |steps: &&[&str]| ReportedWave::of(&steps.iter().map(step).collect::<Vec<_>>());
        PlanReport {
            waves: waves.iter().map(wave).collect(),
            ..PlanReport::of_nothing(OBJECT.to_owned())
        }
    }

    fn news(label: &str, what: What) -> StepNews {
        StepNews {
            object: OBJECT.to_owned(),
            label: label.to_owned(),
            what,
        }
    }

    fn begun() -> What {
        What::Begun("none".to_owned())
    }

    fn progress(plans: &Plans) -> Vec<(&str, Progress)> {
        let last = plans.last().unwrap();
        let steps = last.waves.iter().flatten().chain(&last.others);
        steps.map(|step| (step.label.as_str(), step.progress)).collect()
    }

    #[test]
    fn steps_of_the_plan_are_ticked_off_and_others_are_added() {
        let mut plans = Plans::default();
        plans.show("a port is added", &report(&[&["a"], &["b"]]));
        plans.hear(&news("a", begun()));
        plans.hear(&news("a", What::Done));
        plans.hear(&news("c", begun()));
        plans.hear(&news("c", What::Failed));
        let expected = [
            ("a", Progress::Done),
            ("b", Progress::Planned),
            ("c", Progress::Failed),
        ];
        assert_eq!(progress(&plans), expected);
        // The cloud is busy: it goes on.
        plans.hear(&news("b", begun()));
        plans.hear(&news("b", What::PutOff));
        assert_eq!(progress(&plans)[1].1, Progress::Running);
        // Tried again.
        plans.hear(&news("c", begun()));
        assert_eq!(progress(&plans)[2].1, Progress::Running);
        assert_eq!(plans.last().unwrap().number, 1);
    }

    #[test]
    fn steps_are_known_again_though_their_ids_were_made_up() {
        let planned = [
            "create-pool(00000001/tcp/http)",
            "create-member(00000002/127.0.0.1:80)",
            "create-member(00000002/127.0.0.2:80)",
        ];
        let mut plans = Plans::default();
        plans.show("a Service", &report(&[&planned]));
        for label in ["create-pool(ab12/tcp/http)", "create-member(cd34/127.0.0.2:80)"] {
            plans.hear(&news(label, begun()));
            plans.hear(&news(label, What::Done));
        }
        let expected = [
            ("create-pool(ab12/tcp/http)", Progress::Done),
            (planned[1], Progress::Planned),
            ("create-member(cd34/127.0.0.2:80)", Progress::Done),
        ];
        assert_eq!(progress(&plans), expected);
        plans.hear(&news("delete-pool(ab12/tcp/http)", begun()));
        assert_eq!(plans.last().unwrap().others.len(), 1, "it does something else");
    }

    #[test]
    fn a_sync_that_is_over_leaves_no_step_open() {
        let mut plans = Plans::default();
        plans.show("it changes", &report(&[&["a", "b"]]));
        plans.settle(OBJECT);
        assert_eq!(
            progress(&plans)[0].1,
            Progress::Planned,
            "the event was of an earlier sync"
        );
        plans.hear(&news("a", begun()));
        plans.settle(OBJECT);
        assert_eq!(progress(&plans), [("a", Progress::Done), ("b", Progress::Spared)]);
    }

    #[test]
    fn steps_that_nobody_announced_are_a_plan_of_their_own() {
        let mut plans = Plans::default();
        plans.show("it changes", &report(&[&["a"]]));
        plans.hear(&news("a", begun()));
        plans.hear(&news("a", What::Done));
        plans.hear(&news("z", begun()));
        let last = plans.last().unwrap();
        assert_eq!((last.number, last.waves.len(), last.others.len()), (2, 0, 1));
    }

    #[test]
    fn what_could_not_be_planned_is_told_by_its_steps() {
        let mut plans = Plans::default();
        plans.show_failure(OBJECT, "it changes", "the API is out");
        plans.hear(&news("a", begun()));
        plans.hear(&news("a", What::Done));
        let last = plans.last().unwrap();
        assert_eq!((last.number, last.others.len(), last.is_stuck), (1, 1, true));
        plans.settle(OBJECT);
        assert!(!plans.last().unwrap().is_stuck);
    }
}
