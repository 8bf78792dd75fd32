//! Reading the fields of a request body. The first thing wrong refuses the request, as in OpenStack.

use std::net::IpAddr;

use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::model::Id;

/// Whose words a refusal is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Neutron,
    Octavia,
}

/// The object of a request body, or an object within it.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    dialect: Dialect,
    /// Where it is in the body, as Octavia names that.
    at: String,
}

/// What Octavia calls the argument that a body is.
fn argument(root: &str) -> String {
    match root {
        "loadbalancer" => "load_balancer.loadbalancer".to_owned(),
        "healthmonitor" => "health_monitor_.healthmonitor".to_owned(),
        root => format!("{root}_.{root}"),
    }
}

impl Fields {
    /// The object called `root` of a body: `{"port": {...}}`.
    pub(crate) fn parse(dialect: Dialect, root: &str, body: &[u8]) -> Result<Self, ApiError> {
        let parsed: Result<Map<String, Value>, _> = serde_json::from_slice(body);
        match parsed.ok().as_mut().and_then(|map| map.remove(root)) {
            Some(Value::Object(map)) => Ok(Self {
                map,
                dialect,
                at: argument(root),
            }),
            _ => Err(match dialect {
                Dialect::Neutron => ApiError::bad_input(format!("Unable to find '{root}' in request body")),
                Dialect::Octavia => {
                    ApiError::octavia(StatusCode::BAD_REQUEST, format!("Missing argument: \"{root}\""))
                }
            }),
        }
    }

    /// A body that is the object itself.
    pub(crate) fn whole(dialect: Dialect, argument: &str, body: &[u8]) -> Result<Self, ApiError> {
        let map = serde_json::from_slice(body);
        let map = map
            .map_err(|_| ApiError::octavia(StatusCode::BAD_REQUEST, "Request is not in valid JSON format"))?;
        let at = argument.to_owned();
        Ok(Self { map, dialect, at })
    }

    /// An object within a body, under a name.
    fn within(&self, name: &str, map: Map<String, Value>) -> Self {
        Self {
            map,
            dialect: self.dialect,
            at: format!("{}.{name}", self.at),
        }
    }

    /// The names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }

    /// Refuses all other names than these, between blanks.
    pub(crate) fn only(&self, names: &str) -> Result<(), ApiError> {
        let is_one = |name: &String| names.split_whitespace().any(|it| it == name);
        match self.map.keys().find(|name| !is_one(name)) {
            None => Ok(()),
            Some(name) => Err(match self.dialect {
                Dialect::Neutron => ApiError::bad_input(format!("Unrecognized attribute(s) '{name}'")),
                Dialect::Octavia => {
                    let text = format!("Unknown attribute for argument {}: {name}", self.at);
                    ApiError::octavia(StatusCode::BAD_REQUEST, text)
                }
            }),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Whether a field is there and `null`.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    /// A field that is there and not `null`.
    fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A bad value of a field.
    pub(crate) fn bad(&self, name: &str, reason: impl std::fmt::Display) -> ApiError {
        let value = self.map.get(name).unwrap_or(&Value::Null);
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Null => "None".to_owned(),
            // As Python writes lists.
            other => other.to_string().replace('"', "'"),
        };
        match self.dialect {
            Dialect::Neutron => {
                ApiError::bad_input(format!("Invalid input for {name}. Reason: '{shown}' {reason}."))
            }
            Dialect::Octavia => ApiError::octavia(
                StatusCode::BAD_REQUEST,
                format!("Invalid input for field/attribute {name}. Value: '{shown}'. {reason}"),
            ),
        }
    }

    /// A field that must be there.
    pub(crate) fn given<T>(&self, name: &str, field: Option<T>) -> Result<T, ApiError> {
        field.ok_or_else(|| match self.dialect {
            Dialect::Neutron => ApiError::bad_input(format!(
                "Failed to parse request. Required attribute '{name}' not specified"
            )),
            Dialect::Octavia => self.bad(name, "Mandatory field missing."),
        })
    }

    /// A field of any type that reads from JSON.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str, reason: &str) -> Result<Option<T>, ApiError> {
        self.value(name)
            .map(|value| serde_json::from_value(value.clone()).map_err(|_| self.bad(name, reason)))
            .transpose()
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        let text: Option<String> = self.read(name, "is not a valid string")?;
        match text.as_ref().is_some_and(|text| text.chars().count() > 255) {
            true => Err(self.bad(
                name,
                match self.dialect {
                    Dialect::Neutron => "exceeds maximum length of 255",
                    Dialect::Octavia => "Value should have a maximum character requirement of 255",
                },
            )),
            false => Ok(text),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.read(name, "is not a valid boolean value")
    }

    pub(crate) fn id(&self, name: &str) -> Result<Option<Id>, ApiError> {
        let reason = match self.dialect {
            Dialect::Neutron => "is not a valid UUID",
            Dialect::Octavia => "Value should be UUID format",
        };
        self.read(name, reason)
    }

    pub(crate) fn address(&self, name: &str) -> Result<Option<IpAddr>, ApiError> {
        let reason = match self.dialect {
            Dialect::Neutron => "is not a valid IP address",
            Dialect::Octavia => "Value should be IPv4 or IPv6 format",
        };
        self.read(name, reason)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        self.read(name, "is not a list of strings")
    }

    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Self>>, ApiError> {
        let maps: Option<Vec<Map<String, Value>>> = self.read(name, "is not a list of objects")?;
        Ok(maps.map(|maps| maps.into_iter().map(|map| self.within(name, map)).collect()))
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Self>, ApiError> {
        let map: Option<Map<String, Value>> = self.read(name, "is not an object")?;
        Ok(map.map(|map| self.within(name, map)))
    }

    /// A whole number in a range.
    pub(crate) fn number(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, ApiError> {
        let number: Option<i64> = self.read(name, "is not an integer")?;
        match number {
            Some(number) if number < min => {
                Err(self.bad(name, format!("Value should be greater or equal to {min}")))
            }
            Some(number) if number > max => {
                Err(self.bad(name, format!("Value should be lower or equal to {max}")))
            }
            number => Ok(number),
        }
    }

    /// A whole number in a range that fits its type.
    pub(crate) fn small<T: TryFrom<i64>>(
        &self,
        name: &str,
        min: i64,
        max: i64,
    ) -> Result<Option<T>, ApiError> {
        let number = self.number(name, min, max)?;
        let fitting = number.map(|number| T::try_from(number).map_err(|_| self.bad(name, "is out of range")));
        fitting.transpose()
    }

    pub(crate) fn port(&self, name: &str) -> Result<Option<u16>, ApiError> {
        self.small(name, 1, 65_535)
    }

    /// One of the words of an enum; the message lists them.
    pub(crate) fn word<T: DeserializeOwned>(
        &self,
        name: &str,
        words: &[&str],
    ) -> Result<Option<T>, ApiError> {
        let reason = format!("Value should be one of: {}", words.join(", "));
        match self
            .value(name)
            .is_some_and(|it| !words.iter().any(|word| it == word))
        {
            true => Err(self.bad(name, reason)),
            false => self.read(name, &reason),
        }
    }
}
