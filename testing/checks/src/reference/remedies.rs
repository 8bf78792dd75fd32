//! Holds what people are told to what exists: commands, flags, annotations and pages that texts name.
//!
//! The texts are those of the program's source: events, errors, refusals, help and log lines; and the pages for people.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bowline_cloud_provider::AnnotationSpec;
use bowline_plan::EventSpec;

use crate::reference::documents::{documents, files};
use crate::root;

/// The words that the program takes before its flags.
const COMMANDS: &[&str] = &[
    "check",
    "completion",
    "doctor",
    "explain",
    "help",
    "orphans",
    "plan",
    "support-bundle",
    "version",
];

/// What may follow the words that name a command, and is none.
const NO_COMMANDS: &[&str] = &["can", "line", "of"];

/// Flags of other programs that texts of ours name.
const FLAGS_OF_OTHERS: &[&str] = &[
    "--as",
    "--disable-cloud-controller",
    "--enable",
    "--hostname-override",
    "--list",
    "--node-ip",
    "--previous",
    "--provider-id",
    "--register-with-taints",
    "--show-labels",
    "--show-managed-fields",
    "--subresource",
    "--weight",
];

/// Flags of other programs that pages name by themselves: of the demo, the simulators, `cargo xtask`, Helm, the kubelet and
/// k3s.
const FLAGS_ON_PAGES: &[&str] = &[
    "--control-plane",
    "--disable-cloud-controller",
    "--event-ttl",
    "--failing",
    "--force-conflicts",
    "--job-time",
    "--kube-version",
    "--kubelet-arg",
    "--logs",
    "--network",
    "--node-ip",
    "--once",
    "--open",
    "--reset-then-reuse-values",
    "--seed",
    "--server-side",
    "--set",
    "--set-file",
    "--set-string",
    "--take-ownership",
];

/// Events of other programs that pages name.
const EVENTS_OF_OTHERS: &[&str] = &["LeaderElection"];

/// What begins the keys that are ours. Others belong to Kubernetes, and to those who use them.
const PREFIXES: &[&str] = &[
    "k8s.cloudscale.ch/",
    "service.beta.kubernetes.io/cloudstack-",
    "service.beta.kubernetes.io/openstack-",
    "loadbalancer.openstack.org/",
    "phoenixnap.com/",
];

/// The sources of what runs in the image, without their tests.
fn sources() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut folders: Vec<PathBuf> = [
        "bowline",
        "cloud-http",
        "cloud-provider",
        "controllers",
        "drive",
        "gcfg",
        "kube-io",
        "manager",
        "plan",
        "transport",
    ]
    .iter()
    .map(|name| root.join("crates").join(name).join("src"))
    .collect();
    for cloud in ["cloudscale", "cloudstack", "openstack", "phoenixnap"] {
        for part in ["client", "provider"] {
            folders.push(root.join("clouds").join(cloud).join(part).join("src"));
        }
    }
    let is_test = |path: &Path| {
        let is_named = path.file_stem().is_some_and(|stem| stem == "tests");
        is_named || path.components().any(|part| part.as_os_str() == "tests")
    };
    let paths = folders.iter().flat_map(|folder| files(folder, &["rs"]));
    let read = paths.filter(|path| !is_test(path)).map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        (path, code.to_owned())
    });
    let all: Vec<(PathBuf, String)> = read.collect();
    assert!(all.len() > 200, "only {} sources were found", all.len());
    all
}

/// The texts in quotes of a source, with continued lines joined. Comments are none.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = rest.next() {
        match letter {
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|it| *it != '\n').is_some() {},
            // A character, or a lifetime, which ends by itself.
            '\'' => match (rest.next(), rest.peek()) {
                (Some('\\'), _) => {
                    rest.next();
                    while rest.next_if(|it| *it != '\'').is_some() {}
                    rest.next();
                }
                (Some(_), Some('\'')) => {
                    rest.next();
                }
                _ => {}
            },
            '"' => {
                let is_raw = matches!(before, 'r' | '#');
                found.push(literal(&mut rest, is_raw));
            }
            _ => {}
        }
        before = letter;
    }
    found
}

