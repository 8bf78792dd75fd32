//! What is told: a list of checks, as text for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::outcome::Outcome;
use crate::why::one_line;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// What the manager is told.
    Configuration,
    /// The API server.
    Kubernetes,
    /// The cloud's API.
    Cloud,
    /// Nodes and their instances.
    Nodes,
    /// Services that ask for load balancers.
    Services,
    /// The way of traffic.
    Traffic,
}

impl Category {
    /// The word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Kubernetes => "kubernetes",
            Self::Cloud => "cloud",
            Self::Nodes => "nodes",
            Self::Services => "services",
            Self::Traffic => "traffic",
        }
    }
}

/// What is looked at: fixed for every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    /// The category.
    pub category: Category,
    /// What programs know it by. It stays as it is from release to release.
    pub id: &'static str,
    /// What has to be so, in one line.
    pub name: &'static str,
    /// The page about it, from the root of the project, with an anchor.
    pub help: &'static str,
}

/// A topic, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub topic: &'static Topic,
    /// How it ended.
    pub outcome: Outcome,
    /// What was seen, in one line.
    pub seen: String,
    /// More of it, line by line.
    pub details: Vec<String>,
    /// What to do; empty if there is nothing to do.
    pub remedy: String,
    /// The page about what was found; mostly that about the topic.
    pub help: &'static str,
}

/// What the JSON is called. It gets another name when something that a program may go by changes its form or goes.
const SCHEMA: &str = "bowline/doctor/v1";

/// Where the build says that the documentation is, with a slash at its end; else it is a path in the sources.
pub const DOCUMENTATION: &str = match option_env!("BOWLINE_DOCUMENTATION_URL") {
    Some(url) => url,
    None => "",
};

impl Topic {
    /// This has to be so, and that page is about it.
    #[must_use]
    pub const fn new(category: Category, id: &'static str, name: &'static str, help: &'static str) -> Self {
        Self {
            category,
            id,
            name,
            help,
        }
    }

    /// It is as it should be.
    #[must_use]
    pub fn ok(&'static self, seen: impl Into<String>) -> Check {
        self.check(Outcome::Ok, seen.into(), String::new())
    }

    /// It is as it should be, and somebody may have something to do: told in any case, and no fault.
    #[must_use]
    pub fn note(&'static self, seen: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.check(Outcome::Ok, seen.into(), remedy.into())
    }

    /// It is worth a look.
    #[must_use]
    pub fn warning(&'static self, seen: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.check(Outcome::Warning, seen.into(), remedy.into())
    }

    /// It keeps the manager from its work.
    #[must_use]
    pub fn failed(&'static self, seen: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.check(Outcome::Failed, seen.into(), remedy.into())
    }

    /// There was nothing to go by.
    #[must_use]
    pub fn skipped(&'static self, because: impl Into<String>) -> Check {
        self.check(Outcome::Skipped, because.into(), String::new())
    }

    fn check(&'static self, outcome: Outcome, seen: String, remedy: String) -> Check {
        Check {
            topic: self,
            outcome,
            seen: one_line(seen),
            details: Vec::new(),
            remedy,
            help: self.help,
        }
    }
}

impl Check {
    /// With more of what was seen.
    #[must_use]
    pub fn with(mut self, details: Vec<String>) -> Self {
        self.details = details.into_iter().map(one_line).collect();
        self
    }

    /// With another page than that about the topic.
    #[must_use]
    pub fn see(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    fn is_note(&self) -> bool {
        self.outcome == Outcome::Ok && !self.remedy.is_empty()
    }

    /// The page about it.
    #[must_use]
    pub fn link(&self) -> String {
        format!("{DOCUMENTATION}{}", self.help)
    }
}

/// The checks under their categories, and their number.
#[must_use]
pub fn render_text(checks: &[Check]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut text, checks);
    text
}

/// What is wrong, the worst first and a cause before what follows from it; of all else only how much there is.
#[must_use]
pub fn render_short(checks: &[Check]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_short(&mut text, checks);
    text
}

fn write_short(text: &mut String, checks: &[Check]) -> std::fmt::Result {
    let with = |outcome| checks.iter().filter(move |check| check.outcome == outcome);
    let notes = checks.iter().filter(|check| check.is_note());
    for check in with(Outcome::Failed).chain(with(Outcome::Warning)).chain(notes) {
        write_one(text, check)?;
    }
    for outcome in [Outcome::Ok, Outcome::Skipped] {
        let mut counts = BTreeMap::new();
        for check in with(outcome) {
            *counts.entry(check.topic.category).or_insert(0_usize) += 1;
        }
        let counts = counts
            .iter()
            .map(|(category, count)| format!("{} ({count})", category.name()));
        let counts: Vec<String> = counts.collect();
        if !counts.is_empty() {
            writeln!(text, "  {:<8} {}", outcome.name(), counts.join(", "))?;
        }
    }
    write_counts(text, checks, "; -v=1 shows all of them")
}

