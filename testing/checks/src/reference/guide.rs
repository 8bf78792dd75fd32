//! Guides whose code is taken out of the source.
//!
//! In the page, `<!-- code: <file> <name> -->` stands before a block of code. In the source, the lines between
//! `// guide: <name>` and `// guide: end` are what the block shows.

use std::fmt::Write as _;
use std::path::Path;

/// Why a guide cannot be written.
#[derive(Debug)]
pub(crate) enum GuideError {
    /// A file cannot be read.
    Unreadable(String),
    /// The source has no such part, or it has no end.
    NoPart { file: String, name: String },
    /// A directive that names no file and part, or a block without an end.
    Malformed(String),
}

impl std::fmt::Display for GuideError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(file) => write!(f, "{file} cannot be read"),
            Self::NoPart { file, name } => write!(f, "{file} has no part `guide: {name}` that ends"),
            Self::Malformed(line) => write!(f, "a code directive or its block is not whole: {line}"),
        }
    }
}

/// The page with every block as the source has it now.
pub(crate) fn page(root: &Path, path: &str) -> Result<String, GuideError> {
    let read = |file: &str| {
        let text = std::fs::read_to_string(root.join(file));
        text.map_err(|_| GuideError::Unreadable(file.to_owned()))
    };
    refreshed(&read(path)?, read)
}

fn refreshed(page: &str, read: impl Fn(&str) -> Result<String, GuideError>) -> Result<String, GuideError> {
    let mut fresh = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(fresh, "{line}");
        let Some(directive) = line.strip_prefix("<!-- code: ") else {
            continue;
        };
        let malformed = || GuideError::Malformed(line.to_owned());
        let named = directive.strip_suffix(" -->").and_then(|it| it.split_once(' '));
        let (file, name) = named.ok_or_else(malformed)?;
        if lines.next_if(|next| next.starts_with("```")).is_some() {
            lines.by_ref().find(|next| *next == "```").ok_or_else(malformed)?;
        }
        let part = part(&read(file)?, name).ok_or_else(|| GuideError::NoPart {
            file: file.to_owned(),
            name: name.to_owned(),
        })?;
        let language = if file.ends_with(".rs") { "rust" } else { "toml" };
        let _ = writeln!(fresh, "```{language}\n{part}```");
    }
    Ok(fresh)
}

/// The lines between the markers, without the indentation that all of them share.
fn part(source: &str, name: &str) -> Option<String> {
    let marker = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("//").or_else(|| line.strip_prefix('#'))?;
        line.trim_start().strip_prefix("guide: ").map(str::to_owned)
    };
    let mut lines = source
        .lines()
        .skip_while(|line| marker(line).as_deref() != Some(name))
        .skip(1);
    let mut found = Vec::new();
    loop {
        let line = lines.next()?;
        match marker(line).as_deref() {
            Some("end") => break,
            Some(_) => return None,
            None => found.push(line),
        }
    }
    let indentation = found.iter().filter(|line| !line.is_empty());
    let indentation = indentation
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines = found
        .iter()
        .map(|line| format!("{}\n", line.get(indentation..).unwrap_or_default()));
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "a\n    // guide: one\n    fn b() {\n        c\n\n    }\n    // guide: end\n// guide: two\nd\n";

    fn fresh(page: &str) -> Result<String, String> {
        refreshed(page, |_| Ok(SOURCE.to_owned())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_block_becomes_what_the_source_has() {
        let wanted = "x\n<!-- code: a.rs one -->\n```rust\nfn b() {\n    c\n\n}\n```\ny\n";
        assert_eq!(fresh("x\n<!-- code: a.rs one -->\ny\n").as_deref(), Ok(wanted));
        assert_eq!(
            fresh("x\n<!-- code: a.rs one -->\n```rust\nold\n```\ny\n").as_deref(),
            Ok(wanted)
        );
        assert_eq!(fresh(wanted).as_deref(), Ok(wanted));
    }

    #[test]
    fn what_cannot_be_found_is_an_error() {
        for name in ["two", "three"] {
            let text = format!("a.rs has no part `guide: {name}` that ends");
            assert_eq!(fresh(&format!("<!-- code: a.rs {name} -->\n")), Err(text));
        }
        assert!(fresh("<!-- code: a.rs -->\n").is_err());
        assert!(fresh("<!-- code: a.rs one -->\n```rust\nno end\n").is_err());
    }
}
