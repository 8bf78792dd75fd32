//! Label and field selectors.

use serde_json::Value;

use crate::kind::Kind;
use crate::names;
use crate::path;
use crate::request::Request;
use crate::status::Status;

#[derive(Clone, Debug, PartialEq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// What a list or watch is narrowed to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

impl Selector {
    /// Both selectors of a request for `kind`.
    pub(crate) fn of(kind: &Kind, request: &Request) -> Result<Self, Status> {
        Self::parse(
            kind,
            request.query("labelSelector"),
            request.query("fieldSelector"),
        )
    }

    fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Status> {
        Ok(Self {
            labels: parse_labels(labels)?,
            fields: parse_fields(kind, fields)?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, kind: &Kind, object: &Value) -> bool {
        let labels = path::at(object, "metadata.labels");
        let label = |key: &str| labels.and_then(|map| map.get(key)).and_then(Value::as_str);
        let by_label = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => {
                !label(key).is_some_and(|value| values.iter().any(|v| v == value))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        });
        if !by_label || self.fields.is_empty() {
            return by_label;
        }
        let special = kind.strategy().fields(object);
        self.fields.iter().all(|(field, equal, wanted)| {
            let found = match field.as_str() {
                "metadata.name" | "metadata.namespace" => path::text(object, field),
                _ => special
                    .iter()
                    .find(|(name, _)| name == field)
                    .map_or("", |(_, value)| value),
            };
            (found == wanted) == *equal
        })
    }
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<(String, bool, String)>, Status> {
    let mut found = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (field, equal, value) = if let Some((field, value)) = term.split_once("!=") {
            (field, false, value)
        } else if let Some((field, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (field, true, value)
        } else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Status::bad_request(message));
        };
        let namespace = kind.namespaced && field == "metadata.namespace";
        if field != "metadata.name" && !namespace && !kind.strategy().field_names().contains(&field) {
            return Err(Status::bad_request(format!("field label not supported: {field}")));
        }
        found.push((field.to_owned(), equal, value.to_owned()));
    }
    Ok(found)
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Status> {
    let mut found = Vec::new();
    for term in split_terms(text) {
        let requirement = parse_label_term(term.trim())
            .ok_or_else(|| Status::bad_request(format!("unable to parse requirement: {term:?}")))?;
        let (key, values) = match &requirement {
            Requirement::In(key, values) | Requirement::NotIn(key, values) => (key, values.as_slice()),
            Requirement::Exists(key) | Requirement::Absent(key) => (key, &[][..]),
        };
        let wrong = names::qualified_name(key)
            .into_iter()
            .chain(values.iter().flat_map(|v| names::label_value(v)));
        if let Some(problem) = wrong.into_iter().next() {
            return Err(Status::bad_request(format!(
                "unable to parse requirement: {key:?}: {problem}"
            )));
        }
        found.push(requirement);
    }
    Ok(found)
}

/// Splits at commas outside parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut terms) = (0_i32, 0, Vec::new());
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        terms.push(&text[start..]);
    }
    terms
}

fn parse_label_term(term: &str) -> Option<Requirement> {
    if let Some((head, rest)) = term.split_once('(') {
        let values = rest
            .strip_suffix(')')?
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let (key, operator) = head.trim().split_once(char::is_whitespace)?;
        return match operator.trim() {
            "in" => Some(Requirement::In(key.to_owned(), values)),
            "notin" => Some(Requirement::NotIn(key.to_owned(), values)),
            _ => None,
        };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Requirement::NotIn(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(Requirement::In(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(Requirement::Absent(key.trim().to_owned())),
        None if term.contains(char::is_whitespace) => None,
        None => Some(Requirement::Exists(term.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_choose_as_documented() {
        let kind = Kind::named("Node").unwrap();
        let node = json!({"metadata": {"name": "a", "labels": {"zone": "x", "role": ""}}});
        for (selector, chosen) in [
            ("", true),
            ("zone=x", true),
            ("zone==x", true),
            ("zone=y", false),
            ("zone!=y", true),
            ("absent!=y", true),
            ("zone in (x, y)", true),
            ("zone in (y)", false),
            ("zone notin (x)", false),
            ("absent notin (x)", true),
            ("role", true),
            ("absent", false),
            ("!absent", true),
            ("!role", false),
            ("role=,zone=x", true),
            ("zone in (x,y),!absent,role", true),
        ] {
            let parsed = Selector::parse(kind, selector, "").unwrap();
            assert_eq!(parsed.matches(kind, &node), chosen, "{selector}");
        }
        for bad in ["zone within (x)", "a b", "in (x)", "=x", "zone=a b"] {
            assert_eq!(Selector::parse(kind, bad, "").unwrap_err().code, 400, "{bad}");
        }
    }

    #[test]
    fn field_selectors_know_the_fields_of_each_kind() {
        let kind = Kind::named("Event").unwrap();
        let event = json!({
            "metadata": {"name": "e", "namespace": "n"},
            "involvedObject": {"kind": "Service", "name": "s", "uid": "1"},
            "reason": "Synced", "type": "Normal", "source": {"component": "c"},
        });
        for (selector, chosen) in [
            ("metadata.name=e", true),
            ("metadata.namespace!=n", false),
            (
                "involvedObject.kind=Service,involvedObject.name=s,involvedObject.uid=1",
                true,
            ),
            ("involvedObject.namespace=", true),
            ("reason=Synced,type!=Warning", true),
            ("source=c", true),
            ("source=d", false),
        ] {
            let parsed = Selector::parse(kind, "", selector).unwrap();
            assert_eq!(parsed.matches(kind, &event), chosen, "{selector}");
        }
        let status = Selector::parse(Kind::named("Node").unwrap(), "", "spec.providerID=x").unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (400, "field label not supported: spec.providerID")
        );
    }
}