/// A text up to the quotes that end it.
fn literal(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, is_raw: bool) -> String {
    let mut text = String::new();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => break,
            '\\' if !is_raw => match rest.next() {
                Some('\n') => while rest.next_if(|it| it.is_whitespace()).is_some() {},
                Some('n' | 't' | 'r') => text.push(' '),
                Some(other) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    text
}

/// All texts of the program, each with the file that it is from.
pub(super) fn texts() -> Vec<(PathBuf, String)> {
    let texts = sources().into_iter().flat_map(|(path, code)| {
        let literals = literals(&code).into_iter();
        literals.map(move |text| (path.clone(), text)).collect::<Vec<_>>()
    });
    texts.collect()
}

/// The pages for people, with their paths.
fn pages() -> impl Iterator<Item = (PathBuf, String)> {
    documents().into_iter().map(|page| (page.path, page.text))
}

/// The words of a text that begin with `prefix`, as far as such a word goes.
fn words<'a>(text: &'a str, prefix: &'a str, goes_on: fn(char) -> bool) -> impl Iterator<Item = &'a str> {
    let begins = move |at: usize| text[..at].chars().next_back().is_none_or(|it| !goes_on(it));
    let all = text.match_indices(prefix).filter(move |(at, _)| begins(*at));
    all.map(move |(at, _)| {
        let tail = &text[at + prefix.len()..];
        let length = tail.find(|letter| !goes_on(letter)).unwrap_or(tail.len());
        &text[at..at + prefix.len() + length]
    })
}

fn is_of_flag(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '/')
}

/// The flags that a text names: two dashes and a word.
fn flags(text: &str) -> Vec<&str> {
    let is_flag = |word: &&str| {
        word.chars()
            .nth(2)
            .is_some_and(|letter| letter.is_ascii_lowercase())
    };
    words(text, "--", is_of_flag).filter(is_flag).collect()
}

/// The commands that a text names: what follows the program's name, or the word "command".
fn commands(text: &str) -> Vec<&str> {
    let after = |words: &'static str| {
        let begins = move |at: usize| text[..at].chars().next_back().is_none_or(|it| !is_of_flag(it));
        let all = text.match_indices(words).filter(move |(at, _)| begins(*at));
        all.filter_map(|(at, _)| {
            let tail = text[at + words.len()..].trim_start_matches('`');
            let length = tail
                .find(|it: char| !it.is_ascii_lowercase() && it != '-')
                .unwrap_or(tail.len());
            (length > 0 && !tail.starts_with('-')).then(|| &tail[..length])
        })
    };
    after("cloud-controller-manager ")
        .chain(after("the command "))
        .collect()
}

/// The events that a page names: what stands in backticks behind the word "event".
fn events(text: &str) -> Vec<&str> {
    let text = text.split_inclusive("vent").skip(1);
    let named = text.filter_map(|tail| {
        let tail = tail.strip_prefix('s').unwrap_or(tail);
        let tail = tail.strip_prefix(|it: char| it.is_whitespace())?;
        let tail = tail.strip_prefix('[').unwrap_or(tail);
        tail.strip_prefix('`')?.split('`').next()
    });
    named
        .filter(|reason| reason.chars().all(|it| it.is_ascii_alphanumeric()))
        .collect()
}

fn known_flags() -> BTreeSet<String> {
    let more = [
        &bowline::args::PLAN,
        &bowline::args::DOCTOR,
        &bowline::args::EXPLAIN,
        &bowline::args::ORPHANS,
        &bowline::args::CHECK,
        &bowline::args::SUPPORT_BUNDLE,
    ];
    let groups = bowline::args::flag_table().iter().chain(more);
    let flags = groups
        .flat_map(|group| group.flags)
        .map(|flag| format!("--{}", flag.name));
    flags
        .chain(FLAGS_OF_OTHERS.iter().map(ToString::to_string))
        .collect()
}

fn known_keys() -> BTreeSet<&'static str> {
    let tables: [&[AnnotationSpec]; 4] = [
        bowline_cloudscale::annotation_table(),
        bowline_cloudstack::annotation_table(),
        bowline_openstack::annotation_table(),
        bowline_phoenixnap::annotation_table(),
    ];
    tables.into_iter().flatten().map(|spec| spec.key).collect()
}

