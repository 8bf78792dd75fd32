//! The scenarios of this folder: calls of the APIs, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::ExitCode;

use bowline_kit::scenario::calls::{self, Answer};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, parsed};
use bowline_openstack_sim::kit::Double;
use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{Id, OpenstackSim, UserSpec};
use serde_json::{Map, Value, json};

use crate::support::{Caller, password};

mod described;
#[expect(dead_code, reason = "some of it is for the tests in Rust only")]
#[path = "../it/support.rs"]
mod support;

fn main() -> ExitCode {
    bowline_kit::scenario::main::<Lab>(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// A cloud, and who calls.
struct Lab {
    caller: Caller,
    /// Sent with the next call too.
    headers: Vec<(String, String)>,
}

/// Whose paths are long, in short.
const PREFIXES: [(&str, &str); 3] = [
    ("lb/", "/load-balancer/v2.0/lbaas/"),
    ("net/", "/network/v2.0/"),
    ("nova/", "/compute/v2.1/"),
];

impl ScenarioCloud for Lab {
    async fn begin() -> Self {
        Self {
            caller: Caller::new(&OpenstackSim::builder().build()).await,
            headers: Vec::new(),
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.caller.sim)
    }

    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        let mut whole = words.rest.to_owned();
        for (short, long) in PREFIXES {
            if let Some(rest) = words.rest.strip_prefix(short) {
                whole = format!("{long}{rest}");
            }
        }
        let words = Words {
            rest: &whole,
            ..*words
        };
        let mut headers = vec![("x-auth-token", self.caller.token.as_str())];
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        let Some(request) = calls::request(&words, &headers) else {
            return Ok(None);
        };
        self.headers.clear();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = calls::send(self.caller.sim.service(), request).await;
        match described::difference(method.as_str(), &path, &answer.body) {
            Some(difference) => Err(difference),
            None => Ok(Some(answer)),
        }
    }

    /// Octavia's words; those of Neutron behind their type; those of Keystone and Nova.
    fn said(answer: &Value) -> String {
        let text = |path: &str| answer.pointer(path).and_then(Value::as_str);
        if let (Some(kind), Some(message)) = (text("/NeutronError/type"), text("/NeutronError/message")) {
            return format!("{kind}: {message}");
        }
        let paths = [
            "/faultstring",
            "/error/message",
            "/itemNotFound/message",
            "/detail",
        ];
        paths.into_iter().find_map(text).unwrap_or_default().to_owned()
    }

    fn state(&self) -> Value {
        let sim = &self.caller.sim;
        let mut state = sim.objects();
        state["cloud"] = sim.snapshot();
        state["home"] = json!(sim.home());
        state["left"] = json!(sim.leftovers());
        state["token"] = json!(self.caller.token);
        state["user"] = json!(sim.user_id("demo"));
        state
    }

    fn add(&mut self, kind: &str, spec: Value) -> Result<String, Complaint> {
        let (sim, home) = (&self.caller.sim, self.caller.sim.home());
        let word = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
        let id = |name: &str| spec[name].as_str().and_then(|it| it.parse::<Id>().ok());
        let added = match kind {
            "server" => sim.add_server(parsed(&spec)?),
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
            "router" => sim.add_router(&word("name"), id("external")),
            "port" => {
                let fixed: Vec<FixedIp> = parsed(&spec["fixed_ips"])?;
                sim.add_port(&word("name"), fixed)
            }
            "subport" => {
                let (parent, network) = id("parent").zip(id("network")).ok_or("no parent or network")?;
                sim.add_subport(parent, network, 100)
            }
            "group" => sim.add_security_group(&word("name"), ""),
            "certificate" => sim.add_certificate(&word("name")),
            "flavor" => {
                sim.add_flavor(parsed(&spec)?);
                return Ok(word("id"));
            }
            "project" => return Ok(sim.add_project(&word("name"))),
            "user" => {
                let project = Some(word("project"));
                let user = UserSpec::new(word("name"), word("password"));
                return Ok(sim.add_user(UserSpec { project, ..user }));
            }
            "credential" => {
                return Ok(sim.add_application_credential(&word("user"), "ccm", &word("secret")));
            }
            "trust" => return Ok(sim.add_trust(&word("trustor"), &word("trustee"))),
            other => return Err(format!("no {other} can be added")),
        };
        Ok(added.to_string())
    }

    fn remove(&self, kind: &str, id: &str) -> Result<bool, Complaint> {
        let id: Id = id.parse().map_err(|_| "no ID")?;
        match kind {
            "port" => self.caller.sim.remove_port(id),
            "listener" => return Ok(self.caller.sim.delete_listener(id)),
            "server" => return Ok(self.caller.sim.remove_server(id)),
            other => return Err(format!("no {other} can be removed")),
        }
        Ok(true)
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let sim = &self.caller.sim;
        let id = |text: &str| text.parse::<Id>().map_err(|_| format!("{text} is no ID"));
        match words.verb {
            "as-admin" => self.caller = Caller::with(sim, &password("admin", "admin", "admin")).await,
            "as-user" => self.caller = Caller::new(sim).await,
            "as-nobody" => self.caller.token.clear(),
            "dual-stack" => {
                let range = "fd00:10::/64".parse().unwrap();
                self.caller = Caller::new(&OpenstackSim::builder().private_v6_range(range).build()).await;
            }
            "header" => {
                let (name, value) = words.rest.split_once(' ').ok_or("header NAME VALUE")?;
                self.headers.push((name.to_owned(), value.to_owned()));
            }
            "connect" => {
                let [router, subnet] = words.exactly()?;
                sim.connect(id(router)?, id(subnet)?).ok_or("no way")?;
            }
            "detach" => drop(sim.assign_floating_ip(id(words.rest)?, None)),
            "exhaust" => sim.exhaust_subnet(id(words.rest)?),
            "lose" => sim.lose_load_balancer(id(words.rest)?),
            "break" => sim.break_load_balancer(id(words.rest)?),
            "fail-over" => sim.fail_over_load_balancer(id(words.rest)?),
            "without-extension" => {
                let before = sim.behaviour().extensions.len();
                sim.set_behaviour(|it| it.extensions.retain(|alias| !alias.starts_with(words.rest)));
                if sim.behaviour().extensions.len() == before {
                    return Err("there is no such extension".to_owned());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
