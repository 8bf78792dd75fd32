//! The scenarios of this folder: the provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::sync::Arc;

use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::{CloudProvider, Node};
use bowline_cloudscale_sim::kit::{Double, Entry, World as SimWorld};
use bowline_cloudscale_sim::{Behaviour, FloatingSpec, InterfaceSpec, ManualPool, Scope, ServerSpec, Target};
use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed};
use bowline_kit::{Interruption, Run, Services};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::World;

#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/world.rs"]
mod world;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// The world of the tests.
struct Lab {
    world: World,
}

fn id(text: &str) -> Result<Uuid, Complaint> {
    text.parse().map_err(|_| format!("{text:?} is no ID"))
}

/// What is written: the kind of thing, in a path.
fn kind(path: &str) -> &str {
    let kinds = [
        "members",
        "health-monitors",
        "listeners",
        "pools",
        "floating-ips",
        "load-balancers",
    ];
    kinds
        .into_iter()
        .find(|kind| path.split('/').any(|part| part == *kind))
        .unwrap()
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self { world: World::new() }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.world.sim)
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.world.services)
    }

    fn put_service(&self, key: &str, uid: Option<&str>, ports: Vec<ServicePort>) {
        let mut service = world::service(key, &[]);
        service.spec.as_mut().unwrap().ports = Some(ports);
        if let Some(uid) = uid {
            service.metadata.uid = Some(uid.to_owned());
        }
        self.world.put(service);
    }

    fn annotation(&self, name: &str) -> String {
        world::key(name)
    }

    fn nodes(&mut self) -> Option<&mut Vec<Arc<Node>>> {
        Some(&mut self.world.nodes)
    }

    fn add_node(&mut self, name: &str) {
        self.world.add_node(name);
    }

    fn add(&mut self, kind: &str, spec: Value) -> Result<String, Complaint> {
        let word = |name: &str| spec[name].as_str().unwrap_or_default();
        let sim = &self.world.sim;
        let added = match kind {
            "load_balancer" => {
                let tags = serde_json::from_value(spec["tags"].clone()).unwrap_or_default();
                sim.add_load_balancer(word("name"), tags)
            }
            "pool" => sim.add_pool(ManualPool::new(id(word("load_balancer"))?, word("name"))),
            "twin" => sim
                .duplicate_member(id(word("member"))?)
                .ok_or("no such member")?,
            "subnet" => {
                let cidr = word("cidr").parse().map_err(|_| "no cidr")?;
                sim.add_subnet(word("name"), cidr)
            }
            "node" | "server" => {
                let mut spec_of_server = ServerSpec::new(word("name"));
                spec_of_server.zone = spec["zone"].as_str().map(str::to_owned);
                if let Some(kinds) = spec["interfaces"].as_array() {
                    let interface = |kind: &Value| match kind.as_str() {
                        Some("public") => InterfaceSpec::Public { v6: true },
                        _ => InterfaceSpec::Private,
                    };
                    spec_of_server.interfaces = kinds.iter().map(interface).collect();
                } else if let Some(subnet) = spec["subnet"].as_str() {
                    spec_of_server.interfaces = match spec["address"].as_str() {
                        Some(address) => {
                            let address = address.parse().map_err(|_| "no address")?;
                            vec![InterfaceSpec::Addresses(vec![(id(subnet)?, address)])]
                        }
                        None => vec![
                            InterfaceSpec::Public { v6: true },
                            InterfaceSpec::Private,
                            InterfaceSpec::Subnet(id(subnet)?),
                        ],
                    };
                }
                match kind {
                    "node" => self.world.add_server_node(spec_of_server),
                    _ => sim.add_server(spec_of_server),
                }
            }
            "floating_ip" => {
                let server = spec["server"].as_str().map(id).transpose()?;
                let region = spec["region"].as_str();
                let address = sim.add_floating_ip(FloatingSpec {
                    address: spec["address"].as_str().and_then(|it| it.parse().ok()),
                    target: server.map(Target::Server),
                    scope: region.map_or(Scope::DefaultRegion, |it| Scope::Region(it.to_owned())),
                    ..FloatingSpec::default()
                });
                return Ok(address.to_string());
            }
            // Another Node that names the server of a Node.
            "second-node" => {
                let nodes = &mut self.world.nodes;
                let of = nodes.iter().find(|node| node.name.as_str() == word("of"));
                let provider_id = of.ok_or("no such node")?.provider_id.clone();
                nodes.push(Arc::new(Node {
                    provider_id,
                    ..Node::named(word("name"))
                }));
                Uuid::nil()
            }
            other => return Err(format!("no {other} can be added")),
        };
        Ok(added.to_string())
    }

    fn remove(&self, kind: &str, text: &str) -> Result<bool, Complaint> {
        let (sim, id) = (&self.world.sim, id(text)?);
        match kind {
            "load_balancer" => sim.delete_load_balancer(id),
            "pool" => sim.delete_pool(id),
            "listener" => drop(sim.delete_listener(id)),
            "member" => drop(sim.delete_member(id)),
            "monitor" => drop(sim.delete_health_monitor(id)),
            "server" => drop(sim.remove_server(id)),
            other => return Err(format!("no {other} can be removed")),
        }
        Ok(true)
    }

    fn node_name(number: usize) -> String {
        format!("n{number}")
    }

    async fn start(&mut self) -> Result<(), Complaint> {
        self.world.restart();
        Ok(())
    }

    fn provider(&self) -> Option<&dyn CloudProvider> {
        Some(&self.world.cloud)
    }

    async fn reconcile(&self, key: &str, interruption: Interruption, at_once: bool) -> Run {
        if at_once {
            self.world.pass(-world::HALF_AN_HOUR);
        }
        self.world.run_with(key, interruption).await
    }

    /// Somebody else's client.
    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        let Some(request) = calls::request(words, &[("authorization", "Bearer somebody-else")]) else {
            return Ok(None);
        };
        Ok(Some(calls::send(self.world.sim.service(), request).await))
    }

    fn operation(request: &Entry) -> String {
        match request.write {
            true => format!("{} {}", request.method, kind(&request.path)),
            false => format!("{} {}", request.method, request.path),
        }
    }

    fn refusal(_status: u16, text: &str) -> String {
        json!({ "detail": text }).to_string()
    }

    fn state(&self) -> Value {
        let mut state = self.world.sim.objects();
        state["cloud"] = json!(self.world.sim.snapshot());
        state["private_subnet"] = json!(self.world.sim.private_subnet());
        state
    }

    fn leftovers(&self) -> Vec<String> {
        let balancers = self.world.sim.load_balancers().into_iter();
        balancers.map(|it| format!("load balancer {}", it.name)).collect()
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            // The API has one of each, says so plainly, and takes twins of members: for those who count each write of a replacement.
            "plain" => self.world.sim.set_behaviour(|behaviour| {
                *behaviour = Behaviour {
                    unique_listener_ports: true,
                    one_monitor_per_pool: true,
                    duplicate_members: true,
                    ..SimWorld::Kind.behaviour()
                };
            }),
            "detach-listener" => {
                let [listener] = words.exactly()?;
                self.world.sim.detach_listener(id(listener)?);
            }
            "set-status" => {
                let [server, status] = words.exactly()?;
                let status = parsed(&json!(status))?;
                self.world.sim.set_server_status(id(server)?, status);
            }
            "rename-server" => {
                let [server, name] = words.exactly()?;
                self.world.sim.rename_server(id(server)?, name);
            }
            "cluster-name" => words.rest.clone_into(&mut self.world.cluster_name),
            "kubernetes" => self.world.minor = words.rest.parse().map_err(|_| "which minor version?")?,
            "nodes-gone" => self.world.nodes.clear(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