/// Fails with all that is named and does not exist.
fn assert_none(missing: &[String]) {
    assert!(
        missing.is_empty(),
        "named, and not there:\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_flag_that_a_text_names_is_one() {
    let known = known_flags();
    let mut missing = Vec::new();
    for (path, text) in texts() {
        for flag in flags(&text) {
            // A name that is put together from its parts.
            let is_beginning = flag.ends_with('-') && known.iter().any(|known| known.starts_with(flag));
            if !is_beginning && !known.contains(flag) {
                missing.push(format!("{}: {flag} in {text:?}", path.display()));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn every_flag_that_a_page_names_by_itself_is_one() {
    let known = known_flags();
    let mut missing = Vec::new();
    for (path, text) in pages() {
        for tail in text.split("`--").skip(1) {
            let length = tail.find(|letter| !is_of_flag(letter)).unwrap_or(tail.len());
            let flag = format!("--{}", &tail[..length]);
            if !known.contains(&flag) && !FLAGS_ON_PAGES.contains(&flag.as_str()) {
                missing.push(format!("{}: {flag}", path.display()));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn every_command_that_a_text_or_a_page_names_is_one() {
    let mut missing = Vec::new();
    for (path, text) in texts().into_iter().chain(pages()) {
        for command in commands(&text) {
            if !COMMANDS.contains(&command) && !NO_COMMANDS.contains(&command) {
                missing.push(format!("{}: {command}", path.display()));
            }
        }
    }
    assert_none(&missing);
    for command in COMMANDS {
        let line = ["cloud-controller-manager", command, "--help"].map(str::to_owned);
        let read = bowline::args::read(&line);
        assert!(matches!(read, bowline::args::Invocation::Print(_)), "{command}");
    }
}

#[test]
fn every_annotation_that_a_text_or_a_page_names_is_one() {
    let known = known_keys();
    let mut missing = Vec::new();
    for (path, text) in texts().into_iter().chain(pages()) {
        for key in PREFIXES.iter().flat_map(|prefix| words(&text, prefix, is_of_key)) {
            let key = key.trim_end_matches(['.', '-', '/']);
            // A key that is put together from its parts.
            if !known.iter().any(|known| known.starts_with(key)) {
                missing.push(format!("{}: {key}", path.display()));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn every_log_line_that_a_page_names_is_one() {
    let known = texts();
    let mut missing = Vec::new();
    for (path, page) in pages() {
        for line in page.split("log: `").skip(1) {
            let line = line.split('`').next().unwrap_or_default();
            // What stands for a value divides the line.
            let is_known = |part: &str| known.iter().any(|(_, text)| text.contains(part));
            if !line.split("...").map(str::trim).all(is_known) {
                missing.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn every_event_that_a_page_names_is_one() {
    let tables: [&[EventSpec]; 7] = [
        bowline_controllers::events::EVENTS,
        bowline_cloudscale::EVENTS,
        bowline_cloudstack::EVENTS,
        bowline_openstack::EVENTS,
        bowline_paper::EVENTS,
        bowline_phoenixnap::EVENTS,
        bowline_phoenixnap::SWEEPER_EVENTS,
    ];
    let known: BTreeSet<&str> = tables.into_iter().flatten().map(|event| event.reason).collect();
    let mut missing = Vec::new();
    for (path, text) in pages() {
        for reason in events(&text) {
            if !known.contains(reason) && !EVENTS_OF_OTHERS.contains(&reason) {
                missing.push(format!("{}: {reason}", path.display()));
            }
        }
    }
    assert_none(&missing);
}

#[test]
fn texts_are_found_in_sources_and_what_they_name_in_texts() {
    let code = r##"
        // "not this"
        let letter = '"'; let lifetime: &'static str = "see --cloud-config; \
            run cloud-controller-manager plan";
        raw(r#"with the command cleanup"#);
    "##;
    let texts = literals(code);
    assert_eq!(texts[0], "see --cloud-config; run cloud-controller-manager plan");
    assert_eq!(
        (flags(&texts[0]), commands(&texts[0])),
        (vec!["--cloud-config"], vec!["plan"])
    );
    assert_eq!(commands(&texts[1]), ["cleanup"]);
    assert!(flags("a---b, x--y and -- alone").is_empty());
    assert_eq!(
        events("event `Synced`, the event [`A`](b), `event` and events `One` and more"),
        ["Synced", "A", "One"]
    );
}
