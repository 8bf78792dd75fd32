//! The three kinds of PATCH that are served.

pub(crate) mod strategic;

use serde_json::Value;

use crate::field::FieldError;
use crate::kind::Kind;
use crate::status::Status;

/// Most operations that one JSON patch may hold (`maxJSONPatchOperations`).
const MAX_OPERATIONS: usize = 10_000;

/// How the body of a PATCH is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
}

impl PatchType {
    /// By content type, which a PATCH must have.
    pub(crate) fn of(content_type: &str) -> Result<Self, Status> {
        match content_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                let mut status = Status::unsupported_media_type(
                    "application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json",
                );
                status.message = "server-side apply is not served by this embedded API server".to_owned();
                Err(status)
            }
            _ => {
                let status = Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
                Err(status.with_empty_details())
            }
        }
    }

    /// Applies `body` to an object of `kind`.
    pub(crate) fn apply(self, kind: &Kind, object: &Value, body: &Value) -> Result<Value, Status> {
        let mut patched = object.clone();
        match self {
            Self::Json => {
                let patch: json_patch::Patch = serde_json_from(body)?;
                if patch.0.len() > MAX_OPERATIONS {
                    let message = format!(
                        "Request entity too large: The allowed maximum operations in a JSON patch is \
                         {MAX_OPERATIONS}, got {}",
                        patch.0.len()
                    );
                    return Err(Status::new(413, "RequestEntityTooLarge", message));
                }
                json_patch::patch(&mut patched, &patch).map_err(|_| Status::patch_does_not_apply())?;
            }
            Self::Merge => {
                if !body.is_object() {
                    return Err(Status::bad_request("Invalid JSON Patch"));
                }
                json_patch::merge(&mut patched, body);
            }
            Self::Strategic => {
                let Value::Object(patch) = body else {
                    return Err(Status::bad_request("error decoding patch: not an object"));
                };
                patched = strategic::merge(kind, object, patch).map_err(|problem| {
                    // Upstream tells only malformed directives from errors of its own.
                    if problem.starts_with("invalid patch format") {
                        Status::bad_request(problem)
                    } else {
                        Status::new(500, "", problem)
                    }
                })?;
            }
        }
        Ok(patched)
    }

    /// The answer when the patched object does not fit its Go type.
    pub(crate) fn misfit(patched: &Value, problem: &str) -> Status {
        Status::invalid(
            "",
            "",
            "",
            &[FieldError::invalid("patch", patched.to_string(), problem)],
        )
    }
}

fn serde_json_from(body: &Value) -> Result<json_patch::Patch, Status> {
    serde_json::from_value(body.clone())
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
}
