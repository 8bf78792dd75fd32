//! The annotations of a Service: what they are called, what they mean, how they are read.

use std::num::IntErrorKind;

use bowline_cloud_http::meant;
use bowline_cloud_provider::k8s::Service;
use bowline_cloud_provider::{Accepts, AnnotationSpec, facts};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

mod table;

pub use table::annotation_table;
pub(crate) use table::*;

/// The annotation that a field of the API's objects has its value from. Not for names and protocols, which mean another
/// thing on each kind of object.
pub(crate) fn of_field(field: &str) -> Option<&'static AnnotationSpec> {
    Some(match field {
        "algorithm" => &POOL_ALGORITHM,
        "allowed_cidrs" => &LISTENER_ALLOWED_CIDRS,
        "delay_s" => &MONITOR_DELAY,
        "down_threshold" => &MONITOR_DOWN_THRESHOLD,
        "flavor" => &FLAVOR,
        "http" | "expected_codes" | "host" | "method" | "url_path" | "version" => &MONITOR_HTTP,
        "timeout_client_data_ms" => &TIMEOUT_CLIENT_DATA,
        "timeout_member_connect_ms" => &TIMEOUT_MEMBER_CONNECT,
        "timeout_member_data_ms" => &TIMEOUT_MEMBER_DATA,
        "timeout_s" => &MONITOR_TIMEOUT,
        "type" => &MONITOR_TYPE,
        "up_threshold" => &MONITOR_UP_THRESHOLD,
        "vip_addresses" => &VIP_ADDRESSES,
        "zone" => &ZONE,
        _ => return None,
    })
}

/// Reads annotations of one Service and collects everything that is wrong with them, so that a person hears of all
/// problems at once.
pub(crate) struct Reader<'a> {
    service: &'a Service,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        Self {
            service,
            problems: Vec::new(),
        }
    }

    /// The value, or the default if the key is absent or its value blank.
    pub(crate) fn text(&self, spec: &AnnotationSpec) -> &'a str {
        self.set(spec).unwrap_or(spec.default)
    }

    /// Whether it is set.
    pub(crate) fn has(&self, spec: &AnnotationSpec) -> bool {
        self.set(spec).is_some()
    }

    fn set(&self, spec: &AnnotationSpec) -> Option<&'a str> {
        facts::annotation(self.service, spec.key).filter(|text| !text.is_empty())
    }

    /// A whole number, no less than the table says. On a problem 0, which nobody gets to see.
    pub(crate) fn int(&mut self, spec: &AnnotationSpec) -> i64 {
        let text = self.text(spec);
        let least = match spec.accepts {
            Accepts::Between(least, _) => least,
            _ => 0,
        };
        let problem = match text.parse::<i64>() {
            Ok(number) if number >= least => return number,
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => "is too large".to_owned(),
            _ => must_be(spec),
        };
        self.problem(format!(
            "cannot convert {text} to int ({}): it {problem}",
            spec.key
        ));
        0
    }

    /// A JSON list of strings; `None` on a problem.
    pub(crate) fn list(&mut self, spec: &AnnotationSpec) -> Option<Vec<String>> {
        let text = self.text(spec);
        match parse_list(text) {
            Ok(list) => Some(list),
            Err(error) => {
                self.problem(format!(
                    "not a valid JSON string list: {text} ({}): {error} (it {})",
                    spec.key,
                    must_be(spec)
                ));
                None
            }
        }
    }

    /// A JSON value; `failure` is upstream's text for one that is none.
    pub(crate) fn json<T: DeserializeOwned>(&mut self, spec: &AnnotationSpec, failure: &str) -> Option<T> {
        match parse_json(self.text(spec)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem_of(spec, &format!("{failure} {}: {error}", spec.key));
                None
            }
        }
    }

    /// One of the words of the table, which are those that the API knows.
    pub(crate) fn word(&mut self, spec: &AnnotationSpec) -> &'a str {
        let (text, words) = (self.text(spec), spec.words());
        if !words.contains(&text) {
            self.problem(format!(
                "unsupported value '{text}' of {}, must be one of: {}",
                spec.key,
                words.join(", ")
            ));
        }
        text
    }

    /// Notes something that is wrong.
    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    /// Notes what is wrong with a value, and adds what it must be, and last the value, which may be long.
    pub(crate) fn problem_of(&mut self, spec: &AnnotationSpec, text: &str) {
        let value = self.text(spec);
        self.problem(format!("{text} (it {}, and is `{value}`)", must_be(spec)));
    }

    /// How much is wrong so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.len()
    }

    /// Everything that is wrong, in the order found.
    pub(crate) fn into_problems(self) -> Vec<String> {
        self.problems
    }

    /// Annotations that look like one of ours and are none.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let unknown = facts::unknown_annotations(self.service, DOMAIN, annotation_table(), meant);
        let is_end_of_ours = |name: &str| {
            let mut known = annotation_table().iter();
            known.any(|spec| spec.key.strip_prefix(PREFIX) == Some(name))
        };
        let looks_like_ours =
            |key: &str| key.starts_with(PREFIX) || key.strip_prefix(DOMAIN).is_some_and(is_end_of_ours);
        let unknown = unknown.into_iter().filter(|it| looks_like_ours(it.key));
        unknown.map(|it| it.to_string()).collect()
    }

    /// Fields of JSON objects that no annotation has, each with its annotation. What is no JSON has none.
    pub(crate) fn unknown_fields(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (spec, known) in [(&VIP_ADDRESSES, VIP_FIELDS), (&MONITOR_HTTP, HTTP_FIELDS)] {
            let objects = match serde_json::from_slice(self.text(spec).as_bytes()) {
                Ok(Value::Array(items)) => items,
                Ok(value) => vec![value],
                Err(_) => Vec::new(),
            };
            for field in objects.iter().filter_map(Value::as_object).flat_map(Map::keys) {
                let text = format!("{field} ({})", spec.key);
                if !known.contains(&field.to_lowercase().as_str()) && !found.contains(&text) {
                    found.push(text);
                }
            }
        }
        found
    }
}

