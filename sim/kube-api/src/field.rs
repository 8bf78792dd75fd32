//! Errors of single fields, as they make up an `Invalid` answer.
//!
//! Wording follows `k8s.io/apimachinery/pkg/util/validation/field`, because clients and people read it.

use serde_json::{Value, json};

/// One complaint about one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    reason: &'static str,
    field: String,
    body: String,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, "Required value".to_owned(), detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, "Forbidden".to_owned(), detail)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {}", value.into()),
            detail,
        )
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {}", value.into()),
            detail,
        )
    }

    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let known: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let body = format!("Unsupported value: {}", value.into());
        Self::new(
            "FieldValueNotSupported",
            field,
            body,
            &format!("supported values: {}", known.join(", ")),
        )
    }

    fn new(reason: &'static str, field: impl Into<String>, mut body: String, detail: &str) -> Self {
        if !detail.is_empty() {
            body = format!("{body}: {detail}");
        }
        Self {
            reason,
            field: field.into(),
            body,
        }
    }

    /// The cause as it stands in `details.causes` of a Status.
    pub(crate) fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.body, "field": self.field})
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}
