//! The simulator's own paths below `/_sim/`, beside those of the kit ([`bowline_cloud_kit::admin`]).
//!
//! - `GET /_sim/tokens`: the requests for tokens; `DELETE /_sim/tokens`: forget all tokens
//! - `POST /_sim/servers`, `PUT|DELETE /_sim/servers/<id>`: add; `{"status": "powered-off"}`; remove
//! - `POST /_sim/networks`, `PUT|DELETE /_sim/networks/<id>`: add; `{"status": "BUSY"}` or `null`; remove
//! - `POST /_sim/ip-blocks`, `PUT|DELETE /_sim/ip-blocks/<id>`: add; `{"status": "error assigning"}`; remove
//! - `PUT|DELETE /_sim/tags/<name>`: add or remove a tag name
//! - `GET|PUT /_sim/announcements`: who announces which address; a PUT replaces all

use bowline_cloud_kit::admin::{Done, done, made, parsed, shown};
use http::Method;
use serde::Deserialize;

use crate::model::{BlockStatus, NetworkStatus, ServerStatus};
use crate::state::State;

/// The body of a PUT that sets a status.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusOf<S> {
    status: S,
}

pub(super) fn answer(state: &mut State, method: &Method, segments: &[&str], body: &[u8]) -> Done {
    match segments {
        ["servers", rest @ ..] => servers(state, method, rest, body),
        ["networks", rest @ ..] => networks(state, method, rest, body),
        ["ip-blocks", rest @ ..] => blocks(state, method, rest, body),
        ["tags", name] => tags(state, method, name),
        [word] => whole(state, method, word, body),
        _ => Ok(None),
    }
}

fn whole(state: &mut State, method: &Method, word: &str, body: &[u8]) -> Done {
    match (method.as_str(), word) {
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
        _ => Ok(None),
    }
}

fn servers(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(state.insert_server(parsed(body)?)),
        ("PUT", [id]) => {
            let StatusOf::<ServerStatus> { status } = parsed(body)?;
            done(state.servers.get_mut(*id).map(|it| it.status = status).is_some())
        }
        ("DELETE", [id]) => done(state.remove_server(id)),
        _ => Ok(None),
    }
}

fn networks(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(state.insert_network(parsed(body)?)),
        ("PUT", [id]) => {
            let StatusOf::<Option<NetworkStatus>> { status } = parsed(body)?;
            done(state.networks.get_mut(*id).map(|it| it.status = status).is_some())
        }
        ("DELETE", [id]) => done(state.remove_network(id)),
        _ => Ok(None),
    }
}

fn blocks(state: &mut State, method: &Method, rest: &[&str], body: &[u8]) -> Done {
    match (method.as_str(), rest) {
        ("POST", []) => made(state.insert_block(parsed(body)?)?),
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
        "DELETE" => done(state.remove_tag(name)),
        _ => Ok(None),
    }
}
