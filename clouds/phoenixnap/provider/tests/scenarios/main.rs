//! The scenarios of this folder: the provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::Arc;

use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{CloudProvider, Node};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed};
use bowline_kit::{Interruption, Run, Services, predict};
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::{Double, Entry};
use serde_json::{Value, json};

use crate::oddity::Oddity;
use crate::world::{NETWORK, USUAL, World};

mod oddity;
#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/world.rs"]
mod world;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// The world of the tests: a network in `NLD`.
struct Lab {
    world: World,
    /// What the last run of the sweeper told and asked for.
    swept: Value,
    nodes: Vec<Arc<Node>>,
}

impl Lab {
    fn of(world: World) -> Self {
        Self {
            world,
            swept: Value::Null,
            nodes: Vec::new(),
        }
    }

    async fn sweep(&mut self) {
        let (notes, calls) = self.world.calls_of(self.world.sweep()).await;
        let notes = notes.iter().map(|note| {
            let mut shown = json!(note);
            shown["about"] = json!(note.about);
            shown
        });
        self.swept = json!({ "notes": notes.collect::<Vec<_>>(), "calls": calls });
    }
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self::of(World::new())
    }

    /// Another process on the same cluster.
    fn another_cluster(&self) -> Option<Self> {
        Some(Self::of(self.world.other_process("two")))
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.world.sim)
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.world.services)
    }

    fn put_service(&self, key: &str, _uid: Option<&str>, _ports: Vec<ServicePort>) {
        self.world.add(key);
    }

    fn annotation(&self, name: &str) -> String {
        format!("phoenixnap.com/{name}")
    }

    fn nodes(&mut self) -> Option<&mut Vec<Arc<Node>>> {
        Some(&mut self.nodes)
    }

    /// A Node with a server of its name.
    fn add_node(&mut self, name: &str) {
        let id = self.world.sim.add_server(ServerSpec::new(name));
        self.nodes.push(Arc::new(Node {
            provider_id: Some(format!("phoenixnap://{id}").into()),
            ..Node::named(name)
        }));
    }

    fn add_object(&self, kind: &str, spec: Value) -> Result<String, Complaint> {
        let sim = &self.world.sim;
        Ok(match kind {
            "block" => sim.add_block(parsed(&spec)?),
            "network" => sim.add_network(parsed(&spec)?),
            "server" => sim.add_server(parsed(&spec)?),
            "tag" => {
                sim.add_tag(spec["name"].as_str().unwrap_or_default());
                String::new()
            }
            other => return Err(format!("no {other} can be added")),
        })
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        let sim = &self.world.sim;
        Ok(match kind {
            "block" => sim.remove_block(id),
            "network" => sim.remove_network(id),
            "server" => sim.remove_server(id),
            "tag" => sim.remove_tag(id),
            other => return Err(format!("no {other} can be removed")),
        })
    }

    async fn start(&mut self) -> Result<(), Complaint> {
        self.world.restart();
        Ok(())
    }

    fn provider(&self) -> Option<&dyn CloudProvider> {
        Some(&self.world.cloud)
    }

    async fn reconcile(&self, key: &str, interruption: Interruption, _at_once: bool) -> Run {
        self.world.run_with(key, interruption).await
    }

    async fn predicted(&self, key: &str) -> PlanReport {
        let facts = self.world.facts(key, self.world.now());
        predict(self.world.cloud.load_balancer().unwrap(), facts).await
    }

    fn is_noise(request: &Entry) -> bool {
        request.operation == "public-networks.read" || request.operation == "token"
    }

    fn refusal(_status: u16, text: &str) -> String {
        json!({ "message": text }).to_string()
    }

    /// Blocks have the address that their Service gets.
    fn state(&self) -> Value {
        let sim = &self.world.sim;
        let mut state = sim.objects();
        for (shown, block) in state["blocks"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .zip(sim.blocks())
        {
            if let IpAddr::V4(network) = block.cidr.network() {
                shown["third"] = json!(Ipv4Addr::from_bits(network.to_bits() + 2));
                shown["sixth"] = json!(Ipv4Addr::from_bits(network.to_bits() + 5));
                shown["last"] = json!(block.cidr.broadcast());
            }
            let tags = block.tags.iter();
            shown["words"] = json!(
                tags.map(|tag| format!("{}={}", tag.name, tag.value.as_deref().unwrap_or_default()))
                    .collect::<Vec<_>>()
            );
        }
        state["swept"] = self.swept.clone();
        state["purchases"] = json!(sim.journal().count_operation("ip-blocks.create"));
        state
    }

    fn without_shown(mut object: Value) -> Value {
        if let Some(block) = object.as_object_mut() {
            block.retain(|name, _| !["third", "sixth", "last", "words"].contains(&name.as_str()));
        }
        object
    }

    fn leftovers(&self) -> Vec<String> {
        let blocks = self.world.sim.blocks().into_iter();
        blocks.map(|block| format!("block {}", block.id)).collect()
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "variables" => {
                let pairs = words.rest.split_whitespace();
                let pairs: Vec<(&str, &str)> = pairs.filter_map(|pair| pair.split_once('=')).collect();
                self.world.restart_with(&pairs);
            }
            "sweep" => self.sweep().await,
            "odd" => {
                let oddity: Oddity = parsed(&json!(words.rest))?;
                let sim = self.world.sim.clone();
                let cloud = world::provider_over(oddity.over(&sim), &world::options(USUAL), None);
                self.world = World::of(sim, cloud);
            }
            "failing-sweep" => {
                let Err(error) = self.world.try_sweep().await else {
                    return Err("it does not fail".to_owned());
                };
                self.swept = json!({ "error": error.to_string() });
            }
            "watch" => self.world.watch().await,
            "forget-tokens" => self.world.sim.forget_tokens(),
            "network-is" => {
                let status = match words.rest {
                    "well" => None,
                    status => Some(parsed(&json!(status))?),
                };
                self.world.sim.set_network_status(NETWORK, status);
            }
            "join" => {
                let [server, address] = words.exactly()?;
                let address: IpAddr = address.parse().map_err(|_| "no address")?;
                self.world.sim.join_network(NETWORK, server, [address]);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
