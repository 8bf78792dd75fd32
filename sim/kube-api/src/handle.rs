//! From a request to its answer.

mod discovery;
mod read;
mod review;
mod watch;
mod write;

use std::sync::Arc;

use serde_json::Value;

use crate::core::Core;
use crate::kind::Kind;
use crate::request::{Form, Request};
use crate::status::Status;
use crate::{meta, table};

pub(crate) use watch::Watch;

/// What goes back to the client.
pub(crate) enum Answer {
    /// An object, with its HTTP status code.
    Object(u16, Value),
    /// Plain text, with its HTTP status code.
    Text(u16, &'static str),
    /// A stream of events.
    Watch(Box<Watch>),
}

/// Paths that everybody may read.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version"];

/// Whether a path is open to those who do not say who they are.
pub(crate) fn is_public(path: &str) -> bool {
    PUBLIC
        .iter()
        .any(|public| path == *public || path.starts_with(&format!("{public}/")))
}

/// Answers a request of an authenticated user.
pub(crate) fn handle(core: &Arc<Core>, request: &Request) -> Result<Answer, Status> {
    let target = &request.target;
    if target.resource.is_empty() {
        if !is_public(&request.path) && !discovery::is_discovery(&request.path) {
            core.access.authorize(&request.user, target)?;
        }
        return discovery::answer(core, request);
    }
    if target.resource != "selfsubjectaccessreviews" {
        core.access.authorize(&request.user, target)?;
    }
    if let Some(answer) = review::answer(core, request) {
        return answer;
    }
    let kind = Kind::served_at(&target.group, &request.version, &target.resource)
        .ok_or_else(Status::no_such_path)?;
    // Namespaces carry themselves as their namespace.
    if !kind.namespaced && !target.namespace.is_empty() && kind.kind != "Namespace" {
        return Err(Status::no_such_path());
    }
    if kind.namespaced && target.namespace.is_empty() && !matches!(target.verb.as_str(), "list" | "watch") {
        return Err(if target.name.is_empty() {
            Status::method_not_allowed()
        } else {
            Status::no_such_path()
        });
    }
    match (target.verb.as_str(), target.subresource.as_str()) {
        ("get", "") => read::get(core, kind, request),
        ("get", "status") if kind.has_status => read::get(core, kind, request),
        ("list", "") => read::list(core, kind, request),
        ("watch", "") => watch::answer(core, kind, request),
        (verb, subresource) => write::answer(core, kind, request, verb, subresource),
    }
}

/// The namespace of a request for objects of `kind`.
fn namespace_of<'a>(kind: &Kind, request: &'a Request) -> &'a str {
    if kind.namespaced {
        &request.target.namespace
    } else {
        ""
    }
}

/// One object in the form that the client asked for.
fn shaped(core: &Core, kind: &Kind, request: &Request, object: &Value) -> Result<Value, Status> {
    Ok(match request.form()? {
        Form::Plain => object.clone(),
        Form::Partial => meta::partial(object),
        Form::Table => {
            let version = serde_json::json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table::table(kind, &[object], version, request.include(), true, core.now())
        }
    })
}
