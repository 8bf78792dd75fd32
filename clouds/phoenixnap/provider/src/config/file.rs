//! The file: one JSON object, as it lies in a Secret.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bowline_cloud_http::{meant, shown_name};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;

use crate::config::setting::{Kind, Setting};

/// The values of the file, by key in lower case.
#[derive(Default)]
pub(super) struct File {
    values: BTreeMap<String, Value>,
    /// Keys that are not known and have no effect, as they are written.
    unknown: Vec<String>,
}

impl File {
    /// Reads the file. A comma before the closing brace is forgiven, because the vendor's own sample has one; nothing
    /// else is.
    ///
    /// # Errors
    ///
    /// What is wrong and where, without any of the contents.
    pub(super) fn parse(contents: &[u8]) -> Result<Self, String> {
        let text = without_trailing_comma(contents);
        let file: Self = serde_json::from_slice(&text).map_err(|error| {
            let what = match error.classify() {
                Category::Eof => "the file ends too early",
                Category::Data => "not a JSON object",
                _ => "not valid JSON",
            };
            format!("{what} at line {} column {}", error.line(), error.column())
        })?;
        file.check()?;
        Ok(file)
    }

    fn value(&self, setting: Setting) -> Option<&Value> {
        self.values.get(&setting.key().to_ascii_lowercase())
    }

    /// Whether there is such a key, be it with an empty value.
    pub(super) fn has(&self, setting: Setting) -> bool {
        self.value(setting).is_some()
    }

    /// What is said of the keys that are not known. Each may be a secret in the wrong place.
    pub(super) fn warnings(&self) -> Vec<String> {
        let known = Setting::ALL.map(Setting::key);
        let told = |key: &String| {
            let near = meant(key, &known).map(|near| format!(": did you mean {near:?}?"));
            let near = near.unwrap_or_default();
            format!("key {} is not known and has no effect{near}", shown_name(key))
        };
        self.unknown.iter().map(told).collect()
    }

    /// Texts must be texts, and the port a number of 32 bits.
    fn check(&self) -> Result<(), String> {
        for setting in Setting::ALL {
            let Some(value) = self.value(setting) else {
                continue;
            };
            let number = || value.as_i64().filter(|port| i32::try_from(*port).is_ok());
            let is_unset = || value.as_str().is_some_and(|text| text.trim().is_empty());
            let (is_good, wanted) = match setting.kind() {
                Kind::Text => (value.is_string(), "is not a text"),
                Kind::Switch => (
                    value.is_boolean() || value.is_string(),
                    "is neither true nor false",
                ),
                Kind::Port => (number().is_some() || is_unset(), "is not a number of 32 bits"),
            };
            if !is_good {
                return Err(format!("`{}` {wanted}", setting.key()));
            }
        }
        Ok(())
    }

    /// The value of a setting as a text: of a switch the word, of the port the digits.
    pub(super) fn text(&self, setting: Setting) -> Option<Cow<'_, str>> {
        match self.value(setting)? {
            Value::String(text) => Some(text.into()),
            Value::Null => None,
            other => Some(other.to_string().into()),
        }
    }
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InOrder)
    }
}

/// Takes the keys in the order of the document. One that stands twice, in whatever letter case, counts with its last value,
/// and `null` is no value, as with Go's `encoding/json`.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<File, E> {
        Ok(File::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        let mut file = File::default();
        while let Some((key, value)) = map.next_entry::<String, Option<Value>>()? {
            if !Setting::ALL
                .iter()
                .any(|setting| setting.key().eq_ignore_ascii_case(&key))
            {
                file.unknown.push(key);
            } else if let Some(value) = value {
                file.values.insert(key.to_ascii_lowercase(), value);
            }
        }
        Ok(file)
    }
}

/// The contents with a comma that stands before the last brace made a blank, so that positions stay what they are.
fn without_trailing_comma(contents: &[u8]) -> Vec<u8> {
    let mut text = contents.to_vec();
    let before = |text: &[u8], end: usize| text[..end].iter().rposition(|byte| !byte.is_ascii_whitespace());
    let Some(brace) = before(&text, text.len()).filter(|at| text[*at] == b'}') else {
        return text;
    };
    if let Some(comma) = before(&text, brace).filter(|at| text[*at] == b',') {
        // After another comma or the opening brace it is no trailing one.
        if before(&text, comma).is_some_and(|at| !matches!(text[at], b',' | b'{')) {
            text[comma] = b' ';
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Result<Option<String>, String> {
        File::parse(text.as_bytes()).map(|file| file.text(Setting::Location).map(Cow::into_owned))
    }

    #[test]
    fn the_shipped_sample_and_its_trailing_comma_are_read() {
        let sample = "{\n  \"clientID\": \"a\",\n  \"location\": \"SGP\",\n}\n";
        assert_eq!(location(sample), Ok(Some("SGP".to_owned())));
    }

    #[test]
    fn keys_are_read_in_any_letter_case_and_unknown_ones_ignored() {
        assert_eq!(
            location(r#"{"LOCATION":"PHX","x":[1]}"#),
            Ok(Some("PHX".to_owned()))
        );
        for nothing in ["null", "{}", r#"{"location":null}"#] {
            assert_eq!(location(nothing), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn of_a_key_that_stands_twice_in_any_letter_case_the_last_value_counts() {
        for (text, expected) in [
            (r#"{"location":"CHI","LOCATION":"PHX"}"#, "PHX"),
            (r#"{"LOCATION":"PHX","location":"CHI"}"#, "CHI"),
            (r#"{"location":"CHI","Location":"PHX","location":"ASH"}"#, "ASH"),
            (r#"{"location":"CHI","Location":null}"#, "CHI"),
        ] {
            assert_eq!(location(text), Ok(Some(expected.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_told_by_position_and_without_its_contents() {
        for text in [
            "",
            "[]",
            "\"hunter2\"",
            "{\"clientSecret\": \"hunter2\",,}",
            "{,}",
            "{\"clientSecret\": \"hunter2}",
            "{\"clientSecret\": hunter2}",
            "{\"clientSecret\": \"hunter2\"} hunter2",
            "{\"clientSecret\": [\"hunter2\"]}",
            "{\"apiServerPort\": \"6443\"}",
            "{\"apiServerPort\": 4294967297}",
            "{\"apiServerPort\": 1.5}",
            "{\"location\": true}",
            "{\"reservedIsShutDown\": 1}",
            "{\"kubeVipAnnotation\": [\"hunter2\"]}",
        ] {
            let error = File::parse(text.as_bytes()).err().unwrap();
            assert!(!error.contains("hunter2"), "{text}: {error}");
            assert!(!error.is_empty());
        }
        let error = File::parse(b"{\n  \"clientID\" \"a\"\n}").err().unwrap();
        assert_eq!(error, "not valid JSON at line 2 column 14");
        for text in ["[]", "7", "\"hunter2\""] {
            let error = File::parse(text.as_bytes()).err().unwrap();
            assert!(
                error.starts_with("not a JSON object at line 1 "),
                "{text}: {error}"
            );
        }
    }
}
