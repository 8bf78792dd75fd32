//! The simulator's own paths below `/_sim/`, beside those of the kit.
//!
//! - `GET|PUT /_sim/behaviour`: the switches; a PUT may name some of them only
//! - `GET /_sim/snapshot`, `GET /_sim/invariants`
//! - `GET /_sim/bound`: where the data plane really listens

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::service::{json, merged, no_content};
use http::{Method, StatusCode};
use serde_json::json as value;

use crate::snapshot;
use crate::state::State;

pub(super) fn answer(state: &mut State, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
    match (method.as_str(), path) {
        ("GET", "behaviour") => Some(json(
            StatusCode::OK,
            &serde_json::to_value(&state.behaviour).ok()?,
        )),
        ("PUT", "behaviour") => Some(match merged(&state.behaviour, body) {
            Ok(behaviour) => {
                state.behaviour = behaviour;
                no_content()
            }
            Err(error) => json(StatusCode::BAD_REQUEST, &value!({ "detail": error.to_string() })),
        }),
        ("GET", "snapshot") => Some(json(
            StatusCode::OK,
            &serde_json::to_value(snapshot::take(state)).ok()?,
        )),
        ("GET", "invariants") => Some(json(StatusCode::OK, &value!(snapshot::violations(state)))),
        ("GET", "bound") => Some(json(StatusCode::OK, &value!(state.bound))),
        _ => None,
    }
}
