//! The simulator's own paths below `/_sim/`, beside those of the kit ([`bowline_cloud_kit::admin`]).
//!
//! - `PUT|DELETE /_sim/servers/<id>`: `{"status": "SHUTOFF"}`; remove
//! - `DELETE /_sim/tokens`: all logins are bad from now on

use bowline_cloud_kit::admin::{Done, done, parsed};
use http::Method;
use serde::Deserialize;

use crate::model::Id;
use crate::state::State;

/// The body of a PUT that sets a server's status.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusOf {
    status: String,
}

pub(super) fn answer(state: &mut State, method: &Method, segments: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), segments) {
        (_, ["servers", id]) => server(state, method, id, body),
        ("DELETE", ["tokens"]) => {
            state.identity.revoke_all();
            done(true)
        }
        _ => Ok(None),
    }
}

fn server(state: &mut State, method: &Method, id: &str, body: &[u8]) -> Done {
    let Ok(id) = Id::parse_str(id) else {
        return done(false);
    };
    match method.as_str() {
        "PUT" => {
            let StatusOf { status } = parsed(body)?;
            done(state.servers.get_mut(&id).map(|it| it.status = status).is_some())
        }
        "DELETE" => done(state.remove_server(id)),
        _ => Ok(None),
    }
}
