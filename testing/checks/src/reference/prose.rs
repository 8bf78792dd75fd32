//! The form of what people read: the length of lines and sentences, and phrases for which the field has other words.

use std::path::Path;

use super::documents::{documents, prose, without_code};
use super::remedies::texts;

/// The most columns of a line in a paragraph. Tables, headings, pictures and code may be wider.
const COLUMNS: usize = 120;

/// The most words of a sentence in a paragraph.
const WORDS: usize = 25;

/// Phrases, in lower case, with what the field says.
const PHRASES: &[(&str, &str)] = &[
    ("asks for nonsense", "has a wrong annotation"),
    ("beside a manager that runs", "while a manager runs"),
    ("by its words", "by its message"),
    ("goes on by itself", "continues by itself"),
    ("is told ", "is reported, or: gets"),
    ("it is told that", "an event says that"),
    ("keeps it from its work", "prevents it from working"),
    (
        "keeps the manager from its work",
        "prevents the manager from working",
    ),
    ("next to nothing", "almost nothing"),
    ("nine of ten", "90th percentile"),
    ("on old news", "on stale data"),
    ("takes the place of", "replaces"),
    ("tells of ", "reports"),
    ("tell of ", "report"),
    ("those who do not lead", "standbys"),
    ("told of", "reported"),
    ("what would change nothing", "a dry run"),
    ("wished state", "desired state"),
];

/// Headings that say nothing by themselves.
const HEADINGS: &[&str] = &["There", "Back", "Do it"];

/// Whether the page is for people who use or change the program, and written by hand. A changelog counts as far as it is not released.
fn is_checked(path: &Path) -> bool {
    let is_generated = path.starts_with("docs/reference");
    let is_ours =
        path.starts_with("docs") || path.starts_with("deploy") || path.parent() == Some(Path::new(""));
    is_ours && !is_generated
}

/// The paragraphs and list entries of a page, each as one line, without tables, headings and code.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in prose(text) {
        let line = line.trim();
        let is_entry = line.split_once(' ').is_some_and(|(sign, _)| {
            matches!(sign, "-" | "*") || sign.strip_suffix('.').is_some_and(|it| it.parse::<u8>().is_ok())
        });
        let is_other = line.is_empty() || line.starts_with(['|', '#', '<', '!']);
        if is_entry || is_other {
            found.push(String::new());
        }
        if !is_other && let Some(last) = found.last_mut() {
            last.push_str(line);
            last.push(' ');
        }
    }
    found
}

/// The sentences of a paragraph, without what links lead to.
fn sentences(paragraph: &str) -> Vec<String> {
    let text = without_code(paragraph);
    let shown = text.split("](").enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once(')').map_or("", |(_, rest)| rest),
    });
    let shown: String = shown.collect::<Vec<_>>().join("]");
    let ends = [". ", ".) ", ".* ", ".** ", "? ", "! "];
    let mut found = vec![shown];
    for end in ends {
        let parts = found.iter().flat_map(|it| it.split(end).map(str::to_owned));
        found = parts.collect();
    }
    found
}

fn words(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count()
}

/// The phrases in a text for which the field has other words.
fn phrases(text: &str) -> impl Iterator<Item = String> {
    let lower = without_code(text).to_lowercase();
    let said = PHRASES.iter().filter(move |(phrase, _)| lower.contains(phrase));
    said.map(move |(phrase, field)| format!("{phrase:?}: say {field:?}: {text}"))
}

/// What is wrong with a page whose sentences have so many words at most, in words.
fn faults(text: &str, most: usize) -> Vec<String> {
    let mut faults = Vec::new();
    for line in prose(text) {
        let start = line.trim_start();
        let is_wide = line.chars().count() > COLUMNS && !start.starts_with(['|', '#', '!', '<']);
        if is_wide {
            faults.push(format!("more than {COLUMNS} columns: {line}"));
        }
        if let Some(heading) = start
            .strip_prefix('#')
            .map(|it| it.trim_start_matches('#').trim())
            && HEADINGS.contains(&heading)
        {
            faults.push(format!(
                "a heading that says what the section is about, in place of {heading:?}"
            ));
        }
        faults.extend(phrases(line));
    }
    for sentence in paragraphs(text).iter().flat_map(|it| sentences(it)) {
        if words(&sentence) > most {
            faults.push(format!("more than {most} words: {sentence}"));
        }
    }
    faults
}

#[test]
fn pages_have_short_lines_short_sentences_and_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for page in documents().into_iter().filter(|page| is_checked(&page.path)) {
        let text = match page.path.to_str() {
            // What was released stays as it is.
            Some("CHANGELOG.md") => {
                let rest = page.text.split("\n## ").take(2);
                rest.collect::<Vec<_>>().join("\n## ")
            }
            _ => page.text,
        };
        let faults = faults(&text, WORDS).into_iter();
        wrong.extend(faults.map(|fault| format!("{}: {fault}", page.path.display())));
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_program_speaks_in_the_words_of_the_field() {
    let of_text = |(path, text): &(std::path::PathBuf, String)| {
        let path = path.display().to_string();
        phrases(text)
            .map(move |fault| format!("{path}: {fault}"))
            .collect::<Vec<_>>()
    };
    let wrong: Vec<String> = texts().iter().flat_map(of_text).collect();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_long_line_a_long_sentence_and_a_phrase_are_found() {
    let long = "word ".repeat(WORDS + 1);
    let page = format!(
        "# Back\n\nIt is\n{long}.\n\n```\n{long}{long}\n```\n\n| {long}{long} |\n\n- The event tells of it.\n"
    );
    let faults = faults(&page, WORDS);
    assert_eq!(faults.len(), 4, "{faults:#?}");
    for (fault, part) in faults.iter().zip(["Back", "columns", "tells of", "words"]) {
        assert!(fault.contains(part), "{fault}");
    }
    let text = "See [a page](x.md#y. z) and `a. b`. Then. Is it? Yes";
    assert_eq!(sentences(text).len(), 4, "{:?}", sentences(text));
}
