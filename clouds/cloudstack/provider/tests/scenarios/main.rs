//! The scenarios of this folder: the provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::Transport;
use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::{CloudProvider, Node};
use bowline_cloudstack_sim::kit::{Double, Entry};
use bowline_cloudstack_sim::{Behaviour, CloudstackSim, UserSpec, VmSpec};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed};
use bowline_kit::{Interruption, Run, Services, balanced_service};
use serde_json::{Value, json};

use crate::described::undescribed;
use crate::disguise::{Dialect, Disguise};
use crate::site::Site;
use crate::world::{MACHINES, NAME, UID, World};

mod described;
mod disguise;
#[path = "../it/site.rs"]
mod site;
#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/world.rs"]
mod world;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// The world of the tests: three virtual machines with their Nodes, in an isolated network unless a VPC is asked for.
struct Lab {
    world: World,
}

/// The Service's UID, by which the names of its rules begin: the first Services have fixed ones.
fn uid(key: &str) -> String {
    match key {
        "web" => UID.to_owned(),
        "other" => "8c9e6679-7425-40de-944b-e07fc1f90ae7".to_owned(),
        "last" => "9c9e6679-7425-40de-944b-e07fc1f90ae7".to_owned(),
        key => {
            let sum: u32 = key.bytes().map(u32::from).sum();
            format!("{sum:08x}-0000-4000-8000-000000000000")
        }
    }
}

