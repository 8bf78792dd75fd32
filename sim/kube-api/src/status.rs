//! `Status` answers: every error a request can meet, in the wording of `k8s.io/apimachinery/pkg/api/errors`.

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::kind::Kind;

/// A failure as the API reports it: an HTTP code and a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// HTTP status code, e.g. 404.
    pub code: u16,
    /// Machine readable reason, e.g. `NotFound`.
    pub reason: String,
    /// What people read.
    pub message: String,
    /// `retryAfterSeconds`; also sent as the `Retry-After` header.
    pub retry_after_seconds: Option<u32>,
    details: Map<String, Value>,
    /// Whether details are written though there are none, as generic server errors do.
    empty_details: bool,
    /// Continue token that goes with an expired one.
    pub(crate) continue_token: Option<String>,
}

impl Status {
    /// A failure with a code, a reason and a message of the caller's choice.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            retry_after_seconds: None,
            details: Map::new(),
            empty_details: false,
            continue_token: None,
        }
    }

    /// 429 with a `Retry-After`, as priority and fairness or an eviction limit answers.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let message = "the server has received too many requests and has asked us to try again later";
        Self::new(429, "TooManyRequests", message).retry_after(retry_after_seconds)
    }

    /// 500.
    pub fn internal(message: &str) -> Self {
        let mut status = Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        status
            .details
            .insert("causes".into(), json!([{"message": message}]));
        status
    }

    /// 503.
    pub fn unavailable(message: &str) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 409: somebody else was faster.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.resource()
        );
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// Asks the client to wait.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// A conflict that is reported on the kind instead of the resource.
    pub(crate) fn conflict_of_kind(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.kind);
        let mut status = Self::new(409, "Conflict", message).about(kind, name);
        status.detail("kind", kind.kind);
        status
    }

    /// A body that holds another kind than the path is for.
    pub(crate) fn wrong_kind(kind: &Kind, api_version: &str, found: &str) -> Self {
        let api_version = if api_version.is_empty() {
            kind.version
        } else {
            api_version
        };
        Self::bad_request(format!(
            "{found} in version {api_version:?} cannot be handled as a {}: converting ({api_version}.{found}) to \
             (core.{}): unknown conversion",
            kind.kind, kind.kind
        ))
    }

    /// A JSON patch that does not fit the object.
    pub(crate) fn patch_does_not_apply() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).with_empty_details()
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource())).about(kind, name)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_empty_details()
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.resource());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = if group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{qualified} is forbidden: {why}"),
            _ => format!("{qualified} {name:?} is forbidden: {why}"),
        };
        let mut status = Self::new(403, "Forbidden", message);
        status.detail("name", name);
        status.detail("group", group);
        status.detail("kind", resource);
        status
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_empty_details()
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: the client asks for a state that this server has not seen yet.
    pub(crate) fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message).retry_after(1);
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        status.details.insert("causes".into(), json!([cause]));
        status
    }

    /// 422 about an object of `kind`, or nothing if there is nothing to complain about.
    pub(crate) fn check(kind: &Kind, name: &str, errors: &[FieldError]) -> Result<(), Self> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self::invalid(kind.group, kind.kind, name, errors))
        }
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = if let [single] = &texts[..] {
            single.clone()
        } else {
            format!("[{}]", texts.join(", "))
        };
        let mut status = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {text}"));
        status.detail("name", name);
        status.detail("group", group);
        status.detail("kind", kind);
        status
            .details
            .insert("causes".into(), errors.iter().map(FieldError::cause).collect());
        status
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut details = self.details.clone();
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds".into(), seconds.into());
        }
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut value = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            value["reason"] = self.reason.as_str().into();
        }
        if !details.is_empty() || self.empty_details {
            value["details"] = Value::Object(details);
        }
        value
    }

    pub(crate) fn with_cause(mut self, cause: Value) -> Self {
        self.details.insert("causes".into(), json!([cause]));
        self
    }

    pub(crate) fn with_empty_details(mut self) -> Self {
        self.empty_details = true;
        self
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.detail("name", name);
        self.detail("group", kind.group);
        self.detail("kind", kind.plural);
        self
    }

    fn detail(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.details.insert(key.into(), value.into());
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// The answer to a deletion of which nothing is left to show.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural, "uid": uid});
    if !kind.group.is_empty() {
        details["group"] = kind.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
