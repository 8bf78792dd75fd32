//! The demo's own hands in the cluster: what a kubelet, kube-proxy and a person with `kubectl` say to an API server.
//!
//! Plain JSON over one connection per request. The crate with the manager's Kubernetes client knows only the requests
//! that a cloud controller manager may make, and it should stay so; the demo creates Nodes and Services, which such a
//! manager never does. The same few lines speak to the embedded server without TLS and to a real one with a client
//! certificate.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::Value;

mod connection;
mod follow;
mod kubeconfig;

pub(crate) use connection::Endpoint;
pub(crate) use follow::{Change, follow};

/// How long one request may take. Everything runs on one machine; a busy one may still need a while.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// What a patch's body means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    /// Fields replace fields, null removes.
    Merge,
    /// As `Merge`, but lists are merged by their keys where the type says so.
    Strategic,
    /// A list of operations.
    Json,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The server answered, in these words.
    #[error("{message} ({})", status.as_u16())]
    Answered { status: StatusCode, message: String },
    /// The server did not answer.
    #[error("no answer from the API server: {0}")]
    Unreachable(String),
}

impl ApiError {
    /// Whether the object is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Answered { status, .. } if *status == StatusCode::NOT_FOUND)
    }

    fn unreachable(error: impl fmt::Display) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// An API server that can be asked. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    endpoint: Endpoint,
}

impl Api {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The server and credentials of a kubeconfig's current context.
    pub(crate) fn from_kubeconfig(text: &str) -> anyhow::Result<Self> {
        kubeconfig::endpoint(text).map(Self::new)
    }

    pub(crate) async fn read(&self, path: &str) -> Result<Value, ApiError> {
        self.exchange(Method::GET, path, None).await
    }

    /// As [`read`](Self::read), with none for an object that is not there.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.read(path).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.exchange(Method::POST, path, Some(("application/json", object)))
            .await
    }

    pub(crate) async fn patch(&self, path: &str, kind: Patch, body: &Value) -> Result<Value, ApiError> {
        self.exchange(Method::PATCH, path, Some((kind.content_type(), body)))
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), ApiError> {
        self.exchange(Method::DELETE, path, None).await.map(drop)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        content: Option<(&'static str, &Value)>,
    ) -> Result<Value, ApiError> {
        let exchange = async {
            let (response, _connection) = self.send(method, path, content).await?;
            serde_json::from_slice(&whole(response).await?).map_err(ApiError::unreachable)
        };
        tokio::time::timeout(TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(ApiError::unreachable("it takes too long")))
    }

    /// Sends a request and gives its answer when the head has come, if it is a good one.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<(&'static str, &Value)>,
    ) -> Result<(Response<Incoming>, connection::Connection), ApiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.endpoint.authority())
            .header(ACCEPT, "application/json");
        let body = match content {
            Some((content_type, value)) => {
                request = request.header(CONTENT_TYPE, content_type);
                Bytes::from(value.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body)).map_err(ApiError::unreachable)?;
        let (mut sender, connection) = self.endpoint.connect().await.map_err(ApiError::unreachable)?;
        let response = sender
            .send_request(request)
            .await
            .map_err(ApiError::unreachable)?;
        if response.status().is_success() {
            return Ok((response, connection));
        }
        let status = response.status();
        let message = message(&whole(response).await?);
        Err(ApiError::Answered { status, message })
    }
}

async fn whole(response: Response<Incoming>) -> Result<Bytes, ApiError> {
    let body = response.into_body().collect().await;
    Ok(body.map_err(ApiError::unreachable)?.to_bytes())
}

/// The message of a `Status`, else whatever was said.
fn message(body: &[u8]) -> String {
    serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|status| Some(status.get("message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_status_is_shown_and_anything_else_as_it_is() {
        assert_eq!(message(br#"{"kind":"Status","message":"no"}"#), "no");
        assert_eq!(message(b"bad gateway\n"), "bad gateway");
    }
}
