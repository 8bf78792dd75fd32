//! The scenarios of this folder: commands of the API, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;

use bowline_cloudstack_sim::Behaviour;
use bowline_cloudstack_sim::kit::Double;
use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words};
use http::Method;
use serde_json::{Map, Value, json};

use crate::support::{Caller, cloud, text};

#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/support.rs"]
mod support;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// A cloud with the virtual machines `cp-a`, `pool-a-7` and `pool-a-8`, and who calls.
struct Lab {
    caller: Caller,
}

impl Lab {
    /// A command; a job that it begins is polled to its end, unless it is only to be begun.
    async fn command(&self, command: &str, rest: &str, begins_only: bool) -> Answer {
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        for word in rest.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            parameters.retain(|(other, _)| *other != name);
            parameters.push((name, value));
        }
        let is_read = ["list", "query"].iter().any(|it| command.starts_with(it));
        let method = if is_read { Method::GET } else { Method::POST };
        let (status, body) = self.caller.call(method, command, &parameters).await.unwrap();
        let fields = body.as_object().into_iter().flat_map(Map::values);
        let payload = fields.into_iter().next().cloned().unwrap_or_default();
        let end = match payload["jobid"].as_str() {
            Some(job) if !begins_only && !is_read => self.caller.end(job).await,
            _ => Ok(payload),
        };
        let (status, body) = match end {
            Ok(body) => (status, body),
            Err((code, text)) => (code.try_into().unwrap(), json!({ "errortext": text })),
        };
        Answer {
            status: Some(status),
            body,
            ..Answer::default()
        }
    }
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            caller: Caller::new(&cloud().0),
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.caller.sim)
    }

    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        if let Some(request) = calls::request(words, &[]) {
            return Ok(Some(calls::send(self.caller.sim.service(), request).await));
        }
        Ok(match words.verb {
            "begin" => {
                let (command, rest) = words.rest.split_once(' ').unwrap_or((words.rest, ""));
                Some(self.command(command, rest, true).await)
            }
            command if command.contains(|it: char| it.is_ascii_uppercase()) => {
                Some(self.command(command, words.rest, false).await)
            }
            _ => None,
        })
    }

    fn said(answer: &Value) -> String {
        let told = ["errortext", "detail"]
            .iter()
            .find_map(|name| answer[name].as_str());
        told.unwrap_or_default().to_owned()
    }

    fn state(&self) -> Value {
        let sim = &self.caller.sim;
        let mut state = sim.objects();
        state["cloud"] = sim.snapshot();
        state["home"] = json!({ "zone": sim.zone(), "network": sim.network() });
        state["held"] = json!(sim.addresses());
        state["jobs"] = json!(sim.jobs());
        state["invariants"] = json!(sim.check_invariants());
        let carried = |id: &Value| json!(sim.carried_rule(&text(id)));
        let rules = state["rules"].as_array().into_iter().flatten();
        state["carried"] = rules.map(|rule| carried(&rule["id"])).collect();
        state
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let sim = &self.caller.sim;
        match words.verb {
            "as" => {
                let [key, secret] = words.exactly()?;
                self.caller = Caller::with_keys(sim, key, secret);
            }
            "as-first" => self.caller = Caller::new(sim),
            "carries-everything" => sim.set_behaviour(Behaviour::carry_everything),
            "member" => {
                let [rule, vm] = words.exactly()?;
                sim.add_member(rule, vm);
            }
            "forward" => {
                let [address, port, vm] = words.exactly()?;
                sim.add_port_forwarding(address, port.parse().map_err(|_| "no port")?, vm);
            }
            "static-nat" => {
                let [address, vm] = words.exactly()?;
                sim.set_static_nat(address, (vm != "nobody").then_some(vm));
            }
            "without-service" => {
                sim.edit_network(&sim.network(), |it| it.services.retain(|name| name != words.rest));
            }
            "zone" => drop(sim.add_zone(words.rest)),
            "acl-list" => {
                let [name, vpc] = words.exactly()?;
                sim.add_acl_list(name, vpc);
            }
            "exhaust-addresses" => sim.exhaust_addresses(),
            "end-stuck-jobs" => sim.end_stuck_jobs(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
