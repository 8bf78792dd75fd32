//! The scenarios of this folder: calls of the API, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;

use bowline_cloudscale_sim::kit::Double;
use bowline_cloudscale_sim::{
    Access, CloudscaleSim, FloatingSpec, InterfaceSpec, Scope, ServerSpec, ServerStatus,
};
use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words};
use serde_json::{Value, json};

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// A project, and who calls.
struct Lab {
    sim: CloudscaleSim,
    token: String,
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            sim: CloudscaleSim::builder().build(),
            token: "t".to_owned(),
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.sim)
    }

    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        let token = format!("Bearer {}", self.token);
        let Some(request) = calls::request(words, &[("authorization", &token)]) else {
            return Ok(None);
        };
        Ok(Some(calls::send(self.sim.service(), request).await))
    }

    /// Each key with its text.
    fn said(answer: &Value) -> String {
        let fields = answer.as_object().into_iter().flatten();
        let fields = fields.filter_map(|(key, text)| Some(format!("{key}: {}", text.as_str()?)));
        fields.collect::<Vec<_>>().join("; ")
    }

    fn state(&self) -> Value {
        let mut state = self.sim.objects();
        state["cloud"] = self.sim.snapshot();
        state["invariants"] = json!(self.sim.check_invariants());
        state["private_subnet"] = json!(self.sim.private_subnet());
        state
    }

    fn add(&mut self, kind: &str, spec: Value) -> Result<String, Complaint> {
        let word = |name: &str| spec[name].as_str().map(str::to_owned);
        let name = word("name").unwrap_or_default();
        let is = |name: &str| spec[name] == json!(true);
        Ok(match kind {
            "server" => {
                let mut server = ServerSpec::new(name);
                server.zone = word("zone");
                if let Some(network) = word("network") {
                    let network = network.parse().map_err(|_| "no network")?;
                    let public = InterfaceSpec::Public { v6: true };
                    server.interfaces = vec![InterfaceSpec::Private, InterfaceSpec::Layer2(network), public];
                }
                self.sim.add_server(server).to_string()
            }
            "network" => self.sim.add_network(name).to_string(),
            "floating_ip" => {
                let scope = match spec["region"].as_str() {
                    Some("everywhere") => Scope::Global,
                    Some(region) => Scope::Region(region.to_owned()),
                    None => Scope::DefaultRegion,
                };
                let spec = FloatingSpec {
                    v6: is("v6"),
                    network: is("network"),
                    scope,
                    ..FloatingSpec::default()
                };
                self.sim.add_floating_ip(spec).to_string()
            }
            "twin" => {
                let member = word("member").and_then(|it| it.parse().ok()).ok_or("no member")?;
                self.sim
                    .duplicate_member(member)
                    .ok_or("no such member")?
                    .to_string()
            }
            other => return Err(format!("no {other} can be added")),
        })
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        let id = id.parse().map_err(|_| "no id")?;
        match kind {
            "monitor" => Ok(self.sim.delete_health_monitor(id)),
            "member" => Ok(self.sim.delete_member(id)),
            other => Err(format!("no {other} can be removed")),
        }
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "as" => words.rest.clone_into(&mut self.token),
            "token" => {
                let [token, access] = words.exactly()?;
                let access = match access {
                    "all" => Access::ReadWrite,
                    "reads" => Access::ReadOnly,
                    "elsewhere" => Access::EmptyProject,
                    other => return Err(format!("{other:?} is no access")),
                };
                self.sim.set_token(token, access);
            }
            "zones" => self.sim = CloudscaleSim::builder().zones(words.rest.split(' ')).build(),
            "stopped" => self
                .sim
                .set_server_status(words.rest.parse().unwrap(), ServerStatus::Stopped),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
