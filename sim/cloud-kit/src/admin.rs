//! What the admin paths of all simulators have in common: how they read, how they answer, and the switches.

use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::dataplane::Carrier;
use crate::reply::{self, Reply, no_content};
use crate::shared::Shared;
use crate::snapshot::Inspect;

/// What a request did; nothing if it names something that is not there; or why it is bad.
pub type Done = Result<Option<Reply>, String>;

/// What is sent for it; nothing if it names something that is not there.
pub fn answer(done: Done) -> Option<Reply> {
    done.unwrap_or_else(|text| Some(reply::json(StatusCode::BAD_REQUEST, &json!({ "detail": text }))))
}

/// A body.
///
/// # Errors
///
/// What is wrong with it.
pub fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Something to look at.
///
/// # Errors
///
/// Never; for the end of a function.
pub fn shown(what: &impl Serialize) -> Done {
    Ok(Some(reply::json(StatusCode::OK, &json!(what))))
}

/// Something was made, and this is its id.
///
/// # Errors
///
/// Never; for the end of a function.
pub fn made(id: impl Serialize) -> Done {
    Ok(Some(reply::json(StatusCode::CREATED, &json!({ "id": id }))))
}

/// Something was done, if it was there.
///
/// # Errors
///
/// Never; for the end of a function.
pub fn done(is_done: bool) -> Done {
    Ok(is_done.then(no_content))
}

/// `GET|PUT /_sim/behaviour`: a PUT may name some of the switches only.
///
/// # Errors
///
/// If the body is no object or does not fit.
fn switches<B: Serialize + DeserializeOwned>(behaviour: &mut B, method: &Method, body: &[u8]) -> Done {
    match method.as_str() {
        "GET" => shown(behaviour),
        "PUT" => {
            let changes: Map<String, Value> = parsed(body)?;
            let mut all = json!(behaviour);
            if let Some(fields) = all.as_object_mut() {
                fields.extend(changes);
            }
            *behaviour = serde_json::from_value(all).map_err(|error| error.to_string())?;
            done(true)
        }
        _ => Ok(None),
    }
}

/// What all simulators have below `/_sim/`, and behind it what is the cloud's own, by the segments of its path:
///
/// - `GET|PUT /_sim/behaviour`: the switches; a PUT may name some of them only
/// - `GET /_sim/snapshot`, `GET /_sim/invariants`
/// - `GET /_sim/bound`: where the data plane really listens
pub fn paths<S: Carrier + Inspect>(
    shared: &Shared<S>,
    method: &Method,
    path: &str,
    body: &[u8],
    own: impl FnOnce(&mut S, &[&str]) -> Done,
) -> Option<Reply> {
    let segments: Vec<&str> = path.split('/').collect();
    answer(
        shared.write(|state| match (method.as_str(), segments.as_slice()) {
            (_, ["behaviour"]) => switches(state.behaviour(), method, body),
            ("GET", ["snapshot"]) => shown(&state.snapshot()),
            ("GET", ["invariants"]) => shown(&state.violations()),
            ("GET", ["bound"]) => shown(state.bound()),
            (_, segments) => own(state, segments),
        }),
    )
}