fn write_all(text: &mut String, checks: &[Check]) -> std::fmt::Result {
    let mut category = None;
    for check in checks {
        if category.replace(check.topic.category) != Some(check.topic.category) {
            writeln!(text, "{}", check.topic.category.name())?;
        }
        write_one(text, check)?;
    }
    write_counts(text, checks, "")
}

fn write_one(text: &mut String, check: &Check) -> std::fmt::Result {
    let Check {
        topic,
        outcome,
        seen,
        details,
        remedy,
        help: _,
    } = check;
    let word = if check.is_note() { "note" } else { outcome.name() };
    writeln!(text, "  {word:<8} {}: {seen}", topic.name)?;
    for detail in details {
        writeln!(text, "             {detail}")?;
    }
    if !remedy.is_empty() {
        writeln!(text, "           do:  {remedy}")?;
        writeln!(text, "           see: {}", check.link())?;
    }
    Ok(())
}

fn write_counts(text: &mut String, checks: &[Check], more: &str) -> std::fmt::Result {
    let count = |wanted| checks.iter().filter(|check| check.outcome == wanted).count();
    writeln!(
        text,
        "{} ok, {} warning, {} failed, {} skipped{more}",
        count(Outcome::Ok),
        count(Outcome::Warning),
        count(Outcome::Failed),
        count(Outcome::Skipped)
    )
}

/// One JSON object, with one of each check in it.
#[must_use]
pub fn render_json(checks: &[Check]) -> String {
    render_json_of(SCHEMA, checks)
}

/// The same for another command, whose JSON is called otherwise.
#[must_use]
pub fn render_json_of(schema: &str, checks: &[Check]) -> String {
    let all = checks.iter().map(|check| {
        json!({
            "id": check.topic.id,
            "category": check.topic.category.name(),
            "check": check.topic.name,
            "outcome": check.outcome.name(),
            "seen": check.seen,
            "details": check.details,
            "remedy": check.remedy,
            "help": check.link(),
        })
    });
    let checks = all.collect::<serde_json::Value>();
    format!("{:#}", json!({ "schema": schema, "checks": checks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    static DOOR: Topic = Topic::new(
        Category::Cloud,
        "cloud.door",
        "the door is open",
        "docs/README.md",
    );

    #[test]
    fn text_and_json_tell_the_same() {
        let checks = [
            DOOR.ok("it is"),
            DOOR.failed("it is shut", "open it")
                .with(vec!["by the wind".into()]),
            DOOR.skipped("there is no house"),
        ];
        assert_eq!(
            render_text(&checks),
            "cloud\n  \
               ok       the door is open: it is\n  \
               failed   the door is open: it is shut\n             \
                          by the wind\n           \
                        do:  open it\n           \
                        see: docs/README.md\n  \
               skipped  the door is open: there is no house\n\
             1 ok, 0 warning, 1 failed, 1 skipped\n"
        );
        let warned = [
            DOOR.ok("it is"),
            DOOR.note("it is another one", "bring a key"),
            DOOR.warning("it creaks", "oil it"),
            checks[1].clone(),
        ];
        assert_eq!(
            render_short(&warned),
            "  \
               failed   the door is open: it is shut\n             \
                          by the wind\n           \
                        do:  open it\n           \
                        see: docs/README.md\n  \
               warning  the door is open: it creaks\n           \
                        do:  oil it\n           \
                        see: docs/README.md\n  \
               note     the door is open: it is another one\n           \
                        do:  bring a key\n           \
                        see: docs/README.md\n  \
               ok       cloud (2)\n\
             2 ok, 1 warning, 1 failed, 0 skipped; -v=1 shows all of them\n"
        );
        let parsed: serde_json::Value = serde_json::from_str(&render_json(&checks)).unwrap();
        assert_eq!(
            (&parsed["schema"], &parsed["checks"][1]),
            (
                &json!("bowline/doctor/v1"),
                &json!({
                    "id": "cloud.door", "category": "cloud", "check": "the door is open", "outcome": "failed", "seen": "it is shut",
                    "details": ["by the wind"], "remedy": "open it", "help": format!("{DOCUMENTATION}docs/README.md"),
                })
            )
        );
        assert_eq!(parsed["checks"].as_array().unwrap().len(), 3);
    }
}
