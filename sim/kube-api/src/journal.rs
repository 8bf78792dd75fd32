//! What has been asked of the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

/// One request and how it was answered.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When it came in.
    pub at: Timestamp,
    /// Kubernetes verb, e.g. `patch`; the HTTP method in lower case for paths that are no resource.
    pub verb: String,
    /// API group; empty for core.
    pub group: String,
    /// Resource, e.g. `nodes`; empty for paths that are no resource.
    pub resource: String,
    /// Subresource, e.g. `status`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for cluster scope.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// URL path.
    pub path: String,
    /// Query, as sent.
    pub query: String,
    /// Content type of the body.
    pub content_type: String,
    /// JSON body; bearer tokens in it are blanked.
    pub body: Option<Value>,
    /// `User-Agent`.
    pub user_agent: String,
    /// Name of the user, as authenticated.
    pub user: String,
    /// HTTP status code of the answer; 0 if the connection was broken by a fault.
    pub status: u16,
}

impl Exchange {
    /// Whether the request may have changed something. A review is a question, though it is created, and a dry run is a rehearsal.
    pub fn is_write(&self) -> bool {
        let is_dry_run = self.query.split('&').any(|pair| pair == "dryRun=All");
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
            && !self.resource.ends_with("reviews")
            && !is_dry_run
    }
}

/// The requests of one server, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Vec<Exchange>>>);

impl Journal {
    /// All requests.
    pub fn all(&self) -> Vec<Exchange> {
        self.lock().clone()
    }

    /// Requests with this verb for this resource.
    pub fn of(&self, verb: &str, resource: &str) -> Vec<Exchange> {
        self.matching(|exchange| exchange.verb == verb && exchange.resource == resource)
    }

    /// Requests that may have changed something, without reviews of tokens and access.
    pub fn writes(&self) -> Vec<Exchange> {
        self.matching(|exchange| exchange.is_write() && !exchange.resource.ends_with("reviews"))
    }

    /// Requests that fulfil a condition.
    pub fn matching(&self, condition: impl Fn(&Exchange) -> bool) -> Vec<Exchange> {
        self.lock()
            .iter()
            .filter(|exchange| condition(exchange))
            .cloned()
            .collect()
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn record(&self, exchange: Exchange) {
        self.lock().push(exchange);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
