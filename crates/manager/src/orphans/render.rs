//! Orphans as text for people and as JSON for programs.

use std::fmt::Write as _;

use bowline_cloud_provider::orphans::{Found, Standing};
use bowline_cloud_provider::plan::ReportedOutcome;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Survey;

/// The version of the form of the JSON. It changes when a field goes or changes its meaning.
const SCHEMA: u32 = 1;

/// What is said of each kind of what stays.
const OTHERS: &[(Standing, &str, &str)] = &[
    (Standing::Held, "held by a Service that is being removed", "held"),
    (Standing::Deleting, "being deleted by the cloud", "deleting"),
    (Standing::Persons, "a person's", "persons"),
    (Standing::AnotherClusters, "another cluster's", "another-clusters"),
    (Standing::Unclear, "unclear", "unclear"),
];

/// For people.
pub fn render_text(survey: &Survey) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let count: usize = survey.removals.iter().map(|(orphans, _)| orphans.len()).sum();
    let _ = match count {
        0 => write!(text, "No orphans of cluster {}", survey.cluster),
        _ => write!(text, "Orphans of cluster {}: {count}", survey.cluster),
    };
    let below = [(Standing::Unclear, "unclear"), (Standing::Held, "held")];
    for (standing, word) in below.into_iter().filter(|_| count == 0) {
        let _ = match survey.count(standing) {
            0 => Ok(()),
            1 => write!(text, "; 1 {word} item is listed below"),
            items => write!(text, "; {items} {word} items are listed below"),
        };
    }
    text.push('\n');
    for unread in &survey.unread {
        let _ = writeln!(text, "Not looked for in {}", unread.error());
    }
    for (orphans, plan) in &survey.removals {
        text.push('\n');
        for orphan in orphans {
            one(&mut text, orphan, survey.now);
        }
        for words in plan.in_words() {
            let _ = writeln!(text, "      - {words}");
        }
        if let Some(rest) = rest(&plan.outcome) {
            let _ = writeln!(text, "      then: {rest}");
        }
    }
    if survey.others.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\nNever touched: {}", survey.others.len());
    for (standing, title, _) in OTHERS {
        let mut others = survey
            .others
            .iter()
            .filter(|it| it.standing == *standing)
            .peekable();
        if others.peek().is_some() {
            let _ = writeln!(text, "\n{title}:");
        }
        others.for_each(|other| one(&mut text, other, survey.now));
    }
    text
}

fn one(text: &mut String, found: &Found, now: Timestamp) {
    let age = found
        .made
        .map(|made| format!(", {} old", age(made, now)))
        .unwrap_or_default();
    let _ = writeln!(text, "  {found}{age}\n      {}", found.why);
}

/// In the largest unit of which there are two.
fn age(made: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(made).as_secs().max(0);
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    let unit = units.into_iter().find(|(_, length)| seconds >= 2 * length);
    unit.map_or_else(
        || format!("{seconds}s"),
        |(unit, length)| format!("{}{unit}", seconds / length),
    )
}

/// Why the plan does not end with all gone.
fn rest(outcome: &ReportedOutcome) -> Option<String> {
    match outcome {
        ReportedOutcome::Settled { .. } => None,
        ReportedOutcome::NotServed { because } => Some(because.clone()),
        ReportedOutcome::Waiting { reason } => Some(reason.clone()),
        ReportedOutcome::Refused { refusal } => Some(refusal.to_string()),
        ReportedOutcome::Failed { error } => Some(error.clone()),
    }
}

/// For programs.
pub fn render_json(survey: &Survey) -> String {
    let orphans = survey.removals.iter().map(|(orphans, plan)| {
        json!({
            "objects": orphans.iter().map(object).collect::<Vec<Value>>(),
            "plan": plan,
        })
    });
    let standing = |found: &Found| {
        let mut others = OTHERS.iter();
        others
            .find(|(standing, ..)| *standing == found.standing)
            .map(|(_, _, word)| *word)
    };
    let others = survey.others.iter().map(|other| {
        let mut value = object(other);
        value["standing"] = json!(standing(other));
        value
    });
    let unread = survey.unread.iter();
    let unread = unread.map(|it| json!({ "cloud": it.cloud, "why": it.why.message() }));
    let value = json!({
        "schema": SCHEMA,
        "cluster": survey.cluster,
        "orphans": orphans.collect::<Vec<Value>>(),
        "untouched": others.collect::<Vec<Value>>(),
        "unread": unread.collect::<Vec<Value>>(),
    });
    format!("{value:#}")
}

fn object(found: &Found) -> Value {
    json!({
        "kind": found.kind,
        "id": found.id,
        "name": found.name,
        "made": found.made.map(|made| made.to_string()),
        "service": found.owner.key.as_ref().map(ToString::to_string),
        "serviceUid": Some(&found.owner.uid).filter(|uid| !uid.is_empty()),
        "why": found.why,
    })
}
