//! Reading the fields of a request body, all errors collected before the request is refused.

use std::collections::BTreeMap;
use std::net::IpAddr;

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::ApiError;
use crate::model::Tags;

const REQUIRED: &str = "This field is required.";
const BLANK: &str = "This field may not be blank.";
const NULL: &str = "This field may not be null.";
const MAX_TAG_VALUE: usize = 256;

/// The body of one request.
#[derive(Debug)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    errors: BTreeMap<String, String>,
}

impl Fields {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::new(Map::new()));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Self::new(map)),
            Ok(_) => Err(ApiError::detail("Invalid data. Expected a dictionary.")),
            Err(error) => Err(ApiError::detail(format!("JSON parse error - {error}"))),
        }
    }

    pub(crate) fn new(map: Map<String, Value>) -> Self {
        Self {
            map,
            errors: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    pub(crate) fn refuse(&mut self, name: &str, text: impl Into<String>) {
        self.errors.entry(name.to_owned()).or_insert_with(|| text.into());
    }

    /// Says that a field must be there and be a value.
    pub(crate) fn require(&mut self, name: &str) {
        if !self.has(name) {
            self.refuse(name, REQUIRED);
        } else if self.map[name].is_null() {
            self.refuse(name, NULL);
        }
    }

    /// A field that must not be sent with a PATCH.
    pub(crate) fn forbid(&mut self, names: &[&str]) {
        for name in names {
            if self.has(name) {
                self.refuse(name, "This field cannot be changed.");
            }
        }
    }

    /// Takes a field out, or with `a.b` a field of an object.
    pub(crate) fn forget(&mut self, name: &str) {
        match name.split_once('.') {
            None => {
                self.map.remove(name);
            }
            Some((object, field)) => {
                if let Some(Value::Object(object)) = self.map.get_mut(object) {
                    object.remove(field);
                }
            }
        }
    }

    /// Cuts a text.
    pub(crate) fn cut(&mut self, name: &str, length: usize) {
        if let Some(Value::String(text)) = self.map.get_mut(name) {
            *text = text.chars().take(length).collect();
        }
    }

    /// A text that is not blank, without blanks around it, as the API's framework has it. Assumed.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let problem = match self.map.get(name)? {
            Value::String(text) if text.trim().is_empty() => BLANK,
            Value::String(text) => return Some(text.trim().to_owned()),
            Value::Null => NULL,
            _ => "Not a valid string.",
        };
        self.refuse(name, problem);
        None
    }

    /// A text or `null`: `Some(None)` is an explicit `null`.
    pub(crate) fn nullable_text(&mut self, name: &str) -> Option<Option<String>> {
        match self.map.get(name)? {
            Value::Null => Some(None),
            _ => self.text(name).map(Some),
        }
    }

    pub(crate) fn uuid(&mut self, name: &str) -> Option<Uuid> {
        let text = self.text(name)?;
        let uuid = Uuid::parse_str(&text).ok();
        if uuid.is_none() {
            self.refuse(name, "Must be a valid UUID.");
        }
        uuid
    }

    /// The id of one of these objects.
    pub(crate) fn known<T>(&mut self, name: &str, what: &str, objects: &IndexMap<Uuid, T>) -> Option<Uuid> {
        let uuid = self.uuid(name)?;
        if !objects.contains_key(&uuid) {
            self.refuse(name, format!("{what} \"{uuid}\" does not exist."));
        }
        Some(uuid)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = self.map.get(name)?.as_bool();
        if flag.is_none() {
            self.refuse(name, "Must be a valid boolean.");
        }
        flag
    }

    /// A whole number in a range.
    pub(crate) fn number(&mut self, name: &str, min: u32, max: u32) -> Option<u32> {
        let value = self.map.get(name)?;
        let Some(number) = value.as_i64() else {
            let text = if value.is_null() {
                NULL
            } else {
                "A valid integer is required."
            };
            self.refuse(name, text);
            return None;
        };
        match u32::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                self.refuse(name, format!("The {name} must be between {min} and {max}."));
                None
            }
        }
    }

    pub(crate) fn port(&mut self, name: &str) -> Option<u16> {
        self.number(name, 1, 65_535)
            .and_then(|port| u16::try_from(port).ok())
    }

    pub(crate) fn address(&mut self, name: &str) -> Option<IpAddr> {
        let text = self.text(name)?;
        let address = text.parse().ok();
        if address.is_none() {
            self.refuse(name, "Enter a valid IPv4 or IPv6 address.");
        }
        address
    }

    /// One of the words of an enum; the message lists them.
    pub(crate) fn word<T: DeserializeOwned>(&mut self, name: &str, words: &[&str]) -> Option<T> {
        let value = self.map.get(name)?.clone();
        let word = serde_json::from_value(value.clone()).ok();
        if word.is_none() {
            let given = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.refuse(
                name,
                format!(
                    "{given:?} is not a valid choice. Expect one of: {}.",
                    words.join(", ")
                ),
            );
        }
        word
    }

    pub(crate) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let texts = serde_json::from_value(self.map.get(name)?.clone()).ok();
        if texts.is_none() {
            self.refuse(name, "Expected a list of strings.");
        }
        texts
    }

    pub(crate) fn objects(&mut self, name: &str) -> Option<Vec<Map<String, Value>>> {
        let objects = serde_json::from_value(self.map.get(name)?.clone()).ok();
        if objects.is_none() {
            self.refuse(name, "Expected a list of objects.");
        }
        objects
    }

    /// Labels: keys of letters, digits, `_` and `-`, values of at most 256 characters.
    pub(crate) fn tags(&mut self) -> Option<Tags> {
        let value = self.map.get("tags")?.clone();
        let Ok(tags) = serde_json::from_value::<Tags>(value) else {
            self.refuse("tags", "Tags must be an object of strings.");
            return None;
        };
        for (key, value) in &tags {
            let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if key.is_empty() || !key.chars().all(letter) {
                self.refuse(
                    "tags",
                    format!("The tag key {key:?} holds characters that are not allowed."),
                );
            } else if value.chars().count() > MAX_TAG_VALUE {
                self.refuse(
                    "tags",
                    format!("The value of tag {key:?} is longer than {MAX_TAG_VALUE} characters."),
                );
            }
        }
        Some(tags)
    }

    /// Refuses if anything was wrong so far.
    pub(crate) fn check(&mut self) -> Result<(), ApiError> {
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::fields(std::mem::take(&mut self.errors)))
        }
    }
}

