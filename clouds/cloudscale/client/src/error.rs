//! Why a call to the API failed, in terms of what to do next.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;

use bowline_cloud_http::{Class, Classified, Failure, HttpError, speaks_of_limit, speaks_of_no_address};

/// A call that failed.
///
/// The text is `operation: METHOD path: status: key: value; key: value` with everything that the API said, sorted by
/// key, and without query, headers or token.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it. A `400` is also how the API says that the object is not in the right state: only the text tells.
    pub class: Class,
    /// What the API said: the field, or `detail`, and the text.
    pub fields: BTreeMap<String, String>,
    /// The failure below.
    pub http: HttpError,
}

impl ApiError {
    /// Whether the API itself said that there is no such object. Any other `404` comes from something in between, or from a
    /// wrong base URL, and proves nothing.
    pub fn proves_absence(&self) -> bool {
        // The API's own answer has this key; a gateway in between may speak JSON too.
        self.class == Class::NotFound && self.fields.contains_key("detail")
    }

    pub(crate) fn has_no_body(&self) -> bool {
        matches!(&self.http.failure, Failure::Status(failure) if failure.body.is_empty())
    }

    /// Whether a write may have had its effect: look before trying again.
    pub fn maybe_applied(&self) -> bool {
        self.http.maybe_applied()
    }
}

impl From<HttpError> for ApiError {
    fn from(http: HttpError) -> Self {
        let said = match &http.failure {
            Failure::Status(failure) => said(&failure.body),
            _ => None,
        };
        let fields: BTreeMap<String, String> = said
            .unwrap_or_default()
            .into_iter()
            .map(|(key, text)| (http.call.redact(&key), http.call.redact(&text)))
            .collect();
        // The API has no code for it. It is about no field, or about the one that there are too many of.
        let is_limit = fields
            .values()
            .any(|text| speaks_of_limit(text) || speaks_of_no_address(text));
        let class = match http.class() {
            Class::Invalid | Class::Denied | Class::Conflict if is_limit => Class::Exhausted,
            class => class,
        };
        Self { class, fields, http }
    }
}

impl Classified for ApiError {
    fn class(&self) -> Class {
        self.class
    }

    fn maybe_applied(&self) -> bool {
        self.maybe_applied()
    }
}

/// The API's own words: an object of texts. `None` if the body is anything else, as from a proxy.
fn said(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let object: BTreeMap<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    Some(
        object
            .into_iter()
            .map(|(key, value)| (key, text(value)))
            .collect(),
    )
}

fn text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Array(values) => values.into_iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Status(failure), false) = (&self.http.failure, self.fields.is_empty()) else {
            return self.http.fmt(f);
        };
        let call = &self.http.call;
        write!(
            f,
            "{}: {} {}: {}",
            call.operation, call.method, call.path, failure.status
        )?;
        for (index, (key, text)) in self.fields.iter().enumerate() {
            write!(f, "{} {key}: {text}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl StdError for ApiError {}
