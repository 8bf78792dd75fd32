//! Refusals as the API words them: one flat object of strings.

use std::collections::BTreeMap;

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::service::json;
use http::StatusCode;
use serde_json::json as value;

use crate::behaviour::RefusalKeys;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    fields: BTreeMap<String, String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, field: &str, text: impl Into<String>) -> Self {
        Self {
            status,
            fields: BTreeMap::from([(field.to_owned(), text.into())]),
        }
    }

    pub(crate) fn fields(fields: BTreeMap<String, String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            fields,
        }
    }

    /// A bad value of one field.
    pub(crate) fn field(field: &str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, field, text)
    }

    /// A bad request as a whole.
    pub(crate) fn detail(text: impl Into<String>) -> Self {
        Self::field("detail", text)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "detail", "Not found.")
    }

    pub(crate) fn method_not_allowed(method: &http::Method) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "detail",
            format!("Method \"{method}\" not allowed."),
        )
    }

    pub(crate) fn bad_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "detail", "Invalid token.")
    }

    pub(crate) fn read_only() -> Self {
        let text = "You do not have permission to perform this action.";
        Self::new(StatusCode::FORBIDDEN, "detail", text)
    }

    /// That there is room for one more of a kind.
    pub(crate) fn unless_full(most: Option<usize>, used: usize, kind: &str) -> Result<(), Self> {
        match most.is_some_and(|most| used >= most) {
            true => Err(Self::detail(format!("The quota for {kind} is exceeded."))),
            false => Ok(()),
        }
    }

    /// A write on something that cannot take it now. `status` is a switch of the simulator.
    pub(crate) fn busy(status: u16, text: &str) -> Self {
        Self::new(
            StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT),
            "detail",
            text,
        )
    }

    /// The same with other keys.
    pub(crate) fn with_keys(self, keys: RefusalKeys) -> Self {
        let key = match keys {
            RefusalKeys::Attribute | RefusalKeys::Field => return self,
            RefusalKeys::Detail => "detail",
            RefusalKeys::NonField => "non_field_errors",
        };
        let texts = self.fields.into_values().collect::<Vec<_>>().join(" ");
        Self::new(self.status, key, texts)
    }

    /// What is wrong, by field.
    pub(crate) fn into_fields(self) -> BTreeMap<String, String> {
        self.fields
    }

    /// All texts in one line, for an object within another.
    pub(crate) fn texts(&self) -> String {
        self.fields
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn reply(&self) -> Reply {
        json(self.status, &value!(self.fields))
    }
}
