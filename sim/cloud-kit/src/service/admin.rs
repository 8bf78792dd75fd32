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
use serde_json::json;

use super::{CloudService, Reply, json as reply};
use crate::admin::{answer, done, made, parsed, shown};
use crate::faults::{Fault, FaultId};

#[derive(Deserialize)]
struct Latency {
    #[serde(with = "crate::millis")]
    latency_ms: Duration,
}

impl CloudService {
    pub(super) fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Reply {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let done = match (method.as_str(), segments.as_slice()) {
            ("GET", ["faults"]) => shown(&self.faults.list()),
            ("POST", ["faults"]) => parsed(body).and_then(|fault: Fault| made(self.faults.add(fault))),
            ("DELETE", ["faults"]) => {
                self.faults.clear();
                done(true)
            }
            ("DELETE", ["faults", id]) => {
                let id = serde_json::from_str::<FaultId>(id);
                done(id.is_ok_and(|id| self.faults.remove(id)))
            }
            ("GET", ["journal"]) => shown(&self.journal.entries()),
            ("GET", ["overlaps"]) => shown(&self.journal.overlaps()),
            ("GET", ["latency"]) => shown(&json!({ "latency_ms": self.latency().as_millis() as u64 })),
            ("PUT", ["latency"]) => parsed(body).and_then(|it: Latency| {
                self.set_latency(it.latency_ms);
                done(true)
            }),
            _ => Ok(self.cloud.admin(method, path, body)),
        };
        let missing = || reply(StatusCode::NOT_FOUND, &json!({ "detail": "no such admin path" }));
        answer(done).unwrap_or_else(missing)
    }
}
