//! What a body is handed: raw requests, and names that are its own.

use std::time::Duration;

use bowline_control_plane::Version;
use bowline_kube_api::KubeApi;
use bowline_kube_io::{Kube, KubeOptions};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

/// How long anything may take that happens a moment after its cause. A busy machine needs some seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// A place on a server for one body.
pub struct Scope {
    client: kube::Client,
    version: Version,
    embedded: Option<KubeApi>,
    namespace: String,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// The object of a request that was granted.
    #[track_caller]
    pub(crate) fn granted(self) -> Value {
        assert!(
            (200..300).contains(&self.code),
            "refused: {} {}",
            self.code,
            self.body
        );
        self.body
    }

    /// Code, reason and message of a request that was refused.
    #[track_caller]
    pub(crate) fn refused(self) -> (u16, String, String) {
        assert!(self.code >= 400, "granted: {} {}", self.code, self.body);
        assert_eq!(
            (&self.body["kind"], &self.body["status"], &self.body["code"]),
            (&json!("Status"), &json!("Failure"), &json!(self.code))
        );
        (
            self.code,
            text(&self.body["reason"]).to_owned(),
            text(&self.body["message"]).to_owned(),
        )
    }

    /// Field and message of each cause of a refusal.
    #[track_caller]
    pub(crate) fn causes(self) -> Vec<(String, String)> {
        assert_eq!(self.code, 422, "{}", self.body);
        let causes = self.body["details"]["causes"].as_array().cloned();
        causes
            .unwrap_or_default()
            .iter()
            .map(|cause| {
                (
                    text(&cause["field"]).to_owned(),
                    text(&cause["message"]).to_owned(),
                )
            })
            .collect()
    }
}

impl Scope {
    pub(crate) async fn new(
        client: kube::Client,
        version: Version,
        embedded: Option<KubeApi>,
        body: &str,
    ) -> Self {
        let scope = Self {
            client,
            version,
            embedded,
            namespace: label(body),
        };
        let namespace = json!({"metadata": {"name": scope.namespace}});
        scope.post("/api/v1/namespaces", &namespace).await.granted();
        scope
    }

    /// The Kubernetes that is examined.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The handle of the embedded server, for what its API does not offer.
    pub(crate) fn embedded(&self) -> &KubeApi {
        self.embedded.as_ref().unwrap()
    }

    /// Our own client.
    pub(crate) fn kube(&self) -> Kube {
        let client = self.client.clone();
        let service = tower::service_fn(move |request: Request<bowline_kube_io::Body>| {
            let client = client.clone();
            async move {
                let (head, body) = request.into_parts();
                let Ok(body) = body.collect().await;
                client
                    .send(Request::from_parts(head, Body::from(body.to_bytes())))
                    .await
            }
        });
        Kube::with_service(service, KubeOptions::new("conformance"))
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of a Node of this body.
    pub(crate) fn node_name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.namespace)
    }

    pub(crate) fn node(&self, suffix: &str) -> String {
        format!("/api/v1/nodes/{}", self.node_name(suffix))
    }

    /// The Nodes of this body, as a list.
    pub(crate) fn own_nodes(&self) -> String {
        format!("/api/v1/nodes?labelSelector=suite%3D{}", self.namespace)
    }

    pub(crate) fn services(&self) -> String {
        format!("/api/v1/namespaces/{}/services", self.namespace)
    }

    pub(crate) fn service(&self, name: &str) -> String {
        format!("{}/{name}", self.services())
    }

    /// Creates a Node of this body: these parts, and what tells it from others.
    pub(crate) async fn new_node(&self, suffix: &str, parts: Value) -> Value {
        let mut node = parts;
        node["metadata"]["name"] = json!(self.node_name(suffix));
        node["metadata"]["labels"]["suite"] = json!(self.namespace);
        self.post("/api/v1/nodes", &node).await.granted()
    }

    pub(crate) async fn try_service(&self, name: &str, spec: Value) -> Answer {
        let service = json!({"metadata": {"name": name}, "spec": spec});
        self.post(&self.services(), &service).await
    }

    pub(crate) async fn new_service(&self, name: &str, spec: Value) -> Value {
        self.try_service(name, spec).await.granted()
    }

    /// Creates a Service of type LoadBalancer with one port.
    pub(crate) async fn new_balanced(&self, name: &str) -> Value {
        self.new_service(name, balanced()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None, "application/json").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send(Method::GET, path, None, accept).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.with_body(Method::POST, path, "application/json", body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.with_body(Method::PUT, path, "application/json", body).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "application/merge-patch+json", body).await
    }

    pub(crate) async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        self.with_body(Method::PATCH, path, content_type, body).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Answer {
        self.with_body(Method::DELETE, path, "application/json", options)
            .await
    }

    async fn with_body(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Answer {
        let content = Some((content_type, body.to_string()));
        self.send(method, path, content, "application/json").await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<(&str, String)>,
        accept: &str,
    ) -> Answer {
        let response = self.exchange(method, path, content, accept).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer { code, body }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        content: Option<(&str, String)>,
        accept: &str,
    ) -> http::Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, accept);
        let body = match content {
            Some((content_type, text)) => {
                request = request.header(header::CONTENT_TYPE, content_type);
                Body::from(text.into_bytes())
            }
            None => Body::empty(),
        };
        self.client.send(request.body(body).unwrap()).await.unwrap()
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.exchange(Method::GET, path, None, "application/json").await;
        assert_eq!(response.status(), 200, "{path}");
        Watch {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }
}

/// A running watch.
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    /// Type and object of the next event; `None` when the server ends the watch.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).unwrap();
                return Some((text(&event["type"]).to_owned(), event["object"].take()));
            }
            let frame = tokio::time::timeout(DEADLINE, self.body.frame()).await;
            let frame = frame.unwrap_or_else(|_| panic!("nothing seen within {DEADLINE:?}"));
            self.buffer
                .extend_from_slice(&frame?.unwrap().into_data().unwrap_or_default());
        }
    }

    /// The next event, which must be there.
    pub(crate) async fn expect(&mut self) -> (String, Value) {
        self.next().await.unwrap()
    }
}

/// The spec of a Service of type LoadBalancer with one port.
pub(crate) fn balanced() -> Value {
    json!({"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 80}]})
}

/// A string of an answer; empty if it is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `metadata.resourceVersion`.
pub(crate) fn version_of(object: &Value) -> &str {
    text(&object["metadata"]["resourceVersion"])
}

/// Names of the items of a list.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| text(&item["metadata"]["name"])).collect()
}

/// Polls until it holds.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "not within {DEADLINE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The name of a body as a DNS label of at most 40 bytes, so that names with it stay below 63: its beginning, and a
/// number that tells it from others with the same beginning.
fn label(body: &str) -> String {
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain: String = body
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_lowercase(),
            false => '-',
        })
        .take(28)
        .collect();
    format!(
        "{}-{:08x}",
        plain.trim_matches('-').replace("--", "-"),
        hash >> 32
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_bodies_are_short_and_differ() {
        let first = label("services::a_very_long_name_of_a_fact_about_services");
        let second = label("services::a_very_long_name_of_a_fact_about_nodes");
        assert_ne!(first, second);
        assert!(first.len() <= 40, "{first}");
        assert!(first.starts_with("services-a-very-long"), "{first}");
    }
}
