//! Whether two answers are alike: the same status, the same fields of the same kinds, and the same words where a service
//! says words. Ids, addresses, times and URLs differ from cloud to cloud and count as kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_openstack_services::Answer;
use serde_json::Value;

/// One way in which the simulator's answer is unlike the real one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    /// The step of the walk.
    pub(crate) step: String,
    /// Where: `status`, or a JSON pointer with `*` for the items of a list.
    pub(crate) place: String,
    /// What the real service has there.
    pub(crate) real: String,
    /// What the simulator has there.
    pub(crate) simulated: String,
}

/// What an answer says, by place.
pub(crate) type Facts = BTreeMap<String, String>;

/// What the answers of a walk say, by the names of its steps.
pub(crate) type Told = Vec<(String, Facts)>;

/// What answers say.
pub(crate) fn told(answers: &[(String, Answer)], own_words: &[&str]) -> Told {
    let told = answers.iter();
    told.map(|(step, answer)| (step.clone(), facts(answer, own_words)))
        .collect()
}

/// All differences between two walks of the same steps.
pub(crate) fn differences(real: &Told, simulated: &Told) -> Vec<Difference> {
    let steps = |told: &Told| -> Vec<String> { told.iter().map(|(step, _)| step.clone()).collect() };
    assert_eq!(steps(real), steps(simulated), "the walks took different ways");
    let pairs = real.iter().zip(simulated);
    pairs
        .flat_map(|((step, real), (_, simulated))| {
            let places: BTreeSet<&String> = real.keys().chain(simulated.keys()).collect();
            let said = |facts: &Facts, place: &str| {
                let words = facts.get(place).cloned();
                words.unwrap_or_else(|| "nothing".to_owned())
            };
            places
                .into_iter()
                .map(|place| Difference {
                    step: step.clone(),
                    place: place.clone(),
                    real: said(real, place),
                    simulated: said(simulated, place),
                })
                .filter(|difference| difference.real != difference.simulated)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn facts(answer: &Answer, own_words: &[&str]) -> Facts {
    let mut facts = BTreeMap::new();
    note(&mut facts, "status", answer.status.as_u16().to_string());
    collect(&mut facts, "", &answer.body, own_words);
    let joined = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(" | ");
    let facts = facts.into_iter();
    facts.map(|(place, words)| (place, joined(words))).collect()
}

fn note(facts: &mut BTreeMap<String, BTreeSet<String>>, place: &str, fact: String) {
    facts.entry(place.to_owned()).or_default().insert(fact);
}

fn collect(facts: &mut BTreeMap<String, BTreeSet<String>>, place: &str, value: &Value, own_words: &[&str]) {
    match value {
        Value::Object(fields) => {
            note(facts, place, "object".to_owned());
            for (name, value) in fields {
                // A network's name as a key, as in the addresses of a server, is like any other.
                collect(facts, &format!("{place}/{name}"), value, own_words);
            }
        }
        Value::Array(items) => {
            note(
                facts,
                place,
                if items.is_empty() { "empty list" } else { "list" }.to_owned(),
            );
            for item in items {
                collect(facts, &format!("{place}/*"), item, own_words);
            }
        }
        // Random, and nothing in the text shows it.
        Value::String(_) if place.ends_with("/audit_ids/*") => note(facts, place, "<id>".to_owned()),
        Value::String(text) => note(facts, place, kind_of_text(text, own_words)),
        Value::Number(_) => note(facts, place, "<number>".to_owned()),
        Value::Bool(truth) => note(facts, place, truth.to_string()),
        Value::Null => note(facts, place, "null".to_owned()),
    }
}

/// A text with its ids, addresses, times and numbers as kinds.
fn kind_of_text(text: &str, own_words: &[&str]) -> String {
    if text.starts_with("http://") {
        return "<url>".to_owned();
    }
    // Octavia names the words that it takes in any order.
    let sorted = text.split_once("one of: ").map(|(start, words)| {
        let mut words: Vec<&str> = words.split(", ").collect();
        words.sort_unstable();
        format!("{start}one of: {}", words.join(", "))
    });
    let text = sorted.as_deref().unwrap_or(text);
    let mut kind = String::new();
    let mut word = String::new();
    for character in text.chars().chain(['\0']) {
        let is_inside = character.is_alphanumeric() || "-:._/".contains(character);
        if is_inside {
            word.push(character);
            continue;
        }
        kind.push_str(&kind_of_word(&word, own_words));
        word.clear();
        if character != '\0' {
            kind.push(character);
        }
    }
    kind
}

/// The length of an id with its hyphens.
const UUID: usize = 36;

fn is_uuid(text: &str) -> bool {
    let hexadecimal = |part: &str| part.chars().all(|character| character.is_ascii_hexdigit());
    text.len() == UUID && text.split('-').count() == 5 && text.split('-').all(hexadecimal)
}

fn kind_of_word(word: &str, own_words: &[&str]) -> String {
    if word.parse::<IpAddr>().is_ok() {
        return "<address>".to_owned();
    }
    let core = word.trim_end_matches(['.', ':']);
    let end = &word[core.len()..];
    // Octavia names ports after load balancers.
    let split = core
        .len()
        .checked_sub(UUID)
        .filter(|at| core.is_char_boundary(*at));
    if let Some((start, id)) = split.map(|at| core.split_at(at))
        && is_uuid(id)
    {
        return format!("{start}<id>{end}");
    }
    let is_id = core.len() >= 32 && core.chars().all(|character| character.is_ascii_hexdigit());
    let is_time = core.len() >= 19 && core.as_bytes()[4] == b'-' && core.contains("T") && core.contains(':');
    let is_mac = core.split(':').count() == 6 && core.split(':').all(|part| part.len() == 2);
    let (address, prefix) = core.split_once('/').unwrap_or((core, ""));
    let kind = if core.is_empty() {
        ""
    } else if is_id {
        "<id>"
    } else if is_time {
        "<time>"
    } else if is_mac {
        "<mac>"
    } else if address.parse::<IpAddr>().is_ok() && !prefix.is_empty() {
        // Ranges are asked for, not given.
        core
    } else if address.parse::<IpAddr>().is_ok() {
        "<address>"
    } else if core.chars().all(|character| character.is_ascii_digit()) {
        "<number>"
    } else if own_words.contains(&core) {
        "<own>"
    } else {
        core
    };
    format!("{kind}{end}")
}

#[test]
fn ids_addresses_and_times_are_kinds_and_words_are_words() {
    for (text, kind) in [
        (
            "Port 1545a9c6-b219-41f5-bb9c-5e74ad18b63a (10.0.0.7) is busy.",
            "Port <id> (<address>) is busy.",
        ),
        ("2026-11-23T05:00:00Z", "<time>"),
        ("fa:16:3e:00:00:01", "<mac>"),
        ("http://127.0.0.1:1/v3", "<url>"),
        ("CIDR fd00::/8 for walk-1", "CIDR fd00::/8 for <own>"),
        ("ROUND_ROBIN", "ROUND_ROBIN"),
        (
            "octavia-lb-1545a9c6-b219-41f5-bb9c-5e74ad18b63a",
            "octavia-lb-<id>",
        ),
        ("fd00:10::", "<address>"),
        ("revision is 4", "revision is <number>"),
        ("one of: B, A", "one of: A, B"),
    ] {
        assert_eq!(kind_of_text(text, &["walk-1"]), kind);
    }
}

#[test]
fn a_missing_field_another_word_and_another_status_are_differences() {
    let answer = |status: u16, body: Value| Answer {
        request: String::new(),
        status: http::StatusCode::from_u16(status).unwrap(),
        headers: http::HeaderMap::new(),
        body,
    };
    let real = [(
        "s".to_owned(),
        answer(201, serde_json::json!({ "a": [{ "b": "x" }], "c": 1 })),
    )];
    let simulated = [(
        "s".to_owned(),
        answer(200, serde_json::json!({ "a": [{ "b": "y" }] })),
    )];
    let (real, simulated) = (told(&real, &[]), told(&simulated, &[]));
    let places: Vec<String> = differences(&real, &simulated)
        .into_iter()
        .map(|difference| difference.place)
        .collect();
    assert_eq!(places, ["/a/*/b", "/c", "status"]);
    assert!(differences(&real, &real).is_empty());
}
