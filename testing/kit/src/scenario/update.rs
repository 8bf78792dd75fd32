//! What was seen, written in the place of what was expected.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::path::text;
use super::text::Step;

/// Lines of files that are to be written anew, by their first line: how many there were, and what they are now.
#[derive(Default)]
pub(super) struct Updates(BTreeMap<String, BTreeMap<usize, (usize, Vec<String>)>>);

impl Updates {
    /// Whether `UPDATE_SCENARIOS` asks for it.
    pub(super) fn are_wanted() -> bool {
        std::env::var_os("UPDATE_SCENARIOS").is_some()
    }

    /// A step's expectation is to be what was seen; `head` is what stays of the step.
    pub(super) fn note(&mut self, step: &Step, head: &str, seen: &Value) {
        let lines = match seen {
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().map(|item| format!("    {}", text(item)));
                std::iter::once(format!("  {head}")).chain(items).collect()
            }
            Value::String(seen) => vec![format!("  {head} {seen}")],
            seen => vec![format!("  {head} {seen}")],
        };
        let last = step.below.last().map_or(step.line, |(line, _)| *line);
        let of_file = self.0.entry(step.source.to_string()).or_default();
        of_file.insert(step.line, (last + 1 - step.line, lines));
    }

    pub(super) fn write(&self) {
        for (path, changes) in &self.0 {
            let old = fs::read_to_string(path).unwrap();
            let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
            for (line, (count, new)) in changes.iter().rev() {
                lines.splice(line - 1..line - 1 + count, new.iter().cloned());
            }
            fs::write(path, lines.join("\n") + "\n").unwrap();
        }
    }
}
