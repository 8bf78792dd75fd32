//! A plan as text for people and as JSON for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{Impact, Note, Refusal, StepView};

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
}

impl PlanReport {
    /// The worst impact of all steps.
    #[must_use]
    pub fn impact(&self) -> Impact {
        self.waves
            .iter()
            .flat_map(|wave| &wave.steps)
            .map(|step| step.impact)
            .max()
            .unwrap_or_default()
    }

    /// Whether applying the plan would change anything.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.waves.is_empty()
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
    let steps: usize = report.waves.iter().map(|wave| wave.steps.len()).sum();
    write!(text, "{}: ", report.object)?;
    match steps {
        0 => writeln!(text, "no changes")?,
        1 => writeln!(text, "1 step, impact {}", report.impact())?,
        _ => writeln!(
            text,
            "{steps} steps in {} waves, impact {}",
            report.waves.len(),
            report.impact()
        )?,
    }
    for (index, wave) in report.waves.iter().enumerate() {
        writeln!(text, "  wave {}", index + 1)?;
        for step in &wave.steps {
            writeln!(text, "    {:<14} {}", format!("[{}]", step.impact), step.label)?;
        }
    }
    match &report.outcome {
        ReportedOutcome::Settled { publishes } if publishes.is_empty() => {}
        ReportedOutcome::Settled { publishes } => writeln!(text, "  publishes: {}", publishes.join(", "))?,
        ReportedOutcome::Waiting { reason } => writeln!(text, "  waits: {reason}")?,
        ReportedOutcome::Refused { refusal } => writeln!(text, "  refused: {refusal}")?,
        ReportedOutcome::Failed { error } => writeln!(text, "  failed: {error}")?,
    }
    for note in &report.notes {
        writeln!(text, "  note {}: {}", note.reason, note.text)?;
    }
    Ok(())
}

/// The reports as one JSON array.
#[must_use]
pub fn render_json(reports: &[PlanReport]) -> String {
    // The types above serialise without error: no map with keys that are not strings, no foreign code.
    serde_json::to_string_pretty(reports).unwrap_or_default()
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
        }
    }

    #[test]
    fn text_shows_waves_with_their_impact() {
        insta::assert_snapshot!(render_text(&[report()]), @r"
        default/web: 2 steps in 2 waves, impact considerable
          wave 1
            [none]         create-pool(lb-1/tcp/web)
          wave 2
            [considerable] delete-pool(lb-1/tcp/old)
          publishes: 203.0.113.7
          note NoValidNodes: no node matches the selector
        ");
    }

    #[test]
    fn json_names_the_outcome() {
        let json: serde_json::Value = serde_json::from_str(&render_json(&[report()])).unwrap();
        assert_eq!(json[0]["outcome"]["state"], "settled");
        assert_eq!(json[0]["waves"][1]["steps"][0]["impact"], "considerable");
    }
}