impl Lab {
    /// The ports that are served: with a rule that has all members, and open.
    fn served(&self) -> Vec<u16> {
        let openings = [self.world.openings(), self.world.acl_items()].concat();
        let is_open = |port: u16| {
            let mut words = openings.iter().flat_map(|open| open.split(' '));
            words.any(|word| word == port.to_string())
        };
        let rules = self.world.sim.rules().into_iter();
        let served = rules.filter(|rule| rule.members.len() == MACHINES.len() && is_open(rule.public_port));
        served.map(|rule| rule.public_port).collect()
    }
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            world: World::new().await,
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.world.sim)
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.world.services)
    }

    fn put_service(&self, key: &str, uid: Option<&str>, mut ports: Vec<ServicePort>) {
        let uid = uid.map_or_else(|| self::uid(key), str::to_owned);
        for port in &mut ports {
            let usual = format!("{}-{}", port.protocol.as_ref().unwrap(), port.port);
            port.name.get_or_insert_with(|| usual.to_lowercase());
        }
        let mut service = balanced_service(&format!("shop/{key}"), &uid);
        let spec = service.spec.as_mut().unwrap();
        spec.session_affinity = Some("None".to_owned());
        spec.ports = Some(ports);
        self.world.services.put(key, service);
    }

    fn annotation(&self, name: &str) -> String {
        format!("service.beta.kubernetes.io/cloudstack-load-balancer-{name}")
    }

    fn nodes(&mut self) -> Option<&mut Vec<Arc<Node>>> {
        Some(self.world.nodes.get_mut().unwrap())
    }

    fn add_node(&mut self, name: &str) {
        let there = self.world.sim.vm_named(name).map(|vm| vm.id);
        let id = there.unwrap_or_else(|| self.world.sim.add_vm(VmSpec::new(name)));
        self.world.add_node(name, Some(&id));
    }

    fn add_object(&self, kind: &str, spec: Value) -> Result<String, Complaint> {
        let word = |name: &str| spec[name].as_str().unwrap_or_default();
        let sim = &self.world.sim;
        Ok(match kind {
            "vm" => sim.add_vm(parsed(&spec)?),
            "network" => sim.add_network(parsed(&spec)?),
            "vpc" => sim.add_vpc(parsed(&spec)?),
            "address" => sim.take_address(parsed(&spec)?),
            "policy" => sim.add_policy(parsed(&spec)?),
            "rule" => sim.add_rule(parsed(&spec)?),
            "firewall" => sim.add_firewall_rule(parsed(&spec)?),
            "acl_item" => sim.add_acl_item(parsed(&spec)?),
            "acl_list" => sim.add_acl_list(word("name"), word("vpc")),
            "project" => sim.add_project(parsed(&spec)?),
            "job-fault" => {
                sim.fail_jobs(parsed(&spec)?);
                String::new()
            }
            "zone" => sim.add_zone(word("name")),
            "node" => {
                // Beside the machine of the name, or that of another name.
                self.world.add_node(word("name"), spec["vm"].as_str());
                String::new()
            }
            other => return Err(format!("no {other} can be added")),
        })
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        let sim = &self.world.sim;
        Ok(match kind {
            "rule" => sim.remove_rule(id),
            "firewall" => sim.remove_firewall_rule(id),
            "acl_item" => sim.remove_acl_item(id),
            "address" => sim.release_address(id),
            "vm" => sim.expunge_vm(id),
            other => return Err(format!("no {other} can be removed")),
        })
    }

    async fn start(&mut self) -> Result<(), Complaint> {
        let started = self.world.site.start().await;
        self.world.cloud = started.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn provider(&self) -> Option<&dyn CloudProvider> {
        Some(&self.world.cloud)
    }

    async fn reconcile(&self, key: &str, interruption: Interruption, _at_once: bool) -> Run {
        let mark = self.world.sim.journal().mark();
        let run = self.world.run_with(key, interruption).await;
        assert_eq!(
            undescribed(&self.world.sim.journal().since(mark)),
            Vec::<String>::new()
        );
        run
    }

    fn is_noise(request: &Entry) -> bool {
        request.operation == "queryAsyncJobResult"
    }

    fn refusal(status: u16, text: &str) -> String {
        let told = json!({ "response": { "uuidList": [], "errorcode": status, "cserrorcode": 4350, "errortext": text } });
        told.to_string()
    }

    /// Addresses are those that are somebody's, and rules have the names of their members; `openings` and `acls` are in words.
    fn state(&self) -> Value {
        let sim = &self.world.sim;
        let mut state = sim.objects();
        state["addresses"] = json!(sim.addresses());
        for rule in state["rules"].as_array_mut().unwrap() {
            let mut names = sim.member_names(rule["id"].as_str().unwrap_or_default());
            names.sort();
            rule["names"] = json!(names);
            let name = rule["name"].as_str().unwrap_or_default();
            rule["end"] = json!(name.replace(&format!("{NAME}-"), ""));
        }
        state["openings"] = json!(self.world.openings());
        state["acls"] = json!(self.world.acl_items());
        state["served"] = json!(self.served());
        state["rule_names"] = json!(self.world.rules());
        state
    }

    fn leftovers(&self) -> Vec<String> {
        let left = self.world.sim.snapshot();
        let kinds = ["addresses", "acl_items"].into_iter();
        let left = kinds.flat_map(|kind| left[kind].as_array().into_iter().flatten());
        left.map(ToString::to_string).chain(self.world.rules()).collect()
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "vpc" => self.world = World::vpc(words.rest).await,
            "place" => {
                let [place] = words.exactly()?;
                self.world = World::of(Site::new(), place == "vpc").await;
            }
            "carry-everything" => self.world.sim.set_behaviour(Behaviour::carry_everything),
            "remove-member" => {
                let [rule, vm] = words.exactly()?;
                self.world.sim.remove_member(rule, vm);
            }
            "static-nat" => {
                let [address, vm] = words.exactly()?;
                self.world.sim.set_static_nat(address, Some(vm));
            }
            "forward" => {
                let [address, port, vm] = words.exactly()?;
                let port = port.parse().map_err(|_| "no port")?;
                self.world.sim.add_port_forwarding(address, port, vm);
            }
            "mended" => {
                self.world.sim.faults().clear();
                self.world.sim.clear_job_faults();
            }
            "router-is-broken" => self.world.is_router_broken = true,
            "router-works" => self.world.is_router_broken = false,
            // The keys are those of somebody who sees every account.
            "as-admin" => {
                let admin = UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin();
                self.world = World::built(|builder| builder.user(admin), "").await;
            }
            // The last word is the key, before it is a line of the file.
            "secret-key" => {
                let (line, key) = words.rest.rsplit_once(' ').ok_or("which line?")?;
                let user = UserSpec::new(CloudstackSim::API_KEY, key);
                self.world = World::built(|builder| builder.user(user), &format!("{line}\n")).await;
            }
            // No virtual machines.
            "empty" => self.world = World::around(Site::new()).await,
            "zone" => self.world = World::built(|builder| builder.zone(words.rest), "").await,
            "disguised" => {
                let [place, dialect] = words.exactly()?;
                let dialect = match dialect {
                    "bare" => Dialect::Bare,
                    "networkless" => Dialect::Networkless,
                    "texts" => Dialect::Texts,
                    "wordy" => Dialect::Wordy,
                    "boastful" => Dialect::Boastful,
                    seconds => Dialect::Late(Duration::from_secs(
                        seconds.parse().map_err(|_| format!("no dialect {seconds}"))?,
                    )),
                };
                let disguise = Disguise::new(dialect);
                let mut site = Site::new();
                site.front = Some(Box::new(move |service| Transport::memory(disguise.over(service))));
                self.world = World::of(site, place == "vpc").await;
            }
            "end-stuck-jobs" => self.world.sim.end_stuck_jobs(),
            "clear-job-faults" => self.world.sim.clear_job_faults(),
            "exhaust-addresses" => self.world.sim.exhaust_addresses(),
            "file" => {
                let site = std::mem::replace(&mut self.world.site, Site::new());
                self.world.site = site.with(&format!("{}\n", words.rest));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
