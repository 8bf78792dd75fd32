//! The names of flags that the chart's value `flags` takes: those of the program, so that a misspelt one is refused by its name.

#![expect(
    clippy::expect_used,
    reason = "a tool; its input is in the repository, and every test finds a mistake"
)]

use crate::root;

/// The page of all flags, which is written from their table.
const PAGE: &str = "docs/reference/flags.md";
/// What the schema has in front of the pattern of names, and behind it.
const AROUND: (&str, &str) = (
    "\"patternProperties\": {\"",
    "\": {\"type\": [\"string\", \"number\", \"boolean\"]}}",
);

/// The schema with the flags of the program in it.
///
/// # Panics
///
/// If the page or the place in the schema is not there.
#[must_use]
pub fn with_flags(schema: &str) -> String {
    let (before, rest) = schema
        .split_once(AROUND.0)
        .expect("the schema has a pattern for flags");
    let (_, after) = rest
        .split_once(AROUND.1)
        .expect("the schema's pattern for flags ends");
    let (start, end) = AROUND;
    format!("{before}{start}^({})${end}{after}", names().join("|"))
}

/// Patterns of the names, in which `_` may stand for `-`.
fn names() -> Vec<String> {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page of flags can be read");
    // The manager's flags come first; those of its commands are none for a pod.
    let of_manager = page.split("\n## Only for the command").next().unwrap_or_default();
    // A flag with a letter of its own stands behind it: `-v, --v`.
    let cells = of_manager.lines().filter(|line| line.starts_with("| `-"));
    let flags = cells.filter_map(|line| line.split_once("--").map(|(_, flag)| flag));
    let mut names: Vec<String> = flags
        .map(|flag| {
            let name = flag.split([' ', '`', '=']).next().unwrap_or_default();
            name.replace('-', "[-_]")
        })
        .collect();
    assert!(names.len() > 90, "only {} flags in {PAGE}", names.len());
    names.sort();
    names
}
