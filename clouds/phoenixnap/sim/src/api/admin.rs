//! The simulator's own paths below `/_sim/`, beside those of the kit.
//!
//! - `GET|PUT /_sim/behaviour`: the switches; a PUT may name some of them only
//! - `GET /_sim/snapshot`, `GET /_sim/invariants`
//! - `GET /_sim/tokens`: the requests for tokens; `DELETE /_sim/tokens`: forget all tokens
//! - `POST /_sim/servers`, `PUT|DELETE /_sim/servers/<id>`: add; `{"status": "powered-off"}`; remove
//! - `POST /_sim/networks`, `PUT|DELETE /_sim/networks/<id>`: add; `{"status": "BUSY"}` or `null`; remove
//! - `POST /_sim/ip-blocks`, `PUT|DELETE /_sim/ip-blocks/<id>`: add; `{"status": "error assigning"}`; remove
//! - `PUT|DELETE /_sim/tags/<name>`: add or remove a tag name
//! - `GET|PUT /_sim/announcements`: who announces which address; a PUT replaces all
//! - `GET /_sim/bound`: where the data plane really listens

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::admin::{self, Done, done, made, parsed, shown};
use http::Method;
use serde::Deserialize;

use crate::model::{BlockStatus, NetworkStatus, ServerStatus};
use crate::sim;
use crate::snapshot;
use crate::state::State;

/// The body of a PUT that sets a status.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusOf<S> {
    status: S,
}

pub(super) fn answer(state: &mut State, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
    let segments: Vec<&str> = path.split('/').collect();
    admin::answer(match segments.as_slice() {
        ["servers", rest @ ..] => servers(state, method, rest, body),
        ["networks", rest @ ..] => networks(state, method, rest, body),
        ["ip-blocks", rest @ ..] => blocks(state, method, rest, body),
        ["tags", name] => tags(state, method, name),
        [word] => whole(state, method, word, body),
        _ => Ok(None),
    })
}

fn whole(state: &mut State, method: &Method, word: &str, body: &[u8]) -> Done {
    match (method.as_str(), word) {
        (_, "behaviour") => admin::switches(&mut state.behaviour, method, body),
        ("GET", "snapshot") => shown(&snapshot::take(state)),
        ("GET", "invariants") => shown(&snapshot::violations(state)),
        ("GET", "tokens") => shown(&state.token_requests),
        ("DELETE", "tokens") => {
            state.tokens.clear();
            done(true)
        }
        ("GET", "announcements") => shown(&state.announcements),
        ("PUT", "announcements") => {
            state.announcements = parsed(body)?;
            done(true)
        }
        ("GET", "bound") => shown(&state.bound),
        _ => Ok(None),
    }
}

fn servers(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(sim::insert_server(state, parsed(body)?)),
        ("PUT", [id]) => {
            let StatusOf::<ServerStatus> { status } = parsed(body)?;
            done(state.servers.get_mut(*id).map(|it| it.status = status).is_some())
        }
        ("DELETE", [id]) => done(sim::remove_server(state, id)),
        _ => Ok(None),
    }
}

fn networks(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(sim::insert_network(state, parsed(body)?)),
        ("PUT", [id]) => {
            let StatusOf::<Option<NetworkStatus>> { status } = parsed(body)?;
            done(state.networks.get_mut(*id).map(|it| it.status = status).is_some())
        }
        ("DELETE", [id]) => done(sim::remove_network(state, id)),
        _ => Ok(None),
    }
}

fn blocks(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(sim::insert_block(state, parsed(body)?)?),
        ("PUT", [id]) => {
            let StatusOf::<BlockStatus> { status } = parsed(body)?;
            let block = state.blocks.get_mut(*id);
            done(block.map(|it| (it.status, it.change) = (status, None)).is_some())
        }
        ("DELETE", [id]) => done(state.blocks.shift_remove(*id).is_some()),
        _ => Ok(None),
    }
}

fn tags(state: &mut State, method: &Method, name: &str) -> Done {
    match method.as_str() {
        "PUT" => {
            state.insert_tag(name, None, false);
            done(true)
        }
        "DELETE" => done(sim::remove_tag(state, name)),
        _ => Ok(None),
    }
}