/// The fields of an address of a load balancer.
const VIP_FIELDS: &[&str] = &["subnet", "address"];

/// The fields of a monitor's HTTP request.
const HTTP_FIELDS: &[&str] = &["expected_codes", "method", "url_path", "version", "host"];

/// What the value of an annotation must be that is no text, in words.
fn must_be(spec: &AnnotationSpec) -> String {
    let form = match spec.accepts {
        Accepts::Between(least, _) => return format!("must be a whole number, {least} or more"),
        Accepts::Networks => r#"a JSON list of networks in CIDR notation, such as ["192.0.2.0/24"]"#,
        Accepts::Addresses => r#"a JSON list of IP addresses, such as ["198.51.100.7/32"]"#,
        Accepts::Vips => {
            r#"a JSON list of objects with subnet and address, such as [{"address": "10.0.0.7"}]"#
        }
        Accepts::Uuids => r#"a JSON list of UUIDs, such as ["2db69ba3-1864-4608-853a-0771b6885a3a"]"#,
        Accepts::HttpCheck => r#"a JSON object, such as {"url_path": "/livez", "expected_codes": ["200"]}"#,
        Accepts::Selector => "a label selector, such as pool=web or zone in (a, b)",
        _ => r#"a JSON list of texts, such as ["a", "b"]"#,
    };
    format!("must be {form}")
}

/// A JSON list of strings; blank and `null` are the empty list.
pub(crate) fn parse_list(text: &str) -> Result<Vec<String>, serde_json::Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice::<Option<Vec<String>>>(text.as_bytes())?.unwrap_or_default())
}

/// A JSON object; a list is none, though the library would take its items for the fields in their order.
pub(crate) struct Fields<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        serde_json::from_value(Value::Object(fields))
            .map(Self)
            .map_err(D::Error::custom)
    }
}

