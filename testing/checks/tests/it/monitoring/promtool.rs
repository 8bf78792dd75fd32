//! The rules under the real promtool: with incidents written by hand, and a healthy day.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bowline_checks::monitoring::{Promtool, RULES, alerts, root};

/// Series of incidents, and the alerts that fire at them.
fn incidents() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("incidents");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_rules_are_well_formed() {
    let Some(promtool) = Promtool::or_skip() else {
        return;
    };
    let words = ["check", "rules", "--lint=all", "--lint-fatal", RULES];
    promtool
        .run(&root(), &words)
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn each_alert_fires_in_its_incident_and_none_on_a_healthy_day() {
    let Some(promtool) = Promtool::or_skip() else {
        return;
    };
    for file in incidents() {
        let words = ["test", "rules", file.to_str().unwrap()];
        promtool
            .run(&root(), &words)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// Needs no promtool, so that nobody adds a rule without an incident.
#[test]
fn every_rule_has_an_incident() {
    let text: String = incidents()
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let missing: BTreeSet<String> = alerts()
        .unwrap()
        .iter()
        .map(|alert| match alert.labels.get("cause") {
            Some(cause) => format!("alertname=\"{}\", cause=\"{cause}\"", alert.name),
            None => format!("alertname=\"{}\"", alert.name),
        })
        .filter(|labels| !text.contains(labels))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
