//! A caller of the APIs that knows nothing but HTTP.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bowline_phoenixnap_sim::kit::TransportError;
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

pub(crate) const ALL_SCOPES: &str = "bmc bmc.read tags tags.read";
pub(crate) const NETWORK: &str = "6598f7c2d2a94b6e0f1c1234";
/// The names that a manager needs.
pub(crate) const NAMES: [&str; 5] = ["usage", "cluster", "serviceNamespace", "serviceName", "delete"];

pub(crate) async fn send(
    sim: &PhoenixnapSim,
    request: Request<String>,
) -> Result<(u16, String), TransportError> {
    let request = request.map(|body| Full::<bytes::Bytes>::from(body.into_bytes()));
    let response = sim.service().send(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(bytes.to_vec()).unwrap()))
}

/// Asks for a token with the credentials in the header.
pub(crate) async fn ask(sim: &PhoenixnapSim, id: &str, secret: &str, scopes: &str) -> (u16, Value) {
    let basic = BASE64_STANDARD.encode(format!("{id}:{secret}"));
    let request = Request::post(PhoenixnapSim::TOKEN_PATH)
        .header("authorization", format!("Basic {basic}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!(
            "grant_type=client_credentials&scope={}",
            scopes.replace(' ', "+")
        ))
        .unwrap();
    let (status, text) = send(sim, request).await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

/// Calls in memory with one token.
pub(crate) struct Caller {
    pub(crate) sim: PhoenixnapSim,
    token: String,
}

impl Caller {
    pub(crate) async fn new(sim: &PhoenixnapSim) -> Self {
        Self::with_scopes(sim, ALL_SCOPES).await
    }

    pub(crate) async fn with_scopes(sim: &PhoenixnapSim, scopes: &str) -> Self {
        let (status, answer) = ask(sim, "id", "secret", scopes).await;
        assert_eq!(status, 200, "{answer}");
        Self::with_token(sim, answer["access_token"].as_str().unwrap())
    }

    pub(crate) fn with_token(sim: &PhoenixnapSim, token: &str) -> Self {
        Self {
            sim: sim.clone(),
            token: token.to_owned(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> Result<(u16, Value), TransportError> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let (status, text) = send(&self.sim, request).await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.try_send(Method::GET, path, Value::Null).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.try_send(Method::POST, path, body).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.try_send(Method::DELETE, path, Value::Null).await.unwrap()
    }

    /// Buys a /29 in `NLD`; answers its id.
    pub(crate) async fn buy(&self) -> String {
        let (status, made) = self.post("/ips/v1/ip-blocks", wish()).await;
        assert_eq!(status, 201, "{made}");
        text(&made["id"])
    }

    pub(crate) async fn attach(&self, block: &str) -> (u16, Value) {
        self.post(&attachments(), json!({ "id": block })).await
    }

    pub(crate) async fn detach(&self, block: &str) -> (u16, Value) {
        self.delete(&format!("{}/{block}", attachments())).await
    }
}

/// The path of the blocks of [`NETWORK`].
pub(crate) fn attachments() -> String {
    format!("/networks/v1/public-networks/{NETWORK}/ip-blocks")
}

pub(crate) fn wish() -> Value {
    json!({ "location": "NLD", "cidrBlockSize": "/29" })
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// An account with [`NETWORK`].
pub(crate) fn account() -> PhoenixnapSim {
    let sim = PhoenixnapSim::builder().seed(1).build();
    sim.add_network(NetworkSpec::with_id(NETWORK, "k8s-vips"));
    sim
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}
