//! The names of flags that the chart's value `flags` takes: those of the program, so that a misspelt one is refused by its name.

#![expect(
    clippy::expect_used,
    reason = "a tool; its input is in the repository, and every test finds a mistake"
)]

use crate::chart::root;

/// The page of all flags, which is written from their table.
const PAGE: &str = "docs/reference/flags.md";
/// What the schema has in front of the patterns of flags, and behind them.
const AROUND: (&str, &str) = (
    "\"flags\": {\n      \"type\": \"object\",\n      \"patternProperties\": {\n",
    "\n      },\n      \"additionalProperties\": false\n    },",
);

/// What values flags take, by the word for the value on the page; `""` for a flag that can stand alone. The last one is for
/// every other word: whatever is a text or can be one.
const VALUES: [(&str, &str); 6] = [
    (
        "",
        r#"{"enum": [true, false, "true", "false", "True", "False", "TRUE", "FALSE", "t", "f", "T", "F", 1, 0, "1", "0"]}"#,
    ),
    (
        "int",
        r#"{"type": ["integer", "string"], "pattern": "^[-+]?[0-9]+$"}"#,
    ),
    (
        "float",
        r#"{"type": ["number", "string"], "pattern": "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"}"#,
    ),
    // A number without a unit is a duration only where it is 0.
    (
        "duration",
        r#"{"type": ["string", "integer"], "pattern": "^[-+]?(0|([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$", "minimum": 0, "maximum": 0, "description": "With its unit, as in 30s."}"#,
    ),
    ("ip", r#"{"type": "string", "pattern": "^[0-9a-fA-F:.]+$"}"#),
    ("string", r#"{"type": ["string", "number", "boolean"]}"#),
];

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
    let flags = flags();
    let patterns: Vec<String> = VALUES
        .iter()
        .map(|(word, values)| {
            let names: Vec<&str> = flags
                .iter()
                .filter(|flag| flag.1 == *word)
                .map(|flag| flag.0.as_str())
                .collect();
            format!("        \"^({})$\": {values}", names.join("|"))
        })
        .collect();
    format!("{before}{start}{}{end}{after}", patterns.join(",\n"))
}

/// Patterns of the names, in which `_` may stand for `-`, each with its word of [`VALUES`].
fn flags() -> Vec<(String, &'static str)> {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page of flags can be read");
    // The manager's flags come first; those of its commands are none for a pod.
    let of_manager = page.split("\n## Only for the command").next().unwrap_or_default();
    // A flag with a letter of its own stands behind it: `-v, --v`.
    let cells = of_manager.lines().filter(|line| line.starts_with("| `-"));
    let mut flags: Vec<(String, &str)> = cells
        .filter_map(|line| line.split_once("--"))
        .filter_map(|(_, flag)| flag.split_once('`'))
        .map(|(flag, _)| {
            let (name, word) = flag.split_once(' ').unwrap_or((flag, ""));
            let known = VALUES
                .iter()
                .map(|(known, _)| *known)
                .find(|known| *known == word);
            (name.replace('-', "[-_]"), known.unwrap_or("string"))
        })
        .collect();
    assert!(flags.len() > 90, "only {} flags in {PAGE}", flags.len());
    flags.sort();
    flags
}
