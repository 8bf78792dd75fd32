//! The scenarios of this folder: the provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::sync::Arc;

use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment, Node};
use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed};
use bowline_kit::{Interruption, Run, Services, predict};
use bowline_openstack::Options;
use bowline_openstack_sim::kit::{Double, Entry};
use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{Id, NicSpec, Provisioning, ServerSpec, Service};
use serde_json::{Map, Value, json};

use crate::whole::{LOGIN, Whole};
use crate::world::World;

mod upstream;
mod whole;
#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/world.rs"]
mod world;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// The world of the tests, and what its file says.
struct Lab {
    world: World,
    /// Lines of the section `[LoadBalancer]`, and sections after it.
    lines: Vec<String>,
    /// `OCCM_WAIT_LB_ACTIVE_STEPS`
    wait_steps: Option<String>,
    whole: Whole,
}

fn parsed_id(text: &str) -> Result<Id, Complaint> {
    text.parse().map_err(|_| format!("{text} is no ID"))
}

impl Lab {
    /// The operator sets an option as in the file, and the process starts anew.
    fn set_option(&mut self, line: &str) -> Result<(), Complaint> {
        match line.strip_prefix("OCCM_WAIT_LB_ACTIVE_STEPS=") {
            Some(steps) => self.wait_steps = Some(steps.to_owned()),
            None => {
                let key = line.split('=').next().unwrap_or_default();
                self.lines
                    .retain(|it| line.starts_with('[') || it.split('=').next() != Some(key));
                // Sections of classes stand behind the section itself.
                let at = if line.starts_with('[') {
                    self.lines.len()
                } else {
                    0
                };
                self.lines.insert(at, line.to_owned());
            }
        }
        let contents = format!("{LOGIN}[LoadBalancer]\n{}\n", self.lines.join("\n"));
        let config = CloudConfig::Given {
            path: "cloud.conf".into(),
            contents: contents.into(),
        };
        let steps = self
            .wait_steps
            .as_deref()
            .map(|steps| ("OCCM_WAIT_LB_ACTIVE_STEPS", steps));
        let environment: Environment = steps.into_iter().collect();
        let options = Options::read(&config, &environment, &|path| std::fs::read(path));
        let options = options.map_err(|error| error.to_string())?;
        if !options.warnings.is_empty() {
            return Err(format!("{:?}", options.warnings));
        }
        let options = options.load_balancer.ok_or("the section is switched off")?;
        if options == self.world.options {
            return Err("it is so already".to_owned());
        }
        self.world.configure(|there| *there = options);
        Ok(())
    }
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            world: World::over(world::builder().build()),
            lines: Vec::new(),
            wait_steps: None,
            whole: Whole::default(),
        }
    }

    fn another_cluster(&self) -> Option<Self> {
        let world = self.world.another_cluster();
        Some(Self {
            world,
            lines: self.lines.clone(),
            wait_steps: self.wait_steps.clone(),
            whole: Whole::default(),
        })
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
        match uid {
            Some(uid) => self.world.put_as(uid, service),
            None => self.world.put(service),
        }
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
        let (sim, home) = (&self.world.sim, self.world.sim.home());
        let word = |name: &str| spec[name].as_str().unwrap_or_default();
        let id = |name: &str| -> Option<Id> { spec[name].as_str()?.parse().ok() };
        let list =
            |name: &str| -> Vec<String> { serde_json::from_value(spec[name].clone()).unwrap_or_default() };
        let added = match kind {
            "load_balancer" => sim.add_load_balancer(word("name"), list("tags")),
            "floating_ip" => sim.add_floating_ip(parsed(&spec)?),
            "network" => sim.add_network(parsed(&spec)?),
            "subnet" => {
                let mut subnet = json!({ "network": home.network });
                subnet
                    .as_object_mut()
                    .unwrap()
                    .extend(parsed::<Map<_, _>>(&spec)?);
                sim.add_subnet(parsed(&subnet)?)
            }
            "port" => {
                let address = spec["address"].as_str().map(|it| it.parse());
                let address = address.transpose().map_err(|_| "no address")?;
                let fixed = address.map(|address| FixedIp {
                    subnet: id("subnet").unwrap_or(home.subnet),
                    address,
                });
                sim.add_port(word("name"), fixed.into_iter().collect())
            }
            "group" => sim.add_security_group(word("name"), word("description")),
            "redirect" => {
                let listener = id("listener").ok_or("no listener")?;
                sim.add_redirect(listener).ok_or("no such listener")?
            }
            "server" => sim.add_server(parsed(&spec)?),
            "subport" => {
                let (parent, network) = (
                    id("parent").ok_or("no parent")?,
                    id("network").ok_or("no network")?,
                );
                sim.add_subport(parent, network, 100)
            }
            "secret" => sim.add_secret(word("name")),
            "node" => {
                let nic = |network: Option<Id>| NicSpec {
                    network,
                    addresses: list("addresses")
                        .iter()
                        .filter_map(|it| it.parse().ok())
                        .collect(),
                    port_security: spec["port_security"].as_bool(),
                    ..NicSpec::default()
                };
                let networks: Vec<String> = list("networks");
                let nics: Vec<NicSpec> = match networks.is_empty() {
                    true => vec![nic(None)],
                    false => networks.iter().map(|network| nic(network.parse().ok())).collect(),
                };
                self.world.add_server_node(ServerSpec {
                    nics,
                    ..ServerSpec::new(word("name"))
                })
            }
            "project" => return Ok(sim.add_project(word("name"))),
            other => return Err(format!("no {other} can be added")),
        };
        Ok(added.to_string())
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        let (sim, id) = (&self.world.sim, parsed_id(id)?);
        match kind {
            "load_balancer" => sim.delete_load_balancer(id),
            "listener" => drop(sim.delete_listener(id)),
            "pool" => sim.delete_pool(id),
            "member" => drop(sim.delete_member(id)),
            "floating_ip" => drop(sim.remove_floating_ip(id)),
            "port" => sim.remove_port(id),
            "server" => drop(sim.remove_server(id)),
            other => return Err(format!("no {other} can be removed")),
        }
        Ok(true)
    }

    async fn start(&mut self) -> Result<(), Complaint> {
        self.world.restart();
        match self.whole.is_wanted {
            true => self.whole.start(&self.world.sim).await,
            false => Ok(()),
        }
    }

    fn provider(&self) -> Option<&dyn CloudProvider> {
        let whole = self.whole.cloud.as_ref();
        whole.map(|cloud| cloud as &dyn CloudProvider)
    }

    async fn reconcile(&self, key: &str, interruption: Interruption, at_once: bool) -> Run {
        match at_once {
            true => self.world.run_again(key).await,
            false => self.world.run_with(key, interruption).await,
        }
    }

    async fn predicted(&self, key: &str) -> PlanReport {
        predict(self.world.cloud.load_balancer().unwrap(), self.world.facts(key)).await
    }

    /// Somebody else's client.
    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        if calls::request(words, &[]).is_none() {
            return Ok(None);
        }
        let token = upstream::token(&self.world).await;
        let request = calls::request(words, &[("x-auth-token", &token)]).unwrap();
        Ok(Some(calls::send(self.world.sim.service(), request).await))
    }

    fn is_noise(request: &Entry) -> bool {
        request.path.starts_with("/identity") || request.path.matches('/').count() <= 1
    }

    /// As Octavia and Neutron tell it: each reads its own part.
    fn refusal(_status: u16, text: &str) -> String {
        let told = json!({
            "faultcode": "Client",
            "faultstring": text,
            "debuginfo": null,
            "NeutronError": { "type": "HTTPBadRequest", "message": text, "detail": "" },
        });
        told.to_string()
    }

    fn state(&self) -> Value {
        let mut state = self.world.sim.objects();
        state["cloud"] = json!(self.world.sim.snapshot());
        state["home"] = json!(self.world.sim.home());
        state
    }

    fn leftovers(&self) -> Vec<String> {
        self.world.sim.leftovers()
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "option" => self.set_option(&words.rest.replace("] ", "]\n"))?,
            // Lines of the file behind the login, with the section in front of its first one.
            "file" => self.whole.file += &format!("{}\n", words.rest.replace("] ", "]\n")),
            "variable" => {
                let (name, value) = words.rest.split_once('=').ok_or("NAME=VALUE")?;
                self.whole.variables.push((name.to_owned(), value.to_owned()));
            }
            "program" => {
                self.whole.is_wanted = true;
                self.whole.balances_nothing = words.rest == "nodes";
            }
            "whole" => {
                self.whole.is_wanted = true;
                self.whole.start(&self.world.sim).await?;
            }
            "without" => {
                let service = match words.rest {
                    "compute" => Service::Compute,
                    "key-manager" => Service::KeyManager,
                    _ => Service::LoadBalancer,
                };
                self.world = World::over(world::builder().without(service).build());
            }
            "regions" => {
                let regions = words.rest.split_whitespace();
                self.world = World::over(world::builder().regions(regions).build());
            }
            "password" => self.world = World::over(world::builder().user("demo", words.rest).build()),
            "wide" => {
                let range = words.rest.parse().map_err(|_| "no range")?;
                self.world = World::over(world::builder().private_range(range).build());
            }
            "cluster-name" => words.rest.clone_into(&mut self.world.cluster_name),
            "dual-stack" => {
                let range = "fd00:10::/64".parse().unwrap();
                self.world = World::over(world::builder().private_v6_range(range).build());
            }
            "as-upstream" => upstream::as_upstream(&mut self.world).await,
            "as-administrator" => self.world.restart_as_admin(),
            "first-node" => {
                let nodes = &mut self.world.nodes;
                nodes.sort_by_key(|node| node.name.as_str() != words.rest);
            }
            "one-page" => world::in_one_page(&self.world.sim),
            "reap" => self.world.reap().await,
            "break" | "lose" | "fail-over" | "finish" | "pending" | "exhaust" => {
                let [kind, id] = words.exactly()?;
                self.strike(words.verb, kind, parsed_id(id)?)?;
            }
            "lead" => {
                let [floating_ip, port] = words.exactly()?;
                let port = (port != "nowhere").then_some(port);
                let port = port.map(|it| it.parse().map_err(|_| "no port")).transpose()?;
                let floating_ip = floating_ip.parse().map_err(|_| "no floating IP")?;
                if !self.world.sim.assign_floating_ip(floating_ip, port) {
                    return Err("there is no way".to_owned());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Lab {
    /// What befalls an object: `VERB KIND ID`.
    fn strike(&self, verb: &str, kind: &str, id: Id) -> Result<(), Complaint> {
        let sim = &self.world.sim;
        match (verb, kind) {
            ("break", "load_balancer") => sim.break_load_balancer(id),
            ("lose", "load_balancer") => sim.lose_load_balancer(id),
            ("fail-over", "load_balancer") => sim.fail_over_load_balancer(id),
            ("finish", "load_balancer") => sim.end_change(id),
            ("pending", "load_balancer") => sim.set_provisioning(id, Provisioning::PendingUpdate),
            ("exhaust", "subnet") => sim.exhaust_subnet(id),
            _ => return Err(format!("{verb} {kind}: what is that?")),
        }
        Ok(())
    }
}
