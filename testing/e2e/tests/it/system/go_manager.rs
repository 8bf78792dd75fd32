//! What the vendor's Go manager leaves behind: balancers without marks, the Service's three annotations, finalizer and
//! status, initialised Nodes. Made by requests of its form and not by ours, so that one mistake is not made twice.

use bowline_cloudscale_sim::{Access, ServerSpec};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use uuid::Uuid;

use super::objects::{FINALIZER, key};
use super::world::World;

/// A token that only this manager has.
const TOKEN: &str = "the-go-manager-s-own";

/// Lets somebody else write to the cloud over its API.
async fn post(world: &World, path: &str, body: Value) -> Value {
    let request = http::Request::post(format!("/v1/load-balancers{path}"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let answer = world.sim.service().send(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status, 201, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// What it makes.
pub(crate) trait GoManager {
    /// A Node as the Go manager initialised it, with its server.
    fn go_node(&self, name: &str) -> Uuid;

    /// A Service with its balancer as the Go manager keeps them. Ports are (name, port, node port), all TCP.
    async fn go_service(&self, service: Value, ports: &[(&str, u16, u16)]);
}

impl GoManager for World {
    fn go_node(&self, name: &str) -> Uuid {
        let server = self.sim.add_server(ServerSpec::new(name));
        let state = self.sim.server(server).unwrap();
        let mut addresses = vec![json!({ "type": "Hostname", "address": name })];
        for interface in &state.interfaces {
            let kind = if interface.public {
                "ExternalIP"
            } else {
                "InternalIP"
            };
            for address in &interface.addresses {
                addresses.push(json!({ "type": kind, "address": address.address.to_string() }));
            }
        }
        let region = state.zone.trim_end_matches(|c: char| c.is_ascii_digit());
        self.apply(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": {
                "node.kubernetes.io/instance-type": state.flavor,
                "beta.kubernetes.io/instance-type": state.flavor,
                "topology.kubernetes.io/zone": state.zone,
                "failure-domain.beta.kubernetes.io/zone": state.zone,
                "topology.kubernetes.io/region": region,
                "failure-domain.beta.kubernetes.io/region": region,
            } },
            "spec": { "providerID": format!("cloudscale://{server}") },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }], "addresses": addresses },
        }));
        server
    }

    async fn go_service(&self, mut service: Value, ports: &[(&str, u16, u16)]) {
        self.sim.set_token(TOKEN, Access::ReadWrite);
        self.sim.set_token(super::world::TOKEN, Access::ReadWrite);
        let name = service["metadata"]["name"].as_str().unwrap().to_owned();
        let applied = self.apply(service.clone());
        let uid = applied["metadata"]["uid"].as_str().unwrap();

        let balancer =
            json!({ "name": format!("k8s-service-{uid}"), "flavor": "lb-standard", "zone": "rma1" });
        let balancer = post(self, "", balancer).await;
        for (name, port, node_port) in ports {
            let pool_name = if name.is_empty() {
                "tcp".to_owned()
            } else {
                format!("tcp/{name}")
            };
            let pool = json!({
                "name": pool_name, "load_balancer": balancer["uuid"],
                "algorithm": "round_robin", "protocol": "tcp",
            });
            let pool = post(self, "/pools", pool).await;
            for server in self.sim.servers() {
                for address in server
                    .interfaces
                    .iter()
                    .filter(|it| !it.public)
                    .flat_map(|it| &it.addresses)
                {
                    let member = json!({
                        "enabled": true, "name": format!("{}:{node_port}", address.address),
                        "protocol_port": node_port, "monitor_port": node_port,
                        "address": address.address.to_string(), "subnet": address.subnet.to_string(),
                    });
                    let path = format!("/pools/{}/members", pool["uuid"].as_str().unwrap());
                    post(self, &path, member).await;
                }
            }
            let listener = json!({
                "name": format!("tcp/{port}"), "pool": pool["uuid"], "protocol": "tcp", "protocol_port": port,
                "timeout_client_data_ms": 50_000, "timeout_member_connect_ms": 5_000,
                "timeout_member_data_ms": 50_000, "allowed_cidrs": [],
            });
            post(self, "/listeners", listener).await;
            let monitor = json!({
                "pool": pool["uuid"], "delay_s": 2, "timeout_s": 1, "up_threshold": 2, "down_threshold": 3,
                "type": "tcp",
            });
            post(self, "/health-monitors", monitor).await;
        }

        let annotations = &mut service["metadata"]["annotations"];
        annotations[key("uuid")] = balancer["uuid"].clone();
        annotations[key("config-version")] = json!("1");
        annotations[key("zone")] = json!("rma1");
        service["metadata"]["finalizers"] = json!([FINALIZER]);
        let ingress: Vec<Value> = balancer["vip_addresses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|vip| json!({ "ip": vip["address"], "ipMode": "Proxy" })) // the default of its annotation
            .collect();
        service["metadata"]["uid"] = applied["metadata"]["uid"].clone();
        service["spec"] = applied["spec"].clone();
        service["status"] = json!({ "loadBalancer": { "ingress": ingress } });
        self.apply(service);
        assert_eq!(self.addresses(&name).len(), 2);
    }
}
