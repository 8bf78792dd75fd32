//! Refusals as each service words them.

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::service::json;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json as value};

use crate::model::Id;
use crate::options::Service;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    body: Value,
}

impl ApiError {
    fn new(status: StatusCode, body: Value) -> Self {
        Self { status, body }
    }

    /// What Keystone says, and every service about a token that is not good.
    pub(crate) fn keystone(status: StatusCode, message: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        let body = value!({ "code": status.as_u16(), "message": message.into(), "title": title });
        Self::new(status, value!({ "error": body }))
    }

    pub(crate) fn unauthorized() -> Self {
        Self::keystone(
            StatusCode::UNAUTHORIZED,
            "The request you have made requires authentication.",
        )
    }

    pub(crate) fn nova(status: StatusCode, message: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::NOT_FOUND => "itemNotFound",
            StatusCode::FORBIDDEN => "forbidden",
            _ => "badRequest",
        };
        Self::new(
            status,
            value!({ kind: { "code": status.as_u16(), "message": message.into() } }),
        )
    }

    pub(crate) fn neutron(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        let body = value!({ "type": kind, "message": message.into(), "detail": "" });
        Self::new(status, value!({ "NeutronError": body }))
    }

    /// What Neutron says about something that is not there: `Port` or `Floating IP`, and its id.
    pub(crate) fn no(kind: &str, what: &str, id: impl std::fmt::Display) -> Self {
        // neutron-lib's texts end with a full stop, those of Neutron itself do not.
        let end = if ["Network", "Subnet", "Port"].contains(&what) {
            "."
        } else {
            ""
        };
        let text = format!("{what} {id} could not be found{end}");
        Self::neutron(StatusCode::NOT_FOUND, kind, text)
    }

    /// A value that Neutron's API layer does not take.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::neutron(StatusCode::BAD_REQUEST, "HTTPBadRequest", message)
    }

    /// A limit of a project in Neutron.
    pub(crate) fn over_quota(resource: &str) -> Self {
        let text = format!("Quota exceeded for resources: ['{resource}'].");
        Self::neutron(StatusCode::CONFLICT, "OverQuota", text)
    }

    pub(crate) fn octavia(status: StatusCode, message: impl Into<String>) -> Self {
        Self::of_octavia(status, "Client", message)
    }

    fn of_octavia(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let body = value!({ "faultcode": code, "faultstring": message.into(), "debuginfo": null });
        Self::new(status, body)
    }

    /// Whether Octavia could not read the request as a whole (WSME's types), so that nothing of it was looked at.
    pub(crate) fn is_unreadable(&self) -> bool {
        let text = self.body["faultstring"].as_str().unwrap_or_default();
        ["Invalid input for field", "Unknown attribute"]
            .iter()
            .any(|it| text.starts_with(it))
    }

    /// A request that Octavia understands and does not take.
    pub(crate) fn invalid(message: impl std::fmt::Display) -> Self {
        Self::octavia(StatusCode::BAD_REQUEST, format!("Validation failure: {message}"))
    }

    /// Octavia failed.
    pub(crate) fn octavia_failure(message: impl Into<String>) -> Self {
        Self::of_octavia(StatusCode::INTERNAL_SERVER_ERROR, "Server", message)
    }

    /// What the driver of a load balancer could not do.
    pub(crate) fn of_provider(provider: &str, message: impl std::fmt::Display) -> Self {
        Self::octavia_failure(format!("Provider '{provider}' reports error: {message}"))
    }

    /// What the driver of a load balancer does not know.
    pub(crate) fn unsupported(provider: &str, why: impl std::fmt::Display) -> Self {
        let text = format!("Provider '{provider}' does not support a requested option: {why}");
        Self::of_octavia(StatusCode::NOT_IMPLEMENTED, "Server", text)
    }

    /// The pool of members is not there: Octavia finds that out while it looks for who answers.
    pub(crate) fn no_pool_of_members(id: &str) -> Self {
        let text = format!("Pool {id} not found.");
        let body = value!({ "code": 404, "title": "Bad Request", "description": text });
        Self::new(StatusCode::NOT_FOUND, body)
    }

    /// A value that Octavia does not take for something.
    pub(crate) fn invalid_option(value: impl std::fmt::Display, option: impl std::fmt::Display) -> Self {
        let text = format!("{value} is not a valid option for {option}");
        Self::octavia(StatusCode::BAD_REQUEST, text)
    }

    pub(crate) fn octavia_conflict(message: impl Into<String>) -> Self {
        Self::octavia(StatusCode::CONFLICT, message)
    }

    /// A write below a load balancer that is not `ACTIVE`.
    pub(crate) fn immutable(what: &str, id: Id) -> Self {
        Self::octavia_conflict(format!("{what} {id} is immutable and cannot be updated."))
    }

    /// A limit of a project in Octavia.
    pub(crate) fn met_quota(resource: &str) -> Self {
        let text = format!("Quota has been met for resources: {resource}");
        Self::octavia(StatusCode::FORBIDDEN, text)
    }

    pub(crate) fn barbican_not_found(what: &str) -> Self {
        let text = format!("Not Found. Sorry but your {what} is in another castle.");
        let body = value!({ "code": 404, "title": "Not Found", "description": text });
        Self::new(StatusCode::NOT_FOUND, body)
    }

    /// A path that a service does not have, or not for this method.
    pub(crate) fn no_such_path(service: Service) -> Self {
        let text = "The resource could not be found.";
        match service {
            Service::Identity => Self::keystone(StatusCode::NOT_FOUND, text),
            Service::Compute => Self::nova(StatusCode::NOT_FOUND, text),
            Service::Network => Self::neutron(StatusCode::NOT_FOUND, "HTTPNotFound", text),
            Service::LoadBalancer => Self::octavia(StatusCode::NOT_FOUND, text),
            Service::KeyManager => Self::barbican_not_found("resource"),
        }
    }

    /// Below no service at all.
    pub(crate) fn no_such_service() -> Self {
        Self::new(StatusCode::NOT_FOUND, value!("404 page not found"))
    }

    pub(crate) fn maintenance() -> Self {
        Self::keystone(StatusCode::SERVICE_UNAVAILABLE, "Maintenance is under way.")
    }

    /// The answer. One without authentication says where to log in.
    pub(crate) fn reply(&self, keystone_url: &str) -> Reply {
        let mut reply = json(self.status, &self.body);
        let challenge = format!("Keystone uri=\"{keystone_url}\"");
        if self.status == StatusCode::UNAUTHORIZED
            && let Ok(challenge) = HeaderValue::from_str(&challenge)
        {
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        reply
    }
}
