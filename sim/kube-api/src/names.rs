//! The rules for names, labels and keys, with the messages of `k8s.io/apimachinery`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::field::FieldError;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Which names a kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// RFC 1123 label: namespaces, and Services from 1.36 on.
    Label,
    /// RFC 1035 label, which starts with a letter: Services up to 1.35.
    Label1035,
    /// RFC 1123 subdomain: most kinds.
    Subdomain,
    /// Anything that can stand in a URL path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with `name`.
    pub(crate) fn complaints(self, name: &str) -> Vec<String> {
        match self {
            Self::Label => dns_label(name),
            Self::Label1035 => dns_label_1035(name),
            Self::Subdomain => dns_subdomain(name),
            Self::PathSegment => path_segment(name),
        }
    }
}

/// What is wrong with `name` as an RFC 1123 label.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 63);
    if !is_label(name) {
        let dotted = name.split('.').all(is_label);
        wrong.push(if dotted { "must not contain dots" } else { LABEL }.to_owned());
    }
    wrong
}

fn dns_label_1035(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 63);
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

/// What is wrong with `name` as an RFC 1123 subdomain.
pub(crate) fn dns_subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 253);
    if !name.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with `key` as the key of a label, an annotation or a taint.
pub(crate) fn qualified_name(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(
                    dns_subdomain(prefix)
                        .into_iter()
                        .map(|text| format!("prefix part {text}")),
                );
            }
            name
        }
        _ => {
            return vec![
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and \
                 '/' (e.g. 'example.com/MyName')"
                    .to_owned(),
            ];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key_name(name) {
        wrong.push(format!("name part {KEY_NAME}"));
    }
    wrong
}

/// What is wrong with `value` as the value of a label or a taint.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 63);
    if !value.is_empty() && !is_key_name(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Checks a map of labels that stands at `field`.
pub(crate) fn labels(map: Option<&Value>, field: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in pairs(map) {
        errors.extend(
            qualified_name(key)
                .iter()
                .map(|text| FieldError::invalid(field, key, text)),
        );
        errors.extend(
            label_value(value)
                .iter()
                .map(|text| FieldError::invalid(field, value, text)),
        );
    }
}

/// Checks a map of annotations that stands at `field`.
pub(crate) fn annotations(map: Option<&Value>, field: &str, errors: &mut Vec<FieldError>) {
    const LIMIT: usize = 256 * 1024;
    let mut size = 0;
    for (key, value) in pairs(map) {
        errors.extend(
            qualified_name(&key.to_lowercase())
                .iter()
                .map(|text| FieldError::invalid(field, key, text)),
        );
        size += key.len() + value.len();
    }
    if size > LIMIT {
        errors.push(FieldError::invalid(
            field,
            "",
            &format!("may not be more than {LIMIT} bytes"),
        ));
    }
}

fn pairs(map: Option<&Value>) -> BTreeMap<&str, &str> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect()
}

fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let found = ["/", "%"].into_iter().filter(|bad| name.contains(bad));
    found.map(|bad| format!("may not contain '{bad}'")).collect()
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit {
        vec![format!("must be no more than {limit} bytes")]
    } else {
        Vec::new()
    }
}

fn is_label(text: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.bytes().all(|c| allowed(c) || c == b'-') && ends_are(text, allowed)
}

fn is_key_name(text: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric();
    text.bytes().all(|c| allowed(c) || b"-_.".contains(&c)) && ends_are(text, allowed)
}

fn ends_are(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&allowed) && text.bytes().next_back().is_some_and(&allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_follow_the_label_syntax() {
        for good in [
            "a",
            "node.kubernetes.io/instance-type",
            "A_b.c-9",
            "example.com/x",
        ] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "a-",
            "Ex.com/a",
            "a b",
            &"x".repeat(64),
        ] {
            assert!(!qualified_name(bad).is_empty(), "{bad}");
        }
        for good in ["", "x", "1.2-3_4", "eu-west.1"] {
            assert!(label_value(good).is_empty(), "{good}");
        }
        for bad in ["-", "a/b", "a b", &"x".repeat(64)] {
            assert!(!label_value(bad).is_empty(), "{bad}");
        }
    }

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        assert!(NameRule::Subdomain.complaints("node-1.example.com").is_empty());
        assert!(!NameRule::Subdomain.complaints("Node").is_empty());
        assert!(!NameRule::Label.complaints("a.b").is_empty());
        assert!(NameRule::Label1035.complaints("a1").is_empty());
        assert!(!NameRule::Label1035.complaints("1a").is_empty());
        assert_eq!(NameRule::PathSegment.complaints("a/b"), ["may not contain '/'"]);
    }
}
