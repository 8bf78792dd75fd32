//! What the page of the series says about itself, under the names of the Go managers' registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What this registry never has, and the Go managers' registry counts: name, help.
const NONE: &[(&str, &str)] = &[
    (
        "hidden_metrics",
        "[BETA] Families of series that are hidden: none",
    ),
    (
        "disabled_metrics",
        "[BETA] Families of series that are switched off: none",
    ),
    (
        "cardinality_enforcement_unexpected_categorizations",
        "[ALPHA] Values of labels that were not expected: no label is bounded by a list of values",
    ),
];

/// Adds the books to what the registry's encoder wrote, in its form. They count themselves, too.
pub(super) fn add_to(text: &mut String) {
    // Writing to a String cannot fail.
    for (name, help) in NONE {
        let _ = writeln!(
            text,
            "# HELP {name} {help}.\n# TYPE {name} counter\n{name}_total 0"
        );
    }
    let _ = writeln!(
        text,
        "# HELP registered_metrics [BETA] Families of series that have a value, by level.\n\
         # TYPE registered_metrics counter"
    );
    for (level, families) in by_level(text) {
        let _ = writeln!(
            text,
            "registered_metrics_total{{deprecated_version=\"\",stability_level=\"{level}\"}} {families}"
        );
    }
}

/// Families that state a level, by level.
fn by_level(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let levels = text.lines().filter_map(|line| {
        let (_, help) = line.strip_prefix("# HELP ")?.split_once(' ')?;
        Some(help.strip_prefix('[')?.split_once(']')?.0)
    });
    for level in levels {
        *found.entry(level.to_owned()).or_default() += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_counted_by_level_and_those_without_one_are_left_out() {
        let mut text = "# HELP a [ALPHA] A.\n# TYPE a gauge\na 1\n\
                        # HELP b [BETA] B [STABLE].\n# TYPE b gauge\nb 1\n\
                        # HELP c C [ALPHA].\n# TYPE c gauge\nc 1\n"
            .to_owned();
        let before = text.len();
        add_to(&mut text);
        let lines: Vec<&str> = text[before..]
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(
            lines,
            [
                "hidden_metrics_total 0",
                "disabled_metrics_total 0",
                "cardinality_enforcement_unexpected_categorizations_total 0",
                r#"registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 2"#,
                r#"registered_metrics_total{deprecated_version="",stability_level="BETA"} 4"#,
            ]
        );
    }
}
