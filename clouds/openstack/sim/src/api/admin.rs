//! The simulator's own paths below `/_sim/`, beside those of the kit.
//!
//! - `GET|PUT /_sim/behaviour`: the switches; a PUT may name some of them only
//! - `PUT|DELETE /_sim/servers/<id>`: `{"status": "SHUTOFF"}`; remove
//! - `DELETE /_sim/tokens`: all logins are bad from now on
//! - `GET /_sim/snapshot`, `GET /_sim/invariants`
//! - `GET /_sim/bound`: where the data plane really listens

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::admin::{self, Done, done, parsed, shown};
use http::Method;
use serde::Deserialize;

use crate::model::Id;
use crate::snapshot;
use crate::state::State;

/// The body of a PUT that sets a server's status.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusOf {
    status: String,
}

pub(super) fn answer(state: &mut State, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
    admin::answer(match path.split_once('/') {
        Some(("servers", id)) => server(state, method, id, body),
        Some(_) => Ok(None),
        None => whole(state, method, path, body),
    })
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

fn whole(state: &mut State, method: &Method, word: &str, body: &[u8]) -> Done {
    match (method.as_str(), word) {
        (_, "behaviour") => admin::switches(&mut state.behaviour, method, body),
        ("DELETE", "tokens") => {
            state.identity.revoke_all();
            done(true)
        }
        ("GET", "snapshot") => shown(&snapshot::take(state)),
        ("GET", "invariants") => shown(&snapshot::violations(state)),
        ("GET", "bound") => shown(&state.bound),
        _ => Ok(None),
    }
}
