//! What values of an annotation are good, in CEL and in words.

use bowline_cloud_provider::{Accepts, AnnotationSpec, Changeability, ValueKind};

use crate::admission::cel;

/// How a value is looked at.
pub(crate) struct Check {
    /// Holds for good values.
    pub(crate) holds: String,
    /// What is allowed, after "must be".
    pub(crate) allowed: String,
}

/// How the value of an annotation is looked at; `None` if every text is a good one, or only the provider writes it.
pub(crate) fn check(spec: &AnnotationSpec, value: &str) -> Option<Check> {
    // As the readers have it. What is written in JSON, or with commas, allows for blanks by itself.
    let trimmed = format!("{value}.trim()");
    let (holds, allowed) = match (spec.accepts, spec.kind) {
        (Accepts::Any, _) if spec.change == Changeability::Written => return None,
        (Accepts::Any, ValueKind::Bool) => (
            format!("{trimmed} in ['true', 'false']"),
            words(&["true", "false"]),
        ),
        (Accepts::Any, ValueKind::Int) => number(&trimmed, i64::MIN, i64::MAX),
        (Accepts::Any, ValueKind::List) => (
            cel::is_list_of_texts(value),
            "a JSON list of texts, such as [\"a\", \"b\"]".to_owned(),
        ),
        (Accepts::Any, ValueKind::Text | ValueKind::CommaList | ValueKind::Json) => return None,
        (Accepts::Between(least, most), _) => number(&trimmed, least, most),
        (Accepts::Words(allowed), _) => (
            format!("{trimmed} in {}", cel::list(allowed.iter().copied())),
            words(allowed),
        ),
        (Accepts::WordsOfAnyCase(allowed), _) => {
            let lower: Vec<String> = allowed.iter().map(|word| word.to_ascii_lowercase()).collect();
            let lower = cel::list(lower.iter().map(String::as_str));
            (format!("{trimmed}.lowerAscii() in {lower}"), words(allowed))
        }
        (Accepts::NotBlank, _) => (format!("{trimmed} != ''"), "a text that is not blank".to_owned()),
        (Accepts::Uuid, _) => (or_nothing(&trimmed, &cel::is_uuid(&trimmed)), "a UUID".to_owned()),
        (Accepts::Uuids, _) => (
            items(value, &cel::is_uuid("i.trim()")),
            "a JSON list of UUIDs, such as [\"2db69ba3-1864-4608-853a-0771b6885a3a\"]".to_owned(),
        ),
        (Accepts::Hostname, _) => (
            or_nothing(&trimmed, &cel::is_hostname(&trimmed)),
            "a DNS name in lower case, such as www.example.org".to_owned(),
        ),
        (Accepts::Address, _) => (
            or_nothing(&trimmed, &cel::is_address(&trimmed)),
            "an IP address".to_owned(),
        ),
        (Accepts::Networks, ValueKind::List) => (
            items(value, &cel::is_network("i.trim()")),
            "a JSON list of networks in CIDR notation, such as [\"192.0.2.0/24\"]".to_owned(),
        ),
        (Accepts::Networks, _) => (
            or_nothing(
                value,
                &format!("{value}.split(',').all(i, {})", cel::is_network("i.trim()")),
            ),
            "networks in CIDR notation with commas between them, such as 192.0.2.0/24,198.51.100.0/24"
                .to_owned(),
        ),
        (Accepts::Addresses, _) => {
            let is_one = format!(
                "{} || {}",
                cel::is_address("i.trim()"),
                cel::is_network("i.trim()")
            );
            (
                items(value, &format!("({is_one})")),
                "a JSON list of IP addresses, such as [\"198.51.100.7/32\"]".to_owned(),
            )
        }
        (Accepts::Selector, _) => (
            cel::is_selector(value),
            "a label selector, such as pool=web or zone in (a, b)".to_owned(),
        ),
        (Accepts::Labels, _) => (
            cel::is_labels(value),
            "labels with commas between them, such as pool=web,gpu; sets and negations are not known here"
                .to_owned(),
        ),
        (Accepts::Vips, _) => {
            let are_addresses = format!(
                "{}.all(a, a == '' || {})",
                cel::texts_of_field(value, "address"),
                cel::is_address("a")
            );
            (
                format!(
                    "{}\n|| {}\n&& {}\n&& {are_addresses}",
                    cel::is_deep(value),
                    cel::is_list_of_objects(value),
                    cel::fields_are_texts(value, &["address", "subnet"])
                ),
                "a JSON list of objects with subnet and address, such as [{\"address\": \"10.0.0.7\"}]"
                    .to_owned(),
            )
        }
        (Accepts::HttpCheck, _) => (
            format!(
                "{}\n|| {}\n&& {}\n&& {}",
                cel::is_deep(value),
                cel::is_object(value),
                cel::fields_are_texts(value, &["method", "url_path", "version", "host"]),
                cel::field_is_list(value, "expected_codes")
            ),
            "a JSON object, such as {\"url_path\": \"/livez\", \"expected_codes\": [\"200\"]}".to_owned(),
        ),
    };
    Some(Check { holds, allowed })
}

fn or_nothing(value: &str, holds: &str) -> String {
    format!("{value} == '' || {holds}")
}

fn items(value: &str, is_one: &str) -> String {
    format!(
        "{}\n&& {}.all(i, {is_one})",
        cel::is_list_of_texts(value),
        cel::texts_of_list(value)
    )
}

/// Words for a person. The empty one is not offered.
fn words(words: &[&str]) -> String {
    let shown: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    match shown.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("one of: {}", shown.join(", ")),
    }
}

/// A number as the readers take it: decimal digits, perhaps with a sign. More than 18 digits are not converted here.
fn number(value: &str, least: i64, most: i64) -> (String, String) {
    let digits = format!("{value}.matches(r'^[-+]?[0-9]+$')");
    let short = format!("{value}.matches(r'^[-+]?0*[0-9]{{1,18}}$')");
    let (from, to) = match (least, most) {
        (i64::MIN, i64::MAX) => return (digits, "a whole number".to_owned()),
        (_, i64::MAX) => (
            format!("int({value}) >= {least}"),
            format!("a whole number, {least} or more"),
        ),
        _ => (
            format!("int({value}) >= {least} && int({value}) <= {most}"),
            format!("a whole number from {least} to {most}"),
        ),
    };
    let long = if most == i64::MAX {
        format!("{value}.matches(r'^[+]?[0-9]+$')")
    } else {
        "false".to_owned()
    };
    (format!("{short} ? {from} : {long}"), to)
}
