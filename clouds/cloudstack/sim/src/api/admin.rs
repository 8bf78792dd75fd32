//! The simulator's own paths below `/_sim/`, beside those of the kit ([`bowline_cloud_kit::admin`]).
//!
//! - `GET /_sim/jobs`, `GET /_sim/home`
//! - `POST|DELETE /_sim/job-faults`: make jobs fail; let all succeed
//! - `POST /_sim/users`, `POST /_sim/projects`, `POST /_sim/networks`, `POST /_sim/vpcs`: add
//! - `POST /_sim/virtual-machines`, `PUT|DELETE /_sim/virtual-machines/<id>`: add; `{"state": "Stopped"}`; expunge
//! - `POST /_sim/addresses`, `DELETE /_sim/addresses/<id>`: take as a user; release
//! - `POST /_sim/rules`, `DELETE /_sim/rules/<id>`, and the same for `firewall-rules` and `acl-items`
//! - `POST /_sim/policies`: give a rule a stickiness policy
//! - `POST /_sim/routers/<network id>/restart`: restart the router of a network

use bowline_cloud_kit::admin::{Done, done, made, parsed, shown};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::model::VmState;
use crate::state::State;

/// The body of a PUT that sets a state.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateOf {
    state: VmState,
}

pub(super) fn answer(state: &mut State, method: &Method, segments: &[&str], body: &[u8]) -> Done {
    match segments {
        ["virtual-machines", id] => vm(state, method, id, body),
        ["routers", network, "restart"] if *method == Method::POST => restart(state, network),
        [kind, id] => remove(state, method, kind, id),
        [word] if *method == Method::POST => add(state, word, body),
        [word] => whole(state, method, word),
        _ => Ok(None),
    }
}

fn whole(state: &mut State, method: &Method, word: &str) -> Done {
    match (method.as_str(), word) {
        ("GET", "jobs") => shown(&state.jobs.records()),
        ("GET", "home") => shown(&json!({ "zone": state.home.zone, "network": state.home.network })),
        ("DELETE", "job-faults") => {
            state.jobs.clear_faults();
            done(true)
        }
        _ => Ok(None),
    }
}

fn add(state: &mut State, word: &str, body: &[u8]) -> Done {
    match word {
        "job-faults" => {
            state.jobs.add_fault(parsed(body)?);
            done(true)
        }
        "users" => {
            let id = state.id();
            state.users.set(id.clone(), parsed(body)?);
            made(&id)
        }
        "projects" => made(state.insert_project(parsed(body)?)),
        "networks" => made(state.insert_network(parsed(body)?)),
        "vpcs" => made(state.insert_vpc(parsed(body)?)),
        "virtual-machines" => made(state.insert_vm(parsed(body)?)),
        "addresses" => made(state.insert_address(parsed(body)?)?),
        "policies" => made(state.insert_policy(parsed(body)?)),
        "rules" => made(state.insert_rule(parsed(body)?)),
        "firewall-rules" => made(state.insert_firewall_rule(parsed(body)?)),
        "acl-items" => made(state.insert_acl_item(parsed(body)?)),
        _ => Ok(None),
    }
}

fn vm(state: &mut State, method: &Method, id: &str, body: &[u8]) -> Done {
    match method.as_str() {
        "PUT" => {
            let StateOf { state: wanted } = parsed(body)?;
            done(state.vms.get_mut(id).map(|it| it.state = wanted).is_some())
        }
        "DELETE" => done(state.remove_vm(id)),
        _ => Ok(None),
    }
}

fn restart(state: &mut State, network: &str) -> Done {
    let is_there = state.networks.contains_key(network);
    if is_there {
        state.restart_router(network);
    }
    done(is_there)
}

fn remove(state: &mut State, method: &Method, kind: &str, id: &str) -> Done {
    if *method != Method::DELETE {
        return Ok(None);
    }
    done(match kind {
        "users" => state.users.remove(id),
        "addresses" => {
            let is_held = state.addresses.get(id).is_some_and(|it| it.owner.is_some());
            state.free(id);
            is_held
        }
        "rules" => state.remove_rule(id),
        "firewall-rules" => state.firewall.shift_remove(id).is_some(),
        "acl-items" => state.acl_items.shift_remove(id).is_some(),
        _ => false,
    })
}
