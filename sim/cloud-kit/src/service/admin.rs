//! The admin path: faults, latency and journal over HTTP, for programs that run a simulator from outside.
//!
//! - `GET|POST|DELETE /_sim/faults`, `DELETE /_sim/faults/<id>`: list, add one rule, remove all or one
//! - `GET /_sim/journal`, `GET /_sim/overlaps`
//! - `GET|PUT /_sim/latency`: `{"latency_ms": 20}`
//! - anything else belongs to the cloud itself
//!
//! Requests here are neither recorded nor struck by faults. There is no authentication: a simulator listens for tests.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CloudService, Reply, json as reply, no_content};
use crate::faults::{Fault, FaultId};

#[derive(Deserialize)]
struct Latency {
    #[serde(with = "crate::millis")]
    latency_ms: Duration,
}

impl CloudService {
    pub(super) fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Reply {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match (method.as_str(), segments.as_slice()) {
            ("GET", ["faults"]) => reply(StatusCode::OK, &to_value(&self.faults.list())),
            ("POST", ["faults"]) => match serde_json::from_slice::<Fault>(body) {
                Ok(fault) => reply(StatusCode::CREATED, &json!({ "id": self.faults.add(fault) })),
                Err(error) => bad_request(&error),
            },
            ("DELETE", ["faults"]) => {
                self.faults.clear();
                no_content()
            }
            ("DELETE", ["faults", id]) => match serde_json::from_str::<FaultId>(id) {
                Ok(id) if self.faults.remove(id) => no_content(),
                _ => not_found(),
            },
            ("GET", ["journal"]) => reply(StatusCode::OK, &to_value(&self.journal.entries())),
            ("GET", ["overlaps"]) => reply(StatusCode::OK, &to_value(&self.journal.overlaps())),
            ("GET", ["latency"]) => reply(
                StatusCode::OK,
                &json!({ "latency_ms": self.latency().as_millis() as u64 }),
            ),
            ("PUT", ["latency"]) => match serde_json::from_slice::<Latency>(body) {
                Ok(latency) => {
                    self.set_latency(latency.latency_ms);
                    no_content()
                }
                Err(error) => bad_request(&error),
            },
            _ => self.cloud.admin(method, path, body).unwrap_or_else(not_found),
        }
    }
}

fn to_value<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn bad_request(error: &serde_json::Error) -> Reply {
    reply(StatusCode::BAD_REQUEST, &json!({ "detail": error.to_string() }))
}

fn not_found() -> Reply {
    reply(StatusCode::NOT_FOUND, &json!({ "detail": "no such admin path" }))
}
