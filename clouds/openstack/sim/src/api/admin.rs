//! The simulator's own paths below `/_sim/`, beside those of the kit.
//!
//! - `GET|PUT /_sim/behaviour`: the switches; a PUT may name some of them only
//! - `DELETE /_sim/tokens`: all logins are bad from now on
//! - `GET /_sim/snapshot`, `GET /_sim/invariants`
//! - `GET /_sim/bound`: where the data plane really listens

use bowline_cloud_kit::Reply;
use bowline_cloud_kit::admin::{self, done, shown};
use http::Method;

use crate::snapshot;
use crate::state::State;

pub(super) fn answer(state: &mut State, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
    admin::answer(match (method.as_str(), path) {
        (_, "behaviour") => admin::switches(&mut state.behaviour, method, body),
        ("DELETE", "tokens") => {
            state.identity.revoke_all();
            done(true)
        }
        ("GET", "snapshot") => shown(&snapshot::take(state)),
        ("GET", "invariants") => shown(&snapshot::violations(state)),
        ("GET", "bound") => shown(&state.bound),
        _ => Ok(None),
    })
}
