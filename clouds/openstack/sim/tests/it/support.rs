//! A caller of the APIs that knows nothing but HTTP.

use bowline_openstack_sim::OpenstackSim;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// Where Octavia's objects are.
pub(crate) const LB: &str = "/load-balancer/v2.0/lbaas";

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// Sends one request in memory.
pub(crate) async fn send(
    sim: &OpenstackSim,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "cloud.test")
        .header("content-type", "application/json");
    let request = headers
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.body(Full::<bytes::Bytes>::from(body)).unwrap();
    let response = sim.service().send(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    }
}

/// The body that logs a user of a project in.
pub(crate) fn password(name: &str, password: &str, project: &str) -> Value {
    let domain = json!({ "id": "default" });
    let user = json!({ "name": name, "password": password, "domain": domain });
    json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": user } },
        "scope": { "project": { "name": project, "domain": domain } },
    } })
}

pub(crate) async fn log_in(sim: &OpenstackSim, body: &Value) -> Answer {
    send(sim, Method::POST, "/identity/v3/auth/tokens", &[], body).await
}

/// Calls in memory with one token.
pub(crate) struct Caller {
    pub(crate) sim: OpenstackSim,
    pub(crate) token: String,
}

impl Caller {
    /// The ordinary user of the first project.
    pub(crate) async fn new(sim: &OpenstackSim) -> Self {
        Self::with(sim, &password("demo", "demo", "demo")).await
    }

    pub(crate) async fn with(sim: &OpenstackSim, login: &Value) -> Self {
        let answer = log_in(sim, login).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        Self {
            sim: sim.clone(),
            token: answer.headers["x-subject-token"].to_str().unwrap().to_owned(),
        }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let headers = [("x-auth-token", self.token.as_str())];
        let answer = send(&self.sim, method, path, &headers, &body).await;
        (answer.status, answer.body)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Method::POST, path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Method::PUT, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.call(Method::DELETE, path, Value::Null).await
    }
}

/// A load balancer in the project's subnet: one TCP listener on 80 with a pool, two members and a monitor.
pub(crate) async fn balancer(caller: &Caller, name: &str) -> Value {
    let subnet = caller.sim.home().subnet;
    let member = |address: &str| json!({ "address": address, "protocol_port": 30080, "name": address, "subnet_id": subnet });
    let pool = json!({
        "name": "pool", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "members": [member("10.0.0.201"), member("10.0.0.202")],
        "healthmonitor": { "name": "monitor", "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 },
    });
    let listener =
        json!({ "name": "listener", "protocol": "TCP", "protocol_port": 80, "default_pool": pool });
    let body = json!({ "name": name, "vip_subnet_id": subnet, "tags": [name], "listeners": [listener] });
    let (status, made) = caller
        .post(&format!("{LB}/loadbalancers"), json!({ "loadbalancer": body }))
        .await;
    assert_eq!(status, 201, "{made}");
    made["loadbalancer"].clone()
}

/// An `id` as text.
pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}
