//! The scenarios of this folder: the provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::sync::Arc;

use bowline_cloud_provider::{Labels, Node};
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_cloudscale_sim::{InterfaceSpec, ManualPool, ServerSpec};
use bowline_kit::faults::{Faults, Journal};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words};
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
    /// The ID of what was added last.
    added: String,
}

fn id(text: &str) -> Result<Uuid, Complaint> {
    text.parse().map_err(|_| format!("{text:?} is no ID"))
}

impl Lab {
    /// `add KIND JSON`: an object of the project that Bowline did not make.
    fn add(&mut self, rest: &str) -> Result<(), Complaint> {
        let (kind, spec) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let spec: Value = serde_json::from_str(spec).map_err(|error| format!("{spec}: {error}"))?;
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
            "node" => {
                let mut spec_of_server = ServerSpec::new(word("name"));
                spec_of_server.zone = spec["zone"].as_str().map(str::to_owned);
                if let Some(subnet) = spec["subnet"].as_str() {
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
                self.world.add_server_node(spec_of_server)
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
        self.added = added.to_string();
        Ok(())
    }

    fn remove(&self, kind: &str, text: &str) -> Result<(), Complaint> {
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
        Ok(())
    }

    /// `node-is NAME JSON`: its labels, or another provider ID.
    fn change_node(&mut self, rest: &str) -> Result<(), Complaint> {
        let (name, spec) = rest.split_once(' ').ok_or("node-is NAME JSON")?;
        let spec: Value = serde_json::from_str(spec).map_err(|error| format!("{spec}: {error}"))?;
        let mut nodes = self.world.nodes.iter_mut();
        let node = nodes.find(|node| node.name.as_str() == name);
        let node = Arc::make_mut(node.ok_or_else(|| format!("no node {name}"))?);
        for (field, value) in spec.as_object().into_iter().flatten() {
            match field.as_str() {
                "provider_id" => node.provider_id = value.as_str().map(Into::into),
                "labels" => {
                    let labels = value.as_object().into_iter().flatten();
                    let labels =
                        labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
                    node.labels = labels.collect::<Labels>();
                }
                other => return Err(format!("a node has no {other} here")),
            }
        }
        Ok(())
    }
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            world: World::new(),
            added: String::new(),
        }
    }

    fn services(&self) -> &Services {
        &self.world.services
    }

    fn put_service(&self, key: &str, uid: Option<&str>, ports: &[(String, String, u16, u16)]) {
        let ports: Vec<(&str, &str, i32, i32)> = ports
            .iter()
            .map(|(name, protocol, port, node)| {
                (
                    name.as_str(),
                    protocol.as_str(),
                    i32::from(*port),
                    i32::from(*node),
                )
            })
            .collect();
        let mut service = world::service(key, &ports);
        if let Some(uid) = uid {
            service.metadata.uid = Some(uid.to_owned());
        }
        self.world.put(service);
    }

    fn annotation(&self, name: &str) -> String {
        match name.contains('/') {
            true => name.to_owned(),
            false => world::key(name),
        }
    }

    fn add_node(&mut self, name: &str) {
        self.world.add_node(name);
    }

    fn remove_node(&mut self, name: &str) -> bool {
        let before = self.world.nodes.len();
        self.world.remove_node(name);
        self.world.nodes.len() < before
    }

    fn node_name(number: usize) -> String {
        format!("n{number}")
    }

    async fn restart(&mut self) {
        self.world.restart();
    }

    async fn reconcile(&self, key: &str, interruption: Interruption, at_once: bool) -> Run {
        match at_once {
            true => self.world.run_after(0, key).await,
            false => self.world.run_with(key, interruption).await,
        }
    }

    fn journal(&self) -> &Journal {
        self.world.sim.journal()
    }

    fn faults(&self) -> &Faults {
        self.world.sim.faults()
    }

    fn operation(request: &Entry) -> String {
        match request.write {
            true => world::in_short(std::slice::from_ref(request)).remove(0),
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
        state["added"] = json!(self.added);
        state
    }

    fn replace(&self, kind: &str, id: &str, object: Value) -> Result<bool, Complaint> {
        let done = self.world.sim.replace(kind, id, object);
        done.map_err(|error| error.to_string())
    }

    fn switches(&self) -> Value {
        json!(self.world.sim.behaviour())
    }

    fn set_switches(&self, switches: Value) -> Result<(), Complaint> {
        let switches = serde_json::from_value(switches).map_err(|error| error.to_string())?;
        self.world.sim.set_behaviour(|behaviour| *behaviour = switches);
        Ok(())
    }

    fn violations(&self) -> Vec<String> {
        self.world.sim.check_invariants()
    }

    fn leftovers(&self) -> Vec<String> {
        let balancers = self.world.sim.load_balancers().into_iter();
        balancers.map(|it| format!("load balancer {}", it.name)).collect()
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "plain" => self.world.speaks_plainly(),
            "add" => self.add(words.rest)?,
            "remove" => {
                let [kind, id] = words.exactly()?;
                self.remove(kind, id)?;
            }
            "detach-listener" => {
                let [listener] = words.exactly()?;
                self.world.sim.detach_listener(id(listener)?);
            }
            "cluster-name" => words.rest.clone_into(&mut self.world.cluster_name),
            "kubernetes" => self.world.minor = words.rest.parse().map_err(|_| "which minor version?")?,
            "node-is" => self.change_node(words.rest)?,
            "nodes-gone" => self.world.nodes.clear(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