/// A JSON value whose object keys are taken in any letter case. `null` is no value.
fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let value: Value = serde_json::from_slice(text.as_bytes())?;
    serde_json::from_value(lower_keys(value))
}

fn lower_keys(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key.to_lowercase(), lower_keys(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(lower_keys).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::Pairs;

    use super::*;

    fn service(annotations: &[(&AnnotationSpec, &str)]) -> Service {
        let annotations: Pairs<String> = annotations
            .iter()
            .map(|(spec, value)| (spec.key, (*value).to_owned()))
            .collect();
        let mut service = Service::default();
        service.metadata.annotations = Some(annotations);
        service
    }

    #[test]
    fn a_blank_value_counts_as_not_set() {
        for blank in ["", " ", "\n\t "] {
            let all: Vec<_> = annotation_table().iter().map(|spec| (spec, blank)).collect();
            let service = service(&all);
            let mut reader = Reader::new(&service);
            for spec in annotation_table() {
                assert_eq!((reader.text(spec), reader.has(spec)), (spec.default, false));
            }
            assert_eq!(reader.int(&MONITOR_TIMEOUT), 1);
            assert_eq!(reader.word(&POOL_ALGORITHM), "round_robin");
            assert!(reader.into_problems().is_empty());
        }
    }

    #[test]
    fn numbers_are_decimal_and_may_be_signed_or_have_blanks_around() {
        for (text, timeout, delay) in [
            ("+7", Some(7), Some(7)),
            ("007", Some(7), Some(7)),
            ("1", Some(1), Some(1)),
            ("0", Some(0), None),
            (" 7\n", Some(7), Some(7)),
            ("7 0", None, None),
            ("7\u{200b}", None, None),
            ("7.0", None, None),
            ("-1", None, None),
        ] {
            for (spec, number) in [(&TIMEOUT_CLIENT_DATA, timeout), (&MONITOR_DELAY, delay)] {
                let service = service(&[(spec, text)]);
                let mut reader = Reader::new(&service);
                let read = reader.int(spec);
                assert_eq!(
                    Some(read).filter(|_| reader.into_problems().is_empty()),
                    number,
                    "{text:?} of {}",
                    spec.key
                );
            }
        }
    }

    #[test]
    fn a_list_names_the_annotation_that_is_wrong() {
        let table = [
            ("", Some(0)),
            ("  ", Some(0)),
            ("null", Some(0)),
            ("[]", Some(0)),
            (r#"["a","b"]"#, Some(2)),
            ("a", None),
            (r#"["a",1]"#, None),
            ("{}", None),
        ];
        for (text, length) in table {
            let service = service(&[(&LISTENER_ALLOWED_CIDRS, text)]);
            let mut reader = Reader::new(&service);
            let list = reader.list(&LISTENER_ALLOWED_CIDRS);
            let problems = reader.into_problems();
            assert_eq!(list.map(|list| list.len()), length, "{text:?}");
            assert_eq!(problems.is_empty(), length.is_some(), "{text:?}");
            assert!(
                problems
                    .iter()
                    .all(|text| text.contains("(k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs)"))
            );
        }
    }

    #[test]
    fn a_misspelt_key_is_noticed_and_keys_of_others_are_not() {
        let mut service = service(&[(&FLAVOR, "lb-standard")]);
        let annotations = service.metadata.annotations.get_or_insert_default();
        annotations.insert("k8s.cloudscale.ch/loadbalancer-flavour", "x".into());
        annotations.insert("k8s.cloudscale.ch/zone", "x".into());
        annotations.insert("example.org/loadbalancer-flavour", "x".into());
        assert_eq!(
            Reader::new(&service).unknown(),
            [
                "k8s.cloudscale.ch/loadbalancer-flavour (did you mean k8s.cloudscale.ch/loadbalancer-flavor?)",
                "k8s.cloudscale.ch/zone (did you mean k8s.cloudscale.ch/loadbalancer-zone?)",
            ]
        );
    }
}
