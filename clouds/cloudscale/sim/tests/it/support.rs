//! A caller of the API that knows nothing but HTTP.

use std::net::IpAddr;

use bowline_cloudscale_sim::kit::TransportError;
use bowline_cloudscale_sim::{CloudscaleSim, ServerSpec};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// Calls in memory with one token.
pub(crate) struct Caller {
    pub(crate) sim: CloudscaleSim,
    token: String,
}

impl Caller {
    pub(crate) fn new(sim: &CloudscaleSim, token: &str) -> Self {
        Self {
            sim: sim.clone(),
            token: token.to_owned(),
        }
    }

    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> Result<(u16, Value), TransportError> {
        let body = if method == Method::GET {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "cloud.test")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Full::<bytes::Bytes>::from(body))
            .unwrap();
        let response = self.sim.service().send(request).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.try_send(Method::GET, path, Value::Null).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.try_send(Method::POST, path, body).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.try_send(Method::PATCH, path, body).await.unwrap()
    }

    pub(crate) async fn patch_owned(&self, path: String, body: Value) -> (u16, Value) {
        self.patch(&path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.try_send(Method::DELETE, path, Value::Null).await.unwrap()
    }
}

/// A complete load balancer: one pool, two members, one listener on 80, one TCP monitor.
pub(crate) struct Balancer {
    pub(crate) uuid: String,
    pub(crate) pool: String,
}

impl Balancer {
    pub(crate) async fn create(caller: &Caller, name: &str) -> Self {
        let members =
            ["one", "two"].map(|node| (private_server(&caller.sim, &format!("{name}-{node}")), 30080));
        Self::with_members(caller, name, &members).await
    }

    pub(crate) async fn with_members(caller: &Caller, name: &str, members: &[(IpAddr, u16)]) -> Self {
        let text = |value: &Value| value["uuid"].as_str().unwrap().to_owned();
        let (_, made) = caller.post("/v1/load-balancers", json!({ "name": name })).await;
        let uuid = text(&made);
        let body =
            json!({ "name": "tcp", "load_balancer": uuid, "algorithm": "round_robin", "protocol": "tcp" });
        let (status, made) = caller.post("/v1/load-balancers/pools", body).await;
        assert_eq!(status, 201, "{made}");
        let lb = Self {
            uuid,
            pool: text(&made),
        };
        for (address, port) in members {
            let body = json!({
                "name": format!("{address}:{port}"), "protocol_port": port, "monitor_port": port,
                "address": address, "subnet": caller.sim.private_subnet(),
            });
            let (status, made) = caller.post(&format!("{}/members", lb.pool_path()), body).await;
            assert_eq!(status, 201, "{made}");
        }
        let body = json!({ "name": "tcp/80", "pool": lb.pool, "protocol": "tcp", "protocol_port": 80 });
        let (status, made) = caller.post("/v1/load-balancers/listeners", body).await;
        assert_eq!(status, 201, "{made}");
        let body = json!({ "pool": lb.pool, "type": "tcp", "http": {} });
        let (status, made) = caller.post("/v1/load-balancers/health-monitors", body).await;
        assert_eq!(status, 201, "{made}");
        lb
    }

    pub(crate) fn path(&self) -> String {
        format!("/v1/load-balancers/{}", self.uuid)
    }

    pub(crate) fn pool_path(&self) -> String {
        format!("/v1/load-balancers/pools/{}", self.pool)
    }
}

/// Adds a server and answers its private address.
pub(crate) fn private_server(sim: &CloudscaleSim, name: &str) -> IpAddr {
    let uuid = sim.add_server(ServerSpec::new(name));
    sim.server(uuid).unwrap().interfaces[1].addresses[0].address
}
