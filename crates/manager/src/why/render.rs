//! Why an object is as it is, as text for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Cause, Why};

/// A text without the line breaks that a cloud puts into its errors.
pub(crate) fn one_line(text: String) -> String {
    match text.contains('\n') {
        true => text.split_whitespace().collect::<Vec<_>>().join(" "),
        false => text,
    }
}

/// For people.
#[must_use]
pub fn render_text(all: &[Why]) -> String {
    let mut text = String::new();
    for why in all {
        // Writing to a String cannot fail.
        let _ = write_one(&mut text, why);
    }
    text
}

fn write_one(text: &mut String, why: &Why) -> std::fmt::Result {
    writeln!(text, "{}: {}", why.object, why.outcome().name())?;
    for (title, lines) in [("is", &why.is), ("should be", &why.should)] {
        for (index, line) in lines.iter().enumerate() {
            writeln!(text, "  {:<10} {line}", if index == 0 { title } else { "" })?;
        }
    }
    for Cause {
        text: reason,
        since,
        remedy,
        ..
    } in &why.causes
    {
        writeln!(text, "  {:<10} {reason}", "why not")?;
        for (title, line) in [("since", since), ("do", remedy)] {
            if !line.is_empty() {
                writeln!(text, "  {:<10} {title}: {line}", "")?;
            }
        }
    }
    writeln!(text, "  {:<10} {}", "next", why.next)
}

/// What the JSON is called. It gets another name when something that a program may go by changes its form or goes.
const SCHEMA: &str = "bowline/explain/v1";

/// One JSON object, with one for each in it.
#[must_use]
pub fn render_json(all: &[Why]) -> String {
    let all = all.iter().map(|why| {
        let causes = why.causes.iter().map(|cause| {
            json!({
                "id": cause.id,
                "outcome": cause.outcome.name(),
                "text": cause.text,
                "since": cause.since,
                "remedy": cause.remedy,
            })
        });
        json!({
            "object": why.object,
            "outcome": why.outcome().name(),
            "is": why.is,
            "should": why.should,
            "causes": causes.collect::<Value>(),
            "next": why.next,
        })
    });
    let objects = all.collect::<Value>();
    format!("{:#}", json!({ "schema": SCHEMA, "objects": objects }))
}
