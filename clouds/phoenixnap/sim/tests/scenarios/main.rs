//! The scenarios of this folder: calls of the APIs, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;

use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words};
use bowline_phoenixnap_sim::kit::Double;
use bowline_phoenixnap_sim::{PhoenixnapSim, Scope};
use http::Request;
use serde_json::{Value, json};

use crate::support::{Caller, account};

#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/support.rs"]
mod support;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// An account with a network, and who calls.
struct Lab {
    caller: Caller,
}

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            caller: Caller::new(&account()).await,
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.caller.sim)
    }

    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        let sim = &self.caller.sim;
        let asked = match words.verb {
            "log-in" => {
                let [id, secret, scopes] = words.exactly()?;
                Some(support::ask(sim, id, secret, &scopes.replace('+', " ")).await)
            }
            "form" => Some(ask_in_form(sim, words.rest).await),
            _ => None,
        };
        if let Some((status, body)) = asked {
            let status = Some(status);
            return Ok(Some(Answer {
                status,
                body,
                ..Answer::default()
            }));
        }
        let token = format!("Bearer {}", self.caller.token());
        let Some(request) = calls::request(words, &[("authorization", &token)]) else {
            return Ok(None);
        };
        Ok(Some(calls::send(self.caller.sim.service(), request).await))
    }

    fn said(answer: &Value) -> String {
        let errors = answer["validationErrors"].as_array().into_iter().flatten();
        let told = ["message", "detail", "error"].iter().map(|name| &answer[name]);
        let told = told.chain(errors).filter_map(Value::as_str);
        told.collect::<Vec<_>>().join("; ")
    }

    fn state(&self) -> Value {
        let sim = &self.caller.sim;
        let mut state = sim.objects();
        state["cloud"] = sim.snapshot();
        state["invariants"] = json!(sim.check_invariants());
        let statuses = sim.networks();
        let statuses = statuses.iter().map(|network| sim.network_status(&network.id));
        state["network_statuses"] = json!(statuses.collect::<Vec<_>>());
        state
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let sim = &self.caller.sim;
        match words.verb {
            "credentials" => {
                let [id, secret, scopes] = words.exactly()?;
                let scopes = match scopes {
                    "all" => Scope::ALL.to_vec(),
                    "bmc" => vec![Scope::Bmc, Scope::BmcRead],
                    other => return Err(format!("{other:?}: which scopes?")),
                };
                sim.set_credentials(id.replace('+', " "), secret, scopes);
            }
            "revoke" => sim.revoke_credentials(words.rest),
            "as" => self.caller = Caller::with_token(sim, words.rest),
            "scopes" => self.caller = Caller::with_scopes(sim, words.rest).await,
            "join" => {
                let [network, server, address] = words.exactly()?;
                let address = address.parse().map_err(|_| "no address")?;
                sim.join_network(network, server, [address]);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Asks for a token with the credentials in the form.
async fn ask_in_form(sim: &PhoenixnapSim, form: &str) -> (u16, Value) {
    let request = Request::post(PhoenixnapSim::TOKEN_PATH)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned())
        .unwrap();
    let (status, text) = support::send(sim, request).await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}