/// A field that [`Fields::require`] and [`Fields::check`] have vouched for.
pub(crate) fn given<T>(field: Option<T>, name: &str) -> Result<T, ApiError> {
    field.ok_or_else(|| ApiError::field(name, REQUIRED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Fields {
        Fields::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn all_errors_are_collected() {
        let mut body = fields(r#"{"name": " ", "port": 70000, "id": "x", "flag": 1, "tags": {"a b": "c"}}"#);
        body.require("zone");
        body.text("name");
        body.port("port");
        body.uuid("id");
        body.flag("flag");
        body.tags();
        let error = body.check().unwrap_err();
        let text = String::from_utf8(error.reply().into_body().to_vec()).unwrap();
        for fragment in [
            r#""name":"This field may not be blank.""#,
            r#""port":"The port must be between 1 and 65535.""#,
            r#""id":"Must be a valid UUID.""#,
            r#""zone":"This field is required.""#,
            r#""flag":"#,
            r#""tags":"#,
        ] {
            assert!(text.contains(fragment), "{fragment} in {text}");
        }
    }

    #[test]
    fn body_must_be_an_object() {
        assert!(Fields::parse(b"[1]").is_err());
        assert!(Fields::parse(b"{").is_err());
        assert_eq!(Fields::parse(b"").unwrap().len(), 0);
    }
}
