//! "What if this Service asked for a load balancer?": the cluster as it is, but for one field of one Service.
//!
//! The `plan` command reads from here, so that the plan can be shown before anything is changed: same UID, same node
//! ports, hence the same names and steps that will follow. It is read-only; that `plan` works with it shows that `plan`
//! writes nothing to Kubernetes.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, ApiError};

/// Serves until it is dropped.
pub(crate) struct WhatIf {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl WhatIf {
    /// In it, the Service of this namespace and name is of type `LoadBalancer`.
    pub(crate) async fn start(api: Api, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let view = View {
            api,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(serve(listener, view)));
        Ok(Self { address, _task: task })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[derive(Clone)]
struct View {
    api: Api,
    namespace: String,
    name: String,
}

async fn serve(listener: TcpListener, view: View) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let view = view.clone();
        connections.spawn(async move {
            let service = service_fn(|request| view.answer(request));
            // A client that goes away early does no harm.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl View {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.method() != Method::GET {
            let refusal = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "message": "this view is read-only",
                "reason": "MethodNotAllowed",
                "code": 405,
            });
            return Ok(reply(StatusCode::METHOD_NOT_ALLOWED, &refusal));
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        Ok(match self.api.read(path).await {
            Ok(mut object) => {
                self.pretend(&mut object);
                reply(StatusCode::OK, &object)
            }
            Err(ApiError::Answered { status, message }) => {
                let failure = json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "status": "Failure",
                    "message": message,
                    "code": status.as_u16(),
                });
                reply(status, &failure)
            }
            Err(error) => reply(
                StatusCode::BAD_GATEWAY,
                &json!({ "kind": "Status", "status": "Failure", "message": error.to_string(), "code": 502 }),
            ),
        })
    }

    /// Changes the type of the Service, wherever in the answer it is.
    fn pretend(&self, answer: &mut Value) {
        let is_list = answer["kind"] == "ServiceList";
        if is_list && let Some(items) = answer["items"].as_array_mut() {
            for service in items {
                self.pretend_one(service);
            }
        } else if answer["kind"] == "Service" {
            self.pretend_one(answer);
        }
    }

    fn pretend_one(&self, service: &mut Value) {
        let metadata = &service["metadata"];
        if metadata["namespace"] == *self.namespace && metadata["name"] == *self.name {
            service["spec"]["type"] = json!("LoadBalancer");
        }
    }
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
        let view = WhatIf::start(api, "default", "web").await.unwrap();
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
}
