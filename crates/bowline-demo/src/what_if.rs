//! "What if this Service asked for a load balancer?": the cluster as it is, but for one change.
//!
//! The `plan` command reads from here, so that the plan can be shown before anything is changed: same UID, same node
//! ports, hence the same names and steps that will follow. It is read-only; that `plan` works with it shows that `plan`
//! writes nothing to Kubernetes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, ApiError};
use crate::listen;

/// What is different in the view: it may change an object of this kind, and says whether the object is there.
pub(crate) type Change = Arc<dyn Fn(&str, &mut Value) -> bool + Send + Sync>;

/// A change of one object.
pub(crate) fn changed(
    kind: &'static str,
    namespace: Option<&str>,
    name: &str,
    change: impl Fn(&mut Value) -> bool + Send + Sync + 'static,
) -> Change {
    let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
    Arc::new(move |of, object| {
        let metadata = &object["metadata"];
        let is_it = of == kind
            && metadata["name"] == *name
            && namespace
                .as_ref()
                .is_none_or(|space| metadata["namespace"] == **space);
        !is_it || change(object)
    })
}

/// The cluster in which the Service of this namespace and name is of type `LoadBalancer`.
pub(crate) fn balanced(namespace: &str, name: &str) -> Change {
    changed("Service", Some(namespace), name, |service| {
        service["spec"]["type"] = json!("LoadBalancer");
        true
    })
}

/// Serves until it is dropped.
pub(crate) struct WhatIf {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl WhatIf {
    /// A view of the cluster with this change.
    pub(crate) async fn start(api: Api, change: Change) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let view = View { api, change };
        let answer = move |request, _| {
            let view = view.clone();
            async move { view.answer(request).await }
        };
        let serving = listen::serve(listener, usize::MAX, http1::Builder::new(), answer);
        let task = AbortOnDropHandle::new(tokio::spawn(serving));
        Ok(Self { address, _task: task })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[derive(Clone)]
struct View {
    api: Api,
    change: Change,
}

impl View {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            let mut refusal = failure("this view is read-only", 405);
            refusal["reason"] = json!("MethodNotAllowed");
            return reply(StatusCode::METHOD_NOT_ALLOWED, &refusal);
        }
        match self.api.read(&unpaged(request.uri())).await {
            Ok(mut object) => {
                if self.pretend(&mut object) {
                    reply(StatusCode::OK, &object)
                } else {
                    let gone = failure("it is not there in this view", 404);
                    reply(StatusCode::NOT_FOUND, &gone)
                }
            }
            Err(ApiError::Answered { status, message }) => reply(status, &failure(&message, status.as_u16())),
            Err(error) => reply(StatusCode::BAD_GATEWAY, &failure(&error.to_string(), 502)),
        }
    }

    /// Makes the change, wherever in the answer the object is; whether the answer is there at all.
    fn pretend(&self, answer: &mut Value) -> bool {
        let kind = answer["kind"].as_str().unwrap_or_default().to_owned();
        let Some(of) = kind.strip_suffix("List") else {
            return (self.change)(&kind, answer);
        };
        if let Some(items) = answer["items"].as_array_mut() {
            items.retain_mut(|object| (self.change)(of, object));
        }
        true
    }
}

/// The same without a limit: what a view leaves out of a page would be missing from what the server says of the others.
fn unpaged(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default().split('&');
    let kept: Vec<&str> = query.filter(|pair| !pair.starts_with("limit=")).collect();
    format!("{}?{}", uri.path(), kept.join("&"))
}

fn failure(message: &str, code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code })
}

fn reply(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Endpoint, Patch};

    #[tokio::test]
    async fn one_service_is_shown_as_a_load_balancer_and_nothing_can_be_written() {
        let cluster = bowline_kube_api::KubeApi::builder().build();
        for name in ["web", "other"] {
            let spec = json!({ "type": "NodePort", "ports": [{ "port": 80 }] });
            let service = json!({ "kind": "Service", "metadata": { "name": name }, "spec": spec });
            cluster.apply_json(service).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = cluster.serve(listener).unwrap();
        let api = Api::new(Endpoint::plain(server.address().to_string()));
        let view = WhatIf::start(api, balanced("default", "web")).await.unwrap();
        let seen = Api::new(Endpoint::plain(view.address.to_string()));

        let list = seen.read("/api/v1/services?limit=100").await.unwrap();
        let types: Vec<_> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|service| format!("{} {}", service["metadata"]["name"], service["spec"]["type"]))
            .collect();
        assert!(types.contains(&r#""web" "LoadBalancer""#.to_owned()), "{types:?}");
        assert!(types.contains(&r#""other" "NodePort""#.to_owned()), "{types:?}");

        let path = "/api/v1/namespaces/default/services/web";
        let refused = seen.patch(path, Patch::Merge, &json!({})).await.unwrap_err();
        assert_eq!(refused.to_string(), "this view is read-only (405)");
        assert!(
            seen.find("/api/v1/namespaces/default/services/none")
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test]
    async fn an_object_can_be_left_out_and_others_stay() {
        let cluster = bowline_kube_api::KubeApi::builder().build();
        for name in ["a", "b"] {
            let node = json!({ "kind": "Node", "metadata": { "name": name } });
            cluster.apply_json(node).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = cluster.serve(listener).unwrap();
        let api = Api::new(Endpoint::plain(server.address().to_string()));
        let view = WhatIf::start(api, changed("Node", None, "a", |_| false))
            .await
            .unwrap();
        let seen = Api::new(Endpoint::plain(view.address.to_string()));
        // As the caches count a list: the object that is left out would be the whole page.
        for path in ["/api/v1/nodes", "/api/v1/nodes?limit=1"] {
            let list = seen.read(path).await.unwrap();
            assert_eq!(list["items"].as_array().unwrap().len(), 1, "{path}");
            assert_eq!(list["items"][0]["metadata"]["name"], "b");
            assert!(list["metadata"].get("continue").is_none(), "{list}");
            assert!(list["metadata"].get("remainingItemCount").is_none(), "{list}");
        }
        assert!(seen.find("/api/v1/nodes/a").await.unwrap().is_none());
        assert!(seen.find("/api/v1/nodes/b").await.unwrap().is_some());
    }
}
